//! Control requests from the agent to the host.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use quipu_message::control::{ControlCancelRequest, ControlRequest, ControlResponse, RequestBody, ResponseBody};
use quipu_message::{Entry, Json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::clock::new_id;
use crate::output::OutputStream;

/// Why a control request got no response. None of these counts as permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    /// There is no host, or it has closed stdin.
    #[error("the host is gone")]
    Disconnected,
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// The host responded with an error.
    #[error("{0}")]
    Failed(String),
}

/// The host that drives the agent over stdin and stdout.
#[derive(Debug)]
pub(crate) struct Host {
    output: OutputStream,
    pending: Mutex<PendingRequests>,
}

#[derive(Debug, Default)]
struct PendingRequests {
    waiting: HashMap<String, oneshot::Sender<Result<Json, HostError>>>,
    is_closed: bool,
}

impl Host {
    /// A host that reads `output`. Unless it is `listening`, every request fails.
    pub(crate) fn new(output: OutputStream, listening: bool) -> Self {
        Self { output, pending: Mutex::new(PendingRequests { is_closed: !listening, ..PendingRequests::default() }) }
    }

    /// Sends a request and waits for the response. If the future is dropped, the request is cancelled.
    pub(crate) async fn send_request(&self, body: RequestBody, cancel: &CancellationToken) -> Result<Json, HostError> {
        let id = new_id().to_string();
        let (answer, answered) = oneshot::channel();
        {
            let mut pending = self.lock();
            if pending.is_closed {
                return Err(HostError::Disconnected);
            }
            pending.waiting.insert(id.clone(), answer);
        }
        self.output.emit(Entry::ControlRequest(Box::new(ControlRequest::new(id.clone(), body))));
        let _open = PendingRequestGuard { host: self, request_id: id };
        tokio::select! {
            answer = answered => answer.unwrap_or(Err(HostError::Disconnected)),
            () = cancel.cancelled() => Err(HostError::Cancelled),
        }
    }

    /// Delivers a response to the waiting request; ignores it if there is none.
    pub(crate) fn deliver_response(&self, response: ControlResponse) {
        let (id, answer) = match response.response {
            ResponseBody::Success(body) => (body.request_id, Ok(body.response.into_option().unwrap_or_default())),
            ResponseBody::Error(body) => (body.request_id, Err(HostError::Failed(body.error))),
            _ => return,
        };
        if let Some(waiting) = self.lock().waiting.remove(&id) {
            // The receiver may have been dropped.
            let _ = waiting.send(answer);
        }
    }

    /// Cancels every open request.
    pub(crate) fn cancel_all(&self) {
        let open: Vec<String> = self.lock().waiting.keys().cloned().collect();
        open.iter().for_each(|id| self.cancel_request(id));
    }

    /// The host has gone: open and later requests fail.
    pub(crate) fn close(&self) {
        let mut pending = self.lock();
        pending.is_closed = true;
        pending.waiting.clear();
    }

    fn cancel_request(&self, id: &str) {
        if let Some(waiting) = self.lock().waiting.remove(id) {
            let cancel = ControlCancelRequest { request_id: id.to_owned(), ..ControlCancelRequest::default() };
            self.output.emit(Entry::ControlCancelRequest(Box::new(cancel)));
            let _ = waiting.send(Err(HostError::Cancelled));
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock()
    }
}

/// Cancels a request when it is dropped.
struct PendingRequestGuard<'a> {
    host: &'a Host,
    request_id: String,
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        self.host.cancel_request(&self.request_id);
    }
}
