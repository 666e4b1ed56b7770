//! Windows of a skeleton: the items of a part of the active path.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use quipu_message::SessionId;

use super::EntryReader;
use super::compact_node::CompactNode;
use crate::conversation::{Conversation, is_incomplete_response};
use crate::headline::headline;
use crate::id_key::IdKey;
use crate::node::{EntryNode, Node, NodeKind, ToolRole};
use crate::problem::Problem;
use crate::screen::{PositionedItem, ScreenItem, Shown, UiOptions, related_calls};
use crate::sidechain::SidechainKey;
use crate::turns::{TurnRange, turn_ranges};
use crate::user_text::user_prompt;

/// A [`Skeleton`](super::Skeleton) with the files that its entries are read from.
///
/// Positions are those of entries on the active path, counted from 0.
#[derive(Clone, Copy)]
pub struct SkeletonView<'a> {
    conversation: &'a Conversation<CompactNode>,
    reader: &'a (dyn EntryReader + 'static),
}

/// One turn of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkeletonTurn {
    /// Positions of its entries on the active path.
    pub positions: Range<usize>,
    /// Position of the prompt.
    pub prompt: usize,
    /// Line number of the prompt in the file, counted from 1.
    pub line: u64,
}

/// A branch that was left by a rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkeletonBranch {
    /// Number of the branch, counted from 1 in the order of the file.
    pub number: usize,
    /// Position of the entry before which it is announced.
    pub position: usize,
    /// Number of its entries.
    pub entries: usize,
    /// Line number of its first entry.
    pub line: u64,
}

/// Entries that [`SkeletonView::find_first`] and [`SkeletonView::find_last`] read at most.
const MAX_SEARCHED_ENTRIES: usize = 64;

