//! Any line of a session file or of the live stream.

use crate::attachment::{Attachment, AttachmentEntry};
use crate::bookkeeping::*;
use crate::control::{ControlCancelRequest, ControlRequest, ControlResponse};
use crate::line::replace_lone_surrogates;
use crate::macros::{open_enum, wire};
use crate::progress::Progress;
use crate::stream::*;
use crate::system::System;
use crate::user_assistant::{Assistant, User};
use crate::{Block, Content, Envelope};

open_enum! {
    /// One line of a session file or of the stream, by `type`.
    ///
    /// ```
    /// use quipu_message::Entry;
    /// let file = r#"{"type":"user","message":{"role":"user","content":"hi"},"sessionId":"s"}"#;
    /// let live = r#"{"type":"user","message":{"role":"user","content":"hi"},"session_id":"s"}"#;
    /// for line in [file, live] {
    ///     let entry = Entry::read(line)?;
    ///     assert_eq!(entry.envelope().and_then(|e| e.session_id.text()), Some("s"));
    ///     assert_eq!(serde_json::to_string(&entry)?, line);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub enum Entry by "type" {
        /// A `user` entry: a user prompt, tool results, or text the program adds on the user's
        /// side.
        "user" => User(User),
        /// An `assistant` entry: one or more blocks of a model's message.
        "assistant" => Assistant(Assistant),
        /// A `system` entry, by `subtype`.
        "system" => System(System),
        /// Context that the agent sends to the model beside the user's text.
        "attachment" => Attachment(AttachmentEntry),
        /// A `progress` entry: what a tool or hook did while it ran.
        "progress" => Progress(Progress),
        /// A title, or the summary of a compacted session. In the old layout it is line 1 of the
        /// new file and `leaf_uuid` refers to the old one.
        "summary" => Summary(Summary),
        /// A change of the queue of prompts that wait for the running turn.
        "queue-operation" => QueueOperation(QueueOperation),
        /// The last prompt, and the entry from which the session is resumed.
        "last-prompt" => LastPrompt(LastPrompt),
        /// Title written by the model.
        "ai-title" => AiTitle(AiTitle),
        /// Title given by the user.
        "custom-title" => CustomTitle(CustomTitle),
        /// Display name of the agent.
        "agent-name" => AgentName(AgentName),
        /// Interface mode of the session, for example `normal`.
        "mode" => Mode(ModeEntry),
        /// Permission mode from this point on.
        "permission-mode" => PermissionMode(PermissionModeEntry),
        /// Tag given by the user.
        "tag" => Tag(Tag),
        /// The agent the session runs as.
        "agent-setting" => AgentSetting(AgentSetting),
        /// The Git worktree the session works in.
        "worktree-state" => WorktreeState(WorktreeState),
        /// A subagent's [`SubagentMeta`] as an entry, in `transcript_mirror` entries: a host's
        /// store has no `.meta.json` files.
        "agent_metadata" => AgentMetadata(AgentMetadata),
        /// Meaning not established.
        "atis-latch" => AtisLatch(AtisLatch),
        /// State of the tracked files before a prompt, for rewinding.
        "file-history-snapshot" => FileHistorySnapshot(FileHistorySnapshot),
        /// Backup of one file before a tool changed it.
        "file-history-delta" => FileHistoryDelta(FileHistoryDelta),
        /// Tools called in the session so far.
        "tools-used" => ToolsUsed(ToolsUsed),
        /// Cost of the session so far.
        "cost-state" => CostState(CostState),
        /// A pull request opened in the session.
        "pr-link" => PrLink(PrLink),
        /// System prompt and tools of API calls, stored once by hash.
        "api-request-shape" => ApiRequestShape(ApiRequestShape),
        /// A message of API calls that no other entry of the session holds.
        "api-request-blob" => ApiRequestBlob(ApiRequestBlob),
        /// One API call, as the difference to an earlier one.
        "api-request" => ApiRequest(ApiRequest),
        /// A `result` entry: the end of a turn.
        "result" => Result(TurnResult),
        /// One API event of a response that is being streamed.
        "stream_event" => StreamEvent(StreamEventEntry),
        /// Withdraws an entry that was already sent.
        "tombstone" => Tombstone(Tombstone),
        /// An API call is about to be made.
        "stream_request_start" => StreamRequestStart(StreamRequestStart),
        /// One sentence about a series of tool calls.
        "tool_use_summary" => ToolUseSummary(ToolUseSummary),
        /// The stream ended with an error.
        "error" => Error(ErrorEntry),
        /// A tool call is still running.
        "tool_progress" => ToolProgress(ToolProgress),
        /// Progress of a login.
        "auth_status" => AuthStatus(AuthStatus),
        /// State of a rate limit.
        "rate_limit_event" => RateLimitEvent(RateLimitEvent),
        /// Keeps the connection alive.
        "keep_alive" => KeepAlive(KeepAlive),
        /// Goal the agent works towards.
        "active_goal" => ActiveGoal(ActiveGoal),
        /// State of a prompt that the host sent.
        "command_lifecycle" => CommandLifecycle(CommandLifecycle),
        /// The conversation starts again under a new id.
        "conversation_reset" => ConversationReset(ConversationReset),
        /// Suggestion for the next prompt.
        "prompt_suggestion" => PromptSuggestion(PromptSuggestion),
        /// Entries just written to a session file, for a host that keeps its own copy.
        "transcript_mirror" => TranscriptMirror(TranscriptMirror),
        /// A control request of either side.
        "control_request" => ControlRequest(ControlRequest),
        /// The answer.
        "control_response" => ControlResponse(ControlResponse),
        /// A question withdrawn.
        "control_cancel_request" => ControlCancelRequest(ControlCancelRequest),
    }
}

