//! Response bodies on their way to the client.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::forward::error_chain;
use crate::call::CallEnd;
use crate::capture::log::CallLog;

/// A response body whose frames are also recorded. Dropped before its end, the upstream
/// connection is closed and the log notes that the client left.
#[derive(Debug)]
pub(super) struct TeeBody {
    inner: Incoming,
    log: CallLog,
}

impl TeeBody {
    pub(super) fn new(inner: Incoming, mut log: CallLog) -> Self {
        if inner.is_end_stream() {
            log.end(CallEnd::Completed, None);
        }
        Self { inner, log }
    }
}

impl Body for TeeBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.log.frame(data);
                }
                // The last frame may be followed by nothing, and then nothing more is polled.
                if self.inner.is_end_stream() {
                    self.log.end(CallEnd::Completed, None);
                }
            }
            Poll::Ready(Some(Err(error))) => self.log.end(CallEnd::UpstreamClosed, Some(error_chain(error))),
            Poll::Ready(None) => self.log.end(CallEnd::Completed, None),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