impl<'a> SkeletonView<'a> {
    pub(super) fn new(conversation: &'a Conversation<CompactNode>, reader: &'a (dyn EntryReader + 'static)) -> Self {
        Self { conversation, reader }
    }

    /// The conversation, and what its entries are read with.
    pub(crate) fn parts(&self) -> (&'a Conversation<CompactNode>, &'a (dyn EntryReader + 'static)) {
        (self.conversation, self.reader)
    }

    /// Number of entries on the active path.
    pub fn len(&self) -> usize {
        self.conversation.shown().paths(self.reader).path.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items of some entries of the path: those that [`for_ui_with`] has for them, with the
    /// problems and branches between them. Reads these entries and those with results and hooks of
    /// their tool calls.
    ///
    /// [`for_ui_with`]: Conversation::for_ui_with
    pub fn items(&self, positions: Range<usize>, options: UiOptions) -> Vec<ScreenItem> {
        self.window(positions, options).items
    }

    /// As [`items`](Self::items), with the position that each item belongs to.
    pub fn positioned_items(&self, positions: Range<usize>, options: UiOptions) -> Vec<PositionedItem> {
        let Shown { items, positions, messages, .. } = self.window(positions, options);
        let parts = positions.into_iter().zip(messages).zip(items);
        parts.map(|((position, message), item)| PositionedItem { position, message, item }).collect()
    }

    fn window(&self, positions: Range<usize>, options: UiOptions) -> Shown {
        let end = positions.end.min(self.len());
        self.conversation.screen_part(positions.start.min(end)..end, options, 0, self.reader)
    }

    /// The items of a branch beside the path, as of [`Conversation::branch_for_ui`]; `None` if there
    /// are fewer branches.
    pub fn branch_items(&self, number: usize, options: UiOptions) -> Option<Vec<ScreenItem>> {
        self.conversation.numbered_branch_items(number, options, self.reader)
    }

    /// The branches beside the path that are announced on the screen, in the order of the file.
    pub fn branches(&self) -> Vec<SkeletonBranch> {
        let shown = self.conversation.shown();
        let path = self.path();
        let mut branches = Vec::new();
        for (number, branch) in (1..).zip(&shown.paths(self.reader).branches) {
            let mut nodes = branch.iter().map(|&i| &shown.nodes[i as usize]).peekable();
            let Some(line) = nodes.peek().map(|first| first.line()) else { continue };
            if !is_incomplete_response(nodes) {
                let position = path.iter().position(|node| node.line() > line).unwrap_or(path.len().saturating_sub(1));
                branches.push(SkeletonBranch { number, position, entries: branch.len(), line });
            }
        }
        branches
    }

    /// Position and line of each compaction on the path.
    pub fn compactions(&self) -> Vec<(usize, u64)> {
        let path = self.path().into_iter().enumerate();
        let is_boundary = |node: &CompactNode| node.facts().kind == NodeKind::CompactBoundary;
        path.filter(|(_, node)| is_boundary(node)).map(|(position, node)| (position, node.line())).collect()
    }

    /// Lines and files that could not be read.
    pub fn problems(&self) -> &'a [Problem] {
        self.conversation.problems()
    }

    /// The position of the entry that shows a line of the session file: its own, that of the tool
    /// call whose result it holds, or the next one on the path.
    pub fn position_of_line(&self, line: u64) -> usize {
        self.positions_of_line(line).start.min(self.len().saturating_sub(1))
    }

    /// The position of the tool call that started a subagent; `None` if it is not on the path.
    pub fn position_of_subagent(&self, agent: &str) -> Option<usize> {
        let calls = self.conversation.agent_by_call.iter().filter(|(_, id)| id.as_str() == agent);
        let calls: HashSet<IdKey> = calls.map(|(call, _)| IdKey::new(call.as_str())).collect();
        self.path().iter().position(|node| {
            let mut is_call = false;
            node.visit_tools(|link| is_call |= link.role == ToolRole::Call && calls.contains(&link.call));
            is_call
        })
    }

    /// The conversation of a subagent, by its id or by the id of the tool call that started it;
    /// `None` if there is none.
    pub fn subagent(&self, id: &str) -> Option<Self> {
        let by_agent = || self.conversation.sidechains.get(&SidechainKey::Agent(id.into()));
        let sidechain = self.conversation.subagent_conversation(&id.into()).or_else(by_agent)?;
        Some(Self::new(sidechain, self.reader))
    }

    /// The last `count` items. `select` removes items that do not count.
    pub fn tail(&self, count: usize, options: UiOptions, select: impl Fn(&mut Vec<ScreenItem>)) -> Vec<ScreenItem> {
        let len = self.len();
        let mut entries = count.saturating_add(16);
        loop {
            let start = len.saturating_sub(entries);
            let mut items = self.items(start..len, options);
            select(&mut items);
            if items.len() >= count || start == 0 {
                items.drain(..items.len().saturating_sub(count));
                return items;
            }
            entries = entries.saturating_mul(4);
        }
    }

    /// Line number and offset from which a reader of the session file gets at least the last `count`
    /// items; `None` if there are fewer.
    pub fn tail_start(&self, count: usize) -> Option<(u64, u64)> {
        let items = self.tail(count, UiOptions::default(), |_| ());
        if items.len() < count {
            return None;
        }
        let first = items.iter().map(|item| item.line).min()?;
        let path = self.path();
        let node = path.iter().find(|node| node.line() >= first)?;
        Some((node.line(), node.offset()))
    }

    /// The items that show a line of the session file, with `around` items on either side, and
    /// their range among those returned. Finds the items of [`Conversation::items_at_line`].
    pub fn around(&self, line: u64, around: usize, options: UiOptions) -> (Vec<ScreenItem>, Range<usize>) {
        let len = self.len();
        let anchor = self.positions_of_line(line);
        let mut margin = around.saturating_add(8);
        loop {
            let (start, end) = (anchor.start.saturating_sub(margin), anchor.end.saturating_add(margin).min(len));
            let mut items = self.items(start..end, options);
            let shown = self.conversation.item_range_at_line(&items, line, self.reader);
            // The item before the line must be in the window too, and the first one if there is none.
            let is_start = start == 0 || shown.start > around;
            let is_end = end == len || !items.is_empty() && items.len() >= shown.end.saturating_add(around);
            if is_start && is_end {
                items.truncate(shown.end.saturating_add(around));
                let first = shown.start.saturating_sub(around);
                items.drain(..first);
                return (items, shown.start - first..shown.end - first);
            }
            margin = margin.saturating_mul(4);
        }
    }

    /// The turns of the active path, as of [`Conversation::turns`].
    pub fn turns(&self) -> Vec<SkeletonTurn> {
        let path = self.path();
        let turn = |TurnRange { prompt, positions }| SkeletonTurn { positions, prompt, line: path[prompt].line() };
        turn_ranges(path.iter().copied()).into_iter().map(turn).collect()
    }

    /// Text of the prompt of a turn; empty if it can no longer be read.
    pub fn prompt(&self, turn: &SkeletonTurn) -> String {
        self.entry(turn.prompt).and_then(|node| node.user().and_then(user_prompt)).unwrap_or_default()
    }

    /// Line numbers of some entries of the path.
    pub fn lines(&self, positions: Range<usize>) -> Vec<u64> {
        let shown = self.conversation.shown();
        shown.paths(self.reader).path[positions].iter().map(|&i| shown.nodes[i as usize].line()).collect()
    }

    /// The entry at a position of the path; `None` if it can no longer be read.
    pub fn entry(&self, position: usize) -> Option<Cow<'a, Node>> {
        let shown = self.conversation.shown();
        let path = &shown.paths(self.reader).path;
        shown.nodes[*path.get(position)? as usize].load(self.reader, shown.file)
    }

    /// What `find` returns for the first entry that has it, among the first 64.
    pub fn find_first<T>(&self, find: impl Fn(&Node) -> Option<T>) -> Option<T> {
        (0..self.len()).take(MAX_SEARCHED_ENTRIES).find_map(|position| find(&*self.entry(position)?))
    }

    /// What `find` returns for the last entry that has it, among the last 64.
    pub fn find_last<T>(&self, find: impl Fn(&Node) -> Option<T>) -> Option<T> {
        (0..self.len()).rev().take(MAX_SEARCHED_ENTRIES).find_map(|position| find(&*self.entry(position)?))
    }

    /// Session id of the first entry that has one.
    pub fn session_id(&self) -> Option<&'a SessionId> {
        self.conversation.session_id()
    }

