//! Connections to an agent.

use std::io;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Error, Exit};

mod memory;
mod process;
#[cfg(target_os = "linux")]
mod process_tree;

pub use memory::{MemoryPeer, MemoryTransport};
pub use process::Subprocess;

/// A way to connect to an agent. [`Subprocess`] starts a program, [`MemoryTransport`] connects within the
/// process; others may use a socket or a container.
pub trait Transport: Send + 'static {
    /// Connects to the agent.
    fn connect(self: Box<Self>) -> BoxFuture<'static, Result<Connection, Error>>;
}

impl Transport for Box<dyn Transport> {
    fn connect(self: Box<Self>) -> BoxFuture<'static, Result<Connection, Error>> {
        (*self).connect()
    }
}

/// A connection to an agent: bytes in both directions, one JSON value per line.
pub struct Connection {
    /// Output of the agent.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// Input of the agent.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// Error output of the agent; `None` if there is none.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Waits for the agent and ends it.
    pub peer: Box<dyn Peer>,
}

/// The agent at the other end. Dropping it ends the agent and every process that it started.
pub trait Peer: Send + 'static {
    /// Waits until the agent has ended. The future may be dropped and the method called again, also after the
    /// end.
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>>;

    /// Requests that the agent ends.
    fn terminate(&mut self);

    /// Ends the agent and every process that it started.
    fn kill(&mut self);
}
