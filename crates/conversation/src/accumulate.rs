//! Assembles the events of a streamed response into the message that the same request would
//! return without streaming.

use std::collections::BTreeMap;

use quipu_message::api::{Delta, MessageDelta, StreamEvent};
use quipu_message::{Block, Content, Json, Maybe, Message, Usage};
use serde_json::Value;

/// Assembles one message from stream events.
///
/// ```
/// use quipu_conversation::Accumulator;
/// let mut message = Accumulator::default();
/// for event in [
///     r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#,
///     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
///     r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#,
///     r#"{"type":"content_block_stop","index":0}"#,
///     r#"{"type":"message_stop"}"#,
/// ] {
///     message.push(&serde_json::from_str(event)?)?;
/// }
/// assert_eq!(message.finish()?.content.to_text(), "hi");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Accumulator {
    message: Option<Message>,
    blocks: BTreeMap<usize, PartialBlock>,
    is_stopped: bool,
}

#[derive(Debug, Clone)]
struct PartialBlock {
    block: Block,
    input_json: String,
    is_stopped: bool,
}

/// Why events do not form a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccumulateError {
    /// An event refers to a message or block that has not started.
    #[error("{event} before its start")]
    OutOfOrder {
        /// Type of the event.
        event: String,
    },
    /// The type of a delta does not fit its block.
    #[error("{delta} on a {block} block")]
    Mismatch {
        /// Type of the delta.
        delta: String,
        /// Type of the block.
        block: String,
    },
    /// The input of a tool call is not valid JSON, usually because the model reached its
    /// output limit.
    #[error("the input of {tool} is not JSON")]
    BadInput {
        /// Name of the tool.
        tool: String,
    },
    /// The server sent an `error` event.
    #[error("{kind}: {message}")]
    Server {
        /// Error type, such as `overloaded_error`.
        kind: String,
        /// Description by the server.
        message: String,
    },
    /// The stream ended before `message_stop`.
    #[error("the stream was cut off")]
    Incomplete,
}

