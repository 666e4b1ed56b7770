//! Splits a complete message into the events of a stream.

use quipu_message::api::{
    BlockDelta, BlockStart, BlockStop, Delta, InputJsonDelta, MessageDelta, MessageDeltaFields, MessageStart,
    SignatureDelta, StreamEvent, TextDelta, ThinkingDelta,
};
use quipu_message::{Block, Content, Json, Maybe, Message, Usage};

/// Characters in each delta, if the script sets no other number.
pub(crate) const DEFAULT_CHUNK_CHARS: usize = 24;

/// The events that stream a message; accumulating them gives the same message.
pub(crate) fn message_events(message: &Message, chunk: usize) -> Vec<StreamEvent> {
    let mut out = vec![message_start(message)];
    for (index, block) in message.content.clone().into_blocks().into_iter().enumerate() {
        let (content_block, deltas) = split_block(block, chunk);
        out.push(StreamEvent::BlockStart(Box::new(BlockStart { index, content_block, ..BlockStart::default() })));
        out.extend(
            deltas
                .into_iter()
                .map(|delta| StreamEvent::BlockDelta(Box::new(BlockDelta { index, delta, ..BlockDelta::default() }))),
        );
        out.push(StreamEvent::BlockStop(Box::new(BlockStop { index, ..BlockStop::default() })));
    }
    out.push(message_delta(message));
    out.push(StreamEvent::MessageStop(Box::default()));
    out
}

/// The first event: the message without its content, stop reason and output tokens.
fn message_start(message: &Message) -> StreamEvent {
    let mut start = Message { content: Content::Blocks(Vec::new()), stop_reason: Maybe::Null, ..message.clone() };
    start.stop_sequence = Maybe::Null;
    if let Maybe::Value(usage) = &mut start.usage {
        usage.output_tokens = Maybe::Value(1);
    }
    StreamEvent::MessageStart(Box::new(MessageStart { message: start, ..MessageStart::default() }))
}

fn message_delta(message: &Message) -> StreamEvent {
    let written = message.usage.get().map_or(Maybe::Absent, |usage| usage.output_tokens.clone());
    let delta = MessageDeltaFields {
        stop_reason: message.stop_reason.clone(),
        stop_sequence: message.stop_sequence.clone(),
        ..MessageDeltaFields::default()
    };
    let usage = Maybe::Value(Usage { output_tokens: written, ..Usage::default() });
    StreamEvent::MessageDelta(Box::new(MessageDelta { delta, usage, ..MessageDelta::default() }))
}

/// Splits a block into its start and its deltas.
fn split_block(block: Block, chunk: usize) -> (Block, Vec<Delta>) {
    let split = |text: &str| -> Vec<String> {
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(chunk.max(1)).map(String::from_iter).collect()
    };
    match block {
        Block::Text(mut block) => {
            let pieces = split(&std::mem::take(&mut block.text)).into_iter();
            let delta = |text| Delta::Text(Box::new(TextDelta { text, ..TextDelta::default() }));
            (Block::Text(block), pieces.map(delta).collect())
        }
        Block::Thinking(mut block) => {
            let pieces = split(&std::mem::take(&mut block.thinking)).into_iter();
            let delta = |thinking| Delta::Thinking(Box::new(ThinkingDelta { thinking, ..ThinkingDelta::default() }));
            let mut deltas: Vec<Delta> = pieces.map(delta).collect();
            if let Maybe::Value(signature) = std::mem::replace(&mut block.signature, Maybe::Value(String::new())) {
                let proof = SignatureDelta { signature, ..SignatureDelta::default() };
                deltas.push(Delta::Signature(Box::new(proof)));
            } else {
                block.signature = Maybe::Absent;
            }
            (Block::Thinking(block), deltas)
        }
        Block::ToolUse(mut block) => {
            let input = std::mem::replace(&mut block.input, Json::from_serialize(&serde_json::Map::new()));
            let delta =
                |partial_json| Delta::InputJson(Box::new(InputJsonDelta { partial_json, ..InputJsonDelta::default() }));
            (Block::ToolUse(block), split(input.text()).into_iter().map(delta).collect())
        }
        other => (other, Vec::new()),
    }
}

#[cfg(test)]
mod tests;
