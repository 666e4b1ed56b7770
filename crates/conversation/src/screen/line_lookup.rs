//! Finds the items that show a line of the file.

use std::ops::Range;

use quipu_message::{Block, Entry, ToolUseId};

use super::{ItemKind, ScreenItem, hooks, notice};
use crate::conversation::Conversation;
use crate::node::{EntryNode, Node};

impl Conversation {
    /// The indices of the items that show a line of the session's own file.
    ///
    /// A tool result and the progress of a subagent are shown by their tool call. For a line
    /// that no item shows (a title, a text for the model only) this is the item before it, or
    /// the first one. Empty if there are no items. `items` are items of this conversation;
    /// some may be missing.
    pub fn items_at_line(&self, items: &[ScreenItem], line: u64) -> Range<usize> {
        self.item_range_at_line(items, line, &())
    }
}

impl<N: EntryNode> Conversation<N> {
    /// As [`Conversation::items_at_line`].
    pub(crate) fn item_range_at_line(&self, items: &[ScreenItem], line: u64, reader: &N::Reader) -> Range<usize> {
        let shown = self.shown();
        let at_line = shown.nodes.iter().filter(|node| node.line() == line && shown.is_effective(node));
        let at_line: Vec<_> = at_line.filter_map(|node| node.load(reader, shown.file)).collect();
        let calls: Vec<&ToolUseId> = at_line.iter().flat_map(|node| related_calls(node)).collect();
        let is_call = |item: &ScreenItem| item.tool.as_ref().is_some_and(|tool| calls.contains(&&tool.id));
        let before = items.iter().rposition(|item| item.line <= line).unwrap_or_default();
        let is_own = |item: &ScreenItem| item.line == line && item.kind != ItemKind::Branch;
        item_range(items, |item| is_own(item) || is_call(item))
            .or_else(|| item_range(items, |item| contains_line(item, line)))
            .unwrap_or(before..items.len().min(before + 1))
    }
}

/// The range from the first to the last matching item.
fn item_range(items: &[ScreenItem], is_wanted: impl Fn(&ScreenItem) -> bool) -> Option<Range<usize>> {
    let first = items.iter().position(&is_wanted)?;
    let last = items.iter().rposition(&is_wanted)?;
    Some(first..last + 1)
}

/// The item of an entry that needs no other entry: a notice, hook, attachment or summary.
/// `None` for messages and for entries that are not shown. The line of the item is 0.
pub fn standalone_notice(entry: Entry) -> Option<ScreenItem> {
    let node = Node { line: 0, entry };
    match &node.entry {
        Entry::User(_) | Entry::Assistant(_) => None,
        Entry::Progress(_) => hooks::hook_item(&node),
        _ => notice::notice_item(&node).filter(|item| !item.hidden),
    }
}

/// Ids of the tool calls that an entry holds a result or progress of.
pub(crate) fn related_calls(node: &Node) -> Vec<&ToolUseId> {
    match &node.entry {
        Entry::User(_) | Entry::Assistant(_) => node.blocks().iter().filter_map(Block::result_tool_use_id).collect(),
        Entry::Progress(line) => line.parent_tool_use_id.get().or(line.tool_use_id.get()).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether the subagent below an item shows a line.
fn contains_line(item: &ScreenItem, line: u64) -> bool {
    let subagent = item.tool.as_ref().and_then(|tool| tool.subagent.as_ref());
    subagent.is_some_and(|subagent| subagent.items.iter().any(|item| item.line == line || contains_line(item, line)))
}
