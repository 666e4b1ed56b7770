//! Blocks: what message content is made of.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::macros::{open_enum, wire};
use crate::text::Str;
use crate::{Extra, Json, Maybe, ToolUseId};

mod server_result;
#[cfg(test)]
mod tests;

/// A tool call, run by the agent or by the server.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// Joins the call to its result.
    pub id: &'a ToolUseId,
    /// Name of the tool.
    pub name: &'a str,
    /// Name of the MCP server, when the API's server called one.
    pub server: Option<&'a str>,
    /// Arguments; `None` if the block has none.
    pub input: Option<&'a Json>,
}

/// The result of a tool call, run by the agent or by the server.
#[derive(Debug, Clone)]
pub struct ToolCallResult<'a> {
    /// Whether the tool failed, as the block or the server's own error says.
    pub is_error: bool,
    /// What the model is given; of a server's result its text, or the result as it came.
    /// None where the block has no content.
    pub content: Option<Content>,
    /// A server's result as it came; `None` for `tool_result`.
    pub raw: Option<&'a Json>,
}

open_enum! {
    /// One block of message content.
    ///
    /// ```
    /// use quipu_message::Block;
    /// let known: Block = serde_json::from_str(r#"{"type":"text","text":"hi","new":1}"#)?;
    /// assert_eq!(known.text(), Some("hi"));
    /// let unknown: Block = serde_json::from_str(r#"{"type":"hologram","beam":7}"#)?;
    /// assert_eq!(unknown.tag(), "hologram");
    /// assert_eq!(serde_json::to_string(&unknown)?, r#"{"type":"hologram","beam":7}"#);
    /// assert!(serde_json::from_str::<Block>(r#"{"type":"text","text":7}"#).is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub enum Block by "type" {
        /// Prose.
        "text" => Text(Text),
        /// The model's reasoning.
        "thinking" => Thinking(Thinking),
        /// Reasoning the server keeps to itself.
        "redacted_thinking" => RedactedThinking(RedactedThinking),
        /// A call of one of our tools.
        "tool_use" => ToolUse(ToolUse),
        /// The answer to a call.
        "tool_result" => ToolResult(ToolResult),
        /// A picture.
        "image" => Image(Image),
        /// A document, such as a PDF.
        "document" => Document(Document),
        /// A call of a tool that runs on the server.
        "server_tool_use" => ServerToolUse(ServerToolUse),
        /// What the server's web search found.
        "web_search_tool_result" => WebSearchResult(WebSearchResult),
        /// What the server's web fetch found.
        "web_fetch_tool_result" => WebFetchResult(WebFetchResult),
        /// What the server's code run gave.
        "code_execution_tool_result" => CodeExecutionResult(CodeResult),
        /// What the server's shell gave.
        "bash_code_execution_tool_result" => BashCodeExecutionResult(ShellResult),
        /// What the server's editor gave.
        "text_editor_code_execution_tool_result" => TextEditorCodeExecutionResult(EditorResult),
        /// What the server's search over tools found.
        "tool_search_tool_result" => ToolSearchResult(ToolSearchResult),
        /// A call that the server makes to an MCP server.
        "mcp_tool_use" => McpToolUse(McpToolUse),
        /// The answer of that MCP server.
        "mcp_tool_result" => McpToolResult(McpToolResult),
        /// A tool named by a search over tools.
        "tool_reference" => ToolReference(ToolReference),
        /// A file the server keeps.
        "container_upload" => ContainerUpload(ContainerUpload),
        /// A search result handed to the model for citation.
        "search_result" => SearchResult(SearchResult),
    }
}

impl Block {
    /// A text block.
    pub fn new_text(text: impl Into<String>) -> Self {
        Self::Text(Box::new(Text { text: text.into(), ..Text::default() }))
    }

    /// The answer to a tool call, as a block.
    pub fn new_tool_result(id: ToolUseId, content: ToolResultContent, is_error: bool) -> Self {
        Self::ToolResult(Box::new(ToolResult {
            tool_use_id: id,
            content: Maybe::Value(content),
            is_error: if is_error { Maybe::Value(true) } else { Maybe::Absent },
            ..ToolResult::default()
        }))
    }

    /// The words of a text block.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The tool call, when the block is one.
    pub fn tool_use(&self) -> Option<&ToolUse> {
        match self {
            Self::ToolUse(block) => Some(block),
            _ => None,
        }
    }

