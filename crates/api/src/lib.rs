//! How a model is asked: one request in, the answer as it is written out.
//!
//! ```text
//!   Endpoint ── Client::ask(&Request) ── Asking ──┬── Began, Event, Block   as it is written
//!                                                 ├── Retry, Withdrawn, FellBack
//!                                                 └── Done(Answer) or ApiError
//!   Script ──── Answerer                 plays the other side, on loopback
//! ```
//!
//! The client adds the cache breakpoints, waits and tries again as long as that
//! can help, and says so as it happens. The [`mock`] module is the server that
//! tests, the demo and users' own tests talk to: it plays a script or recorded
//! calls. Bytes become events in `quipu_message::sse`, events become a message in
//! `quipu_conversation::Accumulator`; there is no second of either here.
//!
//! Deliberately absent: session files, tools, prices, and everything an agent
//! decides; nothing here reads the process environment by itself. Without the feature
//! `client` (on by default) there is the [`mock`] module alone.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(feature = "client")]
mod attempt;
#[cfg(feature = "client")]
mod body;
#[cfg(feature = "client")]
mod call;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod endpoint;
#[cfg(feature = "client")]
mod error;
#[cfg(feature = "client")]
mod event;
#[cfg(feature = "client")]
mod key_helper;
#[cfg(feature = "client")]
mod logged_request;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "client")]
mod retry;
mod secret;

pub mod mock;

#[cfg(feature = "client")]
pub use body::EncodedHistory;
#[cfg(feature = "client")]
pub use call::ApiCall;
#[cfg(feature = "client")]
pub use client::Client;
#[cfg(feature = "client")]
pub use endpoint::{Credential, Endpoint, EndpointError, Limits, Proxy};
#[cfg(feature = "client")]
pub use error::ApiError;
#[cfg(feature = "client")]
pub use event::{ApiEvent, ApiResponse, Retry};
#[cfg(feature = "client")]
pub use key_helper::KeyHelper;
#[cfg(feature = "client")]
pub use logged_request::LoggedRequest;
#[cfg(feature = "client")]
pub use request::{CacheTtl, FallbackModel, Request, ThinkingMode, ToolChoiceMode};
#[cfg(feature = "client")]
pub use retry::{RetryClock, RetryPolicy, SystemClock};
pub use secret::Secret;

/// Target of the spans and events of this crate.
#[cfg(feature = "client")]
const LOG_TARGET: &str = "quipu::api";
