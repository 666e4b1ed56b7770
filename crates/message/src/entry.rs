//! The whole vocabulary: any line of a session file or of the live stream.

use crate::attachment::{Attachment, AttachmentEntry};
use crate::bookkeeping::*;
use crate::control::{ControlCancelRequest, ControlRequest, ControlResponse};
use crate::line::replace_lone_surrogates;
use crate::macros::open_enum;
use crate::progress::Progress;
use crate::stream::*;
use crate::system::System;
use crate::user_assistant::{Assistant, User};
use crate::{Block, Content, Envelope};

open_enum! {
    /// One line, by `type`. Files and stream share this one vocabulary.
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
        /// The person, or tool results.
        "user" => User(User),
        /// The model.
        "assistant" => Assistant(Assistant),
        /// The program.
        "system" => System(System),
        /// Something told to the model beside the person's words.
        "attachment" => Attachment(AttachmentEntry),
        /// A tool or hook goes on.
        "progress" => Progress(Progress),
        /// A title or an old-style compaction.
        "summary" => Summary(Summary),
        /// A prompt is queued or leaves the queue.
        "queue-operation" => QueueOperation(QueueOperation),
        /// The last prompt.
        "last-prompt" => LastPrompt(LastPrompt),
        /// A title the model made up.
        "ai-title" => AiTitle(AiTitle),
        /// A title the person gave.
        "custom-title" => CustomTitle(CustomTitle),
        /// The agent's name.
        "agent-name" => AgentName(AgentName),
        /// The mode.
        "mode" => Mode(ModeEntry),
        /// The permission mode.
        "permission-mode" => PermissionMode(PermissionModeEntry),
        /// A label.
        "tag" => Tag(Tag),
        /// The agent the session runs as.
        "agent-setting" => AgentSetting(AgentSetting),
        /// The Git worktree the session works in.
        "worktree-state" => WorktreeState(WorktreeState),
        /// Facts about a subagent, in mirrored transcripts.
        "agent_metadata" => AgentMetadata(AgentMetadata),
        /// Meaning not established.
        "atis-latch" => AtisLatch(AtisLatch),
        /// Files before a prompt.
        "file-history-snapshot" => FileHistorySnapshot(FileHistorySnapshot),
        /// A file before a change.
        "file-history-delta" => FileHistoryDelta(FileHistoryDelta),
        /// The tools used so far.
        "tools-used" => ToolsUsed(ToolsUsed),
        /// What the session has cost so far.
        "cost-state" => CostState(CostState),
        /// A pull request.
        "pr-link" => PrLink(PrLink),
        /// System prompt and tools of calls.
        "api-request-shape" => ApiRequestShape(ApiRequestShape),
        /// A message of calls.
        "api-request-blob" => ApiRequestBlob(ApiRequestBlob),
        /// A call.
        "api-request" => ApiRequest(ApiRequest),
        /// The end of a turn.
        "result" => Result(TurnResult),
        /// A piece of an answer.
        "stream_event" => StreamEvent(StreamEventEntry),
        /// A line withdrawn.
        "tombstone" => Tombstone(Tombstone),
        /// A call is about to be made.
        "stream_request_start" => StreamRequestStart(StreamRequestStart),
        /// What tool calls did.
        "tool_use_summary" => ToolUseSummary(ToolUseSummary),
        /// The stream cannot go on.
        "error" => Error(ErrorEntry),
        /// A tool runs.
        "tool_progress" => ToolProgress(ToolProgress),
        /// A login.
        "auth_status" => AuthStatus(AuthStatus),
        /// An allowance.
        "rate_limit_event" => RateLimitEvent(RateLimitEvent),
        /// Still there.
        "keep_alive" => KeepAlive(KeepAlive),
        /// The goal.
        "active_goal" => ActiveGoal(ActiveGoal),
        /// A queued prompt's state.
        "command_lifecycle" => CommandLifecycle(CommandLifecycle),
        /// A new conversation.
        "conversation_reset" => ConversationReset(ConversationReset),
        /// What the person might say.
        "prompt_suggestion" => PromptSuggestion(PromptSuggestion),
        /// Entries just written.
        "transcript_mirror" => TranscriptMirror(TranscriptMirror),
        /// One side asks the other.
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

    /// Whether this build has a model for the type and the subtype.
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

    /// How many blocks in it this build has no model for.
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

    /// The type of an attachment that this build has no model for.
    pub fn unknown_attachment(&self) -> Option<&str> {
        match self {
            Self::Attachment(line) if matches!(line.attachment, Attachment::Unknown(_)) => Some(line.attachment.tag()),
            _ => None,
        }
    }

    /// What stands around the payload, where the type has an envelope.
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
