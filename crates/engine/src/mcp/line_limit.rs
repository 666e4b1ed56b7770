//! A reader that fails on overlong lines.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Maximum size of a message from a server.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

/// Fails when a line is longer than [`MAX_LINE_BYTES`], so that the connection ends and
/// pending requests fail.
pub(super) struct LineLimit<R> {
    inner: R,
    line_bytes: usize,
}

impl<R> LineLimit<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, line_bytes: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimit<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        self.line_bytes = match read.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => read.len() - end - 1,
            None => self.line_bytes + read.len(),
        };
        match self.line_bytes > MAX_LINE_BYTES {
            true => {
                buf.set_filled(before);
                Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long")))
            }
            false => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_line_without_end_is_an_error_and_many_lines_are_not() {
        let short: Vec<u8> = [vec![b'x'; 1 << 20], vec![b'\n']].concat().repeat(20);
        let mut all = Vec::new();
        LineLimit::new(short.as_slice()).read_to_end(&mut all).await.unwrap();
        assert_eq!(all.len(), short.len());
        let endless = vec![b'x'; MAX_LINE_BYTES + 2];
        assert!(LineLimit::new(endless.as_slice()).read_to_end(&mut Vec::new()).await.is_err());
    }
}
