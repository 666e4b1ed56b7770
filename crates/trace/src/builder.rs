//! Builds a trace from raw calls.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;

use jiff::Timestamp;
use quipu_message::request_view::{BILLING_PREFIX, PromptPart, RequestView};
use serde_json::value::RawValue;

use crate::call::{Call, CallIdentity, Endpoint, RequestParts};
use crate::import::CaptureFormat;
use crate::prompt_store::{Breakpoint, PartKey, PromptStore, TextId};
use crate::raw_call::RawCall;
use crate::trace::{Source, Trace, TraceProblem};

mod response;

/// Adds calls to a [`Trace`].
#[derive(Debug, Default)]
pub struct TraceBuilder {
    trace: Trace,
    call_ids: HashSet<String>,
    /// System prompts that were already read, by their text: billing line and blocks.
    system_prompts: HashMap<Box<str>, (Option<TextId>, Vec<PartKey>)>,
    /// Random in each run, so that a hash of a credential cannot be looked up.
    account_hasher: RandomState,
    /// Calls as they were read, by their position; `None` if they are not kept.
    pub(crate) raw_calls: Option<BTreeMap<usize, RawCall<'static>>>,
}

pub(crate) const SESSION_HEADER: &str = "x-claude-code-session-id";
pub(crate) const AGENT_HEADER: &str = "x-claude-code-agent-id";
pub(crate) const PARENT_AGENT_HEADER: &str = "x-claude-code-parent-agent-id";

impl TraceBuilder {
    /// Starts the next file. Calls and problems that follow belong to it.
    pub fn start_source(&mut self, path: impl Into<PathBuf>, format: CaptureFormat) {
        self.trace.sources.push(Source { path: path.into(), format });
    }

    /// Adds one call. A body that cannot be read is a problem of the trace; the call is
    /// kept without its request.
    pub fn push(&mut self, raw: &RawCall<'_>) {
        let index = self.trace.calls.len();
        self.set_call(index, raw);
    }

    /// Reads a call and puts it at a position: a new one at the end, or in place of an
    /// earlier one.
    pub(crate) fn set_call(&mut self, index: usize, raw: &RawCall<'_>) {
        let (request, session_id) = self.read_request(raw);
        self.set_call_parts(index, raw, request, session_id);
    }

    /// Puts a call whose request was already read at a position. `session_id` is the one in
    /// the body.
    pub(crate) fn set_call_parts(
        &mut self,
        index: usize,
        raw: &RawCall<'_>,
        request: Option<RequestParts>,
        session_id: Option<String>,
    ) {
        if let Some(kept) = &mut self.raw_calls {
            kept.insert(index, raw.to_owned_call());
        }
        let path = path_of(&raw.url).to_owned();
        let endpoint = endpoint_of(&raw.method, &path);
        let known = raw.identity.clone();
        let identity = CallIdentity {
            session_id: header(raw, SESSION_HEADER).or(known.session_id).or(session_id),
            agent_id: header(raw, AGENT_HEADER).or(known.agent_id),
            parent_agent_id: header(raw, PARENT_AGENT_HEADER).or(known.parent_agent_id),
            account: self.account_hash(raw).or(known.account),
        };
        let betas = header(raw, "anthropic-beta").unwrap_or_default();
        let response = self.read_response(raw, endpoint);
        let earlier_id = self.trace.calls.get(index).map(|call| call.id.clone());
        let call = Call {
            index,
            id: earlier_id.unwrap_or_else(|| self.unique_id(&raw.source_id, index)),
            source: self.source(),
            line: raw.line,
            started_at: raw.started_at,
            duration_ms: milliseconds_between(raw.started_at, raw.ended_at),
            first_event_ms: milliseconds_between(raw.started_at, raw.first_event_at),
            endpoint,
            path,
            identity,
            query_source: raw.query_source.clone(),
            betas: betas.split(',').map(|beta| beta.trim().to_owned()).filter(|beta| !beta.is_empty()).collect(),
            request,
            response,
            is_reconstructed: raw.is_reconstructed,
        };
        match self.trace.calls.get_mut(index) {
            Some(earlier) => *earlier = call,
            None => self.trace.calls.push(call),
        }
    }

    /// Records what could not be read at a line of the source.
    pub fn push_problem(&mut self, line: u64, message: impl Into<String>) {
        let source = self.source();
        self.trace.problems.push(TraceProblem { source, line, message: message.into() });
    }

    /// The trace of all calls that were added.
    pub fn finish(self) -> Trace {
        self.trace
    }

