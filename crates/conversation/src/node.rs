//! Entries as the tree and the screen need them: known by their facts, read when they are shown.

use std::borrow::Cow;
use std::fmt;

use quipu_message::progress::{ProgressData, ProgressKind};
use quipu_message::synthetic::SYNTHETIC_MODEL;
use quipu_message::system::System;
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::{Block, Entry, Maybe, ToolUse, Uuid};

use crate::headline::is_local_command;
use crate::id_key::IdKey;
use crate::user_text::user_prompt;

/// One entry of a conversation, with its position in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Line number in the file, counted from 1; 0 if the entry did not come from a file.
    pub line: u64,
    /// The entry itself.
    pub entry: Entry,
}

/// What the structure of a conversation depends on: [`Node`]s hold their entry, those of a
/// [`Skeleton`](crate::Skeleton) know only where it is.
pub trait EntryNode: Clone + fmt::Debug {
    /// Reads entries that the node does not hold.
    type Reader: ?Sized;

    /// A node for an entry at a place of the file.
    fn from_entry(place: Place, entry: Entry) -> Self;
    /// Line number in the file, counted from 1; 0 if the entry did not come from a file.
    fn line(&self) -> u64;
    /// Type, ids and flags of the entry.
    fn facts(&self) -> Facts;
    /// Whether the entry holds a user prompt.
    fn prompt_kind(&self) -> PromptKind;
    /// Calls `visit` for each tool call, result and hook that the entry names.
    fn visit_tools(&self, visit: impl FnMut(ToolLink));
    /// The whole entry; `None` if it can no longer be read.
    fn load<'a>(&'a self, reader: &'a Self::Reader, file: u32) -> Option<Cow<'a, Node>>;
}

/// Where an entry is in its file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// Line number, counted from 1; 0 if the entry did not come from a file.
    pub(crate) line: u64,
    /// Offset of its first byte.
    pub(crate) offset: u64,
    /// Length in bytes, without the line ending.
    pub(crate) length: u32,
    /// Number of `progress` entries that it is inside of, which repeat the message of a subagent.
    pub(crate) nesting: u8,
}

/// Type of a node, as far as the tree distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    User,
    Assistant,
    System,
    CompactBoundary,
    Attachment,
    Progress,
    Summary,
    Other,
}

/// Type, ids and flags of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub(crate) kind: NodeKind,
    pub(crate) uuid: Option<IdKey>,
    /// UUID of the parent that the entry names.
    pub(crate) parent: Option<IdKey>,
    /// Whether the entry starts a tree: a message whose parent is `null`. A hook or notice
    /// without a parent starts a cleared context in the same tree.
    pub(crate) is_root: bool,
    /// Id of the API message that an `assistant` entry holds a block of.
    pub(crate) message: Option<IdKey>,
    /// Whether the content of a message has more than one block.
    pub(crate) has_several_blocks: bool,
    /// Whether an `assistant` entry is part of a message without a stop reason.
    pub(crate) is_incomplete: bool,
    /// Whether an `assistant` entry was written by a model.
    pub(crate) is_response: bool,
}

/// Whether an entry is a user prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// No prompt.
    None,
    /// A prompt for the model.
    Prompt,
    /// A command for the program: `/name` or `! shell command`.
    LocalCommand,
}

impl PromptKind {
    pub(crate) fn from_prompt(prompt: Option<&str>) -> Self {
        match prompt {
            None => Self::None,
            Some(prompt) if is_local_command(prompt) => Self::LocalCommand,
            Some(_) => Self::Prompt,
        }
    }
}

/// A tool call that an entry names, and in which role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLink {
    pub(crate) role: ToolRole,
    /// Id of the tool call.
    pub(crate) call: IdKey,
}

/// What an entry is to a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolRole {
    /// It holds the call, which the agent runs.
    Call,
    /// It holds the call, which the server runs.
    ServerCall,
    /// It holds the result of a call that the agent ran.
    Result,
    /// It holds the result of a call that the server ran.
    ServerResult,
    /// It is a hook that ran for the call.
    Hook,
}

impl Node {
    /// UUID of the entry; `None` if it has none.
    pub fn uuid(&self) -> Option<&Uuid> {
        self.entry.envelope()?.uuid.get()
    }

    /// Timestamp of the entry, as written.
    pub fn timestamp(&self) -> Option<&str> {
        self.entry.envelope()?.timestamp.text()
    }

    /// Id of the API message that an `assistant` entry holds a block of.
    pub fn message_id(&self) -> Option<&str> {
        self.assistant()?.message.id.text()
    }

