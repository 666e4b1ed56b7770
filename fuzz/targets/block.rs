//! Blocks, contents and messages are written back from our types as they were read.

#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use quipu_message::hash::message_hash;
use quipu_message::line::replace_lone_surrogates;
use quipu_message::{Block, Content, Message};
use serde::{Serialize, de::DeserializeOwned};

fuzz_target!(|text: &str| {
    let text = replace_lone_surrogates(text);
    if let Some(block) = roundtrip::<Block>(&text) {
        block.count_unknown_blocks();
    }
    if let Some(content) = roundtrip::<Content>(&text) {
        content.to_text();
    }
    if let Some(message) = roundtrip::<Message>(&text) {
        assert_eq!(message_hash(&message).len(), 64);
    }
});

/// Reads, writes and reads again; both values must be equal.
fn roundtrip<T: DeserializeOwned + Serialize + PartialEq + Debug>(text: &str) -> Option<T> {
    let first: T = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&first).expect("what was read can be written");
    let second: T = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(first, second, "{written}");
    Some(first)
}
