//! The events of an API call, and the channel from the task that makes the call.

use std::time::Duration;

use quipu_message::api::StreamEvent;
use quipu_message::{Block, Message, RequestId};
use tokio::sync::mpsc;

use crate::error::ApiError;

/// One step of an API call, as [`ApiCall::next`](crate::ApiCall::next) returns it.
#[derive(Debug)]
pub enum ApiEvent {
    /// The model starts to respond.
    Started {
        /// The message without content. If the response is not streamed, it has its stop
        /// reason and usage already.
        message: Message,
        /// ID of the HTTP request, from the response header `request-id`.
        request_id: Option<RequestId>,
    },
    /// One event of a streamed response.
    Event(StreamEvent),
    /// A content block is complete. A tool input that is not valid JSON becomes `{}`.
    Block {
        /// Position of the block in the message, from 0.
        index: usize,
        /// The complete block.
        block: Block,
    },
    /// The response broke off: discard everything since `Started`.
    Withdrawn,
    /// An attempt failed; the next one is made after a delay.
    Retry(Retry),
    /// The model stayed overloaded; further attempts go to another one.
    ModelFallback {
        /// Model of the attempts so far.
        from: String,
        /// Model of the attempts that follow.
        to: String,
    },
    /// The response is complete. This is the last event.
    Completed(ApiResponse),
}

/// A failed attempt that will be repeated.
#[derive(Debug)]
pub struct Retry {
    /// Number of the coming retry, from 1.
    pub attempt: u32,
    /// Highest number of retries that the policy allows.
    pub max_retries: u32,
    /// Time until the retry.
    pub delay: Duration,
    /// Reason the attempt failed.
    pub error: ApiError,
}

/// The complete response of an API call.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    /// The message, with stop reason and usage.
    pub message: Message,
    /// ID of the HTTP request, from the response header `request-id`.
    pub request_id: Option<RequestId>,
}

/// What the task of a call sends to its [`ApiCall`](crate::ApiCall).
#[derive(Debug)]
pub(crate) enum TaskEvent {
    /// A streamed response starts; its events follow.
    StreamOpened { request_id: Option<RequestId> },
    /// One event of the streamed response.
    Stream(StreamEvent),
    /// An event for the caller as it is.
    Forward(Box<ApiEvent>),
}

/// Receives the events of the task.
pub(crate) type EventReceiver = mpsc::Receiver<Result<TaskEvent, ApiError>>;

/// The caller dropped the [`ApiCall`](crate::ApiCall).
#[derive(Debug)]
pub(crate) struct ReceiverDropped;

/// Sends events to the caller of [`Client::send`](crate::Client::send).
///
/// Remembers whether a response was started, so that a broken one is withdrawn before the
/// next attempt.
#[derive(Debug)]
pub(crate) struct EventSender {
    events: mpsc::Sender<Result<TaskEvent, ApiError>>,
    response_started: bool,
}

impl EventSender {
    /// Both ends of a channel that holds at most `capacity` events.
    pub(crate) fn channel(capacity: usize) -> (Self, EventReceiver) {
        let (events, receiver) = mpsc::channel(capacity);
        (Self { events, response_started: false }, receiver)
    }

    pub(crate) async fn send(&mut self, event: ApiEvent) -> Result<(), ReceiverDropped> {
        self.response_started |= matches!(event, ApiEvent::Started { .. });
        self.send_task_event(TaskEvent::Forward(Box::new(event))).await
    }

    pub(crate) async fn open_stream(&mut self, request_id: Option<RequestId>) -> Result<(), ReceiverDropped> {
        self.send_task_event(TaskEvent::StreamOpened { request_id }).await
    }

    pub(crate) async fn send_stream_event(&mut self, event: StreamEvent) -> Result<(), ReceiverDropped> {
        self.response_started |= matches!(event, StreamEvent::MessageStart(_));
        self.send_task_event(TaskEvent::Stream(event)).await
    }

    pub(crate) async fn send_error(&mut self, error: ApiError) -> Result<(), ReceiverDropped> {
        self.events.send(Err(error)).await.map_err(|_| ReceiverDropped)
    }

    /// Withdraws the response that was started, if any.
    pub(crate) async fn withdraw(&mut self) -> Result<(), ReceiverDropped> {
        if std::mem::take(&mut self.response_started) { self.send(ApiEvent::Withdrawn).await } else { Ok(()) }
    }

    async fn send_task_event(&mut self, event: TaskEvent) -> Result<(), ReceiverDropped> {
        self.events.send(Ok(event)).await.map_err(|_| ReceiverDropped)
    }
}
