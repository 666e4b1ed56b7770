//! Turns: a person's request until the final answer.

use quipu_message::synthetic::SYNTHETIC_MODEL;

use crate::conversation::{Conversation, Node};
use crate::headline::{headline, is_local_command};
use crate::user_text::user_prompt;

/// One turn: what was asked, and the nodes from there to the next request.
#[derive(Debug, Clone)]
pub struct Turn<'a> {
    /// What the person asked.
    pub prompt: String,
    /// The request and all that followed from it.
    pub nodes: Vec<&'a Node>,
}

impl Conversation {
    /// The turns of the conversation as it stands, as many as [`Metrics::turns`]. A local
    /// command that the model never answered is no turn of its own: it belongs to the turn
    /// before it, or to the first.
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

    /// What to call the conversation: its title, or what was asked first.
    pub fn headline(&self) -> Option<String> {
        let turns = self.turns();
        headline(self.title(), turns.first().map(|turn| turn.prompt.as_str())).map(str::to_owned)
    }
}

/// Gives the nodes of a last turn that is a local command without an answer to the turn
/// before it, or to those `before` all turns.
fn merge_unanswered_command<'a>(turns: &mut Vec<Turn<'a>>, before: &mut Vec<&'a Node>) {
    let is_answer =
        |node: &&Node| node.assistant().is_some_and(|line| line.message.model.text() != Some(SYNTHETIC_MODEL));
    if turns.last().is_some_and(|turn| is_local_command(&turn.prompt) && !turn.nodes.iter().any(is_answer))
        && let Some(command) = turns.pop()
    {
        turns.last_mut().map_or(before, |turn| &mut turn.nodes).extend(command.nodes);
    }
}
