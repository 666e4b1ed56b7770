//! A request as session files log it: what rarely changes, the parameters of the call, and
//! the places of the cache breakpoints.

use std::sync::Arc;

use quipu_message::api::{self, Tool};
use quipu_message::hash::json_hash;
use quipu_message::{Block, Json};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::request::{CacheTtl, Request, set_cache_breakpoints};

/// Cache breakpoints are in this many messages at the end.
const MAX_BREAKPOINT_MESSAGES: usize = 6;

/// The parts of a request, without its messages, that a session file logs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoggedRequest {
    /// System prompt and tools.
    pub shape: Arc<LoggedShape>,
    /// Model, betas, limits, thinking and other parameters, as a JSON object.
    pub params: Value,
    /// The cache breakpoints, each with its path in the request.
    pub cache_control: Value,
}

/// System prompt and tools of a request, which seldom change between calls.
#[derive(Debug, Default, PartialEq)]
pub struct LoggedShape {
    /// Both as a JSON object, without the cache breakpoints; `null` if they nest too deeply to be read.
    pub json: Json,
    /// Hash of `json`.
    pub hash: String,
    breakpoints: Vec<Value>,
    system: Vec<String>,
    tools: Vec<Tool>,
    cache_ttl: CacheTtl,
}

/// The JSON of a shape.
#[derive(Serialize)]
struct SystemAndTools {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool>,
}

impl LoggedShape {
    fn new(request: &Request) -> Self {
        let Request { system, tools, cache_ttl, .. } = request;
        let mut shape = Self { system: system.clone(), tools: tools.clone(), cache_ttl: *cache_ttl, ..Self::default() };
        let (mut system, mut tools) = (request.system_blocks(), shape.tools.clone());
        if let Some(breakpoint) = cache_ttl.cache_control() {
            set_cache_breakpoints(&mut tools, &mut system, &mut [], &breakpoint);
        }
        for (index, block) in system.iter().enumerate() {
            shape.add_breakpoint("system", index, block.cache_control().cloned());
        }
        for (index, tool) in tools.iter_mut().enumerate() {
            shape.add_breakpoint("tools", index, std::mem::take(&mut tool.cache_control).into_option());
        }
        let json = Json::from_serialize(&SystemAndTools { system: request.system_blocks(), tools });
        // A tool whose schema nests too deeply leaves nothing to log.
        if let Some(hash) = json_hash(&json) {
            (shape.hash, shape.json) = (hash, json);
        }
        shape
    }

    fn add_breakpoint(&mut self, list: &str, index: usize, breakpoint: Option<Json>) {
        if let Some(breakpoint) = breakpoint {
            self.breakpoints.push(json!({"path": [list, index], "value": breakpoint.to_value()}));
        }
    }

    fn is_of(&self, request: &Request) -> bool {
        self.system == request.system && self.tools == request.tools && self.cache_ttl == request.cache_ttl
    }
}

impl Request {
    /// The parts of this request that a session file logs. `messages_before` is the number
    /// of messages in its encoded history; `last_shape` is that of the call before, which is
    /// used again if it is the same.
    pub fn to_logged(&mut self, messages_before: usize, last_shape: Option<&Arc<LoggedShape>>) -> LoggedRequest {
        let last_shape = last_shape.filter(|shape| shape.is_of(self));
        let shape = last_shape.map_or_else(|| Arc::new(LoggedShape::new(self)), Arc::clone);
        if shape.json.is_null() {
            return LoggedRequest::default();
        }
        let mut wire = self.wire_without_shape();
        let messages = std::mem::take(&mut wire.messages);
        let Value::Object(mut fields) = Json::from_serialize(&wire).to_value() else { return LoggedRequest::default() };
        fields.shift_remove("messages");
        let mut breakpoints = shape.breakpoints.clone();
        let first = messages_before + self.messages.len().saturating_sub(MAX_BREAKPOINT_MESSAGES);
        // Tool inputs may nest too deeply for a tree, or contain half a surrogate pair.
        for (index, message) in messages.iter().enumerate() {
            for (block, breakpoint) in message.content.blocks().iter().enumerate() {
                let Some(breakpoint) = breakpoint.cache_control() else { continue };
                let path = json!(["messages", first + index, "content", block]);
                breakpoints.push(json!({"path": path, "value": breakpoint.to_value()}));
            }
        }
        fields.shift_remove("metadata");
        fields.shift_remove("stream");
        let mut params = Map::new();
        params.extend(fields.shift_remove("model").map(|model| ("model".to_owned(), model)));
        let betas = self.betas.iter().map(String::as_str).chain(self.required_betas()).collect::<Vec<_>>();
        params.insert("betas".to_owned(), json!(betas));
        params.extend(fields);
        LoggedRequest { shape, params: Value::Object(params), cache_control: Value::Array(breakpoints) }
    }

