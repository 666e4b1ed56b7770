//! What lines mean together: the pure functions that turn lines into
//! conversations.
//!
//! ```text
//!   entries, events ── Conversation ──┬── path      tree, leaf, branches
//!                                     ├── for_ui    what people see
//!                                     ├── for_api   what the model is sent
//!                                     └── turns     a request to its answer
//!   lines as they come ── Live ────────── items that are new, what is waited for
//!   views ───────────── Metrics ────────── tokens, money (Prices), tools
//! ```
//!
//! Files and the live stream fold through the same reducer. Deliberately absent:
//! files, clocks, networks and async; the price table is passed in.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod accumulate;
mod conversation;
mod for_api;
mod hash;
mod headline;
mod live;
mod metrics;
mod problem;
mod request_log;
mod screen;
mod timestamp;
mod tokens;
mod tool_results;
mod tree;
mod turns;
mod user_text;

pub mod price;
pub mod usage;

pub use accumulate::{AccumulateError, Accumulator};
pub use conversation::{Branch, Conversation, Node};
pub use for_api::{clear_microcompacted, for_api, is_media_too_large_error, normalise, since_compaction};
pub use headline::{FirstPrompt, headline};
pub use live::{Activity, ActivityState, LiveConversation, LiveItem, LiveSubagent};
pub use metrics::{Metrics, MetricsBuilder, MetricsState, SessionFacts, SubagentRef};
pub use problem::{Problem, ProblemKind, describe_read_error};
pub use request_log::{HashVerification, RequestLog};
pub use screen::{ItemKind, ScreenItem, SubagentCard, ToolCard, UiOptions, messages_for_ui, standalone_notice};
pub use timestamp::{parse_timestamp, to_iso8601};
pub use tokens::Tokens;
pub use tool_results::{PairedResult, ToolResults, ToolStatus};
pub use tree::{Tree, circles};
pub use turns::Turn;
pub use user_text::{UserText, classify_user_text, user_prompt};
