//! The conversation for people: one item per block, each tool call with its
//! result, nothing shown twice, nothing meant for the model alone.

use quipu_message::context_ref::ContextRef;
use quipu_message::{AgentId, Content, Json, MediaSource, Message, Role, ToolUseId, Uuid};
use serde::Serialize;

use crate::conversation::{Branch, Conversation, MAX_SUBAGENT_DEPTH, Node};
use crate::problem::Problem;
use crate::timestamp::to_iso8601;
use crate::tool_results::{ToolResults, ToolStatus};

mod block;
mod builder;
mod hooks;
mod line_lookup;
mod notice;

use builder::ScreenBuilder;
pub use line_lookup::standalone_notice;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum ItemKind {
    User,
    Assistant,
    Thinking,
    Tool,
    Image,
    Hook,
    System,
    Summary,
    Attachment,
    Branch,
    Unknown,
    Problem,
}

/// One thing on the screen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScreenItem {
    /// The line's id, or one derived from it.
    pub uuid: Option<Uuid>,
    /// What it is.
    pub kind: ItemKind,
    /// When.
    pub timestamp: Option<String>,
    /// Its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the person attached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<ContextRef>,
    /// The tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolCard>,
    /// The line's own id, when `uuid` is derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<Uuid>,
    /// The model that said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The bytes of a picture or document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MediaSource>,
    /// Whether it reports a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whether it is a hook that succeeded without output, which readers rarely want.
    #[serde(skip)]
    pub is_silent: bool,
    /// Whether it was meant for the model or the program alone. Such items are there
    /// only when [`UiOptions::include_hidden`] asks for them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The left branch that it announces or belongs to, counted from 1 in the order of
    /// the file; `None` on the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<usize>,
    /// How many items the announced branch holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<usize>,
    /// The line it came in, counted from 1.
    pub line: u64,
}

/// A tool call with its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCard {
    /// Joins call and result.
    pub id: ToolUseId,
    /// The tool; empty when a result has no call.
    pub name: String,
    /// What it was called with.
    pub input: Json,
    /// How it stands.
    pub status: ToolStatus,
    /// What the model was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Content>,
    /// Whether no result was recorded and a placeholder stands in its place; `result` is
    /// then absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub result_missing: bool,
    /// What the tool gave, in its own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The subagent that worked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SubagentCard>,
}

/// A subagent's conversation, seen from the call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubagentCard {
    /// The agent.
    pub agent_id: Option<AgentId>,
    /// What it said and did.
    pub items: Vec<ScreenItem>,
}

/// What [`Conversation::for_ui_with`] shows beside the conversation as it stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UiOptions {
    /// Also what was meant for the model or the program alone: meta texts such as those of
    /// skills, reminders, and measurements. Such items say [`ScreenItem::hidden`].
    pub include_hidden: bool,
    /// Also the items of each left branch, after the item that announces it; also of
    /// answers that broke and were asked for again.
    pub include_branches: bool,
}

impl Conversation {
    /// The conversation for people, in order. Each branch that the user left is announced by
    /// an item of kind [`ItemKind::Branch`] with the count of its items. Two passes, linear.
    pub fn for_ui(&self) -> Vec<ScreenItem> {
        self.for_ui_with(UiOptions::default())
    }

    /// The conversation for people with more in it.
    pub fn for_ui_with(&self, options: UiOptions) -> Vec<ScreenItem> {
        self.screen(options, 0).items
    }

    /// The conversation for people, and how many items are left out of it and of its branches
    /// because they were not meant for the user.
    pub fn for_ui_and_left_out(&self, options: UiOptions) -> (Vec<ScreenItem>, usize) {
        let Shown { items, left_out } = self.screen(options, 0);
        (items, left_out)
    }

    /// The items of the left branch with this number, counted from 1 in the order of the
    /// file; `None` if there are fewer branches.
    pub fn branch_for_ui(&self, number: usize, options: UiOptions) -> Option<Vec<ScreenItem>> {
        let branches = self.branches();
        let branch = branches.get(number.checked_sub(1)?)?;
        Some(self.branch_items(branch, number, options, 0).items)
    }

