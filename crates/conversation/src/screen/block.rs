//! One block as an item.

use quipu_message::{Block, Json, Source, ToolCall, ToolUseId};

use super::{Kind, ScreenItem, ToolCard};
use crate::pair::{Answer, Outcome, Results};

/// A block of a request as an item; `None` for a result, which stands with its call.
pub(super) fn of_request(block: &Block, results: &Results<'_>, item: ScreenItem) -> Option<ScreenItem> {
    if let Some(call) = block.tool_call() {
        let card = card(call, results.get(call.id));
        return Some(ScreenItem { kind: Kind::Tool, tool: Some(card), ..item });
    }
    match block {
        Block::Text(text) => Some(ScreenItem { text: Some(text.text.clone()), ..item }),
        block if block.outcome_of().is_some() => None,
        block => other(block, item),
    }
}

/// A call with its result, without the subagent that worked for it.
pub(super) fn card(call: ToolCall<'_>, answer: Option<&Answer<'_>>) -> ToolCard {
    let Outcome { status, is_missing, result, output } = Outcome::of(answer);
    // Named as MCP tools of the agent are.
    let name = match call.server {
        Some(server) => format!("mcp__{server}__{}", call.name),
        None => call.name.to_owned(),
    };
    ToolCard {
        id: call.id.clone(),
        name,
        input: call.input.cloned().unwrap_or_default(),
        status,
        result,
        result_missing: is_missing,
        output,
        subagent: None,
    }
}

/// The call of a result whose call is not there.
pub(super) fn nameless(id: &ToolUseId) -> ToolCall<'_> {
    ToolCall { id, name: "", server: None, input: None }
}

/// A block that is neither text nor part of a tool call: thinking, pictures, documents,
/// and blocks without a model.
pub(super) fn other(block: &Block, item: ScreenItem) -> Option<ScreenItem> {
    let (kind, text) = match block {
        Block::Thinking(block) if block.thinking.trim().is_empty() => return None,
        Block::Thinking(block) => (Kind::Thinking, block.thinking.clone()),
        Block::RedactedThinking(_) => (Kind::Thinking, "[redacted by the server]".to_owned()),
        Block::Image(image) => (Kind::Image, size(&image.source)),
        Block::Document(document) => {
            let title = document.title.text().map(|title| format!("{title}: ")).unwrap_or_default();
            (Kind::Attachment, format!("{title}{}", size(&document.source)))
        }
        Block::SearchResult(found) => {
            let about = [found.title.text(), found.source.text()].into_iter().flatten().collect::<Vec<_>>().join(" ");
            let text = found.content.get().map(Json::words).unwrap_or_default();
            (Kind::Attachment, format!("search result {about}: {text}"))
        }
        Block::ToolReference(tool) => (Kind::Attachment, format!("tool {}", tool.tool_name)),
        Block::ContainerUpload(file) => (Kind::Attachment, format!("file {}", file.file_id)),
        Block::Unknown(unknown) => (Kind::Unknown, unknown.json().text().to_owned()),
        _ => return None,
    };
    let source = match block {
        Block::Image(image) => Some(image.source.clone()),
        Block::Document(document) => Some(document.source.clone()),
        _ => None,
    };
    Some(ScreenItem { kind, text: Some(text), source, ..item })
}

fn size(source: &Source) -> String {
    let kind = source.media_type.text().unwrap_or(&source.kind);
    match source.data.get() {
        Some(data) => format!("{kind}, {} bytes of {}", data.len(), source.kind),
        None => source.url.text().unwrap_or(kind).to_owned(),
    }
}
