//! What the results of tools that run on the API's server say.

use serde_json::Value;

use crate::{Content, Json};

/// Whether a server's result reports a failure: an error object, or a command that
/// did not end with status 0.
pub(super) fn is_failure(content: &Json) -> bool {
    let value = content.to_value();
    let is_error = value["type"].as_str().is_some_and(|kind| kind.ends_with("_error"));
    is_error || value["return_code"].as_i64().is_some_and(|code| code != 0)
}

/// A server's result as text or blocks; as it is where it has no such form.
pub(super) fn to_content(content: &Json) -> Content {
    text_or_blocks(content).unwrap_or_else(|| Content::Other(content.clone()))
}

fn text_or_blocks(content: &Json) -> Option<Content> {
    let value = content.to_value();
    match &value {
        Value::String(text) => Some(text.as_str().into()),
        Value::Array(items) => {
            let is_block = |item: &Value| matches!(item["type"].as_str(), Some("text" | "image" | "document"));
            if !items.is_empty() && items.iter().all(is_block) {
                return content.read().ok();
            }
            let found = |item: &Value| Some(format!("{} {}", item["title"].as_str()?, item["url"].as_str()?));
            let found: Option<Vec<String>> = items.iter().map(found).collect();
            Some(found?.join("\n").into())
        }
        Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            if let Some(code) = text("error_code") {
                let message = text("error_message").map(|message| format!(": {message}")).unwrap_or_default();
                return Some(format!("{code}{message}").into());
            }
            let lines = fields.get("lines").and_then(Value::as_array);
            let lines = lines.map(|lines| lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"));
            let parts = [text("stdout"), text("stderr"), text("content"), lines.as_deref()];
            let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
            (!text.is_empty()).then(|| text.into())
        }
        _ => None,
    }
}
