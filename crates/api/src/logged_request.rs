//! A request as session files log it: what changes seldom, what each call says beside the
//! conversation, and where the cache breakpoints stand.

use quipu_message::Message;
use serde_json::{Map, Value, json};

use crate::request::Request;

/// How many messages at the end may hold cache breakpoints.
const MAX_MARKED_MESSAGES: usize = 6;

/// What a session file keeps of a request beside its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedRequest {
    /// System prompt and tools.
    pub shape: Value,
    /// Model, betas, limits, thinking and the like.
    pub params: Value,
    /// The cache breakpoints, each with its path in the request.
    pub cache_control: Value,
}

impl Request {
    /// What a session file keeps of this request; `settled` is how many messages stand
    /// before those it holds.
    pub fn to_logged(&mut self, settled: usize) -> LoggedRequest {
        // Only the last messages are marked: the others need not be copied.
        let messages: Vec<Message> = std::mem::take(&mut self.messages);
        let from = messages.len().saturating_sub(MAX_MARKED_MESSAGES);
        self.messages = messages[from..].to_vec();
        let mut copy = self.clone();
        self.messages = messages;
        let wire = copy.take_wire_request();
        let Ok(Value::Object(mut fields)) = serde_json::to_value(&wire) else { unreachable!("a request is an object") };
        let mut marks = Vec::new();
        let mut shape = Map::new();
        for name in ["system", "tools"] {
            if let Some(mut parts) = fields.shift_remove(name) {
                extract_breakpoints(&mut parts, &[name.into()], &mut marks);
                shape.insert(name.to_owned(), parts);
            }
        }
        if let Some(Value::Array(messages)) = fields.shift_remove("messages") {
            for (index, mut message) in messages.into_iter().enumerate() {
                let path = ["messages".into(), (settled + from + index).into(), "content".into()];
                extract_breakpoints(&mut message["content"], &path, &mut marks);
            }
        }
        fields.shift_remove("metadata");
        fields.shift_remove("stream");
        let mut params = Map::new();
        params.extend(fields.shift_remove("model").map(|model| ("model".to_owned(), model)));
        let betas = self.betas.iter().map(String::as_str).chain(self.required_betas()).collect::<Vec<_>>();
        params.insert("betas".to_owned(), json!(betas));
        params.extend(fields);
        LoggedRequest { shape: Value::Object(shape), params: Value::Object(params), cache_control: Value::Array(marks) }
    }
}

/// Takes the breakpoints out of a list and notes where each stood.
fn extract_breakpoints(list: &mut Value, path: &[Value], marks: &mut Vec<Value>) {
    for (index, part) in list.as_array_mut().into_iter().flatten().enumerate() {
        if let Some(mark) = part.as_object_mut().and_then(|fields| fields.shift_remove("cache_control")) {
            let path: Vec<Value> = path.iter().cloned().chain([Value::from(index)]).collect();
            marks.push(json!({"path": path, "value": mark}));
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_message::{Block, Role};

    use super::*;

    #[test]
    fn a_logged_request_has_no_messages_and_says_where_the_breakpoints_were() {
        let said = |role, text: &str| Message::new(role, vec![Block::new_text(text)]);
        let mut request = Request {
            model: "claude-opus-5-5".into(),
            system: vec!["Be brief.".into()],
            messages: vec![said(Role::User, "a"), said(Role::Assistant, "b"), said(Role::User, "c")],
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
