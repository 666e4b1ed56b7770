//! Blocks, contents and messages come back from our types as they went in.

#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use quipu_message::hash::message_hash;
use quipu_message::line::mend;
use quipu_message::{Block, Content, Message};
use serde::{Serialize, de::DeserializeOwned};

fuzz_target!(|text: &str| {
    let text = mend(text);
    if let Some(block) = comes_back::<Block>(&text) {
        block.unknown_blocks();
    }
    if let Some(content) = comes_back::<Content>(&text) {
        content.to_text();
    }
    if let Some(message) = comes_back::<Message>(&text) {
        assert_eq!(message_hash(&message).len(), 64);
    }
});

/// Reads, writes and reads again; the two readings must be one.
fn comes_back<T: DeserializeOwned + Serialize + PartialEq + Debug>(text: &str) -> Option<T> {
    let first: T = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&first).expect("what was read can be written");
    let second: T = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(first, second, "{written}");
    Some(first)
}
