//! Any bytes as a stream, split anywhere, and any lines as a conversation.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use quipu_conversation::{Accumulator, Conversation, normalise};
use quipu_message::sse::{Event, EventTooLarge, Parser};
use quipu_message::{Block, Message, Role};

fuzz_target!(|bytes: &[u8]| {
    // The last bytes give the sizes of the parts and the limit on one event.
    let sizes: Vec<usize> = bytes.iter().rev().take(4).map(|&b| 1 + usize::from(b)).collect();
    let limit = match bytes.last() {
        Some(b) if b % 8 == 0 => 1 + bytes.len() / 2,
        _ => usize::MAX,
    };
    let whole = parse(limit, [bytes].into_iter());
    assert_eq!(whole, parse(limit, bytes.chunks(1)));
    assert_eq!(whole, parse(limit, Chunks { bytes, sizes: sizes.iter().cycle() }));
    if let Ok(text) = str::from_utf8(bytes) {
        check_conversation(text);
    }
});

/// Cuts bytes into pieces of the given sizes, over and over.
struct Chunks<'a, I> {
    bytes: &'a [u8],
    sizes: I,
}

impl<'a, 'b, I: Iterator<Item = &'b usize>> Iterator for Chunks<'a, I> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        let size = (*self.sizes.next()?).min(self.bytes.len());
        let (piece, rest) = self.bytes.split_at(size);
        self.bytes = rest;
        (!piece.is_empty()).then_some(piece)
    }
}

type Parsed = (Vec<Result<Event, EventTooLarge>>, Option<String>, Vec<Result<(), String>>, Option<Message>);

/// The events, the incomplete rest, the result of the accumulator for each event, and the message.
fn parse<'a>(limit: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Parsed {
    let mut parser = Parser::with_limit(limit);
    let mut accumulator = Accumulator::default();
    let (mut events, mut results) = (Vec::new(), Vec::new());
    for piece in pieces {
        for event in parser.push(piece) {
            if let Ok(event) = &event {
                let parsed = serde_json::from_str(&event.data).map_err(|e| e.to_string());
                results.push(parsed.and_then(|event| accumulator.push(&event).map_err(|e| e.to_string())));
                accumulator.partial_message();
            }
            events.push(event);
        }
    }
    let cut = parser.finish().err().map(|cut| format!("{cut:?}"));
    (events, cut, results, accumulator.finish().ok())
}

fn check_conversation(text: &str) {
    let mut conversation = Conversation::default();
    for (i, line) in text.lines().enumerate() {
        conversation.push_line(i as u64 + 1, line);
    }
    serde_json::to_string(&conversation.for_ui()).expect("the screen can be sent");
    conversation.turns();
    conversation.branches();
    let messages = conversation.for_api();
    check_messages(&messages);
    assert_eq!(normalise(messages.clone()), messages);
}

/// Roles alternate from the user's on, nothing is empty, and each message opens
/// with the results of exactly the calls in the one before.
fn check_messages(messages: &[Message]) {
    let mut due = HashSet::new();
    for (i, message) in messages.iter().enumerate() {
        let role = if i % 2 == 0 { Role::User } else { Role::Assistant };
        assert_eq!(message.role, role);
        let blocks = message.content.blocks();
        assert!(!blocks.is_empty());
        let results: Vec<_> = blocks.iter().map_while(Block::tool_result).map(|r| &r.tool_use_id).collect();
        assert_eq!(blocks.iter().filter(|b| b.tool_result().is_some()).count(), results.len());
        assert_eq!(results.len(), due.len());
        assert_eq!(results.into_iter().collect::<HashSet<_>>(), due);
        due = blocks.iter().filter_map(Block::tool_use).map(|call| &call.id).collect();
        assert_eq!(due.len(), blocks.iter().filter(|b| b.tool_use().is_some()).count());
    }
    assert!(due.is_empty());
}
