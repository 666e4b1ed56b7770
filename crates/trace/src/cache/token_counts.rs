//! Tokens of the positions of a request.
//!
//! A response counts the whole prompt and what of it was read from and written to the cache,
//! so it gives the exact length of the prefix up to the last breakpoint. Between such points
//! tokens are estimated by the size of the text.

use std::collections::HashMap;

use quipu_conversation::Tokens;

use super::positions::{Position, Prompt};
use crate::prompt_store::PromptStore;

/// Bytes of text that count as one token if no response counted the prompt.
const BYTES_PER_TOKEN: u64 = 4;

/// How far an estimate may be from a recorded read that is the same prefix, in per cent.
const ESTIMATE_TOLERANCE_PERCENT: u64 = 10;

/// Known lengths of prefixes in tokens, by the hash of the prefix.
#[derive(Debug, Default)]
pub(super) struct TokenCounts {
    exact: HashMap<u64, u64>,
}

impl TokenCounts {
    /// Learns the length of the prefix up to the last breakpoint.
    pub(super) fn learn_last_breakpoint(&mut self, prompt: &Prompt, tokens: &Tokens) {
        let cached = tokens.cache_read + tokens.cache_write();
        if let (Some(last), 1..) = (prompt.last_breakpoint(), cached) {
            self.exact.insert(prompt.positions[last].prefix, cached);
        }
    }

    /// Learns the length of a prefix that the rules find in the cache from the recorded read,
    /// unless they are too far apart to be the same prefix.
    pub(super) fn learn_read(&mut self, position: &Position, read: u64) {
        let distance = position.tokens.abs_diff(read);
        if read > 0 && distance * 100 <= read * ESTIMATE_TOLERANCE_PERCENT {
            self.exact.entry(position.prefix).or_insert(read);
        }
    }

    /// Fills in the token counts of a prompt. `total` is the recorded size of the prompt;
    /// without one it is estimated.
    pub(super) fn fill(&self, prompt: &mut Prompt, total: Option<u64>, prompts: &PromptStore) {
        let weights: Vec<u64> = prompt.positions.iter().map(|position| prompts.part(position.text).weight).collect();
        let weight: u64 = weights.iter().sum();
        prompt.total = total.unwrap_or(weight / BYTES_PER_TOKEN);
        let (mut known_tokens, mut begin) = (0, 0);
        for index in 0..prompt.positions.len() {
            let exact = self.exact.get(&prompt.positions[index].prefix).copied();
            let is_last = index + 1 == prompt.positions.len();
            let Some(tokens) = exact.or_else(|| is_last.then_some(prompt.total)) else { continue };
            let tokens = tokens.clamp(known_tokens, prompt.total.max(known_tokens));
            interpolate(prompt, &weights, begin..index + 1, known_tokens, tokens);
            (known_tokens, begin) = (tokens, index + 1);
        }
    }
}

/// Distributes the tokens between two known counts over positions, by their weights.
fn interpolate(prompt: &mut Prompt, weights: &[u64], range: std::ops::Range<usize>, from: u64, to: u64) {
    let weight = weights[range.clone()].iter().sum::<u64>().max(1);
    let mut sum = 0;
    for index in range {
        sum += weights[index];
        let share = u128::from(to - from) * u128::from(sum) / u128::from(weight);
        prompt.positions[index].tokens = from + share as u64;
    }
}
