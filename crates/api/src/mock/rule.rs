//! A rule: its condition and its action.

use std::collections::BTreeMap;
use std::fmt;

use quipu_message::Json;
use quipu_message::values::ApiErrorType;
use regex::Regex;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

use super::incoming::{IncomingRequest, RequestKind};
use super::reply_block::ReplyBlocks;

/// One rule of a script.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// Name in the log.
    pub(crate) name: Option<String>,
    pub(crate) condition: Condition,
    /// How often it may still be used; `None` if there is no limit.
    pub(crate) remaining_uses: Option<u64>,
    pub(crate) delay_ms: u64,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) action: Action,
}

/// The action of a rule.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Reply(Box<Reply>),
    Error(ErrorReply),
    CountTokens(u64),
}

/// A reply with a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) blocks: ReplyBlocks,
    pub(crate) stop_reason: Option<String>,
    pub(crate) usage: Option<quipu_message::Usage>,
    pub(crate) chunk_delay_ms: u64,
    /// Characters in each delta.
    pub(crate) chunk_chars: Option<usize>,
    pub(crate) end: ReplyEnd,
}

/// How a streamed reply ends.
#[derive(Debug, Clone, Default)]
pub(crate) enum ReplyEnd {
    #[default]
    Complete,
    Cut {
        after: usize,
    },
    Hang {
        after: usize,
    },
    Error(StreamFailure),
}

/// An error event after some events.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamFailure {
    #[serde(default)]
    pub(crate) after: usize,
    #[serde(rename = "type", default = "overloaded")]
    pub(crate) kind: ApiErrorType,
    #[serde(default = "overloaded_words")]
    pub(crate) message: String,
}

/// A reply with an error status.
#[derive(Debug, Clone)]
pub(crate) struct ErrorReply {
    pub(crate) status: u16,
    pub(crate) kind: Option<ApiErrorType>,
    pub(crate) message: Option<String>,
    /// Body that is sent instead of the API's error object.
    pub(crate) body: Option<String>,
}

/// Conditions on a request; all that are set must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Condition {
    model: Option<String>,
    says: Option<String>,
    #[serde(deserialize_with = "regex")]
    matches: Option<Regex>,
    result_of: Option<String>,
    result_says: Option<String>,
    system_says: Option<String>,
    tools: Option<bool>,
    tool: Option<String>,
    turn: Option<usize>,
    step: Option<usize>,
    call: Option<usize>,
    stream: Option<bool>,
    subagent: Option<bool>,
}

impl Rule {
    /// Whether the rule matches this request, the `call`th since the server started.
    pub(crate) fn matches(&self, incoming: &IncomingRequest, call: usize) -> bool {
        let kind = match self.action {
            Action::CountTokens(_) => incoming.kind == RequestKind::CountTokens,
            Action::Reply(_) | Action::Error(_) => incoming.kind == RequestKind::Message,
        };
        kind && self.remaining_uses != Some(0) && self.condition.is_met(incoming, call)
    }
}

impl Condition {
    fn is_met(&self, incoming: &IncomingRequest, call: usize) -> bool {
        let IncomingRequest { request, tool_results: results, .. } = incoming;
        let contains = |part: &Option<String>, text: &str| part.as_ref().is_none_or(|part| text.contains(part));
        let is = |wanted: &Option<usize>, found: usize| wanted.is_none_or(|wanted| wanted == found);
        let is_so = |wanted: &Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        let result = |name: &String| results.iter().any(|(tool, _, _)| tool == name || name == "*");
        let words = |part: &String| results.iter().any(|(_, _, text)| text.contains(part));
        let offered =
            |name: &String| request.tools.get().is_some_and(|tools| tools.iter().any(|t| t.name == name.as_str()));
        contains(&self.model, &request.model)
            && contains(&self.says, &incoming.user_text)
            && self.matches.as_ref().is_none_or(|regex| regex.is_match(&incoming.user_text))
            && contains(&self.system_says, &incoming.system)
            && self.result_of.as_ref().is_none_or(result)
            && self.result_says.as_ref().is_none_or(words)
            && self.tool.as_ref().is_none_or(offered)
            && is_so(&self.tools, incoming.has_tools())
            && is_so(&self.stream, incoming.wants_stream())
            && is_so(&self.subagent, incoming.is_subagent)
            && is(&self.turn, incoming.turn)
            && is(&self.step, incoming.step)
            && is(&self.call, call)
    }
}

/// A rule as written in a script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedRule {
    name: Option<String>,
    #[serde(default)]
    when: Condition,
    times: Option<u64>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
    reply: Option<ReplyBlocks>,
    stop: Option<String>,
    usage: Option<Value>,
    pause_ms: Option<u64>,
    chunk: Option<usize>,
    cut_after: Option<usize>,
    hang_after: Option<usize>,
    fail: Option<StreamFailure>,
    error: Option<ErrorReply>,
    count: Option<u64>,
}

