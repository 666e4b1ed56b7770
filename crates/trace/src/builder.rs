//! Builds a trace from raw calls.

use std::hash::{BuildHasher, Hasher, RandomState};

use jiff::Timestamp;
use quipu_conversation::{Accumulator, Tokens};
use quipu_message::api::{ContextEdits, Diagnostics, StreamError, StreamEvent};
use quipu_message::request_view::{PromptPart, RequestView};
use quipu_message::sse::Parser;
use quipu_message::{Message, Usage};

use crate::call::{Call, CallEnd, CallIdentity, CallResponse, Endpoint, RequestParts, ToolCallRef};
use crate::prompt_store::{Breakpoint, PromptStore};
use crate::raw_call::{RawCall, RawResponse};

/// Calls of one or several sources, and the texts of their requests and responses.
#[derive(Debug, Default)]
pub struct Trace {
    /// Calls in the order in which they were added.
    pub calls: Vec<Call>,
    /// Texts and messages that the calls refer to.
    pub prompts: PromptStore,
    /// What could not be read: line of the source, and why.
    pub problems: Vec<(u64, String)>,
}

/// Adds calls to a [`Trace`].
#[derive(Debug, Default)]
pub struct TraceBuilder {
    trace: Trace,
    /// Random in each run, so that a hash of a credential cannot be looked up.
    account_hasher: RandomState,
}

/// First words of the billing line in Claude Code's system prompt.
const BILLING_PREFIX: &str = "x-anthropic-billing-header:";

const SESSION_HEADER: &str = "x-claude-code-session-id";
const AGENT_HEADER: &str = "x-claude-code-agent-id";
const PARENT_AGENT_HEADER: &str = "x-claude-code-parent-agent-id";

impl TraceBuilder {
    /// Adds one call. A body that cannot be read is a problem of the trace; the call is
    /// kept without its request.
    pub fn push(&mut self, raw: &RawCall<'_>) {
        let index = self.trace.calls.len();
        let path = path_of(&raw.url).to_owned();
        let endpoint = endpoint_of(&raw.method, &path);
        let mut identity = CallIdentity {
            session_id: header(raw, SESSION_HEADER),
            agent_id: header(raw, AGENT_HEADER),
            parent_agent_id: header(raw, PARENT_AGENT_HEADER),
            account: self.account_hash(raw),
        };
        let request = match self.read_request(raw, endpoint, &mut identity) {
            Ok(request) => request,
            Err(error) => {
                self.trace.problems.push((raw.line, format!("request body: {error}")));
                None
            }
        };
        let betas = header(raw, "anthropic-beta").unwrap_or_default();
        let response = self.read_response(raw, endpoint);
        self.trace.calls.push(Call {
            index,
            id: if raw.source_id.is_empty() { format!("call-{}", index + 1) } else { raw.source_id.to_string() },
            line: raw.line,
            started_at: raw.started_at,
            duration_ms: milliseconds_between(raw.started_at, raw.ended_at),
            first_event_ms: milliseconds_between(raw.started_at, raw.first_event_at),
            endpoint,
            path,
            identity,
            betas: betas.split(',').map(|beta| beta.trim().to_owned()).filter(|beta| !beta.is_empty()).collect(),
            request,
            response,
            is_reconstructed: raw.is_reconstructed,
        });
    }

    /// Records what could not be read at a line of the source.
    pub fn push_problem(&mut self, line: u64, message: impl Into<String>) {
        self.trace.problems.push((line, message.into()));
    }

    /// The trace of all calls that were added.
    pub fn finish(self) -> Trace {
        self.trace
    }

    fn account_hash(&self, raw: &RawCall<'_>) -> Option<u64> {
        let key = header(raw, "x-api-key").or_else(|| header(raw, "authorization"))?;
        let mut hasher = self.account_hasher.build_hasher();
        hasher.write(key.as_bytes());
        Some(hasher.finish())
    }