/// Why a line is not an entry. Unknown types are entries: see [`Entry::Unknown`].
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The line is not one JSON value.
    #[error("not JSON")]
    NotJson(#[source] serde_json::Error),
    /// The line is JSON but has no string `type`: another program's.
    #[error("a JSON value without a string `type`")]
    Foreign,
    /// The type is known and its body is wrong.
    #[error("malformed {0}")]
    Malformed(#[source] serde_json::Error),
}

impl ReadError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson(_) => "line.not_json",
            Self::Foreign => "line.foreign",
            Self::Malformed(_) => "entry.malformed",
        }
    }
}

impl Entry {
    /// Reads one line.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        let text = replace_lone_surrogates(text);
        let tag = crate::text::find_string_field(&text, "type");
        if let Ok(Some(tag)) = &tag
            && let Ok(entry) = Self::from_tag(Some(tag), &text)
        {
            return Ok(entry);
        }
        // What is wrong is looked for only when something is.
        serde_json::from_str::<&serde_json::value::RawValue>(&text).map_err(ReadError::NotJson)?;
        match tag {
            Ok(Some(_)) => serde_json::from_str(&text).map_err(ReadError::Malformed),
            _ => Err(ReadError::Foreign),
        }
    }

    /// `type`, or `type/subtype` where there is one.
    pub fn kind(&self) -> String {
        let (tag, sub) = match self {
            Self::System(line) => ("system", line.tag()),
            Self::Result(line) => ("result", line.subtype.as_str()),
            Self::ControlRequest(line) => ("control_request", line.request.tag()),
            Self::ControlResponse(line) => ("control_response", line.response.tag()),
            other => (other.tag(), ""),
        };
        if sub.is_empty() { tag.to_owned() } else { format!("{tag}/{sub}") }
    }

    /// Whether this version has a type for the type and subtype of the line.
    pub fn is_known_kind(&self) -> bool {
        match self {
            Self::System(line) => line.is_known(),
            Self::Result(line) => !matches!(line.subtype, TurnOutcome::Other(_)),
            Self::ControlRequest(line) => line.request.is_known(),
            Self::ControlResponse(line) => line.response.is_known(),
            Self::StreamEvent(line) => line.event.is_known(),
            other => other.is_known(),
        }
    }

    /// Number of content blocks of unknown type in it.
    pub fn count_unknown_blocks(&self) -> usize {
        let content: &Content = match self {
            Self::User(line) => &line.message.content,
            Self::Assistant(line) => &line.message.content,
            Self::ApiRequestBlob(line) => &line.message.content,
            Self::TranscriptMirror(line) => return line.entries.iter().map(Self::count_unknown_blocks).sum(),
            _ => return 0,
        };
        content.blocks().iter().map(Block::count_unknown_blocks).sum()
    }

    /// The type of an attachment that this version does not know; `None` for other entries.
    pub fn unknown_attachment(&self) -> Option<&str> {
        match self {
            Self::Attachment(line) if matches!(line.attachment, Attachment::Unknown(_)) => Some(line.attachment.tag()),
            _ => None,
        }
    }

    /// Envelope of the entry; `None` if its type has none.
    pub fn envelope(&self) -> Option<&Envelope> {
        Some(match self {
            Self::User(line) => &line.envelope,
            Self::Assistant(line) => &line.envelope,
            Self::System(line) => return line.envelope(),
            Self::Attachment(line) => &line.envelope,
            Self::Progress(line) => &line.envelope,
            Self::Summary(line) => &line.envelope,
            Self::Result(line) => &line.envelope,
            Self::StreamEvent(line) => &line.envelope,
            Self::Tombstone(line) => &line.envelope,
            Self::ToolUseSummary(line) => &line.envelope,
            Self::Error(line) => &line.envelope,
            Self::ConversationReset(line) => &line.envelope,
            Self::PromptSuggestion(line) => &line.envelope,
            Self::Unknown(line) => return line.envelope(),
            _ => return None,
        })
    }
}

wire! {
    /// Entries just written to a session file, for a host that keeps its own copy.
    pub struct TranscriptMirror ["type" = "transcript_mirror"] {
        /// Path of the session file.
        file_path: opt String = "filePath",
        /// Entries in the order they were written.
        entries: req Vec<Entry>,
    }
}
