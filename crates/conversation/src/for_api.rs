//! Builds the messages of the next API request: alternating roles, a result for every tool
//! call, no empty content.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use quipu_message::attachment::system_reminder;
use quipu_message::synthetic::{self, NO_CONTENT};
use quipu_message::system::{CompactBoundary, System};
use quipu_message::tagged_text::{self, TextPart, TextTag};
use quipu_message::user_assistant::Assistant;
use quipu_message::{Block, Content, Entry, Maybe, Message, Role, ToolUseId, Uuid};

use crate::conversation::Conversation;
use crate::id_key::IdKey;
use crate::node::{EntryNode, Facts, Node, NodeKind, ToolRole};
use crate::tree::NodeList;

mod media;

use media::{RejectedMedia, rejected_media};

impl Conversation {
    /// The messages that continue the conversation at its active leaf.
    pub fn for_api(&self) -> Vec<Message> {
        for_api(&since_compaction(&self.path()))
    }
}

/// Builds API messages from entries, in stages: collect what is sent, remove media that the
/// API rejected, join the blocks of each API message, then [`normalise`].
pub fn for_api(nodes: &[&Node]) -> Vec<Message> {
    let too_large = rejected_media(nodes);
    let cleared = ClearedContent::new(nodes);
    let drafts = nodes.iter().enumerate();
    let drafts = drafts.filter_map(|(i, node)| draft_message(node, too_large.get(&i).copied(), &cleared)).collect();
    normalise(merge_message_parts(drafts))
}

/// Whether an API error reports that images or documents are too large. They are not sent
/// again.
pub fn is_media_too_large_error(line: &Assistant) -> bool {
    RejectedMedia::from_api_error(line).is_some()
}

/// Removes the tool results and attachments that microcompactions cleared. For callers that
/// convert entries in parts; [`for_api`] does it by itself.
pub fn clear_microcompacted(nodes: &mut Vec<Node>) {
    let cleared = ClearedContent::new(&nodes.iter().collect::<Vec<_>>());
    nodes.retain(|node| node.uuid().is_none_or(|uuid| !cleared.attachments.contains(uuid)));
    for node in nodes {
        if let Entry::User(line) = &mut node.entry
            && let Content::Blocks(blocks) = &mut line.message.content
        {
            cleared.clear_results(blocks);
        }
    }
}

/// The entries that are still in the context: everything since the last compaction or cleared
/// context, with the preserved entries inserted after the summary.
///
/// Three kinds of entries start a context: a compaction boundary, a reset or notice without a
/// parent, and, in old files, a prompt without a parent in the middle of a chained file. Only a
/// boundary preserves earlier entries; its metadata names them by UUID or by first and last.
pub fn since_compaction<'a>(path: &[&'a Node]) -> Vec<&'a Node> {
    let nodes = NodeList::new(path.to_vec(), &(), 0);
    context_at(&nodes, path.len() as u32).into_iter().map(|i| nodes.get(i)).collect()
}

/// Positions of the entries that are in the context before the position `end` of a path; see
/// [`since_compaction`]. Loads few entries.
pub(crate) fn context_at<N: EntryNode>(nodes: &NodeList<'_, N>, end: u32) -> Vec<u32> {
    let Some(start) = context_starts(nodes, end).next_back() else { return (0..end).collect() };
    let first = nodes.load(start);
    let Some(line) = first.as_ref().and_then(|first| compact_boundary(first)) else { return (start..end).collect() };
    let mut rest: Vec<u32> = (start + 1..end).collect();
    let anchor = anchor_uuid(line).and_then(|uuid| position_of(nodes, start + 1..end, uuid));
    let insert = anchor.map_or(rest.len().min(1), |i| (i - start) as usize);
    rest.splice(insert..insert, preserved_nodes(line, nodes, start));
    rest
}

/// Positions before `end` of the entries that start a context, in order; see [`since_compaction`].
pub(crate) fn context_starts<N: EntryNode>(nodes: &NodeList<'_, N>, end: u32) -> impl DoubleEndedIterator<Item = u32> {
    // A boundary names its logical parent even if no other entry has a parent.
    let is_link = |facts: Facts| facts.parent.is_some() && facts.kind != NodeKind::CompactBoundary;
    let is_chained = (0..end).any(|i| is_link(nodes.facts(i)));
    let is_message = |kind: NodeKind| matches!(kind, NodeKind::User | NodeKind::Assistant);
    let first_message = (0..end).find(|&i| is_message(nodes.facts(i).kind)).filter(|_| is_chained);
    (0..end).filter(move |&i| {
        is_context_start(nodes, i) || first_message.is_some_and(|first| first < i) && is_tree_start(nodes, i)
    })
}

