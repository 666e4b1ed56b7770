//! Borrowed views of API requests, for programs that read many of them.
//!
//! A conversation of 500 calls repeats its first message 500 times. These views split a body
//! into raw parts without reading them, so that a part needs to be read only once.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Role;
use crate::bookkeeping::ApiRequest;
use crate::values::CacheLifetime;

mod compose;

pub use compose::{RequestBody, block_json, cache_control, message_json};

/// A request body of `/v1/messages`, split into raw parts.
#[derive(Debug, Default, Deserialize)]
pub struct RequestView<'a> {
    /// Model id; `None` if absent.
    #[serde(borrow, default)]
    pub model: Option<Cow<'a, str>>,
    /// System prompt: a string or an array of text blocks.
    #[serde(borrow, default)]
    pub system: Option<&'a RawValue>,
    /// Tool definitions in the order of the request.
    #[serde(borrow, default)]
    pub tools: Vec<&'a RawValue>,
    /// Messages in the order of the request.
    #[serde(borrow, default)]
    pub messages: Vec<&'a RawValue>,
    /// `tool_choice` as sent.
    #[serde(borrow, default)]
    pub tool_choice: Option<&'a RawValue>,
    /// `thinking` as sent.
    #[serde(borrow, default)]
    pub thinking: Option<&'a RawValue>,
    /// `output_config` as sent: effort and output format.
    #[serde(borrow, default)]
    pub output_config: Option<&'a RawValue>,
    /// `context_management` as sent: what the server clears from the context.
    #[serde(borrow, default)]
    pub context_management: Option<&'a RawValue>,
    /// `metadata` as sent; its user id may contain the session id.
    #[serde(borrow, default)]
    pub metadata: Option<&'a RawValue>,
    /// Cache breakpoint that the server places at the end of the request by itself.
    #[serde(borrow, default)]
    pub cache_control: Option<&'a RawValue>,
    /// `fast` for fast mode.
    #[serde(borrow, default)]
    pub speed: Option<Cow<'a, str>>,
    /// Limit of output tokens.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Whether the response is streamed.
    #[serde(default)]
    pub stream: Option<bool>,
}

impl<'a> RequestView<'a> {
    /// Splits a request body. Fails if it is not a JSON object or `messages` or `tools` is
    /// not an array.
    pub fn read(body: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(body)
    }

    /// The blocks of the system prompt; a string counts as one text block.
    pub fn system_parts(&self) -> Vec<PromptPart> {
        self.system.map(|system| content_parts(system.get())).unwrap_or_default()
    }

    /// Lifetime of the breakpoint that the server places at the end of the request by itself.
    pub fn automatic_breakpoint(&self) -> Option<CacheLifetime> {
        let mut holder = serde_json::json!({});
        holder["cache_control"] = serde_json::from_str(self.cache_control?.get()).ok()?;
        PromptPart::from_value(holder).breakpoint
    }

    /// Session id from `metadata.user_id`, in either of its two forms: a JSON object as text,
    /// or a text that ends in `_session_<id>`. `None` if there is none.
    pub fn session_id(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Metadata<'a> {
            #[serde(borrow, default)]
            user_id: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        struct UserId {
            session_id: Option<String>,
        }
        let metadata: Metadata<'_> = serde_json::from_str(self.metadata?.get()).ok()?;
        let user_id = metadata.user_id?;
        if let Ok(fields) = serde_json::from_str::<UserId>(&user_id) {
            return fields.session_id.filter(|id| !id.is_empty());
        }
        let (_, id) = user_id.rsplit_once("_session_")?;
        (!id.is_empty()).then(|| id.to_owned())
    }
}

/// First words of the billing line in Claude Code's system prompt.
pub const BILLING_PREFIX: &str = "x-anthropic-billing-header:";

/// A request body without what differs between two runs of the same conversation: `metadata`
/// and the billing line of the system prompt. Fails if it is not JSON.
pub fn without_volatile_parts(body: &str) -> Result<Value, serde_json::Error> {
    let mut request: Value = serde_json::from_str(body)?;
    if let Some(fields) = request.as_object_mut() {
        fields.shift_remove("metadata");
        if let Some(Value::Array(system)) = fields.get_mut("system") {
            let is_billing = |block: &Value| {
                block.get("text").and_then(Value::as_str).is_some_and(|text| text.starts_with(BILLING_PREFIX))
            };
            system.retain(|block| !is_billing(block));
        }
    }
    Ok(request)
}

