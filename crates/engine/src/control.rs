//! The host's side of the conversation: what it asks, in the order it asks.

use std::sync::Arc;

use quipu_message::Entry;
use quipu_message::control::{ControlRequest, RequestBody};
use tokio::sync::mpsc;

use crate::input::{Prompt, Said};
use crate::session::Session;

mod answers;
mod change;
mod serve;

/// Takes what the host says. Answers and interrupts are heard at once; requests and
/// prompts are taken one after another, so that a prompt finds what was set before it.
pub(crate) struct Desk {
    session: Arc<Session>,
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Request(Box<ControlRequest>),
    Prompt(Prompt),
    Close,
}

impl Desk {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        let (orders, taken) = mpsc::unbounded_channel();
        tokio::spawn(work(Arc::clone(&session), taken));
        Self { session, orders }
    }

    /// Takes one line.
    pub(crate) fn hear(&self, said: Said) {
        let order = match said {
            Said::Response(response) => return self.session.host.answer(*response),
            Said::Request(request) if matches!(request.request, RequestBody::Interrupt(_)) => {
                let response = serve::interrupt(&self.session, &request);
                return self.session.output.say(Entry::ControlResponse(Box::new(response)));
            }
            Said::Request(request) => Order::Request(request),
            Said::Prompt(prompt) => Order::Prompt(prompt),
            Said::Error(words) => return self.session.output.note(format!("the host reports an error: {words}")),
            Said::Withdrawn(_) | Said::Nothing => return,
        };
        // Nobody takes orders only while the process ends.
        let _ = self.orders.send(order);
    }

    /// The host says no more.
    pub(crate) fn close(&self) {
        let _ = self.orders.send(Order::Close);
    }
}

async fn work(session: Arc<Session>, mut orders: mpsc::UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Request(request) => {
                let (response, after) = serve::serve(&session, &request).await;
                session.output.say(Entry::ControlResponse(Box::new(response)));
                after.into_iter().for_each(|entry| session.output.say(entry));
            }
            Order::Prompt(prompt) => {
                session.mcp.connect_all(&session).await;
                crate::agent::take_prompt(&session, prompt).await;
            }
            Order::Close => session.queue.close(),
        }
    }
}
