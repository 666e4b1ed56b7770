//! What is asked: a plain description, made into the wire's request with the
//! cache breakpoints in it.

use bytes::Bytes;
use quipu_message::api::{
    self, CacheControl, Metadata, MetadataUserId, OutputConfig, TaskBudget, ThinkingConfig, Tool, ToolChoice,
};
use quipu_message::values::{CacheLifetime, Effort, ThinkingKind};
use quipu_message::{AgentId, Block, Content, Json, Maybe, Message, Role, SessionId};
use serde_json::{Map, Number, Value};

use crate::body::{ChunkedBody, EncodedHistory};

/// The most an answer that is not streamed may be asked to hold.
const MAX_UNSTREAMED_TOKENS: u64 = 64_000;

/// The way of showing thinking that needs a beta: short reports while it goes on.
const DISPLAY_UPDATES: &str = "updates";

/// One request for a message.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The model.
    pub model: String,
    /// Who takes over when the model stays overloaded, in this order.
    pub fallbacks: Vec<FallbackModel>,
    /// The system prompt, in parts; empty parts are left out.
    pub system: Vec<String>,
    /// Messages that stand before the others: a long conversation need not be written
    /// anew for each call.
    pub history: EncodedHistory,
    /// The conversation, as `for_api` gives it.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// Which tool must or may be used.
    pub tool_choice: Option<ToolChoiceMode>,
    /// How much may be written.
    pub max_tokens: u64,
    /// Whether and how far to think.
    pub thinking: Option<ThinkingMode>,
    /// How thinking is shown: `summarized`, `omitted`, `updates` …
    pub thinking_display: Option<String>,
    /// How hard to try: `low`, `medium`, `high` …
    pub effort: Option<String>,
    /// Token budget of the whole task, which the API passes on to the model.
    pub task_budget: Option<u64>,
    /// What ends the answer when the model writes it.
    pub stop_sequences: Vec<String>,
    /// How freely to choose words.
    pub temperature: Option<Number>,
    /// What to clear from the context, as the API takes it.
    pub context_management: Option<Json>,
    /// How long the prefix is to be cached.
    pub cache_ttl: CacheTtl,
    /// Whether the last message is no part of the conversation, such as the instruction for
    /// a summary: the messages before it are cached, it is not.
    pub has_uncached_tail: bool,
    /// Betas of this request, besides those of the endpoint.
    pub betas: Vec<String>,
    /// The installation that asks.
    pub device_id: String,
    /// The session it asks for.
    pub session_id: Option<SessionId>,
    /// The subagent it asks for.
    pub agent_id: Option<AgentId>,
    /// Fields that are put into the body as they are, in place of ours of the same name.
    pub extra_body: Option<Map<String, Value>>,
}

/// What is asked of another model when the first stays overloaded: not every model takes
/// the same parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FallbackModel {
    /// The model.
    pub model: String,
    /// How much may be written.
    pub max_tokens: u64,
    /// Whether and how far to think.
    pub thinking: Option<ThinkingMode>,
    /// How hard to try.
    pub effort: Option<String>,
    /// What to clear from the context.
    pub context_management: Option<Json>,
    /// Betas of this request, besides those of the endpoint.
    pub betas: Vec<String>,
}

/// Whether and how far to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingMode {
    /// Not at all.
    Off,
    /// As far as the model sees fit.
    Adaptive,
    /// At most so many tokens.
    Budget(u64),
}

/// Which tool must or may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoiceMode {
    /// Any or none.
    Auto,
    /// One of them.
    Any,
    /// This one.
    Tool(String),
    /// None.
    None,
}

/// How long the prefix is to be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheTtl {
    /// Not at all.
    Off,
    /// What the API does unless told otherwise.
    #[default]
    FiveMinutes,
    /// Dearer to write, for sessions with long pauses.
    OneHour,
}

impl Request {
    /// The request as it is sent. Messages and tools go into it: they are large.
    pub(crate) fn take_wire_request(&mut self) -> api::Request {
        let mut wire = api::Request {
            stop_sequences: non_empty(self.stop_sequences.clone()),
            temperature: self.temperature.clone().into(),
            metadata: self.metadata().into(),
            ..self.take_prompt()
        };
        self.set_model_and_stream(&mut wire, true);
        wire
    }

