//! A tool of an MCP server, as one of ours.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use quipu_message::control::answer::McpTool as Listed;
use quipu_message::{Block, Content, Image, Json, Maybe, Source};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ContentBlock, Tool as Offered};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;

use crate::tool::{Call, Definition, Effect, Output, Place, Tool};

/// A tool of an MCP server.
pub(crate) struct McpTool {
    name: String,
    tool: Offered,
    peer: Peer<RoleClient>,
}

impl McpTool {
    pub(crate) fn shared(server: &str, tool: Offered, peer: Peer<RoleClient>) -> Arc<dyn Tool> {
        Arc::new(Self { name: format!("mcp__{}__{}", plain(server), plain(&tool.name)), tool, peer })
    }
}

impl Tool for McpTool {
    fn definition(&self) -> Definition {
        Definition {
            name: self.name.clone(),
            description: self.tool.description.as_deref().unwrap_or_default().to_owned(),
            input_schema: Value::Object((*self.tool.input_schema).clone()),
        }
    }

    fn effect(&self, _input: &Value) -> Effect {
        let reads = self.tool.annotations.as_ref().and_then(|notes| notes.read_only_hint) == Some(true);
        if reads { Effect::Reads } else { Effect::Changes }
    }

    fn run<'a>(&'a self, input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let mut params = CallToolRequestParams::new(self.tool.name.clone());
            params.arguments = input.as_object().cloned();
            let mut meta = rmcp::model::RequestMetaObject::default();
            meta.insert("claudecode/toolUseId".to_owned(), Value::from(call.id.as_str()));
            params.meta = Some(meta);
            let patience = patience(place);
            let result = tokio::select! {
                result = self.peer.call_tool(params) => result,
                () = call.cancel.cancelled() => return Output::failure("The call was broken off"),
                () = late(patience) => {
                    let seconds = patience.unwrap_or_default().as_secs_f64();
                    return Output::failure(format!("The MCP server did not answer within {seconds} s (MCP_TOOL_TIMEOUT)"));
                }
            };
            match result {
                Ok(result) if result.is_error == Some(true) => {
                    let text: Vec<String> = result.content.iter().filter_map(words).collect();
                    Output::failure(text.join("\n"))
                }
                Ok(result) => {
                    let blocks: Vec<Block> = result.content.iter().map(block).collect();
                    let raw = Json::of(&blocks).value();
                    Output { content: Content::Blocks(blocks), raw: Some(raw), is_error: false }
                }
                Err(ServiceError::TransportClosed) => {
                    Output::failure("The MCP server has ended; its tools cannot be used any more")
                }
                Err(error) => Output::failure(error.to_string()),
            }
        })
    }
}

/// How long a call may take; without end unless `MCP_TOOL_TIMEOUT` says so.
fn patience(place: &Place) -> Option<Duration> {
    let set = place.env().get(OsStr::new("MCP_TOOL_TIMEOUT"))?;
    set.to_str()?.parse().ok().map(Duration::from_millis)
}

async fn late(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => std::future::pending().await,
    }
}

/// A tool, as hosts list it.
pub(super) fn listed(tool: &Offered) -> Listed {
    Listed {
        name: tool.name.to_string(),
        annotations: Maybe::Value(tool.annotations.as_ref().map_or_else(|| Json::of(&serde_json::json!({})), Json::of)),
        ..Listed::default()
    }
}

fn words(content: &ContentBlock) -> Option<String> {
    match content {
        ContentBlock::Text(text) => Some(text.text.to_string()),
        _ => None,
    }
}

/// What a server sends, as the model can take it.
fn block(content: &ContentBlock) -> Block {
    match content {
        ContentBlock::Text(text) => Block::new_text(text.text.to_string()),
        ContentBlock::Image(image) => Block::Image(Box::new(Image {
            source: Source {
                kind: "base64".to_owned(),
                media_type: Maybe::Value(image.mime_type.to_string()),
                data: Maybe::Value(image.data.to_string()),
                ..Source::default()
            },
            ..Image::default()
        })),
        other => Block::new_text(serde_json::to_string(other).unwrap_or_default()),
    }
}

/// A name as tools may have it.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' }).collect()
}
