//! A tool of an MCP server as a [`Tool`].

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use quipu_message::control::response::McpTool as Listed;
use quipu_message::values::MediaSourceKind;
use quipu_message::{Block, Content, Image, Json, Maybe, MediaSource, ToolName};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ContentBlock, Tool as Offered};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;

use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace, sanitise_name};
use crate::tools::read::MAX_IMAGE_BASE64;

/// A tool of an MCP server.
pub(crate) struct McpTool {
    name: ToolName,
    tool: Offered,
    peer: Peer<RoleClient>,
}

impl McpTool {
    pub(crate) fn new_shared(server: &str, tool: Offered, peer: Peer<RoleClient>) -> Arc<dyn Tool> {
        Arc::new(Self { name: ToolName::for_mcp(&sanitise_name(server), &sanitise_name(&tool.name)), tool, peer })
    }
}

impl Tool for McpTool {
    fn name(&self) -> ToolName {
        self.name.clone()
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: self.tool.description.as_deref().unwrap_or_default().to_owned(),
            input_schema: Value::Object((*self.tool.input_schema).clone()),
        }
    }

    fn effect(&self, _input: &Value) -> ToolEffect {
        let reads = self.tool.annotations.as_ref().and_then(|notes| notes.read_only_hint) == Some(true);
        if reads { ToolEffect::ReadOnly } else { ToolEffect::Mutating }
    }

    fn run<'a>(&'a self, input: Value, place: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let mut params = CallToolRequestParams::new(self.tool.name.clone());
            params.arguments = input.as_object().cloned();
            let mut meta = rmcp::model::RequestMetaObject::default();
            meta.insert("claudecode/toolUseId".to_owned(), Value::from(call.tool_use_id.as_str()));
            params.meta = Some(meta);
            let timeout = call_timeout(place);
            let result = tokio::select! {
                result = self.peer.call_tool(params) => result,
                () = call.cancel.cancelled() => return ToolOutput::failure("The call was broken off"),
                () = tokio::time::sleep(timeout) => {
                    let seconds = timeout.as_secs_f64();
                    return ToolOutput::failure(format!("The MCP server did not answer within {seconds} s (MCP_TOOL_TIMEOUT)"));
                }
            };
            match result {
                Ok(result) if result.is_error == Some(true) => {
                    let text: Vec<String> = result.content.iter().filter_map(content_text).collect();
                    let mut text = text.join("\n");
                    truncate_to_limit(&mut text, &mut max_output_chars(place));
                    ToolOutput::failure(text)
                }
                Ok(result) => {
                    let mut remaining = max_output_chars(place);
                    let shown = result.content.iter().take(MAX_RESULT_BLOCKS);
                    let blocks: Vec<Block> = shown.map(|content| to_block(content, &mut remaining)).collect();
                    let raw = Json::from_serialize(&blocks).to_value();
                    ToolOutput { content: Content::Blocks(blocks), raw: Some(raw), is_error: false }
                }
                Err(ServiceError::TransportClosed) => {
                    ToolOutput::failure("The MCP server has ended; its tools cannot be used any more")
                }
                Err(error) => {
                    let mut text = error.to_string();
                    truncate_to_limit(&mut text, &mut max_output_chars(place));
                    ToolOutput::failure(text)
                }
            }
        })
    }
}

/// Timeout of a tool call, unless `MCP_TOOL_TIMEOUT` is set.
const CALL_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Maximum length of a result in tokens, unless `MAX_MCP_OUTPUT_TOKENS` is set.
const MAX_OUTPUT_TOKENS: usize = 25_000;
/// Most blocks of a result that the model sees.
const MAX_RESULT_BLOCKS: usize = 1000;
/// Characters per token, for estimates.
const CHARS_PER_TOKEN: usize = 4;

fn env_number(place: &Workspace, name: &str) -> Option<u64> {
    place.env().get(OsStr::new(name))?.to_str()?.parse().ok()
}

fn call_timeout(place: &Workspace) -> Duration {
    env_number(place, "MCP_TOOL_TIMEOUT").map_or(CALL_TIMEOUT, Duration::from_millis)
}

fn max_output_chars(place: &Workspace) -> usize {
    let tokens = env_number(place, "MAX_MCP_OUTPUT_TOKENS").and_then(|tokens| usize::try_from(tokens).ok());
    tokens.unwrap_or(MAX_OUTPUT_TOKENS).saturating_mul(CHARS_PER_TOKEN)
}

/// Truncates a text to `remaining` characters and adds a note if it was longer.
fn truncate_to_limit(text: &mut String, remaining: &mut usize) {
    let end = text.char_indices().nth(*remaining).map(|(end, _)| end);
    *remaining = remaining.saturating_sub(text.chars().count());
    if let Some(end) = end {
        let left_out = text[end..].chars().count();
        text.truncate(end);
        text.push_str(&format!("\n\n[{left_out} characters left out: the result is too long. Ask the tool for less.]"));
    }
}

/// Describes a tool for hosts.
pub(super) fn tool_listing(tool: &Offered) -> Listed {
    Listed {
        name: tool.name.to_string(),
        annotations: Maybe::Value(
            tool.annotations
                .as_ref()
                .map_or_else(|| Json::from_serialize(&serde_json::json!({})), Json::from_serialize),
        ),
        ..Listed::default()
    }
}

fn content_text(content: &ContentBlock) -> Option<String> {
    match content {
        ContentBlock::Text(text) => Some(text.text.to_string()),
        _ => None,
    }
}

/// Converts content of a server to a block for the model, truncated to `remaining`.
fn to_block(content: &ContentBlock, remaining: &mut usize) -> Block {
    let text = |mut text: String, remaining: &mut usize| {
        truncate_to_limit(&mut text, remaining);
        Block::new_text(text)
    };
    match content {
        ContentBlock::Text(content) => text(content.text.to_string(), remaining),
        ContentBlock::Image(image) if image.data.len() > MAX_IMAGE_BASE64 => {
            Block::new_text("[An image was left out: it is too large.]".to_owned())
        }
        ContentBlock::Image(image) => Block::Image(Box::new(Image {
            source: MediaSource {
                kind: MediaSourceKind::Base64,
                media_type: Maybe::Value(image.mime_type.to_string()),
                data: Maybe::Value(image.data.to_string()),
                ..MediaSource::default()
            },
            ..Image::default()
        })),
        other => text(serde_json::to_string(other).unwrap_or_default(), remaining),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_the_api_would_refuse_is_left_out() {
        let image = |length: usize| {
            let image = serde_json::json!({"type": "image", "data": "A".repeat(length), "mimeType": "image/png"});
            to_block(&serde_json::from_value(image).unwrap(), &mut 100)
        };
        assert!(matches!(image(MAX_IMAGE_BASE64), Block::Image(_)));
        assert_eq!(image(MAX_IMAGE_BASE64 + 1).text(), Some("[An image was left out: it is too large.]"));
    }
}
