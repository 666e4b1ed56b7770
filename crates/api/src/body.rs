//! The body of a request as chunks of bytes that calls share.
//!
//! A conversation is sent with every call, and nearly all of it was sent before. Messages
//! that no longer change are encoded once; a body refers to their bytes without copying.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use quipu_message::Message;

/// Messages that no longer change, encoded as JSON. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct EncodedHistory {
    /// The messages with commas between them.
    chunks: Vec<Bytes>,
}

/// Smaller chunks are merged with the next one: each chunk costs every later call some time, and
/// copying this many bytes costs less.
const MERGED_CHUNK_BYTES: usize = 64 << 10;

impl EncodedHistory {
    /// Encodes messages and adds them at the end.
    pub fn append(&mut self, messages: &[Message]) -> serde_json::Result<()> {
        let mut encoded = Vec::new();
        for message in messages {
            if !(self.chunks.is_empty() && encoded.is_empty()) {
                encoded.push(b',');
            }
            serde_json::to_writer(&mut encoded, message)?;
        }
        if encoded.is_empty() {
            return Ok(());
        }
        match self.chunks.last_mut() {
            Some(last) if last.len() < MERGED_CHUNK_BYTES => *last = [last, encoded.as_slice()].concat().into(),
            _ => self.chunks.push(encoded.into()),
        }
        Ok(())
    }

    /// Whether no message was added.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The encoded messages with commas between them, in chunks of any size.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }
}

/// An HTTP body of known length, sent chunk by chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkedBody {
    chunks: VecDeque<Bytes>,
}

impl ChunkedBody {
    pub(crate) fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// The bytes that are not sent yet, as text.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.chunks.iter().map(|chunk| String::from_utf8_lossy(chunk)).collect()
    }
}

impl http_body::Body for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.chunks.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.chunks.iter().map(|chunk| chunk.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests;