/// Whether an entry is a prompt without a parent, as the compactions of version 1.0 start
/// with. Responses and tool results do not start a context.
fn is_tree_start<N: EntryNode>(nodes: &NodeList<'_, N>, i: u32) -> bool {
    let facts = nodes.facts(i);
    let mut has_result = false;
    if facts.is_root && facts.kind == NodeKind::User {
        nodes.get(i).visit_tools(|link| has_result |= link.role == ToolRole::Result);
        return !has_result;
    }
    false
}

/// Whether the entries before this one are not sent: it is a boundary, a reset, or a notice
/// without a parent.
fn is_context_start<N: EntryNode>(nodes: &NodeList<'_, N>, i: u32) -> bool {
    let facts = nodes.facts(i);
    match facts.kind {
        NodeKind::CompactBoundary => true,
        NodeKind::User | NodeKind::Assistant => false,
        NodeKind::Other => nodes.load(i).is_some_and(|node| is_reset(&node) || has_no_parent(&node)),
        _ => facts.parent.is_none() && nodes.load(i).is_some_and(|node| has_no_parent(&node)),
    }
}

fn is_reset(node: &Node) -> bool {
    matches!(node.entry, Entry::ConversationReset(_))
}

/// Whether the parent of an entry is `null`; the entries of streams do not name one.
fn has_no_parent(node: &Node) -> bool {
    let envelope = node.entry.envelope();
    envelope.is_some_and(|e| e.parent_uuid == Maybe::Null && !e.logical_parent_uuid.is_value())
}

fn compact_boundary(node: &Node) -> Option<&CompactBoundary> {
    match &node.entry {
        Entry::System(system) => match system.as_ref() {
            System::CompactBoundary(line) => Some(line),
            _ => None,
        },
        _ => None,
    }
}

/// UUID of the entry that the preserved entries follow.
fn anchor_uuid(line: &CompactBoundary) -> Option<&Uuid> {
    let meta = line.compact_metadata.get()?;
    let by_list = meta.preserved_messages.get().and_then(|kept| kept.anchor_uuid.get());
    by_list.or_else(|| meta.preserved_segment.get().and_then(|kept| kept.anchor_uuid.get()))
}

/// Positions before the boundary at `start` of the entries that the compaction preserved.
fn preserved_nodes<N: EntryNode>(line: &CompactBoundary, nodes: &NodeList<'_, N>, start: u32) -> Vec<u32> {
    let Some(meta) = line.compact_metadata.get() else { return Vec::new() };
    if let Some(list) = meta.preserved_messages.get()
        && let Some(uuids) = list.all_uuids.get().or(list.uuids.get())
    {
        let uuids: HashSet<IdKey> = uuids.iter().map(|uuid| IdKey::new(uuid.as_str())).collect();
        let is_preserved = |i: &u32| nodes.facts(*i).uuid.is_some_and(|uuid| uuids.contains(&uuid));
        return (0..start).filter(is_preserved).collect();
    }
    let Some(segment) = meta.preserved_segment.get() else { return Vec::new() };
    let position = |uuid: Option<&Uuid>| position_of(nodes, 0..start, uuid?);
    match (position(segment.head_uuid.get()), position(segment.tail_uuid.get())) {
        (Some(head), Some(tail)) if head <= tail => (head..=tail).collect(),
        _ => Vec::new(),
    }
}

/// Position of the first entry with a UUID.
fn position_of<N: EntryNode>(nodes: &NodeList<'_, N>, mut positions: Range<u32>, uuid: &Uuid) -> Option<u32> {
    let key = IdKey::new(uuid.as_str());
    positions.find(|&i| nodes.facts(i).uuid == Some(key))
}

/// The content of one entry, with the id of its API message.
struct DraftMessage {
    id: Option<String>,
    role: Role,
    blocks: Vec<Block>,
}

