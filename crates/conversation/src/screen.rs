//! Builds the items that a screen shows: one for each block, a tool call with its result,
//! nothing twice, nothing that is meant for the model only.

use quipu_message::context_ref::ContextRef;
use quipu_message::{AgentId, Content, Entry, Json, MediaSource, Message, Role, ToolName, ToolUseId, Uuid};
use serde::Serialize;

use crate::conversation::Conversation;
use crate::node::Node;
use crate::problem::Problem;
use crate::timestamp::to_iso8601;
use crate::tool_results::{ToolResults, ToolStatus};

mod block;
mod builder;
mod hooks;
mod line_lookup;
mod notice;
mod window;

pub(crate) use line_lookup::related_calls;
pub use line_lookup::standalone_notice;
pub(crate) use window::Shown;

/// Kinds of screen items.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScreenItem {
    /// UUID of the entry, or one derived from it if the entry has several items.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
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
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>"))]
    pub contexts: Vec<ContextRef>,
    /// The tool call, if the kind is `Tool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolCard>,
    /// UUID of the entry, if `uuid` is derived from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub derived_from: Option<Uuid>,
    /// Model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Data of an image or document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCard {
    /// Id that links call and result.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub id: ToolUseId,
    /// Name of the tool; empty for a result without a call.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name: ToolName,
    /// Input of the tool call.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    pub input: Json,
    /// Whether there is a result, and which.
    pub status: ToolStatus,
    /// Result as sent to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub result: Option<Content>,
    /// Whether the result was lost and a placeholder was recorded; `result` is then `None`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub result_missing: bool,
    /// Structured output of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub output: Option<Json>,
    /// Timestamp of the result, as ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Conversation of the subagent that the call started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SubagentCard>,
}

/// The conversation of a subagent, shown below its tool call.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubagentCard {
    /// Id of the agent, if known.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub agent_id: Option<AgentId>,
    /// Number of entries of its conversation.
    pub entries: usize,
    /// Items of its conversation; empty with [`UiOptions::leave_out_subagents`].
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
    /// Leave out the items of subagents; their tool calls have only the number of entries.
    pub leave_out_subagents: bool,
}

/// An item of a [window](crate::SkeletonView::positioned_items) and where it belongs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PositionedItem {
    /// Position of its entry on the active path, counted from 0. For a problem or a branch, that
    /// of the entry after it; at the end, that of the last entry.
    pub position: usize,
    /// The API message that it is a part of; `None` if the model did not write it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessagePart>,
    /// The item.
    #[serde(flatten)]
    pub item: ScreenItem,
}

/// A part of an API message, to compare items with the blocks of a stream.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessagePart {
    /// Id of the API message.
    pub message_id: String,
    /// Index in the message of the first block of the entry; `None` in files that do not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_index: Option<u64>,
}

impl MessagePart {
    /// The part that an entry holds; `None` unless the model wrote the entry.
    fn of(entry: &Entry) -> Option<Self> {
        let Entry::Assistant(assistant) = entry else { return None };
        let message_id = assistant.message.id.text()?.to_owned();
        Some(Self { message_id, block_index: assistant.api_block_index.get().copied() })
    }
}

impl Conversation {
    /// The items of the active path, in order. Each branch that the user left by a rewind is
    /// announced by an item of kind [`ItemKind::Branch`] with the number of its items. Linear.
    pub fn for_ui(&self) -> Vec<ScreenItem> {
        self.for_ui_with(UiOptions::default())
    }

    /// The items of the active path, and more as `options` say.
    pub fn for_ui_with(&self, options: UiOptions) -> Vec<ScreenItem> {
        self.screen(options, 0, &()).items
    }

    /// The items as of [`for_ui_with`](Self::for_ui_with), and the number of hidden items that
    /// were left out.
    pub fn for_ui_and_left_out(&self, options: UiOptions) -> (Vec<ScreenItem>, usize) {
        let Shown { items, left_out, .. } = self.screen(options, 0, &());
        (items, left_out)
    }

    /// The items of the branch with this number, counted from 1 in the order of the file;
    /// `None` if there are fewer branches.
    pub fn branch_for_ui(&self, number: usize, options: UiOptions) -> Option<Vec<ScreenItem>> {
        self.numbered_branch_items(number, options, &())
    }
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