    /// Number of calls so far.
    pub(crate) fn call_count(&self) -> usize {
        self.trace.calls.len()
    }

    pub(crate) fn prompts(&mut self) -> &mut PromptStore {
        &mut self.trace.prompts
    }

    fn source(&self) -> usize {
        self.trace.sources.len().saturating_sub(1)
    }

    /// An id that no earlier call has: that of the source, or `call-N`.
    fn unique_id(&mut self, source_id: &str, index: usize) -> String {
        let mut id = if source_id.is_empty() { format!("call-{}", index + 1) } else { source_id.to_owned() };
        while !self.call_ids.insert(id.clone()) {
            let _ = write!(id, "-{}", index + 1);
        }
        id
    }

    fn account_hash(&self, raw: &RawCall<'_>) -> Option<u64> {
        let key = header(raw, "x-api-key").or_else(|| header(raw, "authorization"))?;
        let mut hasher = self.account_hasher.build_hasher();
        hasher.write(key.as_bytes());
        Some(hasher.finish())
    }

    /// Reads the body of a call into parts and the session id in it. A body that cannot be
    /// read is a problem; `None` for calls that have no prompt.
    pub(crate) fn read_request(&mut self, raw: &RawCall<'_>) -> (Option<RequestParts>, Option<String>) {
        let endpoint = endpoint_of(&raw.method, path_of(&raw.url));
        if endpoint == Endpoint::Other || raw.request_body.is_empty() {
            return (None, None);
        }
        let read = RequestView::read(&raw.request_body).and_then(|view| {
            let mut parts = self.read_params(&view);
            self.read_system_and_tools(&view, &mut parts)?;
            for message in &view.messages {
                parts.messages.push(self.trace.prompts.add_message(message.get())?);
            }
            parts.body_bytes = raw.request_body.len() as u64;
            Ok((parts, view.session_id()))
        });
        match read {
            Ok((parts, session_id)) => (Some(parts), session_id),
            Err(error) => {
                self.push_problem(raw.line, format!("request body: {error}"));
                (None, None)
            }
        }
    }

    /// Reads everything of a request but system prompt, tools and messages.
    pub(crate) fn read_params(&mut self, view: &RequestView<'_>) -> RequestParts {
        let prompts = &mut self.trace.prompts;
        let mut text = |raw: Option<&RawValue>| raw.map(|raw| prompts.add_text(&compact(raw.get())));
        RequestParts {
            model: view.model.as_deref().unwrap_or_default().to_owned(),
            tool_choice: text(view.tool_choice),
            thinking: text(view.thinking),
            output_config: text(view.output_config),
            context_management: text(view.context_management),
            automatic_breakpoint: view.automatic_breakpoint().as_ref().map(Breakpoint::from),
            speed: view.speed.as_deref().map(str::to_owned),
            max_tokens: view.max_tokens,
            is_stream: view.stream == Some(true),
            ..RequestParts::default()
        }
    }

    /// Billing line and blocks of a system prompt. It is read only if its text is new.
    fn read_system(&mut self, text: &str, view: &RequestView<'_>) -> (Option<TextId>, Vec<PartKey>) {
        if let Some(known) = self.system_prompts.get(text) {
            return known.clone();
        }
        let (mut billing_line, mut system) = (None, Vec::new());
        for part in view.system_parts() {
            let is_billing = billing_line.is_none() && system.is_empty() && starts_with_billing(&part);
            let key = self.trace.prompts.add_part(part);
            if is_billing {
                billing_line = Some(key.text);
            } else {
                system.push(key);
            }
        }
        self.system_prompts.insert(text.into(), (billing_line, system.clone()));
        (billing_line, system)
    }

    /// Reads system prompt and tools of a request.
    pub(crate) fn read_system_and_tools(
        &mut self,
        view: &RequestView<'_>,
        parts: &mut RequestParts,
    ) -> Result<(), serde_json::Error> {
        if let Some(system) = view.system {
            (parts.billing_line, parts.system) = self.read_system(system.get(), view);
        }
        let prompts = &mut self.trace.prompts;
        for tool in &view.tools {
            parts.tools.push(prompts.add_tool(tool.get())?);
        }
        Ok(())
    }
}

fn starts_with_billing(part: &PromptPart) -> bool {
    part.plain_text().is_some_and(|text| text.starts_with(BILLING_PREFIX))
}

fn header(raw: &RawCall<'_>, name: &str) -> Option<String> {
    find_header(&raw.headers, name)
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
