//! A request as session files log it: what rarely changes, the parameters of the call, and
//! the places of the cache breakpoints.

use quipu_message::Message;
use serde_json::{Map, Value, json};

use crate::request::Request;

/// Cache breakpoints are in this many messages at the end.
const MAX_BREAKPOINT_MESSAGES: usize = 6;

/// The parts of a request, without its messages, that a session file logs.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedRequest {
    /// System prompt and tools, as a JSON object.
    pub shape: Value,
    /// Model, betas, limits, thinking and other parameters, as a JSON object.
    pub params: Value,
    /// The cache breakpoints, each with its path in the request.
    pub cache_control: Value,
}

impl Request {
    /// The parts of this request that a session file logs. `messages_before` is the number
    /// of messages in its encoded history.
    pub fn to_logged(&mut self, messages_before: usize) -> LoggedRequest {
        // Only the last messages have breakpoints; the others are not copied.
        let messages: Vec<Message> = std::mem::take(&mut self.messages);
        let from = messages.len().saturating_sub(MAX_BREAKPOINT_MESSAGES);
        self.messages = messages[from..].to_vec();
        let mut copy = self.clone();
        self.messages = messages;
        let wire = copy.take_wire_request();
        let Ok(Value::Object(mut fields)) = serde_json::to_value(&wire) else { unreachable!("a request is an object") };
        let mut breakpoints = Vec::new();
        let mut shape = Map::new();
        for name in ["system", "tools"] {
            if let Some(mut parts) = fields.shift_remove(name) {
                extract_breakpoints(&mut parts, &[name.into()], &mut breakpoints);
                shape.insert(name.to_owned(), parts);
            }
        }
        if let Some(Value::Array(messages)) = fields.shift_remove("messages") {
            for (index, mut message) in messages.into_iter().enumerate() {
                let path = ["messages".into(), (messages_before + from + index).into(), "content".into()];
                extract_breakpoints(&mut message["content"], &path, &mut breakpoints);
            }
        }
        fields.shift_remove("metadata");
        fields.shift_remove("stream");
        let mut params = Map::new();
        params.extend(fields.shift_remove("model").map(|model| ("model".to_owned(), model)));
        let betas = self.betas.iter().map(String::as_str).chain(self.required_betas()).collect::<Vec<_>>();
        params.insert("betas".to_owned(), json!(betas));
        params.extend(fields);
        LoggedRequest {
            shape: Value::Object(shape),
            params: Value::Object(params),
            cache_control: Value::Array(breakpoints),
        }
    }
}

/// Removes the breakpoints from a list and adds each, with its path, to `breakpoints`.
fn extract_breakpoints(list: &mut Value, path: &[Value], breakpoints: &mut Vec<Value>) {
    for (index, part) in list.as_array_mut().into_iter().flatten().enumerate() {
        if let Some(breakpoint) = part.as_object_mut().and_then(|fields| fields.shift_remove("cache_control")) {
            let path: Vec<Value> = path.iter().cloned().chain([Value::from(index)]).collect();
            breakpoints.push(json!({"path": path, "value": breakpoint}));
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_message::{Block, Role};

    use super::*;

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
        let logged = request.to_logged(10);
        assert_eq!(request.messages.len(), 3);
        assert_eq!(logged.shape, json!({"system": [{"type": "text", "text": "Be brief."}]}));
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
    }
}