/// What an entry contributes to the request; `None` for progress, virtual entries, API errors
/// and everything else that the model does not see.
fn draft_message(node: &Node, too_large: Option<RejectedMedia>, cleared: &ClearedContent) -> Option<DraftMessage> {
    let user = |blocks| Some(DraftMessage { id: None, role: Role::User, blocks });
    match &node.entry {
        Entry::User(line) if !line.is_virtual.is_true() => {
            let mut blocks = line.message.content.clone().into_blocks();
            if let Some(media) = too_large {
                media.remove_from(&mut blocks, !line.is_meta.is_true());
            }
            cleared.clear_results(&mut blocks);
            if line.is_task_notification() {
                blocks.iter_mut().for_each(wrap_in_reminder);
            }
            // Claude Code adds this after a tool search.
            if blocks.iter().any(has_tool_reference) {
                blocks.push(Block::new_text(TOOL_LOADED_TEXT));
            }
            user(blocks)
        }
        Entry::Assistant(line) if is_sent(line) => Some(DraftMessage {
            id: line.message.id.text().map(str::to_owned),
            role: Role::Assistant,
            blocks: line.message.content.clone().into_blocks().into_iter().filter(is_model_output).collect(),
        }),
        Entry::System(system) => match system.as_ref() {
            System::LocalCommand(line) => user(vec![Block::new_text(line.content.text()?)]),
            _ => None,
        },
        Entry::Attachment(line) if node.uuid().is_none_or(|uuid| !cleared.attachments.contains(uuid)) => {
            let mut blocks = line.for_model();
            if let Some(media) = too_large {
                media.remove_from(&mut blocks, true);
            }
            user(blocks)
        }
        Entry::Summary(line) if line.is_compact_summary.is_true() => user(vec![Block::new_text(&line.summary)]),
        _ => None,
    }
}

/// Whether an `assistant` entry is sent: not an API error, nor the output of a local command,
/// which streams represent as a response.
fn is_sent(line: &Assistant) -> bool {
    !line.is_virtual.is_true() && !line.is_api_error() && !line.local_command_source.is_value()
}

/// Whether a block of a response is from the model. Old files store the output of local
/// commands, and the caveat before it, as text of the model.
fn is_model_output(block: &Block) -> bool {
    let Some(text) = block.text() else { return true };
    let parts = tagged_text::split_parts(text);
    let is_command = |part: &TextPart<'_>| match part {
        TextPart::Tagged { tag, .. } => *tag != TextTag::SystemReminder,
        TextPart::Typed(text) => text.trim().is_empty(),
    };
    parts.is_empty() || !parts.iter().all(is_command)
}

/// What Claude Code adds after the result of a tool search.
const TOOL_LOADED_TEXT: &str = "Tool loaded.";

fn has_tool_reference(block: &Block) -> bool {
    let result = block.tool_result();
    result.is_some_and(|result| result.blocks().iter().any(|block| matches!(block, Block::ToolReference(_))))
}

/// Wraps a text block in `<system-reminder>` tags, because the user did not write it.
fn wrap_in_reminder(block: &mut Block) {
    if let Block::Text(text) = block {
        text.text = system_reminder(&text.text);
    }
}

/// Text that replaces a tool result cleared from the context.
const CLEARED_RESULT_TEXT: &str = "[Old tool result cleared from the context]";

/// Ids of what microcompactions cleared from the context.
#[derive(Default)]
struct ClearedContent {
    tool_calls: HashSet<ToolUseId>,
    attachments: HashSet<Uuid>,
}

impl ClearedContent {
    fn new(nodes: &[&Node]) -> Self {
        let mut cleared = Self::default();
        for node in nodes {
            if let Entry::System(system) = &node.entry
                && let System::MicrocompactBoundary(line) = system.as_ref()
            {
                cleared.tool_calls.extend(line.cleared_tool_use_ids());
                cleared.attachments.extend(line.cleared_attachment_uuids());
            }
        }
        cleared
    }

    /// Replaces the content of cleared tool results.
    fn clear_results(&self, blocks: &mut [Block]) {
        for block in blocks.iter_mut().filter(|_| !self.tool_calls.is_empty()) {
            if let Block::ToolResult(result) = block
                && self.tool_calls.contains(&result.tool_use_id)
            {
                result.content = Maybe::Value(CLEARED_RESULT_TEXT.into());
            }
        }
    }
}

