//! A transport that records all lines in the format of the fake agent.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use quipu_sdk::Error;
use quipu_sdk::transport::{Connection, Subprocess, Transport};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A program whose conversation is written down.
pub(super) struct RecordingTransport {
    pub(super) inner: Subprocess,
    pub(super) to: PathBuf,
    /// The folder it runs in, which has another name each time.
    pub(super) hide: PathBuf,
}

impl Transport for RecordingTransport {
    fn connect(self: Box<Self>) -> Pin<Box<dyn Future<Output = Result<Connection, Error>> + Send>> {
        Box::pin(async move {
            let file = Arc::new(Mutex::new(File::create(&self.to).unwrap()));
            let hide = self.hide.to_str().unwrap().to_owned();
            let notes = |dir| RecordingFile { dir, file: Arc::clone(&file), hide: hide.clone(), line: Vec::new() };
            let connection = Box::new(self.inner).connect().await?;
            Ok(Connection {
                reader: Box::new(RecordedStream(connection.reader, notes("out"))),
                writer: Box::new(RecordedStream(connection.writer, notes("in"))),
                ..connection
            })
        })
    }
}

struct RecordingFile {
    dir: &'static str,
    file: Arc<Mutex<File>>,
    hide: String,
    line: Vec<u8>,
}

impl RecordingFile {
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let text = String::from_utf8(std::mem::take(&mut self.line)).unwrap();
            // The folder's name is also part of other names, with dashes.
            let dashed = self.hide.replace(['/', '.'], "-");
            let text = text.replace(&self.hide, "/home/dev/talk").replace(&dashed, "-home-dev-talk");
            writeln!(self.file.lock().unwrap(), r#"{{"dir":"{}","msg":{text}}}"#, self.dir).unwrap();
        }
    }
}

struct RecordedStream<S>(S, RecordingFile);

impl<S: AsyncRead + Unpin> AsyncRead for RecordedStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.0).poll_read(cx, buf))?;
        this.1.take(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RecordedStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.0).poll_write(cx, bytes))?;
        this.1.take(&bytes[..written]);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