    /// The blocks of a `user` or `assistant` entry; empty for other entries and if the
    /// content is not a list.
    pub fn blocks(&self) -> &[Block] {
        match &self.entry {
            Entry::User(line) => line.message.content.blocks(),
            Entry::Assistant(line) => line.message.content.blocks(),
            _ => &[],
        }
    }

    /// The tool calls of the entry that the agent runs (not those the server runs).
    pub(crate) fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks().iter().filter_map(Block::tool_use)
    }

    /// The `user` entry; `None` if it is another type.
    pub fn user(&self) -> Option<&User> {
        match &self.entry {
            Entry::User(line) => Some(line),
            _ => None,
        }
    }

    /// The `assistant` entry; `None` if it is another type.
    pub fn assistant(&self) -> Option<&Assistant> {
        match &self.entry {
            Entry::Assistant(line) => Some(line),
            _ => None,
        }
    }

    fn kind(&self) -> NodeKind {
        match &self.entry {
            Entry::User(_) => NodeKind::User,
            Entry::Assistant(_) => NodeKind::Assistant,
            Entry::System(system) if matches!(system.as_ref(), System::CompactBoundary(_)) => NodeKind::CompactBoundary,
            Entry::System(_) => NodeKind::System,
            Entry::Attachment(_) => NodeKind::Attachment,
            Entry::Progress(_) => NodeKind::Progress,
            Entry::Summary(_) => NodeKind::Summary,
            _ => NodeKind::Other,
        }
    }
}

impl EntryNode for Node {
    type Reader = ();

    fn from_entry(place: Place, entry: Entry) -> Self {
        Self { line: place.line, entry }
    }

    fn line(&self) -> u64 {
        self.line
    }

    fn facts(&self) -> Facts {
        let (envelope, kind, assistant) = (self.entry.envelope(), self.kind(), self.assistant());
        let has_null_parent = envelope.is_some_and(|e| e.parent_uuid == Maybe::Null);
        let logical = |e: &quipu_message::Envelope| e.logical_parent_uuid.get().filter(|_| has_null_parent).cloned();
        let parent = envelope.and_then(|e| e.parent_uuid.get().cloned().or_else(|| logical(e)));
        Facts {
            kind,
            uuid: self.uuid().map(|uuid| IdKey::new(uuid.as_str())),
            parent: parent.as_ref().map(|uuid| IdKey::new(uuid.as_str())),
            is_root: matches!(kind, NodeKind::User | NodeKind::Assistant) && parent.is_none() && has_null_parent,
            message: self.message_id().map(IdKey::new),
            has_several_blocks: self.blocks().len() > 1,
            is_incomplete: assistant.is_some_and(|line| line.message.stop_reason == Maybe::Null),
            is_response: assistant.is_some_and(|line| line.message.model.text() != Some(SYNTHETIC_MODEL)),
        }
    }

    fn prompt_kind(&self) -> PromptKind {
        PromptKind::from_prompt(self.user().and_then(user_prompt).as_deref())
    }

    fn visit_tools(&self, mut visit: impl FnMut(ToolLink)) {
        for block in self.blocks() {
            if let Some(call) = block.tool_call() {
                let role = if block.tool_use().is_some() { ToolRole::Call } else { ToolRole::ServerCall };
                visit(ToolLink { role, call: IdKey::new(call.id.as_str()) });
            } else if let Some(call) = block.result_tool_use_id() {
                let role = if block.tool_result().is_some() { ToolRole::Result } else { ToolRole::ServerResult };
                visit(ToolLink { role, call: IdKey::new(call.as_str()) });
            }
        }
        if let Some((call, _)) = self.hook_call_and_event() {
            visit(ToolLink { role: ToolRole::Hook, call: IdKey::new(call.as_str()) });
        }
    }

    fn load<'a>(&'a self, (): &'a (), _: u32) -> Option<Cow<'a, Node>> {
        Some(Cow::Borrowed(self))
    }
}

impl Node {
    /// Tool call and event of a hook entry; `None` for other entries.
    pub(crate) fn hook_call_and_event(&self) -> Option<(&quipu_message::ToolUseId, &str)> {
        match &self.entry {
            Entry::Attachment(line) => line.attachment.hook_tool_use_and_event(),
            Entry::Progress(line) => match &line.data {
                ProgressData::Tagged(ProgressKind::Hook(hook)) => {
                    Some((line.tool_use_id.get()?, hook.hook_event.text().unwrap_or_default()))
                }
                _ => None,
            },
            _ => None,
        }
    }
}
