//! Causes of cache misses.

use std::fmt;

use serde::{Serialize, Serializer};

/// Why a call read less from the prompt cache than it should have, in the order in which the
/// causes are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// More time passed since the previous request than the lifetime of its cache entry.
    TtlExpired,
    /// The model is another.
    ModelChanged,
    /// A tool was added, removed, moved or edited.
    ToolsChanged,
    /// Fast mode or a beta header changed.
    BetaChanged,
    /// The system prompt changed, or web search or citations were switched.
    SystemChanged,
    /// Effort or thinking parameters changed.
    ThinkingChanged,
    /// `tool_choice` changed.
    ToolChoiceChanged,
    /// Images were added or removed.
    ImagesChanged,
    /// The first message changed: instructions, reminders, skills or command output.
    FirstMessageChanged,
    /// An earlier message changed, be it only in the order of the keys of a tool call.
    MessageEdited,
    /// Messages were removed, or the conversation went back.
    Truncated,
    /// A summary replaced the history.
    Compacted,
    /// The server cleared tool results or thinking; the request is unchanged.
    ContextEdited,
    /// The model removes the thinking of earlier turns when the user writes.
    ThinkingDropped,
    /// The last cache entry was further back than a breakpoint looks.
    Lookback,
    /// The request was sent before the response to the previous one began.
    Concurrent,
    /// The prompt is too short to be cached.
    BelowMinimum,
    /// The request was made with another credential.
    AccountChanged,
    /// The request is unchanged and none of the rules explains the miss: the entry was
    /// evicted, or the cause is unknown.
    Unknown,
}

impl Cause {
    /// Name of the cause in output, for example `tools_changed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TtlExpired => "ttl_expired",
            Self::ModelChanged => "model_changed",
            Self::ToolsChanged => "tools_changed",
            Self::BetaChanged => "beta_changed",
            Self::SystemChanged => "system_changed",
            Self::ThinkingChanged => "thinking_changed",
            Self::ToolChoiceChanged => "tool_choice_changed",
            Self::ImagesChanged => "images_changed",
            Self::FirstMessageChanged => "first_message_changed",
            Self::MessageEdited => "message_edited",
            Self::Truncated => "truncated",
            Self::Compacted => "compacted",
            Self::ContextEdited => "context_edited",
            Self::ThinkingDropped => "thinking_dropped",
            Self::Lookback => "lookback",
            Self::Concurrent => "concurrent",
            Self::BelowMinimum => "below_minimum",
            Self::AccountChanged => "account_changed",
            Self::Unknown => "unknown",
        }
    }

    /// What to do about misses of this cause, in one sentence.
    pub fn advice(self) -> &'static str {
        match self {
            Self::TtlExpired => {
                "continue within the lifetime of the cache entry, or use one of 1 hour if pauses are usual"
            }
            Self::ModelChanged => "each model has a cache of its own; choose the model before the conversation grows",
            Self::ToolsChanged => {
                "keep tools and their order constant in a session; connect MCP servers before the first prompt"
            }
            Self::BetaChanged => "keep fast mode and beta headers constant in a session",
            Self::SystemChanged => "keep the system prompt constant; move dates and other changing facts into messages",
            Self::ThinkingChanged => "choose effort and thinking before the conversation grows",
            Self::ToolChoiceChanged => "keep tool_choice constant in a conversation",
            Self::ImagesChanged => "add images at the beginning of a conversation, or give them to a subagent",
            Self::FirstMessageChanged => {
                "keep CLAUDE.md and other context of the first message unchanged during a session; append news at the end"
            }
            Self::MessageEdited => "never change messages that were sent, not even the order of keys; append instead",
            Self::Truncated => {
                "place a breakpoint at the message that is kept, or remove many messages at once and rarely"
            }
            Self::Compacted => "the summary is cached from now on; compact between tasks, not in the middle of one",
            Self::ContextEdited => "let the server clear more tokens at once, so that it clears less often",
            Self::ThinkingDropped => "newer models keep the thinking of earlier turns",
            Self::Lookback => {
                "set a breakpoint at least every 20 blocks, for example in the middle of many tool results"
            }
            Self::Concurrent => {
                "wait for the first event of the first response before sending requests with the same prefix"
            }
            Self::BelowMinimum => {
                "the prompt is too short for the cache of this model; nothing was lost but the discount"
            }
            Self::AccountChanged => "caches are not shared between accounts; use one credential for a conversation",
            Self::Unknown => {
                "no difference to the request before was found: the entry was evicted, or the change was not recorded"
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
