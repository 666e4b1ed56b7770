//! Blocks of message content.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::macros::{open_enum, wire};
use crate::text::Str;
use crate::values::MediaSourceKind;
use crate::{Extra, Json, Maybe, ToolName, ToolUseId};

mod server_result;
#[cfg(test)]
mod tests;

/// A tool call, executed by the agent or by the API server.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// Id of the call; its result refers to it.
    pub id: &'a ToolUseId,
    /// Name of the tool.
    pub name: &'a str,
    /// Name of the MCP server, if the API server calls one.
    pub server: Option<&'a str>,
    /// Arguments; `None` if the block has none.
    pub input: Option<&'a Json>,
}

impl ToolCall<'_> {
    /// Name of the tool as agents offer it: a tool of an MCP server is `mcp__server__tool`, also
    /// if the API server called it.
    pub fn tool_name(&self) -> ToolName {
        match self.server {
            Some(server) => ToolName::for_mcp(server, self.name),
            None => self.name.into(),
        }
    }
}

/// The result of a tool call, executed by the agent or by the API server.
#[derive(Debug, Clone)]
pub struct ToolCallResult<'a> {
    /// Whether the tool failed, according to `is_error` or to the error object of a server tool.
    pub is_error: bool,
    /// Content for the model; for a server tool the text of its result, or else its JSON. `None` if the block
    /// has no content.
    pub content: Option<Content>,
    /// The result of a server tool as JSON; `None` for `tool_result`.
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
        /// Text.
        "text" => Text(Text),
        /// The model's thinking.
        "thinking" => Thinking(Thinking),
        /// Thinking that only the API can decrypt.
        "redacted_thinking" => RedactedThinking(RedactedThinking),
        /// A call of a tool that the agent executes.
        "tool_use" => ToolUse(ToolUse),
        /// The result of a tool call.
        "tool_result" => ToolResult(ToolResult),
        /// An image.
        "image" => Image(Image),
        /// A document, such as a PDF.
        "document" => Document(Document),
        /// A call of a tool that the API server executes.
        "server_tool_use" => ServerToolUse(ServerToolUse),
        /// The result of the server's web search.
        "web_search_tool_result" => WebSearchResult(WebSearchResult),
        /// The result of the server's web fetch.
        "web_fetch_tool_result" => WebFetchResult(WebFetchResult),
        /// The result of the server's code execution.
        "code_execution_tool_result" => CodeExecutionResult(CodeResult),
        /// The result of the server's shell.
        "bash_code_execution_tool_result" => BashCodeExecutionResult(ShellResult),
        /// The result of the server's text editor.
        "text_editor_code_execution_tool_result" => TextEditorCodeExecutionResult(EditorResult),
        /// The result of the server's tool search.
        "tool_search_tool_result" => ToolSearchResult(ToolSearchResult),
        /// A call that the API server makes to an MCP server.
        "mcp_tool_use" => McpToolUse(McpToolUse),
        /// The result of a call to an MCP server.
        "mcp_tool_result" => McpToolResult(McpToolResult),
        /// A tool that a tool search found.
        "tool_reference" => ToolReference(ToolReference),
        /// A file in the server's container.
        "container_upload" => ContainerUpload(ContainerUpload),
        /// A search result that the model can cite.
        "search_result" => SearchResult(SearchResult),
    }
}

impl Block {
    /// Makes a text block.
    pub fn new_text(text: impl Into<String>) -> Self {
        Self::Text(Box::new(Text { text: text.into(), ..Text::default() }))
    }

    /// Makes a tool result block.
    pub fn new_tool_result(id: ToolUseId, content: ToolResultContent, is_error: bool) -> Self {
        Self::ToolResult(Box::new(ToolResult {
            tool_use_id: id,
            content: Maybe::Value(content),
            is_error: if is_error { Maybe::Value(true) } else { Maybe::Absent },
            ..ToolResult::default()
        }))
    }

