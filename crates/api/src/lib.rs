//! Calls the Anthropic Messages API: one request in, the response as a stream of events.
//!
//! ```text
//!   Endpoint ── Client::send(Request) ── ApiCall ──┬── Started, Event, Block   as it arrives
//!                                                  ├── Retry, Withdrawn, ModelFallback
//!                                                  └── Completed(ApiResponse) or ApiError
//!   Script ──── MockServer               the server side, on loopback
//! ```
//!
//! ```no_run
//! use quipu_api::{Client, Endpoint, Request};
//! use quipu_message::{Message, Role};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::new(Endpoint::from_env(|name| std::env::var(name).ok())?)?;
//! let request = Request {
//!     model: "claude-haiku-4-5".to_owned(),
//!     messages: vec![Message::new(Role::User, "What is 2 + 2?")],
//!     max_tokens: 100,
//!     ..Request::default()
//! };
//! let response = client.send(request).response().await?;
//! println!("{}", response.message.content.to_text());
//! # Ok(())
//! # }
//! ```
//!
//! | I want to … | look at |
//! |---|---|
//! | choose address, credential, proxy, timeouts | [`Endpoint`] |
//! | send a request and read events | [`Client`], [`ApiCall`], [`ApiEvent`] |
//! | know why a call failed, and whether to retry | [`ApiError`], [`RetryPolicy`] |
//! | send a long conversation without encoding it again | [`EncodedHistory`] |
//! | log a request without its messages | [`LoggedRequest`] |
//! | run a fake model server from a script or a recording | [`mock`] |
//!
//! The client sets the cache breakpoints and repeats failed attempts. Bytes become events in
//! `quipu_message::sse`, events become a message in `quipu_conversation::Accumulator`.
//!
//! Deliberately absent: session files, tools, prices, and what an agent decides. Nothing
//! here reads the process environment by itself. Without the feature `client` (on by
//! default) there is only the [`mock`] module.

// Tests may unwrap.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

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
pub use logged_request::{LoggedRequest, LoggedShape};
#[cfg(feature = "client")]
pub use request::{CacheTtl, FallbackModel, Request, ThinkingMode, ToolChoiceMode};
#[cfg(feature = "client")]
pub use retry::{RetryClock, RetryPolicy, SystemClock};
pub use secret::Secret;

/// Target of the spans and events of this crate.
#[cfg(feature = "client")]
const LOG_TARGET: &str = "quipu::api";