    /// The request as it is sent, without system prompt and tools, and only with the last messages:
    /// the others have no breakpoints.
    fn wire_without_shape(&mut self) -> api::Request {
        let (system, tools) = (std::mem::take(&mut self.system), std::mem::take(&mut self.tools));
        let (messages, history) = (std::mem::take(&mut self.messages), std::mem::take(&mut self.history));
        let from = messages.len().saturating_sub(MAX_BREAKPOINT_MESSAGES);
        let wire = Request { messages: messages[from..].to_vec(), ..self.clone() }.take_wire_request();
        (self.system, self.tools, self.messages, self.history) = (system, tools, messages, history);
        wire
    }
}

#[cfg(test)]
mod tests {
    use quipu_message::{Message, Role};

    use super::*;

    #[test]
    fn tool_inputs_that_are_no_tree_can_be_logged() {
        for input in ["[".repeat(300) + &"]".repeat(300), r#"{"a": "\ud800"}"#.to_owned()] {
            let call = format!(r#"{{"type": "tool_use", "id": "t", "name": "x", "input": {input}}}"#);
            let messages = vec![Message::new(Role::Assistant, vec![serde_json::from_str::<Block>(&call).unwrap()])];
            let mut request = Request { messages, ..Request::default() };
            let mark = json!({"type": "ephemeral"});
            assert_eq!(
                request.to_logged(0, None).cache_control,
                json!([{"path": ["messages", 0, "content", 0], "value": mark}])
            );
        }
    }

    #[test]
    fn a_logged_request_has_no_messages_but_the_paths_of_the_breakpoints() {
        let message = |role, text: &str| Message::new(role, vec![Block::new_text(text)]);
        let mut request = Request {
            model: "claude-opus-5-5".into(),
            system: vec!["Be brief.".into()],
            messages: vec![message(Role::User, "a"), message(Role::Assistant, "b"), message(Role::User, "c")],
            max_tokens: 9,
            effort: Some("low".into()),
            ..Request::default()
        };
        let logged = request.to_logged(10, None);
        assert!(request.messages.len() == 3 && request.system == ["Be brief."]);
        assert_eq!(logged.shape.json.to_value(), json!({"system": [{"type": "text", "text": "Be brief."}]}));
        let betas = json!(["effort-2025-11-24"]);
        let params =
            json!({"model": "claude-opus-5-5", "betas": betas, "max_tokens": 9, "output_config": {"effort": "low"}});
        assert_eq!(logged.params, params);
        let mark = json!({"type": "ephemeral"});
        assert_eq!(
            logged.cache_control,
            json!([
                {"path": ["system", 0], "value": mark},
                {"path": ["messages", 10, "content", 0], "value": mark},
                {"path": ["messages", 12, "content", 0], "value": mark},
            ])
        );
        let again = request.to_logged(10, Some(&logged.shape));
        assert!(again == logged && Arc::ptr_eq(&again.shape, &logged.shape));
        request.system.push("Be kind.".into());
        let changed = request.to_logged(10, Some(&logged.shape));
        assert_eq!(changed, request.to_logged(10, None));
        assert_eq!(changed.shape.json.to_value()["system"][1]["text"], "Be kind.");
    }
}