    fn read_request(
        &mut self,
        raw: &RawCall<'_>,
        endpoint: Endpoint,
        identity: &mut CallIdentity,
    ) -> Result<Option<RequestParts>, serde_json::Error> {
        if endpoint == Endpoint::Other || raw.request_body.is_empty() {
            return Ok(None);
        }
        let view = RequestView::read(&raw.request_body)?;
        identity.session_id = identity.session_id.take().or_else(|| view.session_id());
        let prompts = &mut self.trace.prompts;
        let mut text = |raw: Option<&serde_json::value::RawValue>| raw.map(|raw| prompts.add_text(&compact(raw.get())));
        let mut parts = RequestParts {
            model: view.model.as_deref().unwrap_or_default().to_owned(),
            tool_choice: text(view.tool_choice),
            thinking: text(view.thinking),
            output_config: text(view.output_config),
            context_management: text(view.context_management),
            automatic_breakpoint: view.automatic_breakpoint().as_ref().map(Breakpoint::from),
            speed: view.speed.as_deref().map(str::to_owned),
            max_tokens: view.max_tokens,
            is_stream: view.stream == Some(true),
            body_bytes: raw.request_body.len() as u64,
            ..RequestParts::default()
        };
        for part in view.system_parts() {
            let is_billing = parts.system.is_empty() && starts_with_billing(&part);
            let key = prompts.add_part(part);
            if is_billing && parts.billing_line.is_none() {
                parts.billing_line = Some(key.text);
            } else {
                parts.system.push(key);
            }
        }
        for tool in &view.tools {
            parts.tools.push(prompts.add_tool(tool.get())?);
        }
        for message in &view.messages {
            parts.messages.push(prompts.add_message(message.get())?);
        }
        Ok(Some(parts))
    }

    fn read_response(&mut self, raw: &RawCall<'_>, endpoint: Endpoint) -> CallResponse {
        let mut response = CallResponse { status: raw.status, end: raw.end, ..CallResponse::default() };
        response.request_id = response_header(raw, "request-id");
        if endpoint != Endpoint::Messages {
            return response;
        }
        match &raw.response {
            RawResponse::None => {}
            RawResponse::Json(body) => {
                if let Ok(message) = serde_json::from_str::<Message>(body) {
                    self.add_response_message(&message, &mut response);
                } else if let Ok(StreamEvent::Error(error)) = serde_json::from_str(body) {
                    set_error(&error, &mut response);
                }
            }
            RawResponse::Sse(text) => {
                let mut parser = Parser::new();
                let mut events: Vec<String> = Vec::new();
                for event in parser.push(text.as_bytes()).into_iter().chain(parser.push(b"\n\n")) {
                    match event {
                        Ok(event) => events.push(event.data),
                        Err(error) => self.push_problem(raw.line, error.to_string()),
                    }
                }
                self.read_events(raw.line, events.iter().map(String::as_str), &mut response);
            }
            RawResponse::Events(events) => {
                self.read_events(raw.line, events.iter().map(AsRef::as_ref), &mut response);
            }
        }
        response
    }