    /// The text of a text block; `None` for other blocks.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The block as a tool call of the agent; `None` for other blocks.
    pub fn tool_use(&self) -> Option<&ToolUse> {
        match self {
            Self::ToolUse(block) => Some(block),
            _ => None,
        }
    }

    /// The block as a `tool_result`; `None` for other blocks.
    pub fn tool_result(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolResult(block) => Some(block),
            _ => None,
        }
    }

    /// The tool call in the block, executed by the agent (`tool_use`), by the API server (`server_tool_use`)
    /// or by an MCP server (`mcp_tool_use`); `None` for other blocks.
    pub fn tool_call(&self) -> Option<ToolCall<'_>> {
        Some(match self {
            Self::ToolUse(call) => {
                ToolCall { id: &call.id, name: call.name.as_str(), server: None, input: Some(&call.input) }
            }
            Self::ServerToolUse(call) => {
                ToolCall { id: &call.id, name: call.name.as_str(), server: None, input: call.input.get() }
            }
            Self::McpToolUse(call) => {
                ToolCall { id: &call.id, name: &call.name, server: call.server_name.text(), input: call.input.get() }
            }
            _ => return None,
        })
    }

    /// The tool result in the block, of a tool of the agent or of the API server; `None` for other blocks.
    /// Copies the content.
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

    /// The id of the tool call that the block is the result of; `None` for other blocks. Cheaper than
    /// [`Self::tool_call_result`].
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

    /// Marks this block as the end of a cached prefix. Returns `false` if the API does not allow that for
    /// such a block.
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

    /// The cache breakpoint of this block; `None` if it has none.
    pub fn cache_control(&self) -> Option<&Json> {
        let slot = match self {
            Self::Text(block) => &block.cache_control,
            Self::ToolUse(block) => &block.cache_control,
            Self::ToolResult(block) => &block.cache_control,
            Self::Image(block) => &block.cache_control,
            Self::Document(block) => &block.cache_control,
            _ => return None,
        };
        slot.get()
    }

    /// Counts the blocks of unknown type: this block and the blocks inside it.
    pub fn count_unknown_blocks(&self) -> usize {
        match self {
            Self::Unknown(_) => 1,
            Self::ToolResult(result) => result.blocks().iter().map(Self::count_unknown_blocks).sum(),
            _ => 0,
        }
    }
}