    fn screen(&self, options: UiOptions, depth: usize) -> Shown {
        let (path, branches) = (self.path(), self.branches());
        // What stands beside the path, by the line before which it is shown.
        let mut asides: Vec<(u64, Vec<ScreenItem>)> =
            self.problems().iter().map(problem_item).map(|item| (item.line, vec![item])).collect();
        let mut left_out = 0;
        let announced = |branch: &Branch<'_>| options.include_branches || !branch.is_incomplete_response();
        for (number, branch) in (1..).zip(&branches).filter(|(_, branch)| announced(branch)) {
            let shown = self.announce_branch(branch, number, options, depth);
            left_out += shown.left_out;
            asides.push((shown.items[0].line, shown.items));
        }
        asides.sort_by_key(|(line, _)| *line);
        let mut asides = asides.into_iter().peekable();
        let writing = self.partial_message();
        let blocks = writing.as_ref().map_or(&[][..], |message| message.content.blocks());
        let mut screen = ScreenBuilder::new(self, &path, blocks, options, depth);
        for node in &path {
            while let Some((_, items)) = asides.next_if(|(line, _)| *line < node.line) {
                screen.items.extend(items);
            }
            screen.push_node(node);
        }
        screen.items.extend(asides.flat_map(|(_, items)| items));
        if let Some(message) = &writing {
            screen.push_partial_message(message, &path);
        }
        Shown { items: screen.items, left_out: left_out + screen.left_out }
    }

    /// The item that announces a branch and, if they are wanted, the branch's items.
    fn announce_branch(&self, branch: &Branch<'_>, number: usize, options: UiOptions, depth: usize) -> Shown {
        // Where the items are only counted, what subagents did is not looked at.
        let depth = if options.include_branches { depth } else { MAX_SUBAGENT_DEPTH };
        let Shown { items: inside, left_out } = self.branch_items(branch, number, options, depth);
        let first = branch.nodes.first();
        let about = ScreenItem {
            timestamp: first.and_then(|node| iso_timestamp(node)),
            branch: Some(number),
            line: first.map_or(u64::MAX, |node| node.line),
            ..empty_item(ItemKind::Branch)
        };
        let count = inside.iter().filter(|item| !item.hidden).count();
        let words = if count == 1 { "1 item" } else { &format!("{count} items") };
        let text = format!("Branch {number} was left here: {words}");
        let mut items = vec![ScreenItem { text: Some(text), items: Some(count), ..about.clone() }];
        if options.include_branches {
            items.extend(inside);
            items.push(ScreenItem { text: Some(format!("End of branch {number}")), ..about });
        }
        Shown { items, left_out }
    }

    fn branch_items(&self, branch: &Branch<'_>, number: usize, options: UiOptions, depth: usize) -> Shown {
        let mut screen = ScreenBuilder::new(self, &branch.nodes, &[], options, depth);
        branch.nodes.iter().for_each(|node| screen.push_node(node));
        let mut items = screen.items;
        items.iter_mut().for_each(|item| item.branch = Some(number));
        Shown { items, left_out: screen.left_out }
    }
}

/// Items, and how many hidden ones are left out.
struct Shown {
    items: Vec<ScreenItem>,
    left_out: usize,
}

/// Messages of the API as items, with nothing hidden: reminders and meta texts are
/// there, and each result stands with its call.
pub fn messages_for_ui(messages: &[Message]) -> Vec<ScreenItem> {
    let results = ToolResults::default().with_blocks(messages.iter().flat_map(|message| message.content.blocks()));
    let mut items = Vec::new();
    for (line, message) in (1..).zip(messages) {
        let kind = if message.role == Role::Assistant { ItemKind::Assistant } else { ItemKind::User };
        for content in message.content.clone().into_blocks() {
            items.extend(block::request_block_item(&content, &results, ScreenItem { line, ..empty_item(kind) }));
        }
    }
    items
}

fn empty_item(kind: ItemKind) -> ScreenItem {
    ScreenItem {
        uuid: None,
        kind,
        timestamp: None,
        text: None,
        contexts: Vec::new(),
        tool: None,
        derived_from: None,
        model: None,
        source: None,
        is_error: false,
        is_silent: false,
        hidden: false,
        branch: None,
        items: None,
        line: u64::MAX,
    }
}

/// An item with the line's own id and nothing to say yet.
fn item_for_node(node: &Node, kind: ItemKind) -> ScreenItem {
    ScreenItem { uuid: node.uuid().cloned(), timestamp: iso_timestamp(node), line: node.line, ..empty_item(kind) }
}

fn iso_timestamp(node: &Node) -> Option<String> {
    node.timestamp().map(|time| to_iso8601(time).into_owned())
}

/// A line that could not be read, where it stands.
fn problem_item(problem: &Problem) -> ScreenItem {
    let place = if problem.line == 0 { String::new() } else { format!("line {}: ", problem.line) };
    let line = if problem.line == 0 { u64::MAX } else { problem.line };
    ScreenItem {
        text: Some(format!("{place}{}", problem.message)),
        line,
        is_error: true,
        ..empty_item(ItemKind::Problem)
    }
}