    fn output_config(&self) -> Option<Json> {
        let budget = |total| TaskBudget { kind: "tokens".to_owned(), total, ..TaskBudget::default() };
        let config = OutputConfig {
            effort: self.effort.as_deref().map(Effort::from).into(),
            task_budget: self.task_budget.map(budget).into(),
            ..OutputConfig::default()
        };
        (config != OutputConfig::default()).then(|| Json::from_serialize(&config))
    }

    /// Asks the next fallback from now on; returns the model before and the new one. `None`
    /// if there is no other.
    pub fn switch_to_fallback(&mut self) -> Option<(String, String)> {
        let at = self.fallbacks.iter().position(|next| next.model != self.model)?;
        let next = self.fallbacks.drain(..=at).next_back()?;
        let from = std::mem::replace(&mut self.model, next.model);
        (self.max_tokens, self.thinking, self.effort) = (next.max_tokens, next.thinking, next.effort);
        (self.context_management, self.betas) = (next.context_management, next.betas);
        Some((from, self.model.clone()))
    }

    /// The betas that the fields of the request need.
    pub(crate) fn required_betas(&self) -> Vec<&'static str> {
        let thinks = self.thinking.is_some_and(|thinking| thinking != ThinkingMode::Off);
        let updates = thinks && self.thinking_display.as_deref() == Some(DISPLAY_UPDATES);
        let needed = [
            (self.context_management.is_some(), "context-management-2025-06-27"),
            (self.effort.is_some(), "effort-2025-11-24"),
            (updates, "thinking-display-updates-2026-08-18"),
            (self.task_budget.is_some(), "task-budgets-2026-03-13"),
        ];
        needed.into_iter().filter(|(needed, _)| *needed).map(|(_, beta)| beta).collect()
    }

    /// Says whom a request asks, and how the answer is to come.
    pub(crate) fn set_model_and_stream(&self, wire: &mut api::Request, stream: bool) {
        let most = if stream { self.max_tokens } else { self.max_tokens.min(MAX_UNSTREAMED_TOKENS) };
        // A budget must leave room for the answer itself.
        let budget = |tokens: u64| tokens.min(most.saturating_sub(1));
        self.model.clone_into(&mut wire.model);
        wire.output_config = self.output_config().into();
        wire.context_management = self.context_management.clone().into();
        (wire.max_tokens, wire.stream) = (Maybe::Value(most), Maybe::Value(stream));
        wire.thinking = self.thinking.map(|thinking| thinking.to_wire(budget, self.thinking_display.as_deref())).into();
    }

    /// The JSON of a request, with the encoded history before the messages of `wire`.
    pub(crate) fn to_body(&self, wire: &api::Request) -> serde_json::Result<ChunkedBody> {
        let mut body = ChunkedBody::default();
        if let Some(extra) = &self.extra_body {
            body.push(self.to_json_with_extra(wire, extra)?.into());
            return Ok(body);
        }
        let mut rest = Bytes::from(serde_json::to_vec(wire)?);
        if !self.history.is_empty() {
            body.push(rest.split_to(message_list_offset(&wire.model)?));
            self.history.chunks().iter().cloned().for_each(|chunk| body.push(chunk));
            if !wire.messages.is_empty() {
                body.push(Bytes::from_static(b","));
            }
        }
        body.push(rest);
        Ok(body)
    }

    /// The JSON of a request with the fields that the user adds. The history is decoded
    /// again for it; this is for experiments, not for speed.
    fn to_json_with_extra(&self, wire: &api::Request, extra: &Map<String, Value>) -> serde_json::Result<Vec<u8>> {
        let history = [b"[", &self.history.chunks().concat()[..], b"]"].concat();
        let mut messages: Vec<Message> = serde_json::from_slice(&history)?;
        messages.extend_from_slice(&wire.messages);
        let mut body = serde_json::to_value(api::Request { messages, ..wire.clone() })?;
        if let Value::Object(fields) = &mut body {
            fields.extend(extra.clone());
        }
        serde_json::to_vec(&body)
    }

    /// The request that asks how large the prompt is.
    pub(crate) fn to_count_request(&self) -> api::Request {
        let thinking = self.thinking.map(|thinking| thinking.to_wire(|tokens| tokens, None));
        api::Request { model: self.model.clone(), thinking: thinking.into(), ..self.clone().take_prompt() }
    }

    /// The cached part, tools, system and messages, with the breakpoints in it.
    fn take_prompt(&mut self) -> api::Request {
        let mut system: Vec<Block> = self.system.iter().filter(|s| !s.is_empty()).map(Block::new_text).collect();
        let (mut tools, mut messages) = (std::mem::take(&mut self.tools), std::mem::take(&mut self.messages));
        if let Some(mark) = self.cache_ttl.cache_control() {
            let end = messages.len().saturating_sub(usize::from(self.has_uncached_tail));
            set_cache_breakpoints(&mut tools, &mut system, &mut messages[..end], &mark);
        }
        api::Request {
            messages,
            system: if system.is_empty() { Maybe::Absent } else { Maybe::Value(Json::from_serialize(&system)) },
            tools: non_empty(tools),
            tool_choice: self.tool_choice.as_ref().map(ToolChoiceMode::to_wire).into(),
            ..api::Request::default()
        }
    }

    fn metadata(&self) -> Option<Json> {
        let caller = MetadataUserId {
            device_id: self.device_id.clone(),
            session_id: self.session_id.clone()?,
            ..MetadataUserId::default()
        };
        let user_id = Maybe::Value(Json::from_serialize(&caller).text().to_owned());
        Some(Json::from_serialize(&Metadata { user_id, ..Metadata::default() }))
    }
}

