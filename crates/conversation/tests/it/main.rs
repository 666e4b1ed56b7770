//! The conversation crate against real recordings, and its laws.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

mod for_api;
mod for_ui;
mod live;
mod parity_api;
mod parity_sources;
mod past_requests;
mod prices;
mod properties;
mod scenarios;
mod screen_completeness;
mod skeleton;
mod tree_roots;

use std::fs;
use std::path::Path;

use quipu_conversation::Conversation;

/// Folds the lines of a file.
fn fold(paths: &[&Path]) -> Conversation {
    let mut conversation = Conversation::default();
    let mut n = 0;
    for path in paths {
        for line in fs::read_to_string(path).unwrap().lines() {
            n += 1;
            conversation.push_line(n, line);
        }
    }
    conversation
}
