//! Request bodies that are put together from parts.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Role;
use crate::values::CacheLifetime;

/// A request body of `/v1/messages`, to be written. Fields that are `None` are left out.
#[derive(Debug, Default, Serialize)]
pub struct RequestBody {
    /// Id of the requested model.
    pub model: String,
    /// Limit of output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Blocks of the system prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<Box<RawValue>>,
    /// Tool definitions in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Box<RawValue>>,
    /// Messages in order.
    pub messages: Vec<Box<RawValue>>,
    /// `tool_choice` as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Box<RawValue>>,
    /// `thinking` as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Box<RawValue>>,
    /// `output_config` as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_config: Option<Box<RawValue>>,
    /// `context_management` as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_management: Option<Box<RawValue>>,
    /// Breakpoint that the server places at the end of the request by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<Value>,
    /// `fast` for fast mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// Whether the response is streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
}

/// `cache_control` with this lifetime.
pub fn cache_control(lifetime: &CacheLifetime) -> Value {
    match lifetime {
        CacheLifetime::FiveMinutes => serde_json::json!({ "type": "ephemeral" }),
        other => serde_json::json!({ "type": "ephemeral", "ttl": other }),
    }
}

/// A content block, system block or tool definition as JSON, with its breakpoint. `text` is that of
/// a [`PromptPart`](super::PromptPart).
pub fn block_json(text: &str, breakpoint: Option<&CacheLifetime>) -> Result<Box<RawValue>, serde_json::Error> {
    let Some(lifetime) = breakpoint else { return RawValue::from_string(text.to_owned()) };
    let mut block: serde_json::Map<String, Value> = serde_json::from_str(text)?;
    block.insert("cache_control".to_owned(), cache_control(lifetime));
    serde_json::value::to_raw_value(&block)
}

/// A message as JSON. `extra` is that of [`MessageParts`](super::MessageParts).
pub fn message_json(role: &Role, blocks: &[Box<RawValue>], extra: &str) -> Result<Box<RawValue>, serde_json::Error> {
    #[derive(Serialize)]
    struct Message<'a> {
        role: &'a Role,
        content: &'a [Box<RawValue>],
        #[serde(flatten)]
        extra: serde_json::Map<String, Value>,
    }
    let extra = if extra.is_empty() { serde_json::Map::new() } else { serde_json::from_str(extra)? };
    let text = serde_json::to_string(&Message { role, content: blocks, extra })?;
    RawValue::from_string(text)
}
