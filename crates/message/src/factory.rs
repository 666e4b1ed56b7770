//! Functions that create entries which keep the invariants readers rely on.
//!
//! Content is never empty, ids and times are filled in from the [`StampSource`] passed
//! in, and what the program makes up itself is marked as such.

use serde::Serialize;

use crate::progress::{Progress, ProgressData};
use crate::synthetic::{NO_CONTENT, SYNTHETIC_MODEL};
use crate::system::{CompactBoundary, CompactMetadata, PreservedMessages, PreservedSegment};
use crate::usage::{CacheCreation, ServerToolUsage};
use crate::user_assistant::{Assistant, AssistantErrorKind, User};
use crate::values::{CompactTrigger, MessageLevel, StopReason};
use crate::{Block, Content, Envelope, Json, Maybe, Message, MessageId, Role, StampSource, ToolUseId, Usage, Uuid};

/// A `user` entry with the given content; empty content becomes a placeholder text.
///
/// ```
/// # use quipu_message::{StampSource, Uuid, factory};
/// # struct Fixed;
/// # impl StampSource for Fixed {
/// #     fn new_uuid(&mut self) -> Uuid { "00000000-0000-4000-8000-000000000000".into() }
/// #     fn now(&mut self) -> String { "2026-11-15T00:00:00.000Z".into() }
/// # }
/// let line = factory::user("", &mut Fixed);
/// assert_eq!(line.message.content.to_text(), "(no content)");
/// assert!(line.envelope.uuid.is_value());
/// ```
pub fn user(content: impl Into<Content>, stamp: &mut dyn StampSource) -> User {
    let content = content.into();
    let content = if content.is_empty() { NO_CONTENT.into() } else { content };
    User { message: Message::new(Role::User, content), envelope: new_envelope(stamp), ..User::default() }
}

/// A `user` line that the model sees and the user does not.
pub fn meta_user(content: impl Into<Content>, stamp: &mut dyn StampSource) -> User {
    User { is_meta: Maybe::Value(true), ..user(content, stamp) }
}

/// The result of a tool call: what the model reads in `content`, what the tool
/// gave in `output`, and the line of the call.
pub fn tool_result(
    call: ToolUseId,
    content: impl Into<Content>,
    is_error: bool,
    output: Json,
    source: Uuid,
    stamp: &mut dyn StampSource,
) -> User {
    let block = Block::new_tool_result(call, content.into(), is_error);
    User {
        tool_use_result: Maybe::Value(output),
        source_tool_assistant_uuid: Maybe::Value(source),
        ..user(vec![block], stamp)
    }
}

/// An `assistant` line the program makes up itself: model `<synthetic>`, nothing used.
pub fn synthetic_assistant(content: impl Into<Content>, stamp: &mut dyn StampSource) -> Assistant {
    let mut blocks = match content.into() {
        Content::Text(text) if text.is_empty() => Vec::new(),
        other => other.into_blocks(),
    };
    if blocks.is_empty() {
        blocks.push(Block::new_text(NO_CONTENT));
    }
    let id = MessageId::from(stamp.new_uuid().as_str());
    Assistant {
        message: Message {
            id: Maybe::Value(id),
            kind: Maybe::Value("message".to_owned()),
            model: Maybe::Value(SYNTHETIC_MODEL.to_owned()),
            stop_reason: StopReason::StopSequence.into(),
            stop_sequence: Maybe::Value(String::new()),
            usage: Maybe::Value(zero_usage()),
            container: Maybe::Null,
            context_management: Maybe::Null,
            ..Message::new(Role::Assistant, blocks)
        },
        is_api_error_message: Maybe::Value(false),
        envelope: new_envelope(stamp),
        ..Assistant::default()
    }
}

/// An `assistant` line that shows a failed call.
pub fn api_error_assistant(
    text: impl Into<String>,
    kind: AssistantErrorKind,
    stamp: &mut dyn StampSource,
) -> Assistant {
    Assistant {
        is_api_error_message: Maybe::Value(true),
        error: Maybe::Value(kind),
        ..synthetic_assistant(text.into(), stamp)
    }
}

/// Makes the boundary of a compaction that keeps the entries `kept`, which then follow the entry `summary`.
pub fn compact_boundary(
    trigger: CompactTrigger,
    pre_tokens: u64,
    kept: &[Uuid],
    summary: &Uuid,
    stamp: &mut dyn StampSource,
) -> CompactBoundary {
    let anchor = || Maybe::Value(summary.clone());
    let segment = kept.first().zip(kept.last()).map(|(first, last)| PreservedSegment {
        head_uuid: Maybe::Value(first.clone()),
        anchor_uuid: anchor(),
        tail_uuid: Maybe::Value(last.clone()),
        ..PreservedSegment::default()
    });
    let messages = segment.is_some().then(|| PreservedMessages {
        anchor_uuid: anchor(),
        uuids: Maybe::Value(kept.to_vec()),
        all_uuids: Maybe::Value(kept.to_vec()),
        ..PreservedMessages::default()
    });
    CompactBoundary {
        content: Maybe::Value("Conversation compacted".to_owned()),
        level: MessageLevel::Info.into(),
        is_meta: Maybe::Value(false),
        compact_metadata: Maybe::Value(CompactMetadata {
            trigger: trigger.into(),
            pre_tokens: Maybe::Value(pre_tokens),
            preserved_segment: segment.into(),
            preserved_messages: messages.into(),
            ..CompactMetadata::default()
        }),
        envelope: new_envelope(stamp),
        ..CompactBoundary::default()
    }
}

/// A `progress` line; a tool passes data of its own type.
pub fn progress<P: Serialize>(call: ToolUseId, parent: ToolUseId, data: &P, stamp: &mut dyn StampSource) -> Progress {
    let json = Json::from_serialize(data);
    let data = json.read().unwrap_or(ProgressData::Untagged(json));
    Progress {
        data,
        tool_use_id: Maybe::Value(call),
        parent_tool_use_id: Maybe::Value(parent),
        envelope: new_envelope(stamp),
        ..Progress::default()
    }
}

/// The usage of a message that no call was made for: everything there, and zero.
pub fn zero_usage() -> Usage {
    Usage {
        input_tokens: Maybe::Value(0),
        output_tokens: Maybe::Value(0),
        cache_creation_input_tokens: Maybe::Value(0),
        cache_read_input_tokens: Maybe::Value(0),
        server_tool_use: Maybe::Value(ServerToolUsage {
            web_search_requests: Maybe::Value(0),
            web_fetch_requests: Maybe::Value(0),
            ..ServerToolUsage::default()
        }),
        service_tier: Maybe::Null,
        cache_creation: Maybe::Value(CacheCreation {
            ephemeral_1h_input_tokens: Maybe::Value(0),
            ephemeral_5m_input_tokens: Maybe::Value(0),
            ..CacheCreation::default()
        }),
        inference_geo: Maybe::Null,
        iterations: Maybe::Null,
        speed: Maybe::Null,
        ..Usage::default()
    }
}

fn new_envelope(stamp: &mut dyn StampSource) -> Envelope {
    Envelope { uuid: Maybe::Value(stamp.new_uuid()), timestamp: Maybe::Value(stamp.now()), ..Envelope::default() }
}

#[cfg(test)]
mod tests;