impl Accumulator {
    /// Applies one event. Unknown events are ignored; `message_start` discards an earlier
    /// message.
    pub fn push(&mut self, event: &StreamEvent) -> Result<(), AccumulateError> {
        let out_of_order = || AccumulateError::OutOfOrder { event: event.tag().to_owned() };
        match event {
            StreamEvent::MessageStart(start) => {
                *self = Self { message: Some(start.message.clone()), ..Self::default() };
            }
            StreamEvent::BlockStart(start) => {
                let partial =
                    PartialBlock { block: start.content_block.clone(), input_json: String::new(), is_stopped: false };
                self.blocks.insert(start.index, partial);
            }
            StreamEvent::BlockDelta(delta) => {
                self.blocks.get_mut(&delta.index).ok_or_else(out_of_order)?.apply_delta(&delta.delta)?;
            }
            StreamEvent::BlockStop(stop) => self.blocks.get_mut(&stop.index).ok_or_else(out_of_order)?.finish()?,
            StreamEvent::MessageDelta(delta) => {
                apply_message_delta(self.message.as_mut().ok_or_else(out_of_order)?, delta)
            }
            StreamEvent::MessageStop(_) => self.is_stopped = true,
            StreamEvent::Error(error) => {
                return Err(AccumulateError::Server {
                    kind: error.error.kind.text().unwrap_or("error").to_owned(),
                    message: error.error.message.text().unwrap_or_default().to_owned(),
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// The message received so far; the input of an unfinished tool call is missing. `None`
    /// before `message_start`.
    pub fn partial_message(&self) -> Option<Message> {
        let blocks = self.blocks.values().map(|partial| partial.block.clone()).collect::<Vec<_>>();
        self.message.as_ref().map(|message| Message { content: Content::Blocks(blocks), ..message.clone() })
    }

    /// One block as received so far; `None` if it has not started.
    pub fn partial_block(&self, index: usize) -> Option<&Block> {
        self.blocks.get(&index).map(|partial| &partial.block)
    }

    /// Whether `message_start` was received.
    pub fn has_started(&self) -> bool {
        self.message.is_some()
    }

    /// Whether `message_stop` was received.
    pub fn is_complete(&self) -> bool {
        self.is_stopped
    }

    /// Returns the complete message; fails if the message or one of its blocks has not ended.
    pub fn finish(self) -> Result<Message, AccumulateError> {
        if !self.is_stopped || self.blocks.values().any(|partial| !partial.is_stopped) {
            return Err(AccumulateError::Incomplete);
        }
        self.partial_message().ok_or(AccumulateError::Incomplete)
    }
}

impl PartialBlock {
    fn apply_delta(&mut self, delta: &Delta) -> Result<(), AccumulateError> {
        match (delta, &mut self.block) {
            (Delta::Text(delta), Block::Text(block)) => block.text.push_str(&delta.text),
            (Delta::Thinking(delta), Block::Thinking(block)) => block.thinking.push_str(&delta.thinking),
            (Delta::Signature(delta), Block::Thinking(block)) => {
                block.signature = Maybe::Value(delta.signature.clone());
            }
            (Delta::Citations(delta), Block::Text(block)) => {
                let mut list = block.citations.get().map(Json::to_value).unwrap_or_default();
                if !list.is_array() {
                    list = Value::Array(Vec::new());
                }
                list.as_array_mut().into_iter().for_each(|list| list.push(delta.citation.to_value()));
                block.citations = Maybe::Value(list.into());
            }
            (Delta::InputJson(delta), Block::ToolUse(_) | Block::ServerToolUse(_) | Block::McpToolUse(_)) => {
                self.input_json.push_str(&delta.partial_json);
            }
            // A type of block or delta that this build does not know.
            (Delta::Unknown(_), _) | (_, Block::Unknown(_)) => {}
            (delta, block) => {
                let (delta, block) = (delta.tag().to_owned(), block.tag().to_owned());
                return Err(AccumulateError::Mismatch { delta, block });
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), AccumulateError> {
        self.is_stopped = true;
        if self.input_json.is_empty() {
            return Ok(());
        }
        let input = Json::parse(&self.input_json);
        let (slot, name) = match &mut self.block {
            Block::ToolUse(block) => (&mut block.input, &block.name),
            Block::ServerToolUse(block) => return set_input(&mut block.input, input, block.name.as_str()),
            Block::McpToolUse(block) => return set_input(&mut block.input, input, &block.name),
            _ => return Ok(()),
        };
        *slot = input.map_err(|_| AccumulateError::BadInput { tool: name.to_string() })?;
        Ok(())
    }
}

fn set_input(slot: &mut Maybe<Json>, input: serde_json::Result<Json>, name: &str) -> Result<(), AccumulateError> {
    *slot = Maybe::Value(input.map_err(|_| AccumulateError::BadInput { tool: name.to_owned() })?);
    Ok(())
}

/// Applies a `message_delta` event; absent fields keep their value.
fn apply_message_delta(message: &mut Message, delta: &MessageDelta) {
    let MessageDelta { delta: change, usage, context_management, .. } = delta;
    replace_if_present(&mut message.stop_reason, &change.stop_reason);
    replace_if_present(&mut message.stop_sequence, &change.stop_sequence);
    replace_if_present(&mut message.stop_details, &change.stop_details);
    replace_if_present(&mut message.container, &change.container);
    replace_if_present(&mut message.context_management, context_management);
    if let Some(newer) = usage.get() {
        let mut merged = message.usage.get().cloned().unwrap_or_default();
        merge_usage(&mut merged, newer);
        message.usage = Maybe::Value(merged);
    }
}

fn merge_usage(usage: &mut Usage, newer: &Usage) {
    replace_if_present(&mut usage.input_tokens, &newer.input_tokens);
    replace_if_present(&mut usage.output_tokens, &newer.output_tokens);
    replace_if_present(&mut usage.cache_creation_input_tokens, &newer.cache_creation_input_tokens);
    replace_if_present(&mut usage.cache_read_input_tokens, &newer.cache_read_input_tokens);
    replace_if_present(&mut usage.cache_creation, &newer.cache_creation);
    replace_if_present(&mut usage.server_tool_use, &newer.server_tool_use);
    replace_if_present(&mut usage.service_tier, &newer.service_tier);
    replace_if_present(&mut usage.inference_geo, &newer.inference_geo);
    replace_if_present(&mut usage.speed, &newer.speed);
    replace_if_present(&mut usage.iterations, &newer.iterations);
    replace_if_present(&mut usage.output_tokens_details, &newer.output_tokens_details);
    for (key, value) in newer.extra.iter() {
        usage.extra.push(key, value.clone());
    }
}

fn replace_if_present<T: Clone>(slot: &mut Maybe<T>, newer: &Maybe<T>) {
    if !matches!(newer, Maybe::Absent) {
        *slot = newer.clone();
    }
}
