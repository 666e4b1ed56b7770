//! Spans of turns, API calls and tool calls, for a collector of OpenTelemetry.
//!
//! They are sent only if the environment that the agent was started with names a collector:
//! settings cannot turn it on, because those of a project could send the spans elsewhere.

use parking_lot::Mutex;
use quipu_otlp::{Collector, CollectorError, MAIN_AGENT, Resource, Span, SpanPlace, SpanQueue, TraceId};

use crate::clock::new_id;

const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS_VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const PROTOCOL_VARIABLE: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const SERVICE_NAME_VARIABLE: &str = "OTEL_SERVICE_NAME";

/// The only protocol that is supported.
const PROTOCOL: &str = "http/protobuf";

/// Sends the spans of a session; does nothing if no collector is named.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    queue: Mutex<Option<SpanQueue>>,
    /// The span of the current turn, or of the last one.
    turn: Mutex<Option<SpanPlace>>,
}

impl Telemetry {
    /// Reads the variables of OpenTelemetry. `var` gives those that the agent was started with. A
    /// value that cannot be used is an error, and no spans are sent. Must be called in a tokio
    /// runtime.
    pub(crate) fn from_env<'a>(var: impl Fn(&str) -> Option<&'a str>) -> (Self, Option<String>) {
        let Some(endpoint) = var(ENDPOINT_VARIABLE) else { return (Self::default(), None) };
        if let Some(other) = var(PROTOCOL_VARIABLE).filter(|protocol| *protocol != PROTOCOL) {
            let warning = format!("no spans are sent: {PROTOCOL_VARIABLE} is {other}, only {PROTOCOL} is supported");
            return (Self::default(), Some(warning));
        }
        let resource = Resource {
            service_name: var(SERVICE_NAME_VARIABLE).unwrap_or("quipu-agent").to_owned(),
            service_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        match Collector::new(endpoint, var(HEADERS_VARIABLE).unwrap_or_default(), resource) {
            Ok(collector) => {
                let queue = Mutex::new(Some(SpanQueue::start(collector)));
                (Self { queue, turn: Mutex::default() }, None)
            }
            Err(error) => {
                let name = if matches!(error, CollectorError::Headers) { HEADERS_VARIABLE } else { ENDPOINT_VARIABLE };
                (Self::default(), Some(format!("no spans are sent: {name}: {error}")))
            }
        }
    }

    /// Begins the trace of a turn.
    pub(crate) fn begin_turn(&self) {
        if self.queue.lock().is_some() {
            let trace = TraceId::from_parts(&[new_id().as_str()]);
            let id = trace.span_id(&["agent", MAIN_AGENT]);
            *self.turn.lock() = Some(SpanPlace { trace, id, parent: None });
        }
    }

    /// The span of the current turn; `None` if no spans are sent.
    pub(crate) fn turn(&self) -> Option<SpanPlace> {
        *self.turn.lock()
    }

    /// Sends what is waiting, for at most half a second.
    pub(crate) async fn close(&self) {
        let queue = self.queue.lock().take();
        if let Some(queue) = queue {
            queue.close().await;
        }
    }

    /// Sends a span, if a collector is named.
    pub(crate) fn push(&self, span: Span) {
        if let Some(queue) = &*self.queue.lock() {
            queue.push(span);
        }
    }
}

/// The place of the span of a tool call in that of its agent.
pub(crate) fn tool_place(agent: SpanPlace, tool_use_id: &str) -> SpanPlace {
    SpanPlace { id: agent.trace.span_id(&["tool", tool_use_id]), parent: Some(agent.id), ..agent }
}

/// The place of the span of a subagent in that of the tool call that started it.
pub(crate) fn subagent_place(tool: SpanPlace, run_id: &str) -> SpanPlace {
    SpanPlace { id: tool.trace.span_id(&["agent", run_id]), parent: Some(tool.id), ..tool }
}