wire! {
    /// Text.
    pub struct Text ["type" = "text"] {
        /// The text itself.
        text: req String,
        /// Sources that the text cites.
        citations: opt Json,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

wire! {
    /// The model's thinking.
    pub struct Thinking ["type" = "thinking"] {
        /// The thinking; empty if only the signature is kept.
        thinking: req String,
        /// Signature with which the API recognizes its own thinking.
        signature: opt String,
    }
}

wire! {
    /// Thinking that only the API can decrypt.
    pub struct RedactedThinking ["type" = "redacted_thinking"] {
        /// The encrypted thinking.
        data: opt String,
    }
}

wire! {
    /// A call of a tool that the agent executes.
    pub struct ToolUse ["type" = "tool_use"] {
        /// Id of the call; its result refers to it.
        id: req ToolUseId,
        /// Name of the tool.
        name: req ToolName,
        /// Input of the tool, usually an object.
        input: req Json,
        /// Origin of the call: the model, or code that the model runs.
        caller: opt Json,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

wire! {
    /// The result of a tool call.
    pub struct ToolResult ["type" = "tool_result"] {
        /// Id of the tool call.
        tool_use_id: req ToolUseId,
        /// Content for the model.
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

    /// The text of the result, blocks joined by line breaks.
    pub fn text(&self) -> String {
        self.content.get().map(Content::to_text).unwrap_or_default()
    }
}

wire! {
    /// An image.
    pub struct Image ["type" = "image"] {
        /// The image's data or location.
        source: req MediaSource,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

wire! {
    /// A document, such as a PDF.
    pub struct Document ["type" = "document"] {
        /// The document's data or location.
        source: req MediaSource,
        /// Title of the document.
        title: opt String,
        /// Marks the end of a cached prefix in a request.
        cache_control: opt Json,
    }
}

wire! {
    /// Data or location of an image or document.
    pub struct MediaSource {
        /// Where the bytes are.
        kind: req MediaSourceKind = "type",
        /// Media type, such as `image/png`.
        media_type: opt String,
        /// The data in base64, or the text.
        data: opt String,
        /// URL of the data.
        url: opt String,
    }
}

wire! {
    /// A call of a tool that the API server executes.
    pub struct ServerToolUse ["type" = "server_tool_use"] {
        /// Id of the call; its result refers to it.
        id: req ToolUseId,
        /// Name of the tool.
        name: req ToolName,
        /// Input of the tool.
        input: opt Json,
    }
}

wire! {
    /// A call that the API server makes to an MCP server.
    pub struct McpToolUse ["type" = "mcp_tool_use"] {
        /// Id of the call; its result refers to it.
        id: req ToolUseId,
        /// Name of the tool on its server.
        name: req String,
        /// Name of the MCP server.
        server_name: opt String,
        /// Input of the tool.
        input: opt Json,
    }
}

/// Declares the result types of server tools, which differ only in their tag.
macro_rules! server_results {
    ($( $(#[$meta:meta])* $name:ident = $tag:literal ),+ $(,)?) => { $(
        wire! {
            $(#[$meta])*
            pub struct $name ["type" = $tag] {
                /// Id of the tool call.
                tool_use_id: req ToolUseId,
                /// The result, or an error object.
                content: opt Json,
                /// Whether the tool failed.
                is_error: opt bool,
            }
        }
    )+ };
}

server_results! {
    /// The result of the server's web search.
    WebSearchResult = "web_search_tool_result",
    /// The result of the server's web fetch.
    WebFetchResult = "web_fetch_tool_result",
    /// The result of the server's code execution.
    CodeResult = "code_execution_tool_result",
    /// The result of the server's shell.
    ShellResult = "bash_code_execution_tool_result",
    /// The result of the server's text editor.
    EditorResult = "text_editor_code_execution_tool_result",
    /// The result of the server's tool search.
    ToolSearchResult = "tool_search_tool_result",
    /// The result of a call to an MCP server.
    McpToolResult = "mcp_tool_result",
}

wire! {
    /// A tool that a tool search found.
    pub struct ToolReference ["type" = "tool_reference"] {
        /// Name of the tool.
        tool_name: req ToolName,
    }
}

wire! {
    /// A file in the server's container.
    pub struct ContainerUpload ["type" = "container_upload"] {
        /// Id of the file.
        file_id: req String,
    }
}

wire! {
    /// A search result that the model can cite.
    pub struct SearchResult ["type" = "search_result"] {
        /// URL or name of the source.
        source: opt String,
        /// Title of the source.
        title: opt String,
        /// Text of the result.
        content: opt Json,
    }
}

/// Message content: a string or a list of blocks; which of the two is kept. Some programs write other JSON
/// values, mostly in tool results; they are kept too.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// A list of blocks.
    Blocks(Vec<Block>),
    /// An object, a number or a boolean.
    Other(Json),
}

/// The content of a tool result; it has the same forms.
pub type ToolResultContent = Content;

impl Content {
    /// The content as blocks. A string becomes one text block, and so does the JSON text of any other value.
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

    /// The text of all text blocks, joined by line breaks; the JSON text of any other value.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks.iter().filter_map(Block::text).collect::<Vec<_>>().join("\n"),
            Self::Other(json) => json.text().to_owned(),
        }
    }

    /// Whether the content is an empty string or list.
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
                // The values keep their bytes, so that numbers are written as they were read.
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
