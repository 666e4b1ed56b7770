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
mod attribution;
mod conversation;
mod for_api;
mod headline;
mod live;
mod metrics;
mod pair;
mod person;
mod proof;
mod screen;
mod tally;
mod tree;
mod turns;

pub mod price;

pub use accumulate::{AccumulateError, Accumulator};
pub use attribution::Agent;
pub use conversation::{Branch, Conversation, Fault, Node};
pub use for_api::{clear_microcompacted, for_api, normalise, refuses_media, since_compaction};
pub use headline::{FirstPrompt, headline};
pub use live::{Activity, Live, LiveAgent, LiveItem, State};
pub use metrics::{Facts, Metrics, Session, Story, SubagentOf, Tokens};
pub use pair::{Answer, Results, Status};
pub use person::{Said, prompt, said};
pub use proof::{Proof, RequestLog};
pub use screen::{Kind, ScreenItem, Subagent, ToolCard, UiOptions, messages_for_ui, notice_of};
pub use tally::{Key, MessageUse, Served, Spent, Tally, iso, moment, number_of};
pub use tree::{Tree, circles};
pub use turns::Turn;
