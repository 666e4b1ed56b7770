//! Forwards one call.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, Request, Response, Uri, Version, uri};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;

use super::UpstreamClient;
use super::tee::TeeBody;
use crate::call::CallEnd;
use crate::capture::log::{CaptureLog, RequestBody};

/// Longest request body that is held in memory and recorded: twice what the API accepts.
const MAX_RECORDED_BODY_BYTES: usize = 64 << 20;

/// Bodies from this length on get at least [`MAPPED_BYTES`] of address space.
const LARGE_BODY_BYTES: usize = 1 << 20;

/// Allocations of this length always get their own pages, which are given back when the body is
/// dropped. Shorter ones may come from the heap of the allocator, which then keeps as much memory
/// as a body for later. Pages that are not written to take no memory.
const MAPPED_BYTES: usize = (32 << 20) + 1;

/// Body of a request to the upstream.
pub(super) type OutgoingBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// Why a request gets no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum ForwardError {
    #[error("the request could not be read")]
    Client(#[from] hyper::Error),
    #[error("the path cannot be forwarded")]
    Path(#[from] http::Error),
    #[error("the upstream did not respond")]
    Upstream(#[from] hyper_util::client::legacy::Error),
}

/// Headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 5] = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// What all calls share.
pub(super) struct Forwarder {
    pub(super) client: UpstreamClient,
    pub(super) upstream: Uri,
    pub(super) log: Arc<CaptureLog>,
}

impl Forwarder {
    /// Forwards a request and returns the response. An error closes the client's connection.
    pub(super) async fn forward(&self, request: Request<Incoming>) -> Result<Response<TeeBody>, ForwardError> {
        let (mut head, incoming) = request.into_parts();
        let (recorded, body) = read_body(incoming).await?;
        let mut log = self.log.begin(&head, recorded).await;
        head.uri = self.target(&head.uri)?;
        head.version = Version::HTTP_11;
        remove_connection_headers(&mut head.headers);
        // The client library sets the upstream's own name; and it has already been told to go on.
        head.headers.remove(HOST);
        head.headers.remove(EXPECT);
        let response = match self.client.request(Request::from_parts(head, body)).await {
            Ok(response) => response,
            Err(error) => {
                log.end(CallEnd::Failed, Some(error_chain(&error)));
                return Err(error.into());
            }
        };
        let (mut head, body) = response.into_parts();
        log.response(&head);
        head.version = Version::HTTP_11;
        remove_connection_headers(&mut head.headers);
        Ok(Response::from_parts(head, TeeBody::new(body, log)))
    }

    /// URL of the upstream for a URL of the proxy.
    fn target(&self, requested: &Uri) -> Result<Uri, http::Error> {
        let path = requested.path_and_query().map_or("/", uri::PathAndQuery::as_str);
        let prefix = self.upstream.path().trim_end_matches('/');
        let mut parts = self.upstream.clone().into_parts();
        parts.path_and_query = Some(format!("{prefix}{path}").parse()?);
        Ok(Uri::from_parts(parts)?)
    }
}

/// An error with its causes, outermost first.
pub(super) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Reads a request body, for the log and to be forwarded. A body that is too large to be held
/// is forwarded as it arrives.
async fn read_body(mut incoming: Incoming) -> Result<(RequestBody, OutgoingBody), hyper::Error> {
    let expected = usize::try_from(incoming.size_hint().lower()).unwrap_or(MAX_RECORDED_BODY_BYTES);
    let capacity = if expected < LARGE_BODY_BYTES { expected } else { expected.max(MAPPED_BYTES) };
    let mut body = BytesMut::with_capacity(capacity.min(MAX_RECORDED_BODY_BYTES));
    while let Some(frame) = incoming.frame().await {
        if let Ok(data) = frame?.into_data() {
            body.extend_from_slice(&data);
        }
        if body.len() > MAX_RECORDED_BODY_BYTES {
            let body = LargeBody { start: Some(body.freeze()), rest: incoming };
            return Ok((RequestBody::Omitted, body.boxed_unsync()));
        }
    }
    let body = body.freeze();
    let outgoing = Full::new(body.clone()).map_err(|never| match never {}).boxed_unsync();
    Ok((RequestBody::Whole(body), outgoing))
}

/// A body of which the start was read already.
struct LargeBody {
    start: Option<Bytes>,
    rest: Incoming,
}

impl Body for LargeBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.start.take() {
            Some(start) => Poll::Ready(Some(Ok(Frame::data(start)))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }
}

/// Removes the headers that concern one connection, and those that `Connection` names.
fn remove_connection_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // The length of a body belongs to the message, whatever a client claims.
        .filter(|name| *name != CONTENT_LENGTH)
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}
