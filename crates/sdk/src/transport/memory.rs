//! An agent in the same process, for tests and for agents that are libraries.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::{Connection, Peer, Transport};
use crate::{Error, Exit};

/// The host's end of a connection inside one process.
pub struct MemoryTransport {
    stream: DuplexStream,
    closed: CancellationToken,
}

/// The agent's end: the host reads what is written here, and what the host writes is read here. The agent
/// ends when it is dropped.
pub struct MemoryPeer {
    stream: DuplexStream,
    closed: CancellationToken,
}

impl MemoryTransport {
    /// Both ends; up to `buffer` bytes wait in each direction.
    ///
    /// ```
    /// # use quipu_sdk::transport::MemoryTransport;
    /// let (near, far) = MemoryTransport::pair(64 * 1024);
    /// # let _: (MemoryTransport, quipu_sdk::transport::MemoryPeer) = (near, far);
    /// ```
    pub fn pair(buffer: usize) -> (Self, MemoryPeer) {
        let (near, far) = tokio::io::duplex(buffer);
        let gone = CancellationToken::new();
        (Self { stream: near, closed: gone.clone() }, MemoryPeer { stream: far, closed: gone })
    }
}

impl MemoryPeer {
    /// Cancelled if the host kills the agent.
    pub fn kill_token(&self) -> CancellationToken {
        self.closed.clone()
    }
}

impl Transport for MemoryTransport {
    fn connect(self: Box<Self>) -> BoxFuture<'static, Result<Connection, Error>> {
        let (reader, writer) = tokio::io::split(self.stream);
        let peer = MemoryPeerHandle(self.closed);
        Box::pin(std::future::ready(Ok(Connection {
            reader: Box::new(reader),
            writer: Box::new(writer),
            stderr: None,
            peer: Box::new(peer),
        })))
    }
}

/// The agent's end, for the host.
struct MemoryPeerHandle(CancellationToken);

impl Peer for MemoryPeerHandle {
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async {
            self.0.cancelled().await;
            Ok(Exit::default())
        })
    }

    fn terminate(&mut self) {
        self.0.cancel();
    }

    fn kill(&mut self) {
        self.0.cancel();
    }
}

impl Drop for MemoryPeerHandle {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Drop for MemoryPeer {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl AsyncRead for MemoryPeer {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for MemoryPeer {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
