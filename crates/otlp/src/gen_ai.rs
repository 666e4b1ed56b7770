//! The three kinds of spans and their attributes, as the GenAI conventions name them.

use std::time::Duration;

use quipu_conversation::Tokens;

use crate::span::{AttributeValue, Span, SpanKind, SpanPlace, SpanTimes};

type Attributes = Vec<(&'static str, AttributeValue)>;

const PROVIDER: &str = "anthropic";

/// Name of the agent that answers the user, in contrast to subagents.
pub const MAIN_AGENT: &str = "main";

/// A turn of an agent: everything from a prompt to the final answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentRun<'a> {
    /// Id of the session; `None` if it is not known.
    pub session_id: Option<&'a str>,
    /// [`MAIN_AGENT`], or the type of a subagent.
    pub agent_name: &'a str,
    /// Id of the subagent; `None` for the main agent.
    pub agent_id: Option<&'a str>,
    /// Why the turn failed; `None` if it did not.
    pub error: Option<&'a str>,
}

impl AgentRun<'_> {
    /// The span of the turn.
    pub fn span(&self, place: SpanPlace, times: SpanTimes) -> Span {
        let mut attributes = common_attributes("invoke_agent", self.session_id);
        attributes.push(("gen_ai.provider.name", PROVIDER.into()));
        attributes.push(("gen_ai.agent.name", self.agent_name.into()));
        push_text(&mut attributes, "gen_ai.agent.id", self.agent_id);
        let name = format!("invoke_agent {}", self.agent_name);
        finish(place, times, name, SpanKind::Internal, attributes, self.error)
    }
}

/// One API call.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatCall<'a> {
    /// Id of the session; `None` if it is not known.
    pub session_id: Option<&'a str>,
    /// Requested model; `None` if it is not known.
    pub request_model: Option<&'a str>,
    /// Limit of output tokens.
    pub max_tokens: Option<u64>,
    /// Whether the response was streamed.
    pub is_stream: bool,
    /// Model that answered.
    pub response_model: Option<&'a str>,
    /// Id of the message.
    pub message_id: Option<&'a str>,
    /// Id that the API gave the request.
    pub request_id: Option<&'a str>,
    /// Why the model stopped.
    pub stop_reason: Option<&'a str>,
    /// Time from the request to the first event of the response.
    pub time_to_first_chunk: Option<Duration>,
    /// Token counts; `None` if the response had none.
    pub tokens: Option<Tokens>,
    /// Kind of the failure; `None` if the call succeeded.
    pub error: Option<&'a str>,
}

impl ChatCall<'_> {
    /// The span of the call.
    pub fn span(&self, place: SpanPlace, times: SpanTimes) -> Span {
        let mut attributes = common_attributes("chat", self.session_id);
        attributes.push(("gen_ai.provider.name", PROVIDER.into()));
        push_text(&mut attributes, "gen_ai.request.model", self.request_model);
        push(&mut attributes, "gen_ai.request.max_tokens", self.max_tokens);
        attributes.push(("gen_ai.request.stream", AttributeValue::Boolean(self.is_stream)));
        push_text(&mut attributes, "gen_ai.response.id", self.message_id);
        push_text(&mut attributes, "gen_ai.response.model", self.response_model);
        push(
            &mut attributes,
            "gen_ai.response.finish_reasons",
            self.stop_reason.map(|reason| AttributeValue::Texts(vec![reason.to_owned()])),
        );
        push(
            &mut attributes,
            "gen_ai.response.time_to_first_chunk",
            self.time_to_first_chunk.map(|time| AttributeValue::Float(time.as_secs_f64())),
        );
        push_text(&mut attributes, "request_id", self.request_id);
        if let Some(tokens) = self.tokens {
            attributes.push(("gen_ai.usage.input_tokens", tokens.prompt().into()));
            attributes.push(("gen_ai.usage.output_tokens", tokens.output.into()));
            attributes.push(("gen_ai.usage.cache_read.input_tokens", tokens.cache_read.into()));
            attributes.push(("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write().into()));
        }
        let model = self.request_model.or(self.response_model);
        let name = model.map_or("chat".to_owned(), |model| format!("chat {model}"));
        finish(place, times, name, SpanKind::Client, attributes, self.error)
    }
}

/// One tool call.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolRun<'a> {
    /// Id of the session; `None` if it is not known.
    pub session_id: Option<&'a str>,
    /// Name of the tool.
    pub tool_name: &'a str,
    /// Id of the tool call.
    pub tool_use_id: &'a str,
    /// Whether the times are those of the API calls around the tool call, because its own were
    /// not recorded.
    pub has_estimated_times: bool,
    /// Whether the tool failed or was refused.
    pub is_error: bool,
}

impl ToolRun<'_> {
    /// The span of the tool call.
    pub fn span(&self, place: SpanPlace, times: SpanTimes) -> Span {
        let mut attributes = common_attributes("execute_tool", self.session_id);
        attributes.push(("gen_ai.tool.name", self.tool_name.into()));
        attributes.push(("gen_ai.tool.call.id", self.tool_use_id.into()));
        attributes.push(("gen_ai.tool.type", "function".into()));
        if self.has_estimated_times {
            attributes.push(("quipu.estimated_times", AttributeValue::Boolean(true)));
        }
        let name = format!("execute_tool {}", self.tool_name);
        finish(place, times, name, SpanKind::Internal, attributes, self.is_error.then_some("tool_error"))
    }
}

fn common_attributes(operation: &str, session_id: Option<&str>) -> Attributes {
    let mut attributes = vec![("gen_ai.operation.name", AttributeValue::from(operation))];
    push_text(&mut attributes, "gen_ai.conversation.id", session_id);
    push_text(&mut attributes, "session.id", session_id);
    attributes
}

fn push(attributes: &mut Attributes, name: &'static str, value: Option<impl Into<AttributeValue>>) {
    attributes.extend(value.map(|value| (name, value.into())));
}

fn push_text(attributes: &mut Attributes, name: &'static str, value: Option<&str>) {
    push(attributes, name, value.filter(|text| !text.is_empty()));
}

fn finish(
    place: SpanPlace,
    times: SpanTimes,
    name: String,
    kind: SpanKind,
    mut attributes: Attributes,
    error: Option<&str>,
) -> Span {
    push_text(&mut attributes, "error.type", error);
    Span { place, times, name, kind, attributes, error: error.map(str::to_owned) }
}

#[cfg(test)]
mod tests;
