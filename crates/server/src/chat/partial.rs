//! The responses that are being streamed.

use std::collections::BTreeMap;

use quipu_message::Block;
use quipu_message::api::{Delta, StreamEvent};

use super::view::{PartialBlock, PartialKind};

/// Text of all blocks together; more is not shown before it is in the session file.
const MAX_PARTIAL_BYTES: usize = 8 << 20;
/// Messages of subagents that are shown at the same time.
const MAX_MESSAGES: usize = 64;

/// The latest message of each agent, by the tool call of the subagent.
#[derive(Debug, Default)]
pub(super) struct PartialMessages {
    messages: BTreeMap<Option<String>, PartialMessage>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct PartialMessage {
    pub(super) id: String,
    pub(super) blocks: Vec<PartialBlock>,
    pub(super) has_ended: bool,
}

impl PartialMessages {
    pub(super) fn iter(&self) -> impl Iterator<Item = &PartialMessage> {
        self.messages.values()
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &PartialBlock> {
        self.iter().flat_map(|message| &message.blocks)
    }

    /// Applies an event of an agent. Returns the id of a message that it withdraws: one that a new
    /// message replaces before its end.
    pub(super) fn push(&mut self, agent: Option<&str>, event: &StreamEvent) -> Option<String> {
        let agent = agent.map(str::to_owned);
        if let StreamEvent::MessageStart(start) = event {
            let withdrawn = self.remove(&agent).filter(|message| !message.has_ended).map(|message| message.id);
            let id = start.message.id.text().unwrap_or_default().to_owned();
            if self.messages.len() < MAX_MESSAGES {
                self.messages.insert(agent, PartialMessage { id, blocks: Vec::new(), has_ended: false });
            }
            return withdrawn;
        }
        let message = self.messages.get_mut(&agent)?;
        match event {
            StreamEvent::BlockStart(start) => {
                if let Some(block) = new_block(&message.id, start.index, &start.content_block, agent) {
                    self.bytes += block.text.len();
                    message.blocks.push(block);
                }
            }
            StreamEvent::BlockDelta(delta) => {
                let text = match &delta.delta {
                    Delta::Text(delta) => &delta.text,
                    Delta::Thinking(delta) => &delta.thinking,
                    Delta::InputJson(delta) => &delta.partial_json,
                    _ => return None,
                };
                let block = message.blocks.iter_mut().find(|block| block.index == delta.index)?;
                if self.bytes + text.len() <= MAX_PARTIAL_BYTES {
                    self.bytes += text.len();
                    block.text.push_str(text);
                }
            }
            StreamEvent::BlockStop(stop) => {
                message.blocks.iter_mut().find(|block| block.index == stop.index)?.is_complete = true;
            }
            StreamEvent::MessageStop(_) => message.has_ended = true,
            _ => {}
        }
        None
    }

    /// Removes messages that were broken off: that of the main agent, or all. Returns their ids.
    /// Complete ones stay until the next message, because the file may be written a moment later.
    pub(super) fn remove_incomplete(&mut self, include_subagents: bool) -> Vec<String> {
        let is_removed = |(agent, message): &(&Option<String>, &PartialMessage)| {
            !message.has_ended && (include_subagents || agent.is_none())
        };
        let agents: Vec<_> = self.messages.iter().filter(is_removed).map(|(agent, _)| agent.clone()).collect();
        agents.iter().filter_map(|agent| self.remove(agent)).map(|message| message.id).collect()
    }

    /// Removes the message of a subagent that is done.
    pub(super) fn remove_agent(&mut self, agent: &str) {
        self.remove(&Some(agent.to_owned()));
    }

    /// Removes a message by its id. Returns whether there was one.
    pub(super) fn withdraw(&mut self, id: &str) -> bool {
        let agent = self.messages.iter().find(|(_, message)| message.id == id).map(|(agent, _)| agent.clone());
        agent.is_some_and(|agent| self.remove(&agent).is_some())
    }

    fn remove(&mut self, agent: &Option<String>) -> Option<PartialMessage> {
        let message = self.messages.remove(agent)?;
        self.bytes -= message.blocks.iter().map(|block| block.text.len()).sum::<usize>();
        Some(message)
    }
}

/// The start of a block; `None` for blocks that are shown when they are complete.
fn new_block(message_id: &str, index: usize, block: &Block, agent: Option<String>) -> Option<PartialBlock> {
    let (kind, text) = match block {
        Block::Text(block) => (PartialKind::Text, block.text.clone()),
        Block::Thinking(block) => (PartialKind::Thinking, block.thinking.clone()),
        // Its input is complete in the events that follow.
        block if block.tool_call().is_some() => (PartialKind::ToolUse, String::new()),
        _ => return None,
    };
    let call = block.tool_call();
    Some(PartialBlock {
        message_id: message_id.to_owned(),
        index,
        kind,
        text,
        tool_name: call.map(|call| call.name.to_owned()),
        tool_use_id: call.map(|call| call.id.to_string()),
        agent,
        is_complete: false,
    })
}

#[cfg(test)]
pub(super) mod tests;
