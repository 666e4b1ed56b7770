//! What a client was sent, and what it is still to be sent.

use std::collections::BTreeMap;

use super::state::{ChatState, LogEntry};
use super::view::ChatEvent;

/// What one client was sent of a chat. The next lines are the difference to the state, so that they
/// are few for a client that reads slowly, and nothing is kept for it.
#[derive(Debug, Default)]
pub(crate) struct EventCursor {
    /// `None` before the snapshot.
    version: Option<u64>,
    /// Number of the last note or withdrawn message.
    log_number: u64,
    messages: BTreeMap<String, SentMessage>,
}

#[derive(Debug, Default)]
struct SentMessage {
    /// Bytes of text that were sent, and whether the end was, by index of the block.
    blocks: BTreeMap<usize, (usize, bool)>,
    is_end_sent: bool,
}

impl EventCursor {
    /// The lines that bring a client up to date; empty if it is.
    pub(crate) fn next_lines(&mut self, state: &ChatState) -> Vec<u8> {
        let mut lines = Vec::new();
        let last_log = state.log.back().map_or(0, |(number, _)| *number);
        match self.version {
            Some(version) if version == state.version => {}
            Some(version) => self.push_changes(state, version, &mut lines),
            None => self.push_snapshot(state, &mut lines),
        }
        self.version = Some(state.version);
        self.log_number = last_log;
        lines
    }

    fn push_snapshot(&mut self, state: &ChatState, lines: &mut Vec<u8>) {
        let notes = state.log.iter().filter_map(|(_, entry)| match entry {
            LogEntry::Note(note) => Some(note),
            LogEntry::Withdrawn(_) => None,
        });
        let partial = state.partial.blocks().collect();
        push_line(lines, &ChatEvent::Snapshot { chat: &state.chat, partial, notes: notes.collect() });
        for message in state.partial.iter() {
            let sent = self.messages.entry(message.id.clone()).or_default();
            sent.blocks =
                message.blocks.iter().map(|block| (block.index, (block.text.len(), block.is_complete))).collect();
        }
        self.push_progress(state, 0, lines);
    }

    fn push_changes(&mut self, state: &ChatState, version: u64, lines: &mut Vec<u8>) {
        for (_, entry) in state.log.iter().filter(|(number, _)| *number > self.log_number) {
            match entry {
                LogEntry::Note(note) => push_line(lines, &ChatEvent::Note { note }),
                // A message that the client was never sent need not be withdrawn.
                LogEntry::Withdrawn(message_id) => {
                    if self.messages.remove(message_id).is_some() {
                        push_line(lines, &ChatEvent::Withdrawn { message_id });
                    }
                }
            }
        }
        self.push_partial(state, lines);
        self.push_progress(state, version, lines);
        if state.chat_version > version {
            push_line(lines, &ChatEvent::Chat { chat: &state.chat });
        }
    }

    fn push_partial(&mut self, state: &ChatState, lines: &mut Vec<u8>) {
        for message in state.partial.iter() {
            let message_id = message.id.as_str();
            let sent = self.messages.entry(message.id.clone()).or_default();
            for block in &message.blocks {
                let index = block.index;
                match sent.blocks.get(&index) {
                    None => push_line(lines, &ChatEvent::BlockStart { block }),
                    Some((length, _)) if *length < block.text.len() => {
                        let text = &block.text[*length..];
                        push_line(lines, &ChatEvent::Delta { message_id, index, text });
                    }
                    Some(_) => {}
                }
                let (_, is_end_sent) =
                    sent.blocks.insert(index, (block.text.len(), block.is_complete)).unwrap_or_default();
                if block.is_complete && !is_end_sent {
                    push_line(lines, &ChatEvent::BlockEnd { message_id, index });
                }
            }
            if message.has_ended && !sent.is_end_sent {
                sent.is_end_sent = true;
                push_line(lines, &ChatEvent::MessageEnd { message_id });
            }
        }
        // Messages that ended and were replaced by the next one: the file has them.
        let is_shown = |id: &str| state.partial.iter().any(|message| message.id == id);
        self.messages.retain(|id, sent| {
            let is_shown = is_shown(id);
            if !is_shown && !sent.is_end_sent {
                push_line(lines, &ChatEvent::MessageEnd { message_id: id });
            }
            is_shown
        });
    }

    fn push_progress(&self, state: &ChatState, version: u64, lines: &mut Vec<u8>) {
        for (tool_use_id, progress) in state.progress.iter().filter(|(_, progress)| progress.version > version) {
            let (elapsed_ms, text) = (progress.elapsed_ms, progress.text.as_deref());
            push_line(lines, &ChatEvent::ToolProgress { tool_use_id, elapsed_ms, text });
        }
    }
}

/// A line that shows that the connection is open.
pub(crate) fn ping_line() -> Vec<u8> {
    let mut line = Vec::new();
    push_line(&mut line, &ChatEvent::Ping);
    line
}

fn push_line(lines: &mut Vec<u8>, event: &ChatEvent<'_>) {
    // Fails only for maps whose keys are not text; there are none.
    let _ = serde_json::to_writer(&mut *lines, event);
    lines.push(b'\n');
}

#[cfg(test)]
mod tests;
