//! Reads the response of a call: a message, an error, or the events of a stream.

use quipu_conversation::{Accumulator, Tokens};
use quipu_message::Message;
use quipu_message::api::{ContextEdits, Diagnostics, StreamError, StreamEvent};
use quipu_message::request_view::PromptPart;
use quipu_message::sse::Parser;

use super::{TraceBuilder, find_header};
use crate::call::{CallEnd, CallResponse, Endpoint, ToolCallRef};
use crate::raw_call::{RawCall, RawResponse};

impl TraceBuilder {
    pub(super) fn read_response(&mut self, raw: &RawCall<'_>, endpoint: Endpoint) -> CallResponse {
        let mut response =
            CallResponse { status: raw.status, end: raw.end, error: raw.error.clone(), ..CallResponse::default() };
        response.request_id = find_header(&raw.response_headers, "request-id");
        if endpoint != Endpoint::Messages {
            return response;
        }
        match &raw.response {
            RawResponse::None => {}
            RawResponse::Json(body) => {
                if let Ok(message) = serde_json::from_str::<Message>(body) {
                    self.add_whole_message(&message, &mut response);
                } else if let Ok(StreamEvent::Error(error)) = serde_json::from_str(body) {
                    set_error(&error, &mut response);
                } else {
                    self.push_problem(raw.line, "response body is neither a message nor an error");
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
            RawResponse::Message(message) => self.add_whole_message(message, &mut response),
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

    fn add_whole_message(&mut self, message: &Message, response: &mut CallResponse) {
        if response.end == CallEnd::Unknown {
            response.end = CallEnd::Completed;
        }
        self.add_response_message(message, response);
    }

    fn add_response_message(&mut self, message: &Message, response: &mut CallResponse) {
        let text = |value: Option<&str>| value.map(str::to_owned);
        response.message_id = text(message.id.text());
        response.model = text(message.model.text());
        response.stop_reason = message.stop_reason.get().cloned();
        if let Some(usage) = message.usage.get() {
            response.tokens = Some(Tokens::from(usage));
            response.speed = text(usage.speed.text());
            response.geo = text(usage.inference_geo.text());
            let server_tools = usage.server_tool_use.get();
            response.web_searches =
                server_tools.and_then(|tools| tools.web_search_requests.get().copied()).unwrap_or_default();
        }
        for block in message.content.clone().into_blocks() {
            if let quipu_message::Block::ToolUse(call) = &block {
                response.tool_calls.push(ToolCallRef { id: call.id.to_string(), name: call.name.to_string() });
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