/// One message of a request, with its content in parts.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageParts {
    /// Role as sent: `user`, `assistant`, or `system` in the middle of a conversation.
    pub role: Role,
    /// Content blocks; a string counts as one text block.
    pub blocks: Vec<PromptPart>,
    /// Fields other than `role` and `content`, as JSON; empty if there are none.
    pub extra: String,
}

impl MessageParts {
    /// Reads one raw message of [`RequestView::messages`].
    pub fn read(message: &str) -> Result<Self, serde_json::Error> {
        let mut fields: serde_json::Map<String, Value> = serde_json::from_str(message)?;
        let role = fields.remove("role").unwrap_or_default();
        let role = serde_json::from_value(role)?;
        let blocks = fields.remove("content").map(content_value_parts).unwrap_or_default();
        let extra = if fields.is_empty() { String::new() } else { Value::Object(fields).to_string() };
        Ok(Self { role, blocks, extra })
    }
}

/// One cacheable position of a prompt: a content block, a system block or a tool definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptPart {
    /// Compact JSON without `cache_control`, in the key order of the request.
    pub text: String,
    /// Type of the block, for example `text` or `tool_use`; `tool` for a tool definition
    /// that runs on the client.
    pub kind: String,
    /// Name of the tool that the block calls or the definition describes.
    pub tool_name: Option<String>,
    /// Id of the tool call that the block makes or answers.
    pub tool_use_id: Option<String>,
    /// Cache lifetime, if a cached prefix ends here.
    pub breakpoint: Option<CacheLifetime>,
    /// Images in the block, also those in a tool result.
    pub images: u32,
    /// Whether the block is a document with citations.
    pub has_citations: bool,
    /// Bytes of encoded images and documents in the text; their size has little to do with
    /// their number of tokens.
    pub encoded_bytes: u64,
}

impl PromptPart {
    /// Reads a tool definition of [`RequestView::tools`].
    pub fn read_tool(tool: &str) -> Result<Self, serde_json::Error> {
        let mut part = Self::from_value(serde_json::from_str(tool)?);
        if part.kind.is_empty() || part.kind == "custom" {
            "tool".clone_into(&mut part.kind);
        }
        Ok(part)
    }

    /// Reads one content block.
    pub fn read_block(block: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(block).map(Self::from_value)
    }

    /// Whether the block is thinking, which does not count when histories are compared.
    pub fn is_thinking(&self) -> bool {
        matches!(self.kind.as_str(), "thinking" | "redacted_thinking")
    }

    /// Text of a `text` block; `None` for other kinds.
    pub fn plain_text(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct TextField {
            text: String,
        }
        if self.kind != "text" {
            return None;
        }
        serde_json::from_str::<TextField>(&self.text).ok().map(|field| field.text)
    }

    /// JSON with sorted keys, which is equal for blocks that differ only in the order of keys.
    pub fn canonical_json(&self) -> Vec<u8> {
        crate::hash::canonical_json(&self.text)
    }

    fn from_value(value: Value) -> Self {
        let mut value = match value {
            Value::String(text) => serde_json::json!({ "type": "text", "text": text }),
            other => other,
        };
        let breakpoint = take_cache_control(&mut value).map(|control| lifetime_of(&control));
        let field = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = field("type").unwrap_or_default();
        let is_result = value.get("tool_use_id").is_some();
        let tool_use_id = field("tool_use_id").or_else(|| kind.ends_with("tool_use").then(|| field("id")).flatten());
        let tool_name = (!is_result).then(|| field("name")).flatten();
        let has_citations = value.pointer("/citations/enabled") == Some(&Value::Bool(true));
        let (images, encoded_bytes) = media_of(&value);
        Self { text: value.to_string(), kind, tool_name, tool_use_id, breakpoint, images, has_citations, encoded_bytes }
    }
}

