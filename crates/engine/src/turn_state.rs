//! The counters of a running turn and the ways a turn ends.

use std::time::Instant;

use quipu_message::stream::DeniedToolCall;
use quipu_message::values::{ApiErrorType, StopReason, TerminalReason};
use quipu_message::{Json, Message, Usage};
use quipu_transcript::AppendError;

use crate::usage::add_usage;

/// How a turn ends.
#[derive(Debug)]
pub(crate) enum TurnEnd {
    /// The answer of the model.
    Answered(String),
    /// The answer as JSON that matches the schema.
    StructuredOutput(Json),
    /// The model gave no answer that matches the schema.
    NoStructuredOutput,
    /// An API call failed after all retries.
    Failed(TurnFailure),
    /// The limit of API calls was reached.
    MaxTurns(u64),
    /// The budget is used up; its amount in US dollars.
    BudgetExceeded(f64),
    /// Interrupted during an API call.
    InterruptedStreaming,
    /// Interrupted during tool calls.
    InterruptedTools,
    /// A hook ended it; the reason.
    StoppedByHook(String),
    /// The transcript cannot be written.
    WriteFailed(AppendError),
}

impl TurnEnd {
    /// The `terminal_reason` of the `result` line.
    pub(crate) fn terminal_reason(&self) -> TerminalReason {
        match self {
            Self::Answered(_) | Self::StructuredOutput(_) | Self::StoppedByHook(_) => TerminalReason::Completed,
            Self::NoStructuredOutput => TerminalReason::StructuredOutputRetries,
            Self::Failed(failure) => failure.terminal_reason.clone(),
            Self::MaxTurns(_) => TerminalReason::MaxTurns,
            Self::BudgetExceeded(_) => TerminalReason::BudgetExhausted,
            Self::InterruptedStreaming => TerminalReason::AbortedStreaming,
            Self::InterruptedTools => TerminalReason::AbortedTools,
            Self::WriteFailed(_) => TerminalReason::SessionFile,
        }
    }
}

/// A failed API call, as the `result` line shows it.
#[derive(Debug)]
pub(crate) struct TurnFailure {
    pub(crate) text: String,
    pub(crate) status: Option<u16>,
    pub(crate) error_type: Option<ApiErrorType>,
    pub(crate) stop_reason: StopReason,
    /// The `terminal_reason` of the `result` line.
    pub(crate) terminal_reason: TerminalReason,
}

/// The counters of a running turn.
#[derive(Debug)]
pub(crate) struct TurnState {
    pub(crate) started_at: Instant,
    pub(crate) first_token_at: Option<Instant>,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) denials: Vec<DeniedToolCall>,
    /// Number of API calls.
    pub(crate) api_calls: u64,
    /// Number of user entries after the prompt.
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

    /// The usage of the last API call.
    pub(crate) fn last_usage(&self) -> Option<&Usage> {
        self.last_message.as_ref()?.usage.get()
    }
}