    /// The tool result, when the block is one.
    pub fn tool_result(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolResult(block) => Some(block),
            _ => None,
        }
    }

    /// The tool call that the block makes, whether it is run by the agent
    /// (`tool_use`), the API's server (`server_tool_use`) or an MCP server it asks
    /// (`mcp_tool_use`).
    pub fn tool_call(&self) -> Option<ToolCall<'_>> {
        Some(match self {
            Self::ToolUse(call) => ToolCall { id: &call.id, name: &call.name, server: None, input: Some(&call.input) },
            Self::ServerToolUse(call) => {
                ToolCall { id: &call.id, name: &call.name, server: None, input: call.input.get() }
            }
            Self::McpToolUse(call) => {
                ToolCall { id: &call.id, name: &call.name, server: call.server_name.text(), input: call.input.get() }
            }
            _ => return None,
        })
    }

    /// The result that the block gives a tool call, run by the agent or by the server.
    pub fn tool_call_result(&self) -> Option<ToolCallResult<'_>> {
        macro_rules! server_result {
            ($result:expr) => {
                ToolCallResult {
                    is_error: $result.is_error.is_true()
                        || $result.content.get().is_some_and(server_result::is_failure),
                    content: $result.content.get().map(server_result::to_content),
                    raw: $result.content.get(),
                }
            };
        }
        Some(match self {
            Self::ToolResult(result) => ToolCallResult {
                is_error: result.is_error.is_true(),
                content: result.content.get().cloned(),
                raw: None,
            },
            Self::WebSearchResult(result) => server_result!(result),
            Self::WebFetchResult(result) => server_result!(result),
            Self::CodeExecutionResult(result) => server_result!(result),
            Self::BashCodeExecutionResult(result) => server_result!(result),
            Self::TextEditorCodeExecutionResult(result) => server_result!(result),
            Self::ToolSearchResult(result) => server_result!(result),
            Self::McpToolResult(result) => server_result!(result),
            _ => return None,
        })
    }

    /// The call that the block's result belongs to; cheaper than [`Self::tool_call_result`].
    pub fn result_tool_use_id(&self) -> Option<&ToolUseId> {
        Some(match self {
            Self::ToolResult(result) => &result.tool_use_id,
            Self::WebSearchResult(result) => &result.tool_use_id,
            Self::WebFetchResult(result) => &result.tool_use_id,
            Self::CodeExecutionResult(result) => &result.tool_use_id,
            Self::BashCodeExecutionResult(result) => &result.tool_use_id,
            Self::TextEditorCodeExecutionResult(result) => &result.tool_use_id,
            Self::ToolSearchResult(result) => &result.tool_use_id,
            Self::McpToolResult(result) => &result.tool_use_id,
            _ => return None,
        })
    }

    /// Marks this block as the end of a cached prefix; false when such a block
    /// cannot be one.
    pub fn set_cache_control(&mut self, mark: Json) -> bool {
        let slot = match self {
            Self::Text(block) if !block.text.is_empty() => &mut block.cache_control,
            Self::ToolUse(block) => &mut block.cache_control,
            Self::ToolResult(block) => &mut block.cache_control,
            Self::Image(block) => &mut block.cache_control,
            Self::Document(block) => &mut block.cache_control,
            _ => return false,
        };
        *slot = Maybe::Value(mark);
        true
    }

    /// Counts this block and those inside it that this build has no model for.
    pub fn count_unknown_blocks(&self) -> usize {
        match self {
            Self::Unknown(_) => 1,
            Self::ToolResult(result) => result.blocks().iter().map(Self::count_unknown_blocks).sum(),
            _ => 0,
        }
    }
}

