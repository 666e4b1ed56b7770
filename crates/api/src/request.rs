//! A request for a message, and its encoding with cache breakpoints.

use bytes::Bytes;
use quipu_message::api::{
    self, CacheControl, Metadata, MetadataUserId, OutputConfig, TaskBudget, ThinkingConfig, Tool, ToolChoice,
};
use quipu_message::values::{CacheLifetime, Effort, ThinkingDisplay, ThinkingKind, ToolChoiceKind};
use quipu_message::{AgentId, Block, Content, Json, Maybe, Message, Role, SessionId, ToolName};
use serde_json::{Map, Number, Value};

use crate::body::{ChunkedBody, EncodedHistory};

/// Limit of `max_tokens` for a response that is not streamed: a longer one could time out.
const MAX_UNSTREAMED_TOKENS: u64 = 64_000;

/// A request for one message from the model.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// ID or alias of the model.
    pub model: String,
    /// Models to switch to, in this order, if the model stays overloaded.
    pub fallbacks: Vec<FallbackModel>,
    /// Blocks of the system prompt; empty ones are left out.
    pub system: Vec<String>,
    /// Encoded messages that come before `messages`, so that a long conversation is not
    /// encoded again for each call.
    pub history: EncodedHistory,
    /// The messages to send, as `quipu_conversation::for_api` returns them.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    pub tools: Vec<Tool>,
    /// Whether the model must call a tool, and which; `None` is the API's default.
    pub tool_choice: Option<ToolChoiceMode>,
    /// Limit of output tokens, thinking included.
    pub max_tokens: u64,
    /// Extended thinking; `None` is the API's default.
    pub thinking: Option<ThinkingMode>,
    /// How thinking is returned; `None` is the API's default.
    pub thinking_display: Option<ThinkingDisplay>,
    /// Effort level: `low`, `medium`, `high`, …
    pub effort: Option<String>,
    /// Token budget of the whole task, which the API passes on to the model.
    pub task_budget: Option<u64>,
    /// Texts that end the response when the model writes them.
    pub stop_sequences: Vec<String>,
    /// Sampling temperature, from 0 to 1.
    pub temperature: Option<Number>,
    /// Context edits for the API to apply, as JSON.
    pub context_management: Option<Json>,
    /// Lifetime of the cached prompt prefix.
    pub cache_ttl: CacheTtl,
    /// Whether the last message is not part of the conversation, such as the instruction to
    /// summarise: it gets no cache breakpoint, the messages before it do.
    pub has_uncached_tail: bool,
    /// API betas of this request, in addition to those of the endpoint.
    pub betas: Vec<String>,
    /// ID of this installation, sent in `metadata`.
    pub device_id: String,
    /// Session that the call is made for; sent in a header and in `metadata`.
    pub session_id: Option<SessionId>,
    /// Subagent that the call is made for; sent in a header.
    pub agent_id: Option<AgentId>,
    /// Fields added to the body; they replace ours of the same name.
    pub extra_body: Option<Map<String, Value>>,
}

/// A model to switch to, with its parameters: not every model accepts the same ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FallbackModel {
    /// ID or alias of the model.
    pub model: String,
    /// Limit of output tokens, thinking included.
    pub max_tokens: u64,
    /// Extended thinking; `None` is the API's default.
    pub thinking: Option<ThinkingMode>,
    /// Effort level: `low`, `medium`, `high`, …
    pub effort: Option<String>,
    /// Context edits for the API to apply, as JSON.
    pub context_management: Option<Json>,
    /// API betas of this request, in addition to those of the endpoint.
    pub betas: Vec<String>,
}

/// Whether the model thinks before it responds, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingMode {
    /// No thinking at all.
    Off,
    /// The model decides how much.
    Adaptive,
    /// At most this many tokens.
    Budget(u64),
}

/// Whether the model must call a tool, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoiceMode {
    /// The model decides.
    Auto,
    /// The model must call some tool.
    Any,
    /// The model must call the tool of this name.
    Tool(ToolName),
    /// The model must not call a tool.
    None,
}

/// Lifetime of the cached prompt prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheTtl {
    /// No cache breakpoints are set.
    Off,
    /// Five minutes, the API's default.
    #[default]
    FiveMinutes,
    /// One hour, for sessions with long pauses; writing to the cache costs more.
    OneHour,
}

impl Request {
    /// The request as it is sent. Moves messages and tools out of `self`, as they are large.
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

    /// Switches to the next fallback model and its parameters. Returns the old and the new
    /// model; `None` if no fallback is left.
    pub fn switch_to_fallback(&mut self) -> Option<(String, String)> {
        let at = self.fallbacks.iter().position(|next| next.model != self.model)?;
        let next = self.fallbacks.drain(..=at).next_back()?;
        let from = std::mem::replace(&mut self.model, next.model);
        (self.max_tokens, self.thinking, self.effort) = (next.max_tokens, next.thinking, next.effort);
        (self.context_management, self.betas) = (next.context_management, next.betas);
        Some((from, self.model.clone()))
    }