/// Joins the entries of one API message, even if results of its first tool calls were written
/// before its last block.
fn merge_message_parts(drafts: Vec<DraftMessage>) -> Vec<Message> {
    let mut whole: Vec<DraftMessage> = Vec::with_capacity(drafts.len());
    let mut last_response: Option<usize> = None;
    for draft in drafts {
        let same =
            last_response.filter(|&i| draft.role == Role::Assistant && draft.id.is_some() && whole[i].id == draft.id);
        match same {
            Some(i) => whole[i].blocks.extend(draft.blocks),
            None => {
                if draft.role == Role::Assistant {
                    last_response = Some(whole.len());
                }
                whole.push(draft);
            }
        }
    }
    whole.into_iter().map(|draft| Message::new(draft.role, draft.blocks)).collect()
}

/// Makes messages valid for the API, in linear time. Normalising twice changes nothing.
///
/// Removes system messages and empty content, merges neighbours of the same role, and puts the
/// result of each tool call first in the message after the call. A missing result gets a
/// placeholder, because the API rejects a tool call without one.
pub fn normalise(messages: Vec<Message>) -> Vec<Message> {
    let (messages, mut results) = extract_tool_results(messages);
    let mut out: Vec<(Role, Vec<Block>)> = Vec::new();
    for (role, blocks) in messages {
        // The results of a response's tool calls start the next message, in the order in
        // which they were written.
        let calls = blocks.iter().filter_map(Block::tool_use);
        let due: BTreeMap<usize, Block> = calls.filter_map(|call| results.remove(&call.id)).collect();
        match out.last_mut() {
            Some((last, earlier)) if *last == role => earlier.extend(blocks),
            _ => out.push((role, blocks)),
        }
        if !due.is_empty() {
            out.push((Role::User, due.into_values().collect()));
        }
    }
    if out.first().is_some_and(|(role, _)| *role == Role::Assistant) {
        out.insert(0, (Role::User, vec![Block::new_text(NO_CONTENT)]));
    }
    out.into_iter().map(|(role, blocks)| Message::new(role, blocks)).collect()
}

/// Separates tool results from the messages and removes empty content. Each tool call gets its
/// last result, or a placeholder, with its position for sorting.
#[allow(clippy::type_complexity, reason = "two private halves of one pass")]
fn extract_tool_results(messages: Vec<Message>) -> (Vec<(Role, Vec<Block>)>, HashMap<ToolUseId, (usize, Block)>) {
    // Sized in advance: growing would hash every id again.
    let mut found: HashMap<ToolUseId, (usize, Block)> = HashMap::with_capacity(messages.len());
    let mut called: HashSet<ToolUseId> = HashSet::with_capacity(messages.len());
    let mut missing: Vec<ToolUseId> = Vec::new();
    let mut rest = Vec::with_capacity(messages.len());
    let mut position = 0;
    for message in messages {
        let role = if message.role == Role::Assistant { Role::Assistant } else { Role::User };
        if !matches!(message.role, Role::Assistant | Role::User) {
            continue;
        }
        let mut kept = Vec::new();
        for block in message.content.into_blocks() {
            position += 1;
            match block {
                Block::ToolResult(mut result) => {
                    // The API accepts a string or blocks.
                    if let Maybe::Value(Content::Other(json)) = &result.content {
                        result.content = Maybe::Value(json.text().into());
                    }
                    found.insert(result.tool_use_id.clone(), (position, Block::ToolResult(result)));
                }
                Block::ToolUse(call) if role == Role::Assistant => {
                    // The API rejects a second tool call with the same id.
                    if called.insert(call.id.clone()) {
                        missing.push(call.id.clone());
                        kept.push(Block::ToolUse(call));
                    }
                }
                Block::ToolUse(_) => {}
                Block::Text(text) if text.text.trim().is_empty() => {}
                block => kept.push(block),
            }
        }
        if !kept.is_empty() {
            rest.push((role, kept));
        }
    }
    found.retain(|call, _| called.contains(call));
    for call in missing {
        position += 1;
        found.entry(call.clone()).or_insert_with(|| {
            (position, Block::new_tool_result(call, Content::from(synthetic::MISSING_RESULT), true))
        });
    }
    (rest, found)
}
