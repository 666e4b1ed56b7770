//! What fills the context, estimated at four bytes per token.

use std::sync::Arc;

use quipu_message::control::response::{ContextCategory, GetContextUsageResponse};
use quipu_message::values::ContextCategoryKind;
use quipu_message::{Json, Maybe, ToolName};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::main_context::main_context;
use crate::model::ModelLimits;
use crate::session::Session;

/// The tokens of one MCP tool.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct McpToolTokens {
    name: ToolName,
    tokens: u64,
}

/// Estimates the tokens of the next request by category.
pub(crate) fn context_usage(session: &Arc<Session>) -> GetContextUsageResponse {
    let ctx = main_context(session, None, CancellationToken::new());
    let request = ctx.full_request();
    let size = ModelLimits::for_model(&ctx.model);
    let tokens_in = |text: &str| (text.len() as u64).div_ceil(4);
    let json = |value: Json| tokens_in(value.text());
    let (theirs, ours): (Vec<_>, Vec<_>) = request.tools.iter().partition(|tool| tool.name.is_mcp());
    let prompt: u64 = request.system.iter().map(|part| tokens_in(part)).sum();
    let tools: u64 = ours.iter().map(|tool| json(Json::from_serialize(tool))).sum();
    let mcp: u64 = theirs.iter().map(|tool| json(Json::from_serialize(tool))).sum();
    let messages: u64 = request.messages.iter().map(|message| json(Json::from_serialize(message))).sum();
    let used = prompt + tools + mcp + messages;
    let buffer = size.context_window - size.auto_compact_threshold();
    let free = size.context_window.saturating_sub(used + buffer);
    let share = |id: &str, name: &str, tokens: u64, kind: ContextCategoryKind| ContextCategory {
        id: Maybe::Value(id.to_owned()),
        name: name.to_owned(),
        tokens,
        color: Maybe::Value("inactive".to_owned()),
        kind: Maybe::Value(kind),
        ..ContextCategory::default()
    };
    let mut categories = vec![
        share("system_prompt", "System prompt", prompt, ContextCategoryKind::Used),
        share("system_tools", "System tools", tools, ContextCategoryKind::Used),
        share("mcp_tools", "MCP tools", mcp, ContextCategoryKind::Used),
        share("messages", "Messages", messages, ContextCategoryKind::Used),
        share("autocompact_buffer", "Autocompact buffer", buffer, ContextCategoryKind::Buffer),
        share("free_space", "Free space", free, ContextCategoryKind::Free),
    ];
    categories.retain(|share| share.tokens > 0);
    GetContextUsageResponse {
        categories,
        total_tokens: used,
        max_tokens: size.context_window,
        raw_max_tokens: size.context_window,
        percentage: (used * 100).div_ceil(size.context_window),
        model: ctx.model.clone(),
        mcp_tools: theirs
            .iter()
            .map(|tool| {
                Json::from_serialize(&McpToolTokens {
                    name: tool.name.clone(),
                    tokens: json(Json::from_serialize(tool)),
                })
            })
            .collect(),
        auto_compact_threshold: Maybe::Value(size.auto_compact_threshold()),
        is_auto_compact_enabled: session.var("DISABLE_AUTO_COMPACT").is_none(),
        ..GetContextUsageResponse::default()
    }
}

/// The estimate as a Markdown table.
pub(crate) fn context_usage_text(session: &Arc<Session>) -> String {
    let usage = context_usage(session);
    let mut text = format!(
        "## Context\n\n{}: about {} of {} tokens ({}%)\n\n| what | tokens |\n|---|---|\n",
        usage.model, usage.total_tokens, usage.max_tokens, usage.percentage
    );
    for share in &usage.categories {
        text.push_str(&format!("| {} | {} |\n", share.name, share.tokens));
    }
    text
}
