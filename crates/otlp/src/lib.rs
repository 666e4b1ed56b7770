//! OpenTelemetry spans of agents, with the names of the GenAI conventions.
//!
//! ```text
//!   engine: a turn that runs ─┐
//!                             ├── AgentRun, ChatCall, ToolRun ── Span ── Collector ── OTLP over HTTP
//!   trace: recorded calls ────┘                                  SpanQueue (in the background)
//! ```
//!
//! A turn is one trace: `invoke_agent` with `chat` and `execute_tool` below it. A subagent is
//! an `invoke_agent` below the `execute_tool` that started it. Spans contain names, ids, times
//! and token counts. Deliberately absent: texts of prompts, answers, tool inputs and results,
//! and reading the environment.

// A failed unwrap is a failed test.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

#[cfg(feature = "http")]
mod collector;
#[cfg(feature = "http")]
mod encode;
mod gen_ai;
#[cfg(feature = "http")]
mod queue;
mod span;

#[cfg(feature = "http")]
pub use collector::{Collector, CollectorError};
#[cfg(feature = "http")]
pub use encode::Resource;
pub use gen_ai::{AgentRun, ChatCall, MAIN_AGENT, ToolRun};
#[cfg(feature = "http")]
pub use queue::SpanQueue;
pub use span::{AttributeValue, Span, SpanId, SpanKind, SpanPlace, SpanTimes, TraceId};
