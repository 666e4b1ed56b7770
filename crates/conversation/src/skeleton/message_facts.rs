//! The facts of `user` and `assistant` lines from a borrowed view, which is several times faster
//! than reading the entry. A test compares them with those of the entry on every recording.

use std::borrow::Cow;

use quipu_message::structure_view::{BlockLink, NullableStr, StructureMessage, StructureView};
use quipu_message::synthetic::SYNTHETIC_MODEL;
use quipu_message::view::ContentView;
use quipu_message::{AgentId, ToolUseId};

use super::compact_node::CompactNode;
use crate::id_key::IdKey;
use crate::node::{Facts, NodeKind, Place, PromptKind, ToolLink, ToolRole};
use crate::user_text::prompt_from_texts;

impl CompactNode {
    /// The node of a `user` or `assistant` line. `None` if the line is of another type or holds
    /// something unusual, so that the whole entry must be read.
    pub(super) fn from_view(place: Place, view: &StructureView<'_>) -> Option<Self> {
        let is_assistant = match view.kind.as_deref()? {
            "user" => false,
            "assistant" => true,
            _ => return None,
        };
        let message = view.message.as_ref()?;
        message.role.as_ref()?;
        let blocks = message.content.as_ref()?.blocks();
        let links: Vec<BlockLink<'_>> = blocks.iter().map(|block| block.link()).collect::<Option<_>>()?;
        let is_other = |value: &Option<NullableStr<'_>>| value == &Some(NullableStr::Other);
        if is_other(&view.parent_uuid) || is_other(&message.stop_reason) {
            return None;
        }
        let has_null_parent = view.parent_uuid == Some(NullableStr::Null);
        let logical = view.logical_parent_uuid.as_deref().filter(|_| has_null_parent);
        let parent = view.parent_uuid.as_ref().and_then(|parent| parent.text()).or(logical);
        let facts = Facts {
            kind: if is_assistant { NodeKind::Assistant } else { NodeKind::User },
            uuid: view.uuid.as_deref().map(IdKey::new),
            parent: parent.map(IdKey::new),
            is_root: has_null_parent && parent.is_none(),
            message: message.id.as_deref().filter(|_| is_assistant).map(IdKey::new),
            has_several_blocks: links.len() > 1,
            is_incomplete: is_assistant && message.stop_reason == Some(NullableStr::Null),
            is_response: is_assistant && message.model.as_deref() != Some(SYNTHETIC_MODEL),
        };
        let prompt = if is_assistant { PromptKind::None } else { prompt_kind(view, message, &links) };
        Some(Self::new(place, facts, prompt, links.iter().filter_map(tool_link).collect()))
    }
}

fn tool_link(link: &BlockLink<'_>) -> Option<ToolLink> {
    let (role, call) = match link {
        BlockLink::ToolUse(call) => (ToolRole::Call, call),
        BlockLink::ToolResult(call) => (ToolRole::Result, call),
        BlockLink::Text(_) | BlockLink::Thinking => return None,
    };
    Some(ToolLink { role, call: IdKey::new(call) })
}

fn prompt_kind(view: &StructureView<'_>, message: &StructureMessage<'_>, links: &[BlockLink<'_>]) -> PromptKind {
    let flags = [view.is_meta, view.is_compact_summary, view.is_virtual, view.is_synthetic];
    if flags.contains(&Some(true)) {
        return PromptKind::None;
    }
    let texts: Vec<Cow<'_, str>> = match &message.content {
        Some(ContentView::Text(text)) => vec![Cow::Borrowed(text)],
        _ => links
            .iter()
            .filter_map(|link| if let BlockLink::Text(text) = link { Some(text.decode()) } else { None })
            .collect(),
    };
    PromptKind::from_prompt(prompt_from_texts(texts.iter().map(|text| &**text), false).as_deref())
}

/// The tool call and the subagent that a tool result of an agent call names.
pub(super) fn started_subagent(view: &StructureView<'_>) -> Option<(ToolUseId, AgentId)> {
    view.kind.as_deref().filter(|kind| *kind == "user")?;
    let blocks = view.message.as_ref()?.content.as_ref()?.blocks();
    let call = blocks.iter().find_map(|block| match block.link() {
        Some(BlockLink::ToolResult(call)) => Some(call),
        _ => None,
    })?;
    Some((call.into(), view.result_agent()?))
}
