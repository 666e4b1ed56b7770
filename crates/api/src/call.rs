//! An API call in progress, on the caller's side.

use std::collections::VecDeque;
use std::sync::Arc;

use quipu_conversation::{AccumulateError, Accumulator};
use quipu_message::api::StreamEvent;
use quipu_message::{Message, RequestId};
use tokio::task::AbortHandle;
use tracing::Span;

use crate::attempt::Connection;
use crate::error::ApiError;
use crate::event::{ApiEvent, ApiResponse, EventReceiver, TaskEvent};

/// An API call in progress. Dropping it cancels the call.
///
/// A separate task reads from the server, also while the caller is busy. The message is accumulated here, from the events that the caller has received:
/// [`partial`](Self::partial) never runs ahead of [`next`](Self::next).
#[derive(Debug)]
pub struct ApiCall {
    connection: Arc<Connection>,
    receiver: EventReceiver,
    task: AbortHandle,
    span: Span,
    /// Events that follow from one that was received already.
    queued: VecDeque<Result<ApiEvent, ApiError>>,
    request_id: Option<RequestId>,
    accumulator: Accumulator,
    is_finished: bool,
}

impl ApiCall {
    pub(crate) fn new(connection: Arc<Connection>, receiver: EventReceiver, task: AbortHandle, span: Span) -> Self {
        Self {
            connection,
            receiver,
            task,
            span,
            queued: VecDeque::new(),
            request_id: None,
            accumulator: Accumulator::default(),
            is_finished: false,
        }
    }

    /// The next event; `None` after [`ApiEvent::Completed`] or an error.
    ///
    /// Cancel-safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<ApiEvent, ApiError>> {
        loop {
            if let Some(event) = self.queued.pop_front() {
                return Some(event);
            }
            if self.is_finished {
                return None;
            }
            match self.receiver.recv().await? {
                Ok(TaskEvent::Forward(event)) => {
                    match &*event {
                        ApiEvent::Withdrawn => self.accumulator = Accumulator::default(),
                        ApiEvent::Completed(response) => self.log_response(response),
                        _ => {}
                    }
                    return Some(Ok(*event));
                }
                Ok(TaskEvent::StreamOpened { request_id }) => self.request_id = request_id,
                Ok(TaskEvent::Stream(event)) => self.handle_stream_event(event),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Waits for the end of the call and returns the complete response.
    pub async fn response(mut self) -> Result<ApiResponse, ApiError> {
        while let Some(event) = self.next().await {
            if let ApiEvent::Completed(response) = event? {
                return Ok(response);
            }
        }
        Err(ApiError::BadRequest { reason: "the runtime was shut down".to_owned() })
    }

    /// The message as far as it was received, without the input of an unfinished tool call.
    ///
    /// `None` before the first event of a streamed response, after its last, and for a
    /// response that is not streamed.
    pub fn partial(&self) -> Option<Message> {
        self.accumulator.partial_message()
    }

    /// Whether the last event of a streamed message was received: only
    /// [`ApiEvent::Completed`] or an error is still to come.
    pub fn is_complete(&self) -> bool {
        self.is_finished
    }

    /// Queues what a stream event means to the caller.
    fn handle_stream_event(&mut self, event: StreamEvent) {
        match self.accumulator.push(&event) {
            // A tool input that is not valid JSON, usually because the model ran into its
            // output limit, is not an error of the call: the tool rejects the empty input.
            Ok(()) | Err(AccumulateError::BadInput { .. }) => {}
            Err(error) => return self.fail(&error, self.accumulator.has_started()),
        }
        if let StreamEvent::MessageStart(start) = &event {
            let (message, request_id) = (start.message.clone(), self.request_id.clone());
            self.queued.push_back(Ok(ApiEvent::Started { message, request_id }));
        }
        let finished_block = match &event {
            StreamEvent::BlockStop(stop) => self.accumulator.partial_block(stop.index).cloned().zip(Some(stop.index)),
            _ => None,
        };
        self.queued.push_back(Ok(ApiEvent::Event(event)));
        if let Some((block, index)) = finished_block {
            self.queued.push_back(Ok(ApiEvent::Block { index, block }));
        }
        if self.accumulator.is_complete() {
            self.complete();
        }
    }

    fn complete(&mut self) {
        match std::mem::take(&mut self.accumulator).finish() {
            Ok(message) => {
                let response = ApiResponse { message, request_id: self.request_id.clone() };
                self.log_response(&response);
                self.queued.push_back(Ok(ApiEvent::Completed(response)));
                self.is_finished = true;
            }
            Err(error) => self.fail(&error, true),
        }
    }

    fn log_response(&self, response: &ApiResponse) {
        let id = response.request_id.as_ref().map(RequestId::as_str);
        let stop_reason = response.message.stop_reason.text();
        tracing::debug!(target: crate::LOG_TARGET, parent: &self.span, ?id, ?stop_reason, "response");
    }

    /// Ends the call: a stream that breaks the protocol once is not tried again.
    fn fail(&mut self, error: &AccumulateError, has_started: bool) {
        self.task.abort();
        self.is_finished = true;
        let error = self.connection.bad_response(error.to_string(), &self.request_id);
        tracing::debug!(target: crate::LOG_TARGET, parent: &self.span, %error, "failed");
        if has_started {
            self.queued.push_back(Ok(ApiEvent::Withdrawn));
        }
        self.queued.push_back(Err(error));
    }
}

impl Drop for ApiCall {
    fn drop(&mut self) {
        self.task.abort();
    }
}