    /// One line that names the conversation: the title, or the first prompt.
    pub fn headline(&self) -> Option<String> {
        let prompt = self.turns().first().map(|turn| self.prompt(turn));
        headline(self.conversation.title(), prompt.as_deref()).map(str::to_owned)
    }

    fn path(&self) -> Vec<&'a CompactNode> {
        let shown = self.conversation.shown();
        shown.paths(self.reader).path.iter().map(|&i| &shown.nodes[i as usize]).collect()
    }

    /// Positions of the entries that show a line: its own, and those of the tool calls that it holds
    /// a result of. Otherwise the place where the line would be, or the whole path for a line of a
    /// subagent.
    fn positions_of_line(&self, line: u64) -> Range<usize> {
        let (shown, path) = (self.conversation.shown(), self.path());
        let mut calls = HashSet::new();
        for node in shown.nodes.iter().filter(|node| node.line() == line) {
            let Some(node) = node.load(self.reader, shown.file) else { continue };
            calls.extend(related_calls(&node).into_iter().map(|call| IdKey::new(call.as_str())));
        }
        let is_shown = |node: &CompactNode| {
            let mut has_call = node.line() == line;
            node.visit_tools(|link| {
                has_call |= matches!(link.role, ToolRole::Call | ToolRole::ServerCall) && calls.contains(&link.call);
            });
            has_call
        };
        let mut found = path.iter().enumerate().filter(|(_, node)| is_shown(node)).map(|(position, _)| position);
        if let Some(first) = found.next() {
            return first..found.next_back().unwrap_or(first) + 1;
        }
        if has_sidechain_line(shown, line) {
            return 0..path.len();
        }
        let next = path.iter().position(|node| node.line() > line).unwrap_or(path.len());
        next..next
    }
}

/// Whether a subagent whose entries are in the same file has this line.
fn has_sidechain_line(conversation: &Conversation<CompactNode>, line: u64) -> bool {
    let sidechains = conversation.sidechains.iter().filter(|(_, sidechain)| sidechain.file == conversation.file);
    sidechains.into_iter().any(|(_, sidechain): (&SidechainKey, _)| {
        sidechain.nodes.iter().any(|node| node.line() == line) || has_sidechain_line(sidechain, line)
    })
}
