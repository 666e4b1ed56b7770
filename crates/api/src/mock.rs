//! A mock of the API server that responds from a script or a recording.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use quipu_api::mock::{MockServer, Script};
//!
//! let script = Script::parse("- when: {says: hello}\n  reply: Hello yourself.")?;
//! let server = MockServer::start(script).await?;
//! println!("ANTHROPIC_BASE_URL={}", server.url());
//! # Ok(())
//! # }
//! ```
//!
//! The format of scripts is in `docs/answer.md`. The server listens on
//! loopback only, checks no credential, and keeps the requests for tests.

mod incoming;
mod message_events;
mod recording;
mod reply_block;
mod request_difference;
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

pub use recording::{MatchMode, RecordedBody, RecordedCall, RecordedEnd};
pub use request_difference::RequestDifference;
pub use script::{Script, ScriptError};

/// A server on loopback that responds from a script until it is dropped.
#[derive(Debug)]
pub struct MockServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    task: AbortHandle,
}

/// A request that a [`MockServer`] received, and its response.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// Number of the request, from 1.
    pub number: usize,
    /// HTTP method of the request.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers; names are lowercase.
    pub headers: Vec<(String, Secret)>,
    /// The body as it was received.
    pub body: String,
    /// The parsed body; `None` if it is not a request for a message.
    pub request: Option<Request>,
    /// Short description for logs; empty if it is not a request for a message.
    pub summary: String,
    /// Rule or recorded call of the response; `None` if none matched.
    pub matched_rule: Option<String>,
    /// Where the request differs from the recorded one that was expected; `None` if they are
    /// the same, and for scripts.
    pub difference: Option<RequestDifference>,
    /// HTTP status of the response.
    pub status: u16,
    /// Progress of the response.
    pub state: ResponseState,
}

/// Progress of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseState {
    /// Not finished yet.
    InProgress,
    /// Sent completely.
    Complete,
    /// Cut off, as the script says.
    Cut,
    /// The client disconnected before the end.
    ClientDisconnected,
}

impl ReceivedRequest {
    /// Value of a header, secret or not, for tests.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(value.reveal())
    }
}

impl MockServer {
    /// Starts a server on a free port of loopback.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::open(script, (Ipv4Addr::LOCALHOST, 0).into(), None).await
    }

    /// Starts a server on a loopback address and calls `observer` for each request when its
    /// response is chosen. Bodies are not kept, so that it can run for long.
    pub async fn listen(
        script: Script,
        address: SocketAddr,
        observer: impl Fn(&ReceivedRequest) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::open(script, address, Some(Box::new(observer))).await
    }

    async fn open(script: Script, address: SocketAddr, observer: Option<server::RequestObserver>) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let reason = format!("{address} is not a loopback address; use 127.0.0.1");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(ServerState::new(script, observer));
        let task = tokio::spawn(server::serve(listener, Arc::clone(&state))).abort_handle();
        Ok(Self { address, state, task })
    }

    /// Address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests received so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.state.requests()
    }

    /// Names of the recorded calls for messages that were not played; empty for scripts.
    pub fn unplayed_calls(&self) -> Vec<String> {
        self.state.unplayed_calls()
    }

    /// Waits until `holds` is true of the received requests.
    pub async fn wait_until(&self, holds: impl Fn(&[ReceivedRequest]) -> bool) {
        self.state.wait_until(holds).await;
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
