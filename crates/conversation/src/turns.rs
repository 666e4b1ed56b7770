//! Turns: a person's request until the final answer.

use crate::conversation::{Conversation, Node};
use crate::person::prompt;

/// One turn: what was asked, and the nodes from there to the next request.
#[derive(Debug, Clone)]
pub struct Turn<'a> {
    /// What the person asked.
    pub prompt: String,
    /// The request and all that followed from it.
    pub nodes: Vec<&'a Node>,
}

impl Conversation {
    /// The turns of the conversation as it stands. A local command that the model
    /// never answered is no turn of its own; it belongs to the one before.
    pub fn turns(&self) -> Vec<Turn<'_>> {
        let mut turns: Vec<Turn<'_>> = Vec::new();
        for node in self.path() {
            match node.user().and_then(prompt) {
                Some(prompt) => {
                    unite_unanswered(&mut turns);
                    turns.push(Turn { prompt, nodes: vec![node] });
                }
                None => {
                    if let Some(turn) = turns.last_mut() {
                        turn.nodes.push(node);
                    }
                }
            }
        }
        unite_unanswered(&mut turns);
        turns
    }
}

/// Gives the nodes of a local command nobody answered to the turn before it.
fn unite_unanswered(turns: &mut Vec<Turn<'_>>) {
    let Some(last) = turns.last() else { return };
    let local = last.prompt.starts_with('/') || last.prompt.starts_with("! ");
    if local
        && !last.nodes.iter().any(|node| node.assistant().is_some())
        && let Some(last) = turns.pop()
        && let Some(before) = turns.last_mut()
    {
        before.nodes.extend(last.nodes);
    }
}
