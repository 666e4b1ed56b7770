//! From a line of a file to its place on the screen.

use quipu_message::{Block, Entry, ToolUseId};

use super::ScreenItem;
use crate::conversation::{Conversation, Node};

impl Conversation {
    /// The index of the item that shows a line of the session's own file.
    ///
    /// A tool result and a subagent's progress are shown by their tool call. A line that
    /// no item shows (a title, a text for the model alone) gives the item before it, or
    /// the first one. `None` if there are no items. `items` are this conversation's, some
    /// of them perhaps left out.
    pub fn item_at_line(&self, items: &[ScreenItem], line: u64) -> Option<usize> {
        let own = || items.iter().position(|item| item.line == line);
        let of_call = || {
            let calls: Vec<&ToolUseId> =
                self.nodes.iter().filter(|node| node.line == line).flat_map(calls_of).collect();
            items.iter().position(|item| item.tool.as_ref().is_some_and(|tool| calls.contains(&&tool.id)))
        };
        let inside = || items.iter().position(|item| holds(item, line));
        let before = || Some(items.iter().rposition(|item| item.line <= line).unwrap_or_default());
        (!items.is_empty()).then(|| own().or_else(of_call).or_else(inside).or_else(before)).flatten()
    }
}

/// The tool calls that an entry tells something of.
fn calls_of(node: &Node) -> Vec<&ToolUseId> {
    match &node.entry {
        Entry::User(user) => {
            let results = user.message.content.blocks().iter().filter_map(Block::tool_result);
            results.map(|result| &result.tool_use_id).collect()
        }
        Entry::Progress(line) => line.parent_tool_use_id.get().or(line.tool_use_id.get()).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether a line is shown within an item's subagent.
fn holds(item: &ScreenItem, line: u64) -> bool {
    let side = item.tool.as_ref().and_then(|tool| tool.subagent.as_ref());
    side.is_some_and(|side| side.items.iter().any(|item| item.line == line || holds(item, line)))
}
