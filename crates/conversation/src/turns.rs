//! Turns: a prompt of the user with everything until the next prompt.

use std::ops::Range;

use crate::conversation::Conversation;
use crate::headline::headline;
use crate::node::{EntryNode, Node, PromptKind};
use crate::user_text::user_prompt;

/// One turn: a prompt and the nodes up to the next prompt.
#[derive(Debug, Clone)]
pub struct Turn<'a> {
    /// Text of the prompt.
    pub prompt: String,
    /// The entry of the prompt and all entries that follow it.
    pub nodes: Vec<&'a Node>,
}

/// A turn as positions of the active path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnRange {
    /// Position of the prompt.
    pub(crate) prompt: usize,
    /// All positions of the turn.
    pub(crate) positions: Range<usize>,
}

impl Conversation {
    /// The turns of the active path; their number is [`Metrics::turns`]. A local command
    /// without a response is not a turn: it belongs to the turn before it, or to the first.
    ///
    /// [`Metrics::turns`]: crate::Metrics::turns
    pub fn turns(&self) -> Vec<Turn<'_>> {
        let path = self.path();
        let turn = |turn: TurnRange| Turn {
            prompt: path[turn.prompt].user().and_then(user_prompt).unwrap_or_default(),
            nodes: path[turn.positions].to_vec(),
        };
        turn_ranges(path.iter().copied()).into_iter().map(turn).collect()
    }

    /// One line that names the conversation: the title, or the first prompt. `None` if it has
    /// neither.
    pub fn headline(&self) -> Option<String> {
        let turns = self.turns();
        headline(self.title(), turns.first().map(|turn| turn.prompt.as_str())).map(str::to_owned)
    }
}

/// The turns of a path. Nodes before the first prompt belong to the first turn.
pub(crate) fn turn_ranges<'a, N: EntryNode + 'a>(path: impl IntoIterator<Item = &'a N>) -> Vec<TurnRange> {
    let mut prompts: Vec<usize> = Vec::new();
    let mut is_unanswered_command = false;
    let mut len = 0;
    for (position, node) in path.into_iter().enumerate() {
        len = position + 1;
        match node.prompt_kind() {
            PromptKind::None => is_unanswered_command &= !node.facts().is_response,
            kind => {
                if is_unanswered_command {
                    prompts.pop();
                }
                prompts.push(position);
                is_unanswered_command = kind == PromptKind::LocalCommand;
            }
        }
    }
    if is_unanswered_command {
        prompts.pop();
    }
    let ends = prompts.iter().skip(1).copied().chain([len]);
    let starts = [0].into_iter().chain(prompts.iter().skip(1).copied());
    let ranges = starts.zip(ends).map(|(start, end)| start..end);
    prompts.iter().zip(ranges).map(|(&prompt, positions)| TurnRange { prompt, positions }).collect()
}