wire! {
    /// Prose.
    pub struct Text ["type" = "text"] {
        /// The words.
        text: req String,
        /// Where the words come from.
        citations: opt Json,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

wire! {
    /// The model's reasoning.
    pub struct Thinking ["type" = "thinking"] {
        /// The reasoning; empty when only the signature is kept.
        thinking: req String,
        /// Proves to the server that the reasoning is its own.
        signature: opt String,
    }
}

wire! {
    /// Reasoning the server keeps to itself.
    pub struct RedactedThinking ["type" = "redacted_thinking"] {
        /// The encrypted reasoning.
        data: opt String,
    }
}

wire! {
    /// A call of one of our tools.
    pub struct ToolUse ["type" = "tool_use"] {
        /// Joins the call to its result.
        id: req ToolUseId,
        /// The tool.
        name: req String,
        /// What the tool is called with.
        input: req Json,
        /// Who made the call, the model or a program it wrote.
        caller: opt Json,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

wire! {
    /// The answer to a tool call.
    pub struct ToolResult ["type" = "tool_result"] {
        /// Id of the tool call.
        tool_use_id: req ToolUseId,
        /// What the model is given.
        content: opt ToolResultContent,
        /// Whether the tool failed.
        is_error: opt bool,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

impl ToolResult {
    /// The blocks of the tool result; empty if its content is not a list.
    pub fn blocks(&self) -> &[Block] {
        match self.content.get() {
            Some(Content::Blocks(blocks)) => blocks,
            _ => &[],
        }
    }

    /// The words of the answer, blocks joined by line breaks.
    pub fn text(&self) -> String {
        self.content.get().map(Content::to_text).unwrap_or_default()
    }
}

wire! {
    /// A picture.
    pub struct Image ["type" = "image"] {
        /// Where its bytes are.
        source: req MediaSource,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

wire! {
    /// A document, such as a PDF.
    pub struct Document ["type" = "document"] {
        /// Where its bytes are.
        source: req MediaSource,
        /// Its title.
        title: opt String,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

wire! {
    /// Where the bytes of a picture or document are.
    pub struct MediaSource {
        /// `base64`, `url`, `text`, `file` …
        kind: req String = "type",
        /// What kind of bytes.
        media_type: opt String,
        /// The bytes, or the text.
        data: opt String,
        /// The address.
        url: opt String,
    }
}

wire! {
    /// A call of a tool that runs on the server.
    pub struct ServerToolUse ["type" = "server_tool_use"] {
        /// Joins the call to its result.
        id: req ToolUseId,
        /// The tool.
        name: req String,
        /// What the tool is called with.
        input: opt Json,
    }
}

wire! {
    /// A call that the server makes to an MCP server.
    pub struct McpToolUse ["type" = "mcp_tool_use"] {
        /// Joins the call to its result.
        id: req ToolUseId,
        /// The tool.
        name: req String,
        /// Name of the MCP server.
        server_name: opt String,
        /// What the tool is called with.
        input: opt Json,
    }
}

/// The results of server tools differ in nothing but their tag.
macro_rules! server_results {
    ($( $(#[$meta:meta])* $name:ident = $tag:literal ),+ $(,)?) => { $(
        wire! {
            $(#[$meta])*
            pub struct $name ["type" = $tag] {
                /// Id of the tool call.
                tool_use_id: req ToolUseId,
                /// What was found, or why not.
                content: opt Json,
                /// Whether the tool failed.
                is_error: opt bool,
            }
        }
    )+ };
}

server_results! {
    /// What the server's web search found.
    WebSearchResult = "web_search_tool_result",
    /// What the server's web fetch found.
    WebFetchResult = "web_fetch_tool_result",
    /// What the server's code run gave.
    CodeResult = "code_execution_tool_result",
    /// What the server's shell gave.
    ShellResult = "bash_code_execution_tool_result",
    /// What the server's editor gave.
    EditorResult = "text_editor_code_execution_tool_result",
    /// What the server's search over tools found.
    ToolSearchResult = "tool_search_tool_result",
    /// The answer of an MCP server the server asked.
    McpToolResult = "mcp_tool_result",
}

wire! {
    /// A tool named by a search over tools.
    pub struct ToolReference ["type" = "tool_reference"] {
        /// Name of the tool.
        tool_name: req String,
    }
}

wire! {
    /// A file the server keeps.
    pub struct ContainerUpload ["type" = "container_upload"] {
        /// The file.
        file_id: req String,
    }
}

wire! {
    /// A search result handed to the model for citation.
    pub struct SearchResult ["type" = "search_result"] {
        /// Where it is from.
        source: opt String,
        /// Its title.
        title: opt String,
        /// Text of the result.
        content: opt Json,
    }
}

/// Message content: a string or a list of blocks, remembered which. Some programs put
/// any other JSON value there, mostly into tool results; it is kept as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks.
    Blocks(Vec<Block>),
    /// An object, a number or a boolean.
    Other(Json),
}

/// The content of a tool result has the same two forms.
pub type ToolResultContent = Content;

impl Content {
    /// The content as blocks; a string is one text block, and so is the JSON text of
    /// any other value.
    pub fn into_blocks(self) -> Vec<Block> {
        match self {
            Self::Text(text) => vec![Block::new_text(text)],
            Self::Blocks(blocks) => blocks,
            Self::Other(json) => vec![Block::new_text(json.text())],
        }
    }

    /// The blocks; empty if the content is not a list.
    pub fn blocks(&self) -> &[Block] {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Text(_) | Self::Other(_) => &[],
        }
    }

    /// All prose, blocks joined by line breaks; JSON text of any other value.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks.iter().filter_map(Block::text).collect::<Vec<_>>().join("\n"),
            Self::Other(json) => json.text().to_owned(),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
            Self::Other(_) => false,
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Block>> for Content {
    fn from(blocks: Vec<Block>) -> Self {
        Self::Blocks(blocks)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of blocks")
            }
            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
                // The values keep their bytes, so that numbers come back as they went in.
                let mut fields = Extra::default();
                while let Some(key) = map.next_key::<Str<'de>>()? {
                    fields.push(&key, map.next_value()?);
                }
                Ok(Content::Other(Json::from_serialize(&ExtraAsObject(fields))))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
                Ok(Content::Other(Json::from_serialize(&value)))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
                Ok(Content::Other(Json::from_serialize(&value)))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
                Ok(Content::Other(Json::from_serialize(&value)))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
                Ok(Content::Other(Json::from_serialize(&value)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }
        }
        d.deserialize_any(ContentVisitor)
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(s),
            Self::Blocks(blocks) => blocks.serialize(s),
            Self::Other(json) => json.serialize(s),
        }
    }
}

/// The fields of an object, in order.
struct ExtraAsObject(Extra);

impl Serialize for ExtraAsObject {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        self.0.write_fields(&mut map)?;
        map.end()
    }
}
