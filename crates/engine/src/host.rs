//! Asking the host: control requests that the agent opens.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use quipu_message::control::{ControlCancelRequest, ControlRequest, ControlResponse, RequestBody, ResponseBody};
use quipu_message::{Entry, Json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::clock::new_id;
use crate::output::OutputStream;

/// Why a question has no answer. None of these is ever an allowance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    /// The host is gone or never was there.
    #[error("the host is gone")]
    Disconnected,
    /// The question was withdrawn.
    #[error("the question was withdrawn")]
    Cancelled,
    /// The host could not answer.
    #[error("{0}")]
    Failed(String),
}

/// The host at the other end of stdin and stdout.
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
    /// A host that hears what `output` says; `listening` when it can answer.
    pub(crate) fn new(output: OutputStream, listening: bool) -> Self {
        Self { output, pending: Mutex::new(PendingRequests { is_closed: !listening, ..PendingRequests::default() }) }
    }

    /// Asks and waits for the answer; a question that nobody waits for any more is
    /// withdrawn.
    pub(crate) async fn send_request(&self, body: RequestBody, cancel: &CancellationToken) -> Result<Json, HostError> {
        let id = new_id().to_string();
        let (answer, answered) = oneshot::channel();
        {
            let mut asked = self.lock();
            if asked.is_closed {
                return Err(HostError::Disconnected);
            }
            asked.waiting.insert(id.clone(), answer);
        }
        self.output.emit(Entry::ControlRequest(Box::new(ControlRequest::new(id.clone(), body))));
        let _open = PendingRequestGuard { host: self, request_id: id };
        tokio::select! {
            answer = answered => answer.unwrap_or(Err(HostError::Disconnected)),
            () = cancel.cancelled() => Err(HostError::Cancelled),
        }
    }

    /// Takes the host's answer; one that nobody waits for is dropped.
    pub(crate) fn deliver_response(&self, response: ControlResponse) {
        let (id, answer) = match response.response {
            ResponseBody::Success(body) => (body.request_id, Ok(body.response.into_option().unwrap_or_default())),
            ResponseBody::Error(body) => (body.request_id, Err(HostError::Failed(body.error))),
            _ => return,
        };
        if let Some(waiting) = self.lock().waiting.remove(&id) {
            // Who asked may have stopped waiting.
            let _ = waiting.send(answer);
        }
    }

    /// Withdraws every open question, before a turn is broken off.
    pub(crate) fn cancel_all(&self) {
        let open: Vec<String> = self.lock().waiting.keys().cloned().collect();
        open.iter().for_each(|id| self.cancel_request(id));
    }

    /// Nobody will answer any more.
    pub(crate) fn close(&self) {
        let mut asked = self.lock();
        asked.is_closed = true;
        asked.waiting.clear();
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

/// A question that somebody waits for.
struct PendingRequestGuard<'a> {
    host: &'a Host,
    request_id: String,
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        self.host.cancel_request(&self.request_id);
    }
}
