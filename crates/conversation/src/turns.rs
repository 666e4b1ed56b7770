//! Turns: a prompt of the user with everything until the next prompt.

use quipu_message::synthetic::SYNTHETIC_MODEL;

use crate::conversation::{Conversation, Node};
use crate::headline::{headline, is_local_command};
use crate::user_text::user_prompt;

/// One turn: a prompt and the nodes up to the next prompt.
#[derive(Debug, Clone)]
pub struct Turn<'a> {
    /// Text of the prompt.
    pub prompt: String,
    /// The entry of the prompt and all entries that follow it.
    pub nodes: Vec<&'a Node>,
}

impl Conversation {
    /// The turns of the active path; their number is [`Metrics::turns`]. A local command
    /// without a response is not a turn: it belongs to the turn before it, or to the first.
    ///
    /// [`Metrics::turns`]: crate::Metrics::turns
    pub fn turns(&self) -> Vec<Turn<'_>> {
        let mut turns: Vec<Turn<'_>> = Vec::new();
        let mut before: Vec<&Node> = Vec::new();
        for node in self.path() {
            let prompt = node.user().and_then(user_prompt);
            if prompt.is_some() {
                merge_unanswered_command(&mut turns, &mut before);
            }
            match (prompt, turns.last_mut()) {
                (Some(prompt), _) => {
                    let nodes = before.drain(..).chain([node]).collect();
                    turns.push(Turn { prompt, nodes });
                }
                (None, Some(turn)) => turn.nodes.push(node),
                (None, None) => before.push(node),
            }
        }
        merge_unanswered_command(&mut turns, &mut before);
        turns
    }

    /// One line that names the conversation: the title, or the first prompt. `None` if it has
    /// neither.
    pub fn headline(&self) -> Option<String> {
        let turns = self.turns();
        headline(self.title(), turns.first().map(|turn| turn.prompt.as_str())).map(str::to_owned)
    }
}

/// If the last turn is a local command without a response, moves its nodes to the turn before
/// it, or to `before` if there is none.
fn merge_unanswered_command<'a>(turns: &mut Vec<Turn<'a>>, before: &mut Vec<&'a Node>) {
    let is_response =
        |node: &&Node| node.assistant().is_some_and(|line| line.message.model.text() != Some(SYNTHETIC_MODEL));
    if turns.last().is_some_and(|turn| is_local_command(&turn.prompt) && !turn.nodes.iter().any(is_response))
        && let Some(command) = turns.pop()
    {
        turns.last_mut().map_or(before, |turn| &mut turn.nodes).extend(command.nodes);
    }
}
