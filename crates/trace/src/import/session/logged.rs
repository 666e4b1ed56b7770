//! Requests of the request log, in parts.

use std::collections::HashMap;

use quipu_conversation::{LoggedRequest, RebuiltRequests};
use quipu_message::request_view::{BreakpointPlace, LoggedBreakpoint, RequestView};

use crate::builder::TraceBuilder;
use crate::call::RequestParts;
use crate::prompt_store::{Breakpoint, MessageKey};

/// Turns logged requests into parts. Messages, system prompts and tools are read once, however
/// many requests repeat them.
pub(super) struct LoggedCalls<'r> {
    rebuilt: &'r RebuiltRequests,
    /// Key of each message of the log, once it was needed; `None` if it cannot be read.
    keys: HashMap<usize, Option<MessageKey>>,
    /// System prompt and tools by hash.
    shapes: HashMap<&'r str, RequestParts>,
}

impl<'r> LoggedCalls<'r> {
    pub(super) fn new(rebuilt: &'r RebuiltRequests) -> Self {
        Self { rebuilt, keys: HashMap::new(), shapes: HashMap::new() }
    }

    /// The request in parts. What is not in the file is a problem, and left out.
    pub(super) fn request_parts(&mut self, request: &'r LoggedRequest, builder: &mut TraceBuilder) -> RequestParts {
        let mut parts = self.params(request, builder);
        let shape = self.system_and_tools(request, builder);
        (parts.system, parts.tools, parts.billing_line) = (shape.system, shape.tools, shape.billing_line);
        let mut missing = 0;
        for message in self.rebuilt.messages_of(request) {
            match message.and_then(|message| self.key(message, builder)) {
                Some(key) => parts.messages.push(key),
                None => missing += 1,
            }
        }
        if missing > 0 {
            let message = format!("the request names {missing} messages that are neither stored nor can be rebuilt");
            builder.push_problem(request.line, message);
        }
        for LoggedBreakpoint { place, lifetime } in request.entry.breakpoints() {
            set_breakpoint(&mut parts, place, Breakpoint::from(&lifetime), builder);
        }
        let prompts = builder.prompts();
        let part_bytes = |part: &crate::PartKey| prompts.text(part.text).len() as u64;
        parts.body_bytes += parts.system.iter().chain(&parts.tools).map(part_bytes).sum::<u64>();
        parts.body_bytes += parts.messages.iter().map(|key| prompts.message(*key).bytes).sum::<u64>();
        parts
    }

    fn params(&self, request: &LoggedRequest, builder: &mut TraceBuilder) -> RequestParts {
        let Some(params) = request.entry.params.get() else { return RequestParts::default() };
        match RequestView::read(params.text()) {
            Ok(view) => {
                let mut parts = builder.read_params(&view);
                parts.body_bytes = params.text().len() as u64;
                parts
            }
            Err(error) => {
                builder.push_problem(request.line, format!("parameters of the request: {error}"));
                RequestParts::default()
            }
        }
    }

    fn system_and_tools(&mut self, request: &'r LoggedRequest, builder: &mut TraceBuilder) -> RequestParts {
        let hash = request.entry.shape_hash.text().unwrap_or_default();
        if let Some(known) = self.shapes.get(hash) {
            return known.clone();
        }
        let mut parts = RequestParts::default();
        let read = match self.rebuilt.system_and_tools(request) {
            None => Err("they are not in the file".to_owned()),
            Some(shape) => RequestView::read(shape.text())
                .and_then(|view| builder.read_system_and_tools(&view, &mut parts))
                .map_err(|error| error.to_string()),
        };
        if let Err(reason) = read {
            builder.push_problem(request.line, format!("system prompt and tools of the request: {reason}"));
        }
        self.shapes.insert(hash, parts.clone());
        parts
    }

    fn key(&mut self, message: usize, builder: &mut TraceBuilder) -> Option<MessageKey> {
        let messages = &self.rebuilt.messages;
        *self.keys.entry(message).or_insert_with(|| builder.prompts().add_new_message(messages.get(message)?).ok())
    }
}

fn set_breakpoint(
    parts: &mut RequestParts,
    place: BreakpointPlace,
    breakpoint: Breakpoint,
    builder: &mut TraceBuilder,
) {
    match place {
        BreakpointPlace::System(i) => {
            if let Some(part) = parts.system.get_mut(i) {
                part.breakpoint = Some(breakpoint);
            }
        }
        BreakpointPlace::Tool(i) => {
            if let Some(part) = parts.tools.get_mut(i) {
                part.breakpoint = Some(breakpoint);
            }
        }
        BreakpointPlace::Message { message, block } => {
            if let Some(key) = parts.messages.get_mut(message) {
                *key = builder.prompts().with_breakpoint(*key, block, breakpoint);
            }
        }
    }
}
