//! Where two requests differ, apart from what differs in every run.

use quipu_message::request_view::{RequestView, without_volatile_parts};
use serde_json::Value;

/// Headers that change what the API does. All others differ between runs or programs.
const COMPARED_HEADERS: [&str; 2] = ["anthropic-version", "anthropic-beta"];

const SESSION_HEADER: &str = "x-claude-code-session-id";

/// How much of a value a report shows.
const MAX_SHOWN_CHARS: usize = 200;

/// The first difference between a recorded request and a received one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestDifference {
    /// Name of the recorded call.
    pub call: String,
    /// Place of the difference, for example `messages[2].content[0].text`.
    pub at: String,
    /// What was recorded there, shortened; empty if nothing was.
    pub recorded: String,
    /// What was received there, shortened; empty if nothing was.
    pub received: String,
}

/// What is compared of a request.
#[derive(Debug, Clone)]
pub(crate) struct ComparableRequest {
    path: String,
    headers: Vec<String>,
    body: Value,
}

impl ComparableRequest {
    pub(crate) fn new<'a>(path: &str, headers: impl Iterator<Item = (&'a str, &'a str)> + Clone, body: &str) -> Self {
        let header = |name: &str| {
            let mut headers = headers.clone();
            headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        // The id of the session is in paths of temporary folders and other texts.
        let session_id = header(SESSION_HEADER).or_else(|| RequestView::read(body).ok()?.session_id());
        let text = match &session_id {
            Some(id) => body.replace(id.as_str(), "SESSION"),
            None => body.to_owned(),
        };
        let body = without_volatile_parts(&text).unwrap_or(Value::String(text));
        let headers = COMPARED_HEADERS.iter().map(|name| header(name).unwrap_or_default()).collect();
        Self { path: path.to_owned(), headers, body }
    }

    /// The first difference to a received request, without the name of the call.
    pub(crate) fn difference(&self, received: &Self) -> Option<RequestDifference> {
        if self.path != received.path {
            return Some(difference("path".to_owned(), &self.path, &received.path));
        }
        for (name, (ours, theirs)) in COMPARED_HEADERS.iter().zip(self.headers.iter().zip(&received.headers)) {
            if ours != theirs {
                return Some(difference(format!("header {name}"), ours, theirs));
            }
        }
        first_difference(&self.body, &received.body, String::new())
    }
}

fn first_difference(recorded: &Value, received: &Value, at: String) -> Option<RequestDifference> {
    let missing = Value::Null;
    match (recorded, received) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let keys = ours.keys().chain(theirs.keys().filter(|key| !ours.contains_key(*key)));
            for key in keys {
                let place = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                match (ours.get(key), theirs.get(key)) {
                    (Some(a), Some(b)) => match first_difference(a, b, place) {
                        None => {}
                        found => return found,
                    },
                    (a, b) => return Some(difference(place, &shown(a), &shown(b))),
                }
            }
            None
        }
        (Value::Array(ours), Value::Array(theirs)) => (0..ours.len().max(theirs.len())).find_map(|index| {
            let place = format!("{at}[{index}]");
            match (ours.get(index), theirs.get(index)) {
                (Some(a), Some(b)) => first_difference(a, b, place),
                (a, b) => Some(difference(place, &shown(a), &shown(b))),
            }
        }),
        (Value::String(ours), Value::String(theirs)) if ours != theirs => {
            // Long texts mostly begin the same.
            let same = ours.chars().zip(theirs.chars()).take_while(|(a, b)| a == b).count();
            let from = same.saturating_sub(30);
            let rest = |text: &str| text.chars().skip(from).collect::<String>();
            Some(difference(at, &rest(ours), &rest(theirs)))
        }
        (ours, theirs) if ours == theirs => None,
        (ours, theirs) => {
            let value = |value: &Value| shown(Some(value).filter(|value| **value != missing));
            Some(difference(at, &value(ours), &value(theirs)))
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn difference(at: String, recorded: &str, received: &str) -> RequestDifference {
    let short = |text: &str| {
        let mut short: String = text.chars().take(MAX_SHOWN_CHARS).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        short
    };
    RequestDifference { call: String::new(), at, recorded: short(recorded), received: short(received) }
}

#[cfg(test)]
mod tests {
    use super::ComparableRequest;

    fn request(session: &str, body: &str) -> ComparableRequest {
        let headers = [("X-Claude-Code-Session-Id", session), ("x-stainless-retry-count", session)];
        ComparableRequest::new("/v1/messages", headers.into_iter(), body)
    }

    fn check(recorded: &str, received: &str, expected: Option<(&str, &str, &str)>) {
        let found = request("5e55-1", recorded).difference(&request("5e55-2", received));
        let found = found.as_ref().map(|found| (found.at.as_str(), found.recorded.as_str(), found.received.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_differs_in_every_run_is_no_difference() {
        check(
            r#"{"a":"/tmp/5e55-1/x","metadata":{"user_id":"u1"},"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1"}]}"#,
            r#"{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=2"}],"metadata":{"user_id":"u2"},"a":"/tmp/5e55-2/x"}"#,
            None,
        );
    }

    #[test]
    fn the_first_difference_has_its_place() {
        check(
            r#"{"messages":[{"content":"hi"}]}"#,
            r#"{"messages":[{"content":"ho"}]}"#,
            Some(("messages[0].content", "hi", "ho")),
        );
        check(r#"{"messages":[1,2]}"#, r#"{"messages":[1]}"#, Some(("messages[1]", "2", "")));
        check(r#"{"a":1}"#, r#"{"a":1,"b":{"c":2}}"#, Some(("b", "", r#"{"c":2}"#)));
        check(r#"{"a":true}"#, r#"{"a":null}"#, Some(("a", "true", "")));
    }
}