    /// API betas that the fields of this request need.
    pub(crate) fn required_betas(&self) -> Vec<&'static str> {
        let is_thinking = self.thinking.is_some_and(|thinking| thinking != ThinkingMode::Off);
        let shows_updates = is_thinking && self.thinking_display == Some(ThinkingDisplay::Updates);
        let needed = [
            (self.context_management.is_some(), "context-management-2025-06-27"),
            (self.effort.is_some(), "effort-2025-11-24"),
            (shows_updates, "thinking-display-updates-2026-08-18"),
            (self.task_budget.is_some(), "task-budgets-2026-03-13"),
        ];
        needed.into_iter().filter(|(needed, _)| *needed).map(|(_, beta)| beta).collect()
    }

    /// Sets the fields that change between attempts: model, its parameters, streaming.
    pub(crate) fn set_model_and_stream(&self, wire: &mut api::Request, stream: bool) {
        let max_tokens = if stream { self.max_tokens } else { self.max_tokens.min(MAX_UNSTREAMED_TOKENS) };
        // A thinking budget must leave room for the response itself.
        let budget = |tokens: u64| tokens.min(max_tokens.saturating_sub(1));
        self.model.clone_into(&mut wire.model);
        wire.output_config = self.output_config().into();
        wire.context_management = self.context_management.clone().into();
        (wire.max_tokens, wire.stream) = (Maybe::Value(max_tokens), Maybe::Value(stream));
        wire.thinking = self.thinking.map(|thinking| thinking.to_wire(budget, self.thinking_display.as_ref())).into();
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

    /// The request that counts the tokens of the prompt.
    pub(crate) fn to_count_request(&self) -> api::Request {
        let thinking = self.thinking.map(|thinking| thinking.to_wire(|tokens| tokens, None));
        api::Request { model: self.model.clone(), thinking: thinking.into(), ..self.clone().take_prompt() }
    }

    /// System prompt, tools and messages, with the cache breakpoints set.
    fn take_prompt(&mut self) -> api::Request {
        let mut system = self.system_blocks();
        let (mut tools, mut messages) = (std::mem::take(&mut self.tools), std::mem::take(&mut self.messages));
        if let Some(breakpoint) = self.cache_ttl.cache_control() {
            let end = messages.len().saturating_sub(usize::from(self.has_uncached_tail));
            set_cache_breakpoints(&mut tools, &mut system, &mut messages[..end], &breakpoint);
        }
        api::Request {
            messages,
            system: if system.is_empty() { Maybe::Absent } else { Maybe::Value(Json::from_serialize(&system)) },
            tools: non_empty(tools),
            tool_choice: self.tool_choice.as_ref().map(ToolChoiceMode::to_wire).into(),
            ..api::Request::default()
        }
    }

    /// The system prompt as blocks, without cache breakpoints.
    pub(crate) fn system_blocks(&self) -> Vec<Block> {
        self.system.iter().filter(|s| !s.is_empty()).map(Block::new_text).collect()
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

/// Sets the four breakpoints the API allows: after the tools, after the system prompt,
/// after the last message, and after the user message before it.
///
/// The API looks back only twenty blocks from a breakpoint for a prefix that it has cached.
/// The fourth one is where the last breakpoint of the previous call was, so the cache is
/// found however many blocks came in between.
pub(crate) fn set_cache_breakpoints(
    tools: &mut [Tool],
    system: &mut [Block],
    messages: &mut [Message],
    breakpoint: &Json,
) {
    // Tools that are loaded on demand are not part of the prefix.
    if let Some(tool) = tools.iter_mut().rev().find(|tool| !tool.defer_loading.is_true()) {
        tool.cache_control = Maybe::Value(breakpoint.clone());
    }
    if let Some(last) = system.last_mut() {
        last.set_cache_control(breakpoint.clone());
    }
    let mut backwards = messages.iter_mut().rev();
    if let Some(last) = backwards.next() {
        set_message_breakpoint(last, breakpoint);
    }
    if let Some(before) = backwards.find(|message| message.role == Role::User) {
        set_message_breakpoint(before, breakpoint);
    }
}

/// Sets a breakpoint on the last block of a message that may have one.
fn set_message_breakpoint(message: &mut Message, breakpoint: &Json) {
    let mut blocks = std::mem::take(&mut message.content).into_blocks();
    let _ = blocks.iter_mut().rev().any(|block| block.set_cache_control(breakpoint.clone()));
    message.content = Content::Blocks(blocks);
}

impl CacheTtl {
    pub(crate) fn cache_control(self) -> Option<Json> {
        let ttl = match self {
            Self::Off => return None,
            Self::FiveMinutes => Maybe::Absent,
            Self::OneHour => CacheLifetime::OneHour.into(),
        };
        Some(Json::from_serialize(&CacheControl { kind: "ephemeral".to_owned(), ttl, ..CacheControl::default() }))
    }
}

impl ThinkingMode {
    fn to_wire(self, budget: impl Fn(u64) -> u64, display: Option<&ThinkingDisplay>) -> Json {
        let (kind, budget_tokens) = match self {
            Self::Off => (ThinkingKind::Disabled, Maybe::Absent),
            Self::Adaptive => (ThinkingKind::Adaptive, Maybe::Absent),
            Self::Budget(tokens) => (ThinkingKind::Enabled, Maybe::Value(budget(tokens))),
        };
        // The API rejects a display mode without thinking.
        let display = display.filter(|_| self != Self::Off).cloned().into();
        Json::from_serialize(&ThinkingConfig { kind, budget_tokens, display, ..ThinkingConfig::default() })
    }
}

impl ToolChoiceMode {
    fn to_wire(&self) -> Json {
        let (kind, name) = match self {
            Self::Auto => (ToolChoiceKind::Auto, None),
            Self::Any => (ToolChoiceKind::Any, None),
            Self::Tool(name) => (ToolChoiceKind::Tool, Some(name.clone())),
            Self::None => (ToolChoiceKind::NoTool, None),
        };
        Json::from_serialize(&ToolChoice { kind, name: name.into(), ..ToolChoice::default() })
    }
}

fn non_empty<T>(list: Vec<T>) -> Maybe<Vec<T>> {
    if list.is_empty() { Maybe::Absent } else { Maybe::Value(list) }
}

#[cfg(test)]
mod tests;