/// Number of images in a block or in the content of a tool result, and bytes of the encoded
/// images and documents among them.
fn media_of(block: &Value) -> (u32, u64) {
    let text = |pointer: &str| block.pointer(pointer).and_then(Value::as_str);
    let is_encoded = text("/source/type") == Some("base64");
    let encoded = text("/source/data").filter(|_| is_encoded).map_or(0, |data| data.len() as u64);
    let own = u32::from(text("/type") == Some("image"));
    let inner = block.get("content").and_then(Value::as_array).into_iter().flatten().map(media_of);
    inner.fold((own, encoded), |(images, bytes), (more, longer)| (images + more, bytes + longer))
}

/// Lifetime that a `cache_control` gives.
fn lifetime_of(control: &Value) -> CacheLifetime {
    let lifetime = control.get("ttl").cloned().map(serde_json::from_value);
    lifetime.and_then(Result::ok).unwrap_or(CacheLifetime::FiveMinutes)
}

/// Splits `content` or `system`, a string or an array of blocks, into parts. Anything else
/// is one part.
fn content_parts(content: &str) -> Vec<PromptPart> {
    serde_json::from_str(content).map(content_value_parts).unwrap_or_default()
}

fn content_value_parts(content: Value) -> Vec<PromptPart> {
    match content {
        Value::Array(blocks) => blocks.into_iter().map(PromptPart::from_value).collect(),
        other => vec![PromptPart::from_value(other)],
    }
}

/// Removes `cache_control` from a block and from the blocks of a tool result in it. The
/// outer one is returned, or else the last inner one.
fn take_cache_control(block: &mut Value) -> Option<Value> {
    let fields = block.as_object_mut()?;
    let own = fields.shift_remove("cache_control").filter(Value::is_object);
    let inner = fields.get_mut("content").and_then(Value::as_array_mut);
    let inner = inner.into_iter().flatten().filter_map(take_cache_control).last();
    own.or(inner)
}

/// A cache breakpoint of a request, as the request log of session files records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedBreakpoint {
    /// Where the cached prefix ends.
    pub place: BreakpointPlace,
    /// How long the prefix stays cached.
    pub lifetime: CacheLifetime,
}

/// A position of a request at which a cached prefix may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakpointPlace {
    /// A block of the system prompt. The log does not count the billing line.
    System(usize),
    /// A tool definition.
    Tool(usize),
    /// A content block of a message.
    Message {
        /// Position of the message.
        message: usize,
        /// Position of the block in the message.
        block: usize,
    },
}

impl ApiRequest {
    /// Values of the header `anthropic-beta`.
    pub fn betas(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            betas: Vec<String>,
        }
        let params = self.params.get().and_then(|params| params.read::<Params>().ok());
        params.map(|params| params.betas).unwrap_or_default()
    }

    /// Cache breakpoints of the request. Positions that this build does not know are left out.
    pub fn breakpoints(&self) -> Vec<LoggedBreakpoint> {
        #[derive(Deserialize)]
        struct Logged {
            path: Vec<Value>,
            value: Value,
        }
        let list = self.cache_control.get().and_then(|list| list.read::<Vec<Logged>>().ok());
        let read = |Logged { path, value }: Logged| {
            let name = path.first()?.as_str()?;
            let number = |i: usize| path.get(i).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            let place = match name {
                "system" => BreakpointPlace::System(number(1)?),
                "tools" => BreakpointPlace::Tool(number(1)?),
                "messages" => BreakpointPlace::Message { message: number(1)?, block: number(3).unwrap_or_default() },
                _ => return None,
            };
            Some(LoggedBreakpoint { place, lifetime: lifetime_of(&value) })
        };
        list.into_iter().flatten().filter_map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_citations_of_a_block_are_found_also_in_tool_results() {
        let part = |json: &str| PromptPart::read_block(json).unwrap();
        let result = part(
            r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"base64","data":"aGk="}},{"type":"text","text":"x"}]}"#,
        );
        assert_eq!((result.images, result.encoded_bytes, result.has_citations), (1, 4, false));
        let document = part(r#"{"type":"document","source":{"type":"text","data":"ab"},"citations":{"enabled":true}}"#);
        assert_eq!((document.images, document.encoded_bytes, document.has_citations), (0, 0, true));
    }
}
