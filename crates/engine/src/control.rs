//! Routing of input lines from the host.

use std::sync::Arc;

use quipu_message::Entry;
use quipu_message::control::{ControlRequest, RequestBody};
use tokio::sync::mpsc;

use crate::input::{HostInput, Prompt};
use crate::session::Session;

mod dispatch;
mod responses;
mod settings_change;

/// Routes input lines. Control responses and interrupts are handled at once; other control requests
/// and prompts are handled one after another, so that a prompt runs with the settings sent before it.
pub(crate) struct InputRouter {
    session: Arc<Session>,
    queue: mpsc::UnboundedSender<QueuedInput>,
}

enum QueuedInput {
    Request(Box<ControlRequest>),
    Prompt(Prompt),
    Close,
}

impl InputRouter {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        let (inputs, taken) = mpsc::unbounded_channel();
        tokio::spawn(process_queue(Arc::clone(&session), taken));
        Self { session, queue: inputs }
    }

    /// Routes one line.
    pub(crate) fn route(&self, input: HostInput) {
        let input = match input {
            HostInput::ControlResponse(response) => return self.session.host.deliver_response(*response),
            HostInput::ControlRequest(request) if matches!(request.request, RequestBody::Interrupt(_)) => {
                return dispatch::interrupt(&self.session, &request);
            }
            HostInput::ControlRequest(request) => QueuedInput::Request(request),
            HostInput::Prompt(prompt) => QueuedInput::Prompt(prompt),
            HostInput::Error(text) => {
                return self.session.output.warn_on_stderr(format!("the host reports an error: {text}"));
            }
            HostInput::ControlCancel(_) | HostInput::Ignored => return,
        };
        // The receiver is dropped only when the process ends.
        let _ = self.queue.send(input);
    }

    /// Stdin has ended: the prompt queue closes after the lines so far.
    pub(crate) fn close(&self) {
        let _ = self.queue.send(QueuedInput::Close);
    }
}

async fn process_queue(session: Arc<Session>, mut inputs: mpsc::UnboundedReceiver<QueuedInput>) {
    while let Some(input) = inputs.recv().await {
        match input {
            QueuedInput::Request(request) => {
                let (response, entries_after) = dispatch::handle_request(&session, &request).await;
                session.output.emit(Entry::ControlResponse(Box::new(response)));
                entries_after.into_iter().for_each(|entry| session.output.emit(entry));
            }
            QueuedInput::Prompt(prompt) => {
                session.connect_mcp().await;
                session.enqueue_prompt(prompt).await;
            }
            QueuedInput::Close => session.queue.close(),
        }
    }
}