    fn read_events<'e>(&mut self, line: u64, events: impl Iterator<Item = &'e str>, response: &mut CallResponse) {
        let mut message = Accumulator::default();
        for data in events {
            match serde_json::from_str(data) {
                Ok(StreamEvent::Error(error)) => set_error(&error, response),
                Ok(event) => {
                    if let Err(error) = message.push(&event) {
                        self.push_problem(line, format!("response: {error}"));
                    }
                }
                Err(error) => self.push_problem(line, format!("response event: {error}")),
            }
        }
        if response.end == CallEnd::Unknown && message.is_complete() {
            response.end = CallEnd::Completed;
        }
        if let Some(message) = message.partial_message() {
            self.add_response_message(&message, response);
        }
    }

    fn add_response_message(&mut self, message: &Message, response: &mut CallResponse) {
        let text = |value: Option<&str>| value.map(str::to_owned);
        response.message_id = text(message.id.text());
        response.model = text(message.model.text());
        response.stop_reason = message.stop_reason.get().cloned();
        if let Some(usage) = message.usage.get() {
            response.tokens = Some(tokens_of(usage));
            response.speed = text(usage.speed.text());
            response.geo = text(usage.inference_geo.text());
            let server_tools = usage.server_tool_use.get();
            response.web_searches =
                server_tools.and_then(|tools| tools.web_search_requests.get().copied()).unwrap_or_default();
        }
        for block in message.content.clone().into_blocks() {
            if let quipu_message::Block::ToolUse(call) = &block {
                response.tool_calls.push(ToolCallRef { id: call.id.to_string(), name: call.name.clone() });
            }
            let json = serde_json::to_string(&block).unwrap_or_default();
            if let Ok(part) = PromptPart::read_block(&json) {
                response.blocks.push(self.trace.prompts.add_part(part));
            }
        }
        let edits = message.context_management.get().and_then(|edits| edits.read::<ContextEdits>().ok());
        response.context_edits = edits.and_then(|edits| edits.applied_edits.get().cloned()).unwrap_or_default();
        let diagnostics = message.diagnostics.get().and_then(|found| found.read::<Diagnostics>().ok());
        response.cache_diagnosis = diagnostics.and_then(|found| found.cache_miss_reason.get().cloned());
    }
}

fn set_error(error: &StreamError, response: &mut CallResponse) {
    response.error = Some(error.error.kind.text().unwrap_or("error").to_owned());
    response.request_id = response.request_id.take().or_else(|| error.request_id.get().map(ToString::to_string));
}

fn tokens_of(usage: &Usage) -> Tokens {
    let count = |value: Option<&u64>| value.copied().unwrap_or_default();
    let split = usage.cache_creation.get();
    let tokens = Tokens {
        input: count(usage.input_tokens.get()),
        output: count(usage.output_tokens.get()),
        cache_write_5m: count(split.and_then(|split| split.ephemeral_5m_input_tokens.get())),
        cache_write_1h: count(split.and_then(|split| split.ephemeral_1h_input_tokens.get())),
        cache_read: count(usage.cache_read_input_tokens.get()),
    };
    tokens.with_cache_write_total(count(usage.cache_creation_input_tokens.get()))
}

fn starts_with_billing(part: &PromptPart) -> bool {
    part.plain_text().is_some_and(|text| text.starts_with(BILLING_PREFIX))
}

fn header(raw: &RawCall<'_>, name: &str) -> Option<String> {
    find_header(&raw.headers, name)
}

fn response_header(raw: &RawCall<'_>, name: &str) -> Option<String> {
    find_header(&raw.response_headers, name)
}

type Headers<'a> = [(std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>)];

fn find_header(headers: &Headers<'_>, name: &str) -> Option<String> {
    let found = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.to_string()).filter(|value| !value.is_empty())
}

/// Path of a URL without scheme, host and query.
fn path_of(url: &str) -> &str {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => url,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

fn endpoint_of(method: &str, path: &str) -> Endpoint {
    if !method.is_empty() && !method.eq_ignore_ascii_case("POST") {
        Endpoint::Other
    } else if path.ends_with("/v1/messages") {
        Endpoint::Messages
    } else if path.ends_with("/v1/messages/count_tokens") {
        Endpoint::CountTokens
    } else {
        Endpoint::Other
    }
}

fn milliseconds_between(start: Option<Timestamp>, end: Option<Timestamp>) -> Option<u64> {
    u64::try_from((end?.as_millisecond()).checked_sub(start?.as_millisecond())?).ok()
}

/// JSON without white space between its parts; the text itself if it is not JSON.
fn compact(json: &str) -> String {
    serde_json::from_str::<serde_json::Value>(json).map_or_else(|_| json.to_owned(), |value| value.to_string())
}
