//! How an agent is reached.

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

/// A way to an agent. [`Subprocess`] starts a program, [`MemoryTransport`] ends in the same
/// process; others may go over a socket or into a container.
pub trait Transport: Send + 'static {
    /// Reaches the agent.
    fn connect(self: Box<Self>) -> BoxFuture<'static, Result<Connection, Error>>;
}

impl Transport for Box<dyn Transport> {
    fn connect(self: Box<Self>) -> BoxFuture<'static, Result<Connection, Error>> {
        (*self).connect()
    }
}

/// An agent that was reached: bytes in both directions, one JSON value a line.
pub struct Connection {
    /// What the agent says.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// Lines that are written to it.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it says besides.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// The agent itself.
    pub peer: Box<dyn Peer>,
}

/// The agent at the other end. Dropping it ends it, with everything it started.
pub trait Peer: Send + 'static {
    /// Waits until the agent has ended. May be dropped before that and called again, also
    /// after it.
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>>;

    /// Asks the agent to end.
    fn terminate(&mut self);

    /// Ends the agent and everything it started.
    fn kill(&mut self);
}
