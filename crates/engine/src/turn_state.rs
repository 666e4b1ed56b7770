//! The counters of a running turn and the ways a turn ends.

use std::time::Instant;

use quipu_message::stream::DeniedToolCall;
use quipu_message::values::{StopReason, TerminalReason};
use quipu_message::{Json, Message, Usage};
use quipu_transcript::AppendError;

use crate::usage::add_usage;

/// How a turn ends.
#[derive(Debug)]
pub(crate) enum TurnEnd {
    /// With the model's answer.
    Answered(String),
    /// With the answer in the form asked for.
    StructuredOutput(Json),
    /// The model never used the form in a way that fits.
    NoStructuredOutput,
    /// A call failed for good.
    Failed(TurnFailure),
    /// The limit of calls was hit.
    MaxTurns(u64),
    /// The money is gone.
    BudgetExceeded(f64),
    /// Broken off while the model wrote.
    InterruptedStreaming,
    /// Broken off while tools ran.
    InterruptedTools,
    /// A hook ended it.
    StoppedByHook(String),
    /// The session's file cannot be written.
    WriteFailed(AppendError),
}

/// A call that failed for good, as it is shown.
#[derive(Debug)]
pub(crate) struct TurnFailure {
    pub(crate) text: String,
    pub(crate) status: Option<u16>,
    pub(crate) error_type: Option<String>,
    pub(crate) stop_reason: StopReason,
    /// Why the turn ended, as the result says it.
    pub(crate) terminal_reason: TerminalReason,
}

/// What a turn counts.
#[derive(Debug)]
pub(crate) struct TurnState {
    pub(crate) started_at: Instant,
    pub(crate) first_token_at: Option<Instant>,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) denials: Vec<DeniedToolCall>,
    /// Calls of the model.
    pub(crate) api_calls: u64,
    /// Lines in the person's voice after the prompt.
    pub(crate) user_entries: u64,
    pub(crate) compacted_on_overflow: bool,
    pub(crate) compaction_failed: bool,
    pub(crate) continuations: u32,
    pub(crate) refusals: u32,
    pub(crate) structured_output_reminded: bool,
    pub(crate) structured_output_errors: u32,
    pub(crate) stop_hook_active: bool,
    pub(crate) tool_calls: u64,
    last_message: Option<Message>,
}

impl TurnState {
    pub(crate) fn new() -> Self {
        Self {
            started_at: Instant::now(),
            first_token_at: None,
            usage: None,
            stop_reason: None,
            denials: Vec::new(),
            api_calls: 0,
            user_entries: 0,
            compacted_on_overflow: false,
            compaction_failed: false,
            continuations: 0,
            refusals: 0,
            structured_output_reminded: false,
            structured_output_errors: 0,
            stop_hook_active: false,
            tool_calls: 0,
            last_message: None,
        }
    }

    pub(crate) fn mark_first_token(&mut self) {
        self.first_token_at.get_or_insert_with(Instant::now);
    }

    pub(crate) fn add_response(&mut self, message: &Message, usage: &Usage) {
        self.stop_reason = message.stop_reason.get().cloned();
        add_usage(&mut self.usage, usage);
        self.last_message = Some(message.clone());
    }

    /// What the last call used.
    pub(crate) fn last_usage(&self) -> Option<&Usage> {
        self.last_message.as_ref()?.usage.get()
    }
}
