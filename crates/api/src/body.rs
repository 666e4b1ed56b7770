//! The bytes of a request, in pieces that are shared and not copied: a conversation
//! is sent again with every call, and most of it is what was sent before.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use quipu_message::Message;

/// Messages that no longer change, as the text they are sent as. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct EncodedHistory {
    /// The text with commas between the messages. Each piece is at most half as long as
    /// the one before it, so there are few however much was said.
    chunks: Vec<Bytes>,
}

impl EncodedHistory {
    /// Adds messages at the end.
    pub fn append(&mut self, messages: &[Message]) -> serde_json::Result<()> {
        let mut added = Vec::new();
        for message in messages {
            if !(self.chunks.is_empty() && added.is_empty()) {
                added.push(b',');
            }
            serde_json::to_writer(&mut added, message)?;
        }
        while let Some(last) = self.chunks.pop_if(|last| last.len() < 2 * added.len()) {
            added = [&last[..], &added].concat();
        }
        if !added.is_empty() {
            self.chunks.push(added.into());
        }
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The pieces of the text.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }
}

/// A body of known length, sent piece by piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkedBody {
    chunks: VecDeque<Bytes>,
}

impl ChunkedBody {
    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.chunks.push_back(piece);
        }
    }

    /// What is still to be sent.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.chunks.iter().map(|piece| String::from_utf8_lossy(piece)).collect()
    }
}

impl http_body::Body for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.chunks.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.chunks.iter().map(|piece| piece.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests;
