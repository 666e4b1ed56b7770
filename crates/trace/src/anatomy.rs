//! A request in its parts, with the size of each.

use std::collections::BTreeMap;

use quipu_message::Role;
use quipu_message::added_context::AddedContext;
use quipu_message::tool::ToolName;
use serde::Serialize;

use crate::call::{Call, RequestParts};
use crate::prompt_store::{PartKey, TextId};
use crate::trace::Trace;

/// Bytes of JSON a token has on average, for calls whose token count was not recorded.
const BYTES_PER_TOKEN: u64 = 4;

/// One part of a request: the system prompt, the tools, a kind of context, the history or
/// the question.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnatomyPart {
    /// Name of the part, for example `tools` or `tools of MCP server github`.
    pub part: String,
    /// Estimated tokens: the part's share of the bytes, scaled to the recorded prompt size.
    pub tokens: u64,
    /// Bytes of the part as JSON.
    pub bytes: u64,
    /// Whether the part differs from the same part of the previous call. A history that only
    /// grew does not differ.
    pub changed: bool,
}

/// Splits a request into its parts, largest scope first: system, tools, context, history,
/// question. Empty if the request is not known. `previous` is the call before it in its
/// branch; without one, all parts count as changed.
pub fn anatomy(trace: &Trace, call: &Call, previous: Option<&Call>) -> Vec<AnatomyPart> {
    let Some(request) = &call.request else { return Vec::new() };
    let parts = split(trace, request);
    let before = previous.and_then(|call| call.request.as_ref()).map(|request| split(trace, request));
    let bytes: u64 = parts.iter().map(|(_, texts)| size(trace, texts)).sum();
    let total = call.response.tokens.map(|tokens| tokens.prompt()).filter(|tokens| *tokens > 0);
    let total = total.unwrap_or(bytes / BYTES_PER_TOKEN);
    let mut shared_out = (0, 0);
    parts
        .into_iter()
        .map(|(name, texts)| {
            let size = size(trace, &texts);
            // Rounded on the running total, so that the parts add up to it.
            shared_out.0 += size;
            let tokens =
                (u128::from(total) * u128::from(shared_out.0) / u128::from(bytes.max(1))) as u64 - shared_out.1;
            shared_out.1 += tokens;
            let old = before.as_ref().and_then(|before| before.iter().find(|(other, _)| *other == name));
            let changed = match (&name, old) {
                (_, None) => true,
                (PartName::History, Some((_, old))) => !texts.starts_with(old),
                (_, Some((_, old))) => texts != *old,
            };
            AnatomyPart { part: name.to_string(), tokens, bytes: size, changed }
        })
        .collect()
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PartName {
    System,
    Tools,
    McpTools(String),
    Context(AddedContext),
    Announcements,
    History,
    Question,
}

impl std::fmt::Display for PartName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Tools => f.write_str("tools"),
            Self::McpTools(server) => write!(f, "tools of MCP server {server}"),
            Self::Context(kind) => write!(f, "context: {}", kind.as_str()),
            Self::Announcements => f.write_str("context: system messages"),
            Self::History => f.write_str("history"),
            Self::Question => f.write_str("question"),
        }
    }
}

/// The texts of each part, in the order of [`PartName`].
fn split(trace: &Trace, request: &RequestParts) -> Vec<(PartName, Vec<TextId>)> {
    let mut parts: BTreeMap<PartName, Vec<TextId>> = BTreeMap::new();
    let mut add = |name: PartName, key: &PartKey| parts.entry(name).or_default().push(key.text);
    for block in &request.system {
        add(PartName::System, block);
    }
    for tool in &request.tools {
        let name = trace.prompts.part(tool.text).tool_name.as_deref().unwrap_or_default();
        let name = ToolName::from(name);
        add(name.mcp().map_or(PartName::Tools, |(server, _)| PartName::McpTools(server.to_owned())), tool);
    }
    let messages: Vec<_> = request.messages.iter().map(|key| trace.prompts.message(*key)).collect();
    let last_user = messages.iter().rposition(|message| message.role == Role::User);
    for (index, message) in messages.into_iter().enumerate() {
        for block in &message.blocks {
            let context = trace.prompts.part(block.text).context.filter(|_| message.role == Role::User);
            let name = match context {
                Some(kind) => PartName::Context(kind),
                None if message.role == Role::System => PartName::Announcements,
                None if Some(index) == last_user => PartName::Question,
                None => PartName::History,
            };
            add(name, block);
        }
    }
    parts.into_iter().collect()
}

fn size(trace: &Trace, texts: &[TextId]) -> u64 {
    texts.iter().map(|text| trace.prompts.text(*text).len() as u64).sum()
}
