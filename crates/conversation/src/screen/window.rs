//! Builds the items of a part of the active path. Only the entries of that part are read, and
//! those that hold results and hooks of its tool calls.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::builder::ScreenBuilder;
use super::{ItemKind, MessagePart, ScreenItem, UiOptions, empty_item, iso_timestamp, problem_item};
use crate::conversation::{Conversation, MAX_SUBAGENT_DEPTH, is_incomplete_response};
use crate::id_key::IdKey;
use crate::node::{EntryNode, Node};
use crate::problem::{Problem, ProblemKind};

/// Items, and the number of hidden items that were left out.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) items: Vec<ScreenItem>,
    /// The position that each item belongs to; empty for a branch.
    pub(crate) positions: Vec<usize>,
    /// The API message that each item is a part of; empty for a branch.
    pub(crate) messages: Vec<Option<MessagePart>>,
    pub(crate) left_out: usize,
}

/// What is shown before a line without being part of the path.
enum Insert<'a> {
    Problem(&'a Problem),
    /// Number of a branch, counted from 1, and its nodes.
    Branch(usize, &'a [u32]),
}

impl<N: EntryNode> Conversation<N> {
    /// The items of the whole active path.
    pub(crate) fn screen(&self, options: UiOptions, depth: usize, reader: &N::Reader) -> Shown {
        let len = self.shown().paths(reader).path.len();
        self.screen_part(0..len, options, depth, reader)
    }

    /// The items of some positions of the active path: those that [`screen`](Self::screen) has for
    /// them, and the problems and branches between them. A part at the end of the path includes the
    /// message that is being streamed.
    pub(crate) fn screen_part(
        &self,
        part: Range<usize>,
        options: UiOptions,
        depth: usize,
        reader: &N::Reader,
    ) -> Shown {
        let shown = self.shown();
        let path = &shown.paths(reader).path[..];
        let node = |position: usize| &shown.nodes[path[position] as usize];
        let is_end = part.end == path.len();
        let loaded = LoadedNodes::new(shown, path, part.clone(), reader);
        let partial = self.partial_message().filter(|_| is_end);
        let blocks = partial.as_ref().map_or(&[][..], |message| message.content.blocks());
        let mut screen = ScreenBuilder::new(self, &loaded.nodes(), blocks, options, depth, reader);
        screen.has_split_message = (0..part.start).any(|position| node(position).facts().has_several_blocks);
        let mut inserts = self.inserts(options, reader).into_iter().peekable();
        let mut left_out = 0;
        let mut add = |screen: &mut ScreenBuilder<'_, N>, insert: Insert<'_>| match insert {
            Insert::Problem(problem) => screen.items.push(problem_item(problem)),
            Insert::Branch(number, branch) => {
                let branch = self.announce_branch(branch, number, options, depth, reader);
                screen.items.extend(branch.items);
                left_out += branch.left_out;
            }
        };
        let (mut positions, mut messages) = (Vec::new(), Vec::new());
        for position in 0..part.end {
            let line = node(position).line();
            while let Some((_, insert)) = inserts.next_if(|(before, _)| *before < line) {
                if position >= part.start {
                    add(&mut screen, insert);
                }
            }
            if position >= part.start {
                messages.resize(screen.items.len(), None);
                match loaded.at(position) {
                    Some(node) => {
                        screen.push_node(node);
                        messages.resize(screen.items.len(), MessagePart::of(&node.entry));
                    }
                    None => screen.items.push(unreadable_item(line)),
                }
                positions.resize(screen.items.len(), position);
            }
        }
        if is_end {
            inserts.for_each(|(_, insert)| add(&mut screen, insert));
        }
        if let Some(message) = &partial {
            let id = message.id.text().map(IdKey::new);
            let is_part = |&&i: &&u32| id.is_some() && shown.nodes[i as usize].facts().message == id;
            screen.push_partial_message(message, path.iter().filter(is_part).count());
        }
        positions.resize(screen.items.len(), part.end.saturating_sub(1));
        messages.resize(screen.items.len(), None);
        Shown { items: screen.items, positions, messages, left_out: left_out + screen.left_out }
    }

    /// The items of the branch with this number; `None` if there are fewer branches.
    pub(crate) fn numbered_branch_items(
        &self,
        number: usize,
        options: UiOptions,
        reader: &N::Reader,
    ) -> Option<Vec<ScreenItem>> {
        let branches = &self.shown().paths(reader).branches;
        let branch = branches.get(number.checked_sub(1)?)?;
        Some(self.branch_items(branch, number, options, 0, reader).items)
    }

    /// Problems and branches, by the line that they are shown before.
    fn inserts<'a>(&'a self, options: UiOptions, reader: &'a N::Reader) -> Vec<(u64, Insert<'a>)> {
        let shown = self.shown();
        let problem = |problem: &'a Problem| (problem_item(problem).line, Insert::Problem(problem));
        let mut inserts: Vec<(u64, Insert<'_>)> = self.problems.iter().map(problem).collect();
        for (number, branch) in (1..).zip(&shown.paths(reader).branches) {
            let mut nodes = branch.iter().map(|&i| &shown.nodes[i as usize]).peekable();
            let line = nodes.peek().map_or(u64::MAX, |first| first.line());
            if options.include_branches || !is_incomplete_response(nodes) {
                inserts.push((line, Insert::Branch(number, branch)));
            }
        }
        inserts.sort_by_key(|(line, _)| *line);
        inserts
    }

    /// The item that announces a branch, followed by its items if `options` include them.
    fn announce_branch(
        &self,
        branch: &[u32],
        number: usize,
        options: UiOptions,
        depth: usize,
        reader: &N::Reader,
    ) -> Shown {
        // If the items are only counted, those of subagents are not built.
        let depth = if options.include_branches { depth } else { MAX_SUBAGENT_DEPTH };
        let Shown { items: inside, left_out, .. } = self.branch_items(branch, number, options, depth, reader);
        let shown = self.shown();
        let first = branch.first().map(|&i| &shown.nodes[i as usize]);
        let about = ScreenItem {
            timestamp: first.and_then(|node| iso_timestamp(&*node.load(reader, shown.file)?)),
            branch: Some(number),
            line: first.map_or(u64::MAX, |node| node.line()),
            ..empty_item(ItemKind::Branch)
        };
        let count = inside.iter().filter(|item| !item.hidden).count();
        let items_label = if count == 1 { "1 item" } else { &format!("{count} items") };
        let text = format!("Branch {number} was left here: {items_label}");
        let mut items = vec![ScreenItem { text: Some(text), items: Some(count), ..about.clone() }];
        if options.include_branches {
            items.extend(inside);
            items.push(ScreenItem { text: Some(format!("End of branch {number}")), ..about });
        }
        Shown { items, positions: Vec::new(), messages: Vec::new(), left_out }
    }

    fn branch_items(
        &self,
        branch: &[u32],
        number: usize,
        options: UiOptions,
        depth: usize,
        reader: &N::Reader,
    ) -> Shown {
        let loaded = LoadedNodes::new(self.shown(), branch, 0..branch.len(), reader);
        let mut screen = ScreenBuilder::new(self, &loaded.nodes(), &[], options, depth, reader);
        for (position, &i) in branch.iter().enumerate() {
            match loaded.at(position) {
                Some(node) => screen.push_node(node),
                None => screen.items.push(unreadable_item(self.shown().nodes[i as usize].line())),
            }
        }
        let mut items = screen.items;
        items.iter_mut().for_each(|item| item.branch = Some(number));
        Shown { items, positions: Vec::new(), messages: Vec::new(), left_out: screen.left_out }
    }
}

/// The entries of a part of a path, and those that share a tool call with it.
struct LoadedNodes<'a> {
    /// Position in the path and entry, in order; `None` if the entry can no longer be read.
    nodes: Vec<(usize, Option<Cow<'a, Node>>)>,
}

impl<'a> LoadedNodes<'a> {
    fn new<N: EntryNode>(shown: &'a Conversation<N>, path: &[u32], part: Range<usize>, reader: &'a N::Reader) -> Self {
        let node = |position: usize| &shown.nodes[path[position] as usize];
        let load = |position: usize| (position, node(position).load(reader, shown.file));
        if part.len() == path.len() {
            return Self { nodes: part.map(load).collect() };
        }
        let mut calls = HashSet::new();
        part.clone().for_each(|position| node(position).visit_tools(|link| _ = calls.insert(link.call)));
        let is_related = |position: usize| {
            let mut is_related = false;
            node(position).visit_tools(|link| is_related |= calls.contains(&link.call));
            is_related
        };
        let wanted = (0..path.len()).filter(|position| part.contains(position) || is_related(*position));
        Self { nodes: wanted.map(load).collect() }
    }

    fn nodes(&self) -> Vec<&Node> {
        self.nodes.iter().filter_map(|(_, node)| node.as_deref()).collect()
    }

    fn at(&self, position: usize) -> Option<&Node> {
        let i = self.nodes.binary_search_by_key(&position, |(position, _)| *position).ok()?;
        self.nodes[i].1.as_deref()
    }
}

/// The item of an entry that can no longer be read, because its file has changed.
fn unreadable_item(line: u64) -> ScreenItem {
    problem_item(&Problem {
        kind: ProblemKind::CannotRead,
        path: String::new(),
        line,
        offset: 0,
        message: "the line can no longer be read as an entry".to_owned(),
    })
}