/// Where the message list of a request begins in its JSON: `model` and `messages`, the two
/// required fields, come first, so a request with nothing else is the same up to there.
fn message_list_offset(model: &str) -> serde_json::Result<usize> {
    let shortest = serde_json::to_vec(&api::Request { model: model.to_owned(), ..api::Request::default() })?;
    Ok(shortest.len() - b"]}".len())
}

/// Sets the four breakpoints the API allows: after the tools, after the system
/// prompt, after what is new, and after what was new in the call before, so that the
/// look-back of twenty blocks finds it however much came in between.
fn set_cache_breakpoints(tools: &mut [Tool], system: &mut [Block], messages: &mut [Message], mark: &Json) {
    // A tool that is loaded on demand is not part of the prefix.
    if let Some(tool) = tools.iter_mut().rev().find(|tool| !tool.defer_loading.is_true()) {
        tool.cache_control = Maybe::Value(mark.clone());
    }
    if let Some(last) = system.last_mut() {
        last.set_cache_control(mark.clone());
    }
    let mut backwards = messages.iter_mut().rev();
    if let Some(last) = backwards.next() {
        set_message_breakpoint(last, mark);
    }
    if let Some(before) = backwards.find(|message| message.role == Role::User) {
        set_message_breakpoint(before, mark);
    }
}

/// Marks the last block of a message that can be marked.
fn set_message_breakpoint(message: &mut Message, mark: &Json) {
    let mut blocks = std::mem::take(&mut message.content).into_blocks();
    let _ = blocks.iter_mut().rev().any(|block| block.set_cache_control(mark.clone()));
    message.content = Content::Blocks(blocks);
}

impl CacheTtl {
    fn cache_control(self) -> Option<Json> {
        let ttl = match self {
            Self::Off => return None,
            Self::FiveMinutes => Maybe::Absent,
            Self::OneHour => CacheLifetime::OneHour.into(),
        };
        Some(Json::from_serialize(&CacheControl { kind: "ephemeral".to_owned(), ttl, ..CacheControl::default() }))
    }
}

impl ThinkingMode {
    fn to_wire(self, budget: impl Fn(u64) -> u64, display: Option<&str>) -> Json {
        let (kind, budget_tokens) = match self {
            Self::Off => (ThinkingKind::Disabled, Maybe::Absent),
            Self::Adaptive => (ThinkingKind::Adaptive, Maybe::Absent),
            Self::Budget(tokens) => (ThinkingKind::Enabled, Maybe::Value(budget(tokens))),
        };
        // What is not thought is not shown.
        let display = display.filter(|_| self != Self::Off).map(str::to_owned).into();
        Json::from_serialize(&ThinkingConfig { kind, budget_tokens, display, ..ThinkingConfig::default() })
    }
}

impl ToolChoiceMode {
    fn to_wire(&self) -> Json {
        let (kind, name) = match self {
            Self::Auto => ("auto", None),
            Self::Any => ("any", None),
            Self::Tool(name) => ("tool", Some(name.clone())),
            Self::None => ("none", None),
        };
        Json::from_serialize(&ToolChoice { kind: kind.to_owned(), name: name.into(), ..ToolChoice::default() })
    }
}

fn non_empty<T>(list: Vec<T>) -> Maybe<Vec<T>> {
    if list.is_empty() { Maybe::Absent } else { Maybe::Value(list) }
}

#[cfg(test)]
mod tests;
