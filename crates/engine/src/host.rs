//! Asking the host: control requests that the agent opens.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_message::control::{ControlCancel, ControlRequest, ControlResponse, RequestBody, ResponseBody};
use quipu_message::{Entry, Json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::clock::fresh;
use crate::output::Output;

/// Why a question has no answer. None of these is ever an allowance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    /// The host is gone or never was there.
    #[error("the host is gone")]
    Gone,
    /// The question was withdrawn.
    #[error("the question was withdrawn")]
    Withdrawn,
    /// The host could not answer.
    #[error("{0}")]
    Refused(String),
}

/// The host at the other end of stdin and stdout.
#[derive(Debug)]
pub(crate) struct Host {
    output: Output,
    asked: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    open: HashMap<String, oneshot::Sender<Result<Json, HostError>>>,
    gone: bool,
}

impl Host {
    /// A host that hears what `output` says; `listening` when it can answer.
    pub(crate) fn new(output: Output, listening: bool) -> Self {
        Self { output, asked: Mutex::new(Asked { gone: !listening, ..Asked::default() }) }
    }

    /// Asks and waits for the answer; a question that nobody waits for any more is
    /// withdrawn.
    pub(crate) async fn ask(&self, body: RequestBody, cancel: &CancellationToken) -> Result<Json, HostError> {
        let id = fresh().to_string();
        let (answer, answered) = oneshot::channel();
        {
            let mut asked = self.lock();
            if asked.gone {
                return Err(HostError::Gone);
            }
            asked.open.insert(id.clone(), answer);
        }
        self.output.say(Entry::ControlRequest(Box::new(ControlRequest::new(id.clone(), body))));
        let _open = Open { host: self, id };
        tokio::select! {
            answer = answered => answer.unwrap_or(Err(HostError::Gone)),
            () = cancel.cancelled() => Err(HostError::Withdrawn),
        }
    }

    /// Takes the host's answer; one that nobody waits for is dropped.
    pub(crate) fn answer(&self, response: ControlResponse) {
        let (id, answer) = match response.response {
            ResponseBody::Success(body) => (body.request_id, Ok(body.response.into_option().unwrap_or_default())),
            ResponseBody::Error(body) => (body.request_id, Err(HostError::Refused(body.error))),
            ResponseBody::Unknown(_) => return,
        };
        if let Some(waiting) = self.lock().open.remove(&id) {
            // Who asked may have stopped waiting.
            let _ = waiting.send(answer);
        }
    }

    /// Withdraws every open question, before a turn is broken off.
    pub(crate) fn withdraw_all(&self) {
        let open: Vec<String> = self.lock().open.keys().cloned().collect();
        open.iter().for_each(|id| self.withdraw(id));
    }

    /// Nobody will answer any more.
    pub(crate) fn close(&self) {
        let mut asked = self.lock();
        asked.gone = true;
        asked.open.clear();
    }

    fn withdraw(&self, id: &str) {
        if let Some(waiting) = self.lock().open.remove(id) {
            let cancel = ControlCancel { request_id: id.to_owned(), ..ControlCancel::default() };
            self.output.say(Entry::ControlCancel(Box::new(cancel)));
            let _ = waiting.send(Err(HostError::Withdrawn));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that somebody waits for.
struct Open<'a> {
    host: &'a Host,
    id: String,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.host.withdraw(&self.id);
    }
}
