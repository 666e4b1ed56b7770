//! Sends spans in the background.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::collector::Collector;
use crate::span::Span;

/// Spans that wait to be sent. More of them are dropped.
const MAX_WAITING: usize = 2048;

/// Spans in one request.
const MAX_BATCH: usize = 512;

/// How long the first span of a request waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// How long [`SpanQueue::close`] waits for the last request.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Sends spans to a collector, in a task of its own. Pushing a span never waits: if the
/// collector is slow or cannot be reached, spans are dropped.
#[derive(Debug)]
pub struct SpanQueue {
    sender: mpsc::Sender<Span>,
    task: JoinHandle<()>,
}

impl SpanQueue {
    /// Starts the task. Must be called in a tokio runtime.
    pub fn start(collector: Collector) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        Self { sender, task: tokio::spawn(send_batches(collector, receiver)) }
    }

    /// Adds a span. Drops it if too many are waiting.
    pub fn push(&self, span: Span) {
        let _ = self.sender.try_send(span);
    }

    /// Sends what is waiting. Takes at most half a second; what the collector has not taken by
    /// then is dropped.
    pub async fn close(self) {
        drop(self.sender);
        let stop = self.task.abort_handle();
        if timeout(CLOSE_TIMEOUT, self.task).await.is_err() {
            stop.abort();
        }
    }
}

async fn send_batches(collector: Collector, mut receiver: mpsc::Receiver<Span>) {
    while let Some(first) = receiver.recv().await {
        let mut batch = vec![first];
        let deadline = Instant::now() + BATCH_DELAY;
        while batch.len() < MAX_BATCH {
            match timeout_at(deadline, receiver.recv()).await {
                Ok(Some(span)) => batch.push(span),
                Ok(None) | Err(_) => break,
            }
        }
        if let Err(error) = collector.send(&batch).await {
            tracing::debug!(target: "quipu::otlp", %error, spans = batch.len(), "spans were dropped");
        }
    }
}
