//! The host's side of the conversation: what it asks, in the order it asks.

use std::sync::Arc;

use quipu_message::Entry;
use quipu_message::control::{ControlRequest, RequestBody};
use tokio::sync::mpsc;

use crate::input::{HostInput, Prompt};
use crate::session::Session;

mod dispatch;
mod responses;
mod settings_change;

/// Takes what the host says. Answers and interrupts are heard at once; requests and
/// prompts are taken one after another, so that a prompt finds what was set before it.
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
        let (orders, taken) = mpsc::unbounded_channel();
        tokio::spawn(process_queue(Arc::clone(&session), taken));
        Self { session, queue: orders }
    }

    /// Takes one line.
    pub(crate) fn route(&self, said: HostInput) {
        let order = match said {
            HostInput::ControlResponse(response) => return self.session.host.deliver_response(*response),
            HostInput::ControlRequest(request) if matches!(request.request, RequestBody::Interrupt(_)) => {
                let response = dispatch::interrupt(&self.session, &request);
                return self.session.output.emit(Entry::ControlResponse(Box::new(response)));
            }
            HostInput::ControlRequest(request) => QueuedInput::Request(request),
            HostInput::Prompt(prompt) => QueuedInput::Prompt(prompt),
            HostInput::Error(words) => {
                return self.session.output.warn_on_stderr(format!("the host reports an error: {words}"));
            }
            HostInput::ControlCancel(_) | HostInput::Ignored => return,
        };
        // Nobody takes orders only while the process ends.
        let _ = self.queue.send(order);
    }

    /// The host says no more.
    pub(crate) fn close(&self) {
        let _ = self.queue.send(QueuedInput::Close);
    }
}

async fn process_queue(session: Arc<Session>, mut orders: mpsc::UnboundedReceiver<QueuedInput>) {
    while let Some(order) = orders.recv().await {
        match order {
            QueuedInput::Request(request) => {
                let (response, after) = dispatch::handle_request(&session, &request).await;
                session.output.emit(Entry::ControlResponse(Box::new(response)));
                after.into_iter().for_each(|entry| session.output.emit(entry));
            }
            QueuedInput::Prompt(prompt) => {
                session.connect_mcp().await;
                session.enqueue_prompt(prompt).await;
            }
            QueuedInput::Close => session.queue.close(),
        }
    }
}
