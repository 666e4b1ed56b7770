//! Builds conversations from transcript entries and stream events, without I/O.
//!
//! ```text
//!   entries, events ── Conversation ──┬── path, branches    the tree and its active leaf
//!                                     ├── for_ui            items for a screen
//!                                     ├── for_api           messages for the next API call
//!                                     └── turns             prompts with their responses
//!   lines as they arrive ── LiveConversation ── new items, whether the session waits
//!   views of lines ──────── MetricsBuilder ──── Metrics: tokens, cost, tools
//! ```
//!
//! Files and live streams use the same reducer. This crate reads no files, no clock and no
//! network, and is not async; the price table is passed in.
//!
//! ```
//! use quipu_conversation::Conversation;
//! let mut conversation = Conversation::default();
//! conversation.push_line(1, r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#);
//! assert_eq!(conversation.for_ui()[0].text.as_deref(), Some("hi"));
//! assert!(conversation.problems().is_empty());
//! ```
//!
//! | I want to … | look at |
//! |---|---|
//! | show a conversation | [`Conversation::for_ui`], [`ScreenItem`] |
//! | continue it with an API call | [`Conversation::for_api`], [`normalise`] |
//! | show it while it runs | [`LiveConversation`], [`Activity`] |
//! | assemble a streamed response | [`Accumulator`] |
//! | count tokens and cost of a session | [`MetricsBuilder`], [`price::Prices`] |
//! | count many sessions | [`usage`], and the crate `quipu-index` |
//! | find the result of a tool call | [`ToolResults`] |
//! | know what is wrong with a line | [`Problem`], [`ProblemKind`] |
//! | verify the request log of a file, or rebuild its requests | [`RequestLog`] |
//! | find the API calls of a file without such a log | [`Conversation::past_requests`], [`SkeletonView::visit_past_requests`] |

// A failed unwrap is a failed test.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod accumulate;
mod conversation;
mod for_api;
mod hash;
mod headline;
mod id_key;
mod live;
mod metrics;
mod node;
mod past_requests;
mod problem;
mod request_log;
mod screen;
mod sidechain;
mod skeleton;
mod timestamp;
mod tokens;
mod tool_results;
mod tree;
mod turns;
mod user_text;

pub mod price;
pub mod usage;

pub use accumulate::{AccumulateError, Accumulator};
pub use conversation::{Branch, Conversation};
pub use for_api::{clear_microcompacted, for_api, is_media_too_large_error, normalise, since_compaction};
pub use headline::{FirstPrompt, headline};
pub use live::{Activity, ActivityState, LiveConversation, LiveItem, LiveSubagent};
pub use metrics::{LinePrompt, Metrics, MetricsBuilder, MetricsState, SessionFacts, SubagentRef};
pub use node::Node;
pub use past_requests::{PastCall, PastRequests};
pub use problem::{Problem, ProblemKind, describe_read_error};
pub use request_log::{HashVerification, LoggedRequest, RebuiltRequests, RequestLog};
pub use screen::{
    ItemKind, MessagePart, PositionedItem, ScreenItem, SubagentCard, ToolCard, UiOptions, messages_for_ui,
    standalone_notice,
};
pub use skeleton::{EntryReader, LineFacts, Skeleton, SkeletonBranch, SkeletonTurn, SkeletonView};
pub use timestamp::{parse_timestamp, to_iso8601};
pub use tokens::Tokens;
pub use tool_results::{PairedResult, ToolResults, ToolStatus};
pub use tree::circles;
pub use turns::Turn;
pub use user_text::{UserText, classify_user_text, user_prompt};
