//! Builds the items that a screen shows: one for each block, a tool call with its result,
//! nothing twice, nothing that is meant for the model only.

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

/// Kinds of screen items.
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

/// One item on the screen. Serialises as one element of `quipu show --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScreenItem {
    /// UUID of the entry, or one derived from it if the entry has several items.
    pub uuid: Option<Uuid>,
    /// Kind of the item.
    pub kind: ItemKind,
    /// Timestamp of the entry, as ISO 8601.
    pub timestamp: Option<String>,
    /// Text to show; `None` for tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the user attached to the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<ContextRef>,
    /// The tool call, if the kind is `Tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolCard>,
    /// UUID of the entry, if `uuid` is derived from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<Uuid>,
    /// Model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Data of an image or document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<MediaSource>,
    /// Whether it reports a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whether it is a hook that succeeded without output, which is usually not shown.
    #[serde(skip)]
    pub is_silent: bool,
    /// Whether it is meant for the model or the program only. Such items exist only with
    /// [`UiOptions::include_hidden`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Number of the branch that it announces or belongs to, counted from 1 in the order of
    /// the file; `None` on the active path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<usize>,
    /// Number of items in the announced branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<usize>,
    /// Line number, counted from 1; `u64::MAX` if it is not part of a line yet.
    pub line: u64,
}

/// A tool call with its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCard {
    /// Id that links call and result.
    pub id: ToolUseId,
    /// Name of the tool; empty for a result without a call.
    pub name: String,
    /// Input of the tool call.
    pub input: Json,
    /// Whether there is a result, and which.
    pub status: ToolStatus,
    /// Result as sent to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Content>,
    /// Whether the result was lost and a placeholder was recorded; `result` is then `None`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub result_missing: bool,
    /// Structured output of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Conversation of the subagent that the call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SubagentCard>,
}

/// The conversation of a subagent, shown below its tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubagentCard {
    /// Id of the agent, if known.
    pub agent_id: Option<AgentId>,
    /// Items of its conversation.
    pub items: Vec<ScreenItem>,
}

/// What [`Conversation::for_ui_with`] shows in addition to the active path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UiOptions {
    /// Also show what is meant for the model or the program only: meta texts such as those of
    /// skills, reminders, and measurements. Such items are [`ScreenItem::hidden`].
    pub include_hidden: bool,
    /// Also show the items of each branch, after the item that announces it, including
    /// responses that broke off.
    pub include_branches: bool,
}

impl Conversation {
    /// The items of the active path, in order. Each branch that the user left by a rewind is
    /// announced by an item of kind [`ItemKind::Branch`] with the number of its items. Linear.
    pub fn for_ui(&self) -> Vec<ScreenItem> {
        self.for_ui_with(UiOptions::default())
    }

    /// The items of the active path, and more as `options` say.
    pub fn for_ui_with(&self, options: UiOptions) -> Vec<ScreenItem> {
        self.screen(options, 0).items
    }

    /// The items as of [`for_ui_with`](Self::for_ui_with), and the number of hidden items that
    /// were left out.
    pub fn for_ui_and_left_out(&self, options: UiOptions) -> (Vec<ScreenItem>, usize) {
        let Shown { items, left_out } = self.screen(options, 0);
        (items, left_out)
    }

    /// The items of the branch with this number, counted from 1 in the order of the file;
    /// `None` if there are fewer branches.
    pub fn branch_for_ui(&self, number: usize, options: UiOptions) -> Option<Vec<ScreenItem>> {
        let branches = self.branches();
        let branch = branches.get(number.checked_sub(1)?)?;
        Some(self.branch_items(branch, number, options, 0).items)
    }

    fn screen(&self, options: UiOptions, depth: usize) -> Shown {
        let (path, branches) = (self.path(), self.branches());
        // Problems and branches, by the line that they are shown before.
        let mut inserts: Vec<(u64, Vec<ScreenItem>)> =
            self.problems().iter().map(problem_item).map(|item| (item.line, vec![item])).collect();
        let mut left_out = 0;
        let announced = |branch: &Branch<'_>| options.include_branches || !branch.is_incomplete_response();
        for (number, branch) in (1..).zip(&branches).filter(|(_, branch)| announced(branch)) {
            let shown = self.announce_branch(branch, number, options, depth);
            left_out += shown.left_out;
            inserts.push((shown.items[0].line, shown.items));
        }
        inserts.sort_by_key(|(line, _)| *line);
        let mut inserts = inserts.into_iter().peekable();
        let partial = self.partial_message();
        let blocks = partial.as_ref().map_or(&[][..], |message| message.content.blocks());
        let mut screen = ScreenBuilder::new(self, &path, blocks, options, depth);
        for node in &path {
            while let Some((_, items)) = inserts.next_if(|(line, _)| *line < node.line) {
                screen.items.extend(items);
            }
            screen.push_node(node);
        }
        screen.items.extend(inserts.flat_map(|(_, items)| items));
        if let Some(message) = &partial {
            screen.push_partial_message(message, &path);
        }
        Shown { items: screen.items, left_out: left_out + screen.left_out }
    }

    /// The item that announces a branch, followed by its items if `options` include them.
    fn announce_branch(&self, branch: &Branch<'_>, number: usize, options: UiOptions, depth: usize) -> Shown {
        // If the items are only counted, those of subagents are not built.
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
        let items_label = if count == 1 { "1 item" } else { &format!("{count} items") };
        let text = format!("Branch {number} was left here: {items_label}");
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

/// Items, and the number of hidden items that were left out.
struct Shown {
    items: Vec<ScreenItem>,
    left_out: usize,
}

/// Converts API messages to items. Nothing is hidden: reminders and meta texts are included.
/// Each tool result is shown with its call.
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

/// An item of an entry, without content.
fn item_for_node(node: &Node, kind: ItemKind) -> ScreenItem {
    ScreenItem { uuid: node.uuid().cloned(), timestamp: iso_timestamp(node), line: node.line, ..empty_item(kind) }
}

fn iso_timestamp(node: &Node) -> Option<String> {
    node.timestamp().map(|time| to_iso8601(time).into_owned())
}

/// The item of a problem, at its line.
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
