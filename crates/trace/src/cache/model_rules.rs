//! What the prompt cache does differently for some models.

use quipu_conversation::price::base_name;

/// Rules of one model.
struct ModelRules {
    /// Base names of the models.
    models: &'static [&'static str],
    /// Tokens that a prefix must have to be cached.
    minimum: u64,
}

/// Minimum lengths as documented in 2026-08. Sources differ for some models; those for which
/// none is published are absent.
const MINIMUM_LENGTHS: &[ModelRules] = &[
    ModelRules { models: &["claude-opus-5", "claude-fable-5-1"], minimum: 512 },
    ModelRules {
        models: &[
            "claude-opus-4-8",
            "claude-opus-4-1",
            "claude-opus-4",
            "claude-sonnet-5",
            "claude-sonnet-4-6",
            "claude-sonnet-4-5",
            "claude-sonnet-4",
        ],
        minimum: 1024,
    },
    ModelRules { models: &["claude-opus-4-7", "claude-3-5-haiku"], minimum: 2048 },
    ModelRules { models: &["claude-opus-4-6", "claude-opus-4-5", "claude-haiku-4-5"], minimum: 4096 },
];

/// Models that remove the thinking of earlier turns from the context when the user writes a
/// message that is no tool result. Later models keep it.
const REMOVES_OLD_THINKING: &[&str] = &[
    "claude-3-7-sonnet",
    "claude-sonnet-4",
    "claude-sonnet-4-5",
    "claude-opus-4",
    "claude-opus-4-1",
    "claude-haiku-4-5",
];

/// Tokens that a prefix must have to be cached by this model; `None` if that is not known.
pub(super) fn minimum_prefix(model: &str) -> Option<u64> {
    let name = base_name(model);
    MINIMUM_LENGTHS.iter().find(|rules| rules.models.contains(&name)).map(|rules| rules.minimum)
}

/// Whether this model removes the thinking of earlier turns when a user message arrives.
pub(super) fn removes_old_thinking(model: &str) -> bool {
    REMOVES_OLD_THINKING.contains(&base_name(model))
}
