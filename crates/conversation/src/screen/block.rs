//! Converts one content block to an item.

use quipu_message::{Block, Json, MediaSource, ToolCall, ToolUseId};

use super::{ItemKind, ScreenItem, ToolCard};
use crate::timestamp::to_iso8601;
use crate::tool_results::{PairedOutcome, PairedResult, ToolResults};

/// The item of a block of an API message; `None` for a tool result, which is shown with its
/// call.
pub(super) fn request_block_item(block: &Block, results: &ToolResults<'_>, item: ScreenItem) -> Option<ScreenItem> {
    if let Some(call) = block.tool_call() {
        let card = tool_card(call, results.get(call.id));
        return Some(ScreenItem { kind: ItemKind::Tool, tool: Some(card), ..item });
    }
    match block {
        Block::Text(text) => Some(ScreenItem { text: Some(text.text.clone()), ..item }),
        block if block.result_tool_use_id().is_some() => None,
        block => other_block_item(block, item),
    }
}

/// The card of a tool call with its result, without its subagent.
pub(super) fn tool_card(call: ToolCall<'_>, paired: Option<&PairedResult<'_>>) -> ToolCard {
    let PairedOutcome { status, is_missing, result, output } = PairedOutcome::from_paired(paired);
    ToolCard {
        id: call.id.clone(),
        name: call.tool_name(),
        input: call.input.cloned().unwrap_or_default(),
        status,
        result,
        result_missing: is_missing,
        output,
        finished_at: paired.and_then(|paired| paired.timestamp).map(|time| to_iso8601(time).into_owned()),
        subagent: None,
    }
}

/// A placeholder call for a result without one.
pub(super) fn unnamed_tool_call(id: &ToolUseId) -> ToolCall<'_> {
    ToolCall { id, name: "", server: None, input: None }
}

/// The item of a block that is neither text nor part of a tool call: thinking, images,
/// documents and unknown blocks. `None` if it has nothing to show.
pub(super) fn other_block_item(block: &Block, item: ScreenItem) -> Option<ScreenItem> {
    let (kind, text) = match block {
        Block::Thinking(block) if block.thinking.trim().is_empty() => return None,
        Block::Thinking(block) => (ItemKind::Thinking, block.thinking.clone()),
        Block::RedactedThinking(_) => (ItemKind::Thinking, "[redacted by the server]".to_owned()),
        Block::Image(image) => (ItemKind::Image, describe_source(&image.source)),
        Block::Document(document) => {
            let title = document.title.text().map(|title| format!("{title}: ")).unwrap_or_default();
            (ItemKind::Attachment, format!("{title}{}", describe_source(&document.source)))
        }
        Block::SearchResult(found) => {
            let about = [found.title.text(), found.source.text()].into_iter().flatten().collect::<Vec<_>>().join(" ");
            let text = found.content.get().map(Json::extract_text).unwrap_or_default();
            (ItemKind::Attachment, format!("search result {about}: {text}"))
        }
        Block::ToolReference(tool) => (ItemKind::Attachment, format!("tool {}", tool.tool_name)),
        Block::ContainerUpload(file) => (ItemKind::Attachment, format!("file {}", file.file_id)),
        Block::Unknown(unknown) => (ItemKind::Unknown, unknown.json().text().to_owned()),
        _ => return None,
    };
    let source = match block {
        Block::Image(image) => Some(image.source.clone()),
        Block::Document(document) => Some(document.source.clone()),
        _ => None,
    };
    Some(ScreenItem { kind, text: Some(text), source, ..item })
}

fn describe_source(source: &MediaSource) -> String {
    let kind = source.media_type.text().unwrap_or(source.kind.as_str());
    match source.data.get() {
        Some(data) => format!("{kind}, {} bytes of {}", data.len(), source.kind),
        None => source.url.text().unwrap_or(kind).to_owned(),
    }
}
