//! The spans of turns, tool calls and API calls.

use std::time::{Duration, Instant};

use quipu_api::ApiError;
use quipu_conversation::Tokens;
use quipu_message::{Message, RequestId, ToolUse};
use quipu_otlp::{AgentRun, ChatCall, MAIN_AGENT, SpanPlace, SpanTimes, ToolRun};

use crate::agent_context::AgentContext;
use crate::clock::{new_id, now_nanos};
use crate::session::Session;
use crate::telemetry::tool_place;

/// When a step began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanStart {
    nanos: u64,
    instant: Instant,
}

impl SpanStart {
    pub(crate) fn now() -> Self {
        Self { nanos: now_nanos(), instant: Instant::now() }
    }

    fn times(self) -> SpanTimes {
        SpanTimes::new(self.nanos, self.instant.elapsed())
    }
}

impl AgentContext<'_> {
    /// The place of the span of a tool call; `None` if no spans are sent.
    pub(crate) fn tool_span(&self, tool_use_id: &str) -> Option<SpanPlace> {
        self.span.map(|agent| tool_place(agent, tool_use_id))
    }

    /// Sends the span of this agent's turn. `error` is why it failed.
    pub(crate) fn send_agent_span(&self, start: SpanStart, error: Option<&str>) {
        let Some(place) = self.span else { return };
        let (session_id, subagent) = (self.session.identity.id(), self.subagent());
        let run = AgentRun {
            session_id: Some(session_id.as_str()),
            agent_name: subagent.map_or(MAIN_AGENT, |subagent| &subagent.agent_type),
            agent_id: subagent.map(|subagent| subagent.id.as_str()),
            error,
        };
        self.session.telemetry.push(run.span(place, start.times()));
    }

    /// Sends the span of a tool call.
    pub(crate) fn send_tool_span(&self, start: SpanStart, call: &ToolUse, is_error: bool) {
        let Some(place) = self.tool_span(call.id.as_str()) else { return };
        let session_id = self.session.identity.id();
        let run = ToolRun {
            session_id: Some(session_id.as_str()),
            tool_name: call.name.as_str(),
            tool_use_id: call.id.as_str(),
            has_estimated_times: false,
            is_error,
        };
        self.session.telemetry.push(run.span(place, start.times()));
    }
}

/// The span of an API call that runs. Each attempt is a span of its own.
pub(crate) struct ChatSpan<'a> {
    session: &'a Session,
    agent: Option<SpanPlace>,
    start: SpanStart,
    first_event: Option<Duration>,
    pub(crate) model: String,
    max_tokens: u64,
}

impl<'a> ChatSpan<'a> {
    pub(crate) fn start(session: &'a Session, agent: Option<SpanPlace>, model: &str, max_tokens: u64) -> Self {
        Self { session, agent, start: SpanStart::now(), first_event: None, model: model.to_owned(), max_tokens }
    }

    /// Notes that an event arrived.
    pub(crate) fn note_event(&mut self) {
        self.first_event.get_or_insert_with(|| self.start.instant.elapsed());
    }

    /// Sends the span of a complete response.
    pub(crate) fn complete(&self, message: &Message, request_id: Option<&RequestId>) {
        self.send(ChatCall {
            response_model: message.model.text(),
            message_id: message.id.text(),
            request_id: request_id.map(RequestId::as_str),
            stop_reason: message.stop_reason.get().map(|reason| reason.as_str()),
            tokens: message.usage.get().map(Tokens::from),
            ..ChatCall::default()
        });
    }

    /// Sends the span of a failed attempt. The next one begins after the delay.
    pub(crate) fn fail(&mut self, error: &ApiError, delay: Duration) {
        let status = error.status().map(|status| status.to_string());
        let kind = error.api_type().map(|kind| kind.as_str()).or(status.as_deref()).unwrap_or_else(|| error.code());
        let request_id = error.request_id().map(RequestId::as_str);
        self.send(ChatCall { error: Some(kind), request_id, ..ChatCall::default() });
        let now = SpanStart::now();
        let nanos = SpanTimes::new(now.nanos, delay).end;
        self.start = SpanStart { nanos, instant: now.instant + delay };
        self.first_event = None;
    }

    /// Sends the span of a call that was interrupted.
    pub(crate) fn interrupt(&self) {
        self.send(ChatCall { error: Some("aborted"), ..ChatCall::default() });
    }

    fn send(&self, call: ChatCall<'_>) {
        let Some(agent) = self.agent else { return };
        let session_id = self.session.identity.id();
        let call = ChatCall {
            session_id: Some(session_id.as_str()),
            request_model: Some(&self.model),
            max_tokens: Some(self.max_tokens),
            is_stream: true,
            time_to_first_chunk: self.first_event,
            ..call
        };
        let id = agent.trace.span_id(&["chat", new_id().as_str()]);
        let place = SpanPlace { id, parent: Some(agent.id), ..agent };
        self.session.telemetry.push(call.span(place, self.start.times()));
    }
}
