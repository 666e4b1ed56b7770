//! The other side of a call, played from a script or a recording.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use quipu_api::answer::{Answerer, Script};
//!
//! let script = Script::parse("- when: {says: hello}\n  reply: Hello yourself.")?;
//! let answerer = Answerer::start(script).await?;
//! println!("ANTHROPIC_BASE_URL={}", answerer.url());
//! # Ok(())
//! # }
//! ```
//!
//! The format of scripts is in `docs/answer.md`. The answerer listens on loopback
//! only, checks no credential, and keeps what it was asked for tests to look at.

mod incoming;
mod message_events;
mod recording;
mod reply_block;
mod response;
mod rule;
mod script;
mod server;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use quipu_message::api::Request;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::secret::Secret;
use server::ServerState;

pub use script::{Script, ScriptError};

/// A server on loopback that answers from a script until it is dropped.
#[derive(Debug)]
pub struct MockServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    task: AbortHandle,
}

/// A request that was asked of the answerer, and what became of it.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Its number, counted from 1.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers; names in small letters.
    pub headers: Vec<(String, Secret)>,
    /// The body as it came.
    pub body: String,
    /// The body as a request for a message, when it is one.
    pub request: Option<Request>,
    /// What it asks, in a few words; empty when it is no request for a message.
    pub summary: String,
    /// The rule or recorded call that answered; none when nothing fitted.
    pub matched_rule: Option<String>,
    /// The status it was answered with.
    pub status: u16,
    /// How far the answer is.
    pub state: ResponseState,
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseState {
    /// It is under way.
    InProgress,
    /// It was sent whole.
    Complete,
    /// It was cut, as the script says.
    Cut,
    /// The one who asked left before its end.
    ClientDisconnected,
}

impl ReceivedRequest {
    /// The value of a header, whatever it is: for tests.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(value.reveal())
    }
}

impl MockServer {
    /// Starts on a free port of loopback.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::open(script, (Ipv4Addr::LOCALHOST, 0).into(), None).await
    }

    /// Starts on an address of loopback and tells of each request once it is decided
    /// how to answer it. Bodies are told, not kept: it may run for long.
    pub async fn listen(
        script: Script,
        address: SocketAddr,
        tell: impl Fn(&ReceivedRequest) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::open(script, address, Some(Box::new(tell))).await
    }

    async fn open(script: Script, address: SocketAddr, tell: Option<server::RequestObserver>) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let reason = format!("{address} is not a loopback address; use 127.0.0.1");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let desk = Arc::new(ServerState::new(script, tell));
        let task = tokio::spawn(server::serve(listener, Arc::clone(&desk))).abort_handle();
        Ok(Self { address, state: desk, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.state.requests()
    }

    /// Waits until what was asked is as it should be.
    pub async fn wait_until(&self, holds: impl Fn(&[ReceivedRequest]) -> bool) {
        self.state.wait_until(holds).await;
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
