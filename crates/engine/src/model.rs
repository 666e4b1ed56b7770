//! Model aliases, and the parameters that each model accepts.

use quipu_message::control::response;
use quipu_message::values::Effort;

/// The beta for a context window of a million tokens.
pub(crate) const LONG_CONTEXT_BETA: &str = "context-1m-2025-08-07";

/// The suffix of a model name that asks for a context window of a million tokens.
const LONG_CONTEXT_SUFFIX: &str = "[1m]";

/// The alias for one model in plan mode and another one otherwise.
const OPUSPLAN: &str = "opusplan";

/// Tokens reserved for the answer and the summary before the context is full.
const COMPACTION_RESERVE_TOKENS: u64 = 33_000;

/// The effort levels of models that think adaptively.
pub(crate) const EFFORT_LEVELS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// The effort that is sent if none is configured.
pub(crate) const DEFAULT_EFFORT: &str = "medium";

/// The full model names of the aliases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelAliases {
    opus: String,
    sonnet: String,
    haiku: String,
    fable: String,
    small: String,
}

/// The token limits of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelLimits {
    /// The size of the context window, in tokens.
    pub context_window: u64,
    /// The most tokens of an answer.
    pub max_output_tokens: u64,
}

/// Which `thinking` parameter a model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingSupport {
    /// No `thinking` parameter.
    None,
    /// A budget of tokens.
    Budget,
    /// Adaptive thinking, with an effort level.
    Adaptive,
}

impl ModelLimits {
    /// The limits of a model; those of a small one if it is unknown.
    pub(crate) fn for_model(model: &str) -> Self {
        let version = model_version(model);
        let output = match version {
            Some((5.., _)) => 128_000,
            Some((4, 6..)) => 64_000,
            Some((3, 5)) => 8_192,
            Some((..=3, ..5)) => 4_096,
            _ => 32_000,
        };
        let long = version.is_some_and(|version| version >= (5, 0)) || model.ends_with(LONG_CONTEXT_SUFFIX);
        Self { context_window: if long { 1_000_000 } else { 200_000 }, max_output_tokens: output }
    }

    /// The number of tokens in the context that triggers automatic compaction.
    pub(crate) fn auto_compact_threshold(self) -> u64 {
        self.context_window.saturating_sub(COMPACTION_RESERVE_TOKENS)
    }
}

impl ThinkingSupport {
    /// Which `thinking` parameter a model accepts; `None` if it is unknown.
    pub(crate) fn for_model(model: &str) -> Self {
        match model_version(model) {
            Some((4, 6..) | (5.., _)) => Self::Adaptive,
            Some((3, 7) | (4, _)) => Self::Budget,
            _ => Self::None,
        }
    }
}

/// The version in the name of a Claude model: `claude-opus-4-1-20250805` is 4.1.
fn model_version(model: &str) -> Option<(u32, u32)> {
    let (_, name) = model.split_once("claude-")?;
    let words = name.split(['-', '.', '@', ':', '[']);
    // Longer numbers are dates.
    let mut numbers =
        words.skip_while(|word| !is_number(word)).map_while(|word| word.parse().ok().filter(|n| *n < 100));
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name for the API: without the suffix for a long context.
pub(crate) fn wire_name(model: &str) -> &str {
    model.strip_suffix(LONG_CONTEXT_SUFFIX).unwrap_or(model)
}

/// Whether a model name has the suffix for a long context, which needs a beta.
pub(crate) fn needs_long_context_beta(model: &str) -> bool {
    model.ends_with(LONG_CONTEXT_SUFFIX)
}

/// The alias of a pair of models, one for planning and `model` for the work: `opusplan`, with
/// the suffix of `model`.
pub(crate) fn opusplan(model: &str) -> String {
    let suffix = if needs_long_context_beta(model) { LONG_CONTEXT_SUFFIX } else { "" };
    format!("{OPUSPLAN}{suffix}")
}

impl ModelAliases {
    /// The default models, unless the environment names others:
    /// `ANTHROPIC_DEFAULT_OPUS_MODEL`, `…_SONNET_MODEL`, `…_HAIKU_MODEL`,
    /// `…_FABLE_MODEL`, and `ANTHROPIC_SMALL_FAST_MODEL` for side calls.
    pub(crate) fn from_env(var: impl Fn(&str) -> Option<String>) -> Self {
        let named = |name: &str, default: &str| var(name).unwrap_or_else(|| default.to_owned());
        let haiku = named("ANTHROPIC_DEFAULT_HAIKU_MODEL", "claude-haiku-5-5");
        Self {
            opus: named("ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-opus-5-5"),
            sonnet: named("ANTHROPIC_DEFAULT_SONNET_MODEL", "claude-sonnet-5-5"),
            fable: named("ANTHROPIC_DEFAULT_FABLE_MODEL", "claude-fable-5-2"),
            small: named("ANTHROPIC_SMALL_FAST_MODEL", &haiku),
            haiku,
        }
    }

    /// The full name for an alias, with its suffix `[1m]` if it has one; other names are returned as
    /// they are.
    pub(crate) fn resolve(&self, name: &str) -> String {
        let (alias, suffix) =
            name.strip_suffix(LONG_CONTEXT_SUFFIX).map_or((name, ""), |alias| (alias, LONG_CONTEXT_SUFFIX));
        let model = match alias {
            "default" | "opus" | "best" => &self.opus,
            "sonnet" | OPUSPLAN => &self.sonnet,
            "haiku" => &self.haiku,
            "fable" => &self.fable,
            _ => return name.to_owned(),
        };
        format!("{model}{suffix}")
    }

    /// The model for plan mode; `None` for every name but `opusplan`.
    pub(crate) fn planning_model(&self, name: &str) -> Option<String> {
        (wire_name(name) == OPUSPLAN).then(|| self.opus.clone())
    }

    /// The model of a session that configures none.
    pub(crate) fn default_model(&self) -> &str {
        &self.opus
    }

    /// The model for side calls.
    pub(crate) fn small_model(&self) -> &str {
        &self.small
    }

    /// All aliases and their models, for the control protocol.
    pub(crate) fn list_models(&self) -> Vec<response::ModelInfo> {
        let row = |value: &str, model: &String, name: &str, about: &str| {
            let adaptive = ThinkingSupport::for_model(model) == ThinkingSupport::Adaptive;
            let levels = || EFFORT_LEVELS.iter().map(|level| Effort::from(*level)).collect();
            response::ModelInfo {
                value: value.to_owned(),
                resolved_model: model.clone().into(),
                display_name: name.to_owned(),
                description: about.to_owned(),
                supports_effort: adaptive.then_some(true).into(),
                supported_effort_levels: adaptive.then(levels).into(),
                supports_adaptive_thinking: adaptive.then_some(true).into(),
                supports_auto_mode: true.into(),
                supports_thinking_off: (!adaptive).into(),
                ..response::ModelInfo::default()
            }
        };
        vec![
            row("default", &self.opus, "Default (recommended)", "The model to begin with"),
            row("opus", &self.opus, "Opus", "For hard problems"),
            row("fable", &self.fable, "Fable", "For the hardest problems"),
            row("sonnet", &self.sonnet, "Sonnet", "For everyday work"),
            row("haiku", &self.haiku, "Haiku", "For quick answers"),
        ]
    }
}

#[cfg(test)]
mod tests;