impl<'de> Deserialize<'de> for ErrorReply {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            status: u16,
            #[serde(rename = "type")]
            kind: Option<ApiErrorType>,
            message: Option<String>,
            body: Option<String>,
        }
        struct StatusOrMore;
        impl<'de> Visitor<'de> for StatusOrMore {
            type Value = ErrorReply;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status such as 529, or {status: 529, type: …, message: …, body: …}")
            }
            fn visit_u64<E: Error>(self, status: u64) -> Result<ErrorReply, E> {
                let status = u16::try_from(status).unwrap_or(u16::MAX);
                ErrorReply { status, kind: None, message: None, body: None }.validated()
            }
            fn visit_i64<E: Error>(self, status: i64) -> Result<ErrorReply, E> {
                self.visit_u64(u64::try_from(status).unwrap_or_default())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ErrorReply, A::Error> {
                let Written { status, kind, message, body } = Written::deserialize(MapAccessDeserializer::new(map))?;
                ErrorReply { status, kind, message, body }.validated()
            }
        }
        d.deserialize_any(StatusOrMore)
    }
}

impl ErrorReply {
    fn validated<E: Error>(self) -> Result<Self, E> {
        let Self { status, .. } = self;
        let wrong = || E::custom(format_args!("an error has a status from 400 to 599, not {status}"));
        if (400..=599).contains(&status) { Ok(self) } else { Err(wrong()) }
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        ScriptedRule::deserialize(d)?.into_rule().map_err(Error::custom)
    }
}

impl ScriptedRule {
    fn into_rule(self) -> Result<Rule, String> {
        if [self.reply.is_some(), self.error.is_some(), self.count.is_some()].iter().filter(|is| **is).count() != 1 {
            return Err("a rule has exactly one of reply, error and count".into());
        }
        let shapes_reply = self.stop.is_some()
            || self.usage.is_some()
            || self.pause_ms.is_some()
            || self.chunk.is_some()
            || self.cut_after.is_some()
            || self.hang_after.is_some()
            || self.fail.is_some();
        if self.reply.is_none() && shapes_reply {
            return Err("stop, usage, pause_ms, chunk, cut_after, hang_after and fail belong to a reply".into());
        }
        if self.chunk == Some(0) || self.times == Some(0) {
            return Err("chunk and times must be at least 1".into());
        }
        let ends = match (self.cut_after, self.hang_after, self.fail) {
            (None, None, None) => ReplyEnd::Complete,
            (Some(after), None, None) => ReplyEnd::Cut { after },
            (None, Some(after), None) => ReplyEnd::Hang { after },
            (None, None, Some(failure)) => ReplyEnd::Error(failure),
            _ => return Err("a reply ends in one way: cut_after, hang_after or fail".into()),
        };
        let does = match (self.reply, self.error, self.count) {
            (Some(pieces), _, _) => Action::Reply(Box::new(Reply {
                blocks: pieces,
                stop_reason: self.stop,
                usage: self
                    .usage
                    .map(|usage| Json::from_serialize(&usage).read().map_err(|e| format!("usage: {e}")))
                    .transpose()?,
                chunk_delay_ms: self.pause_ms.unwrap_or_default(),
                chunk_chars: self.chunk,
                end: ends,
            })),
            (_, Some(refusal), _) => Action::Error(refusal),
            (_, _, count) => Action::CountTokens(count.unwrap_or_default()),
        };
        let headers =
            self.headers.into_iter().map(|(name, value)| parse_header(name, value)).collect::<Result<_, _>>()?;
        Ok(Rule {
            name: self.name,
            condition: self.when,
            remaining_uses: self.times,
            delay_ms: self.delay_ms,
            headers,
            action: does,
        })
    }
}

fn parse_header(name: String, value: Value) -> Result<(String, String), String> {
    let text = match value {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return Err(format!("the header {name} must be a text or a number")),
    };
    let fits =
        axum::http::HeaderName::from_bytes(name.as_bytes()).is_ok() && axum::http::HeaderValue::from_str(&text).is_ok();
    if fits { Ok((name, text)) } else { Err(format!("{name:?} cannot be sent as a header")) }
}

fn regex<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Regex>, D::Error> {
    let text = Option::<String>::deserialize(d)?;
    // The last line of the error is the message; the lines before it show the place.
    let wrong = |e: regex::Error| format!("matches: {}", e.to_string().lines().last().unwrap_or_default());
    text.map(|text| Regex::new(&text).map_err(|e| D::Error::custom(wrong(e)))).transpose()
}

fn overloaded() -> ApiErrorType {
    ApiErrorType::Overloaded
}

fn overloaded_words() -> String {
    "Overloaded".to_owned()
}
