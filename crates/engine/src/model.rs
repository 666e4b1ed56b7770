//! The models: what people call them, how much they read and write.

use quipu_message::control::answer;

/// The models behind the short names people use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Models {
    opus: String,
    sonnet: String,
    haiku: String,
}

/// Tokens reserved for the answer and the summary before the context is full.
const RESERVE: u64 = 33_000;

/// What a model can take and give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// How much it reads.
    pub context: u64,
    /// How much it writes.
    pub output: u64,
}

impl Size {
    /// The size of a model; one we do not know counts as small.
    ///
    /// ```
    /// use quipu_engine::model::Size;
    /// assert_eq!(Size::of("claude-opus-5-5").context, 1_000_000);
    /// assert_eq!(Size::of("someone-elses-model").context, 200_000);
    /// ```
    pub fn of(model: &str) -> Self {
        let newest = model.contains("opus-5") || model.contains("fable-5") || model.contains("sonnet-5");
        let context = if newest || model.contains("[1m]") { 1_000_000 } else { 200_000 };
        Self { context, output: if newest { 128_000 } else { 32_000 } }
    }

    /// Where automatic compaction sets in.
    pub fn threshold(self) -> u64 {
        self.context.saturating_sub(RESERVE)
    }
}

/// Whether a model thinks as far as it sees fit.
pub fn is_adaptive(model: &str) -> bool {
    Size::of(model).output == 128_000
}

impl Models {
    /// The models, as far as the environment does not name others:
    /// `ANTHROPIC_DEFAULT_OPUS_MODEL`, `…_SONNET_MODEL`, `…_HAIKU_MODEL`.
    ///
    /// ```
    /// use quipu_engine::model::Models;
    /// let models = Models::from_env(|name| (name == "ANTHROPIC_DEFAULT_HAIKU_MODEL").then(|| "tiny-1".to_owned()));
    /// assert_eq!(models.resolve("haiku"), "tiny-1");
    /// assert_eq!(models.resolve("claude-opus-5-5"), "claude-opus-5-5");
    /// ```
    pub fn from_env(var: impl Fn(&str) -> Option<String>) -> Self {
        let named = |name: &str, usual: &str| var(name).unwrap_or_else(|| usual.to_owned());
        Self {
            opus: named("ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-opus-5-5"),
            sonnet: named("ANTHROPIC_DEFAULT_SONNET_MODEL", "claude-sonnet-4-5"),
            haiku: named("ANTHROPIC_DEFAULT_HAIKU_MODEL", "claude-haiku-4-5"),
        }
    }

    /// The model behind a name; a name that is not short stands for itself.
    pub fn resolve(&self, name: &str) -> String {
        match name {
            "default" | "opus" => self.opus.clone(),
            "sonnet" => self.sonnet.clone(),
            "haiku" => self.haiku.clone(),
            other => other.to_owned(),
        }
    }

    /// What is asked for when nobody says otherwise.
    pub fn usual(&self) -> &str {
        &self.opus
    }

    /// The model for small side questions.
    pub fn small(&self) -> &str {
        &self.haiku
    }

    /// The models, as hosts list them.
    pub fn list(&self) -> Vec<answer::Model> {
        let row = |value: &str, model: &String, name: &str, about: &str| answer::Model {
            value: value.to_owned(),
            resolved_model: model.clone().into(),
            display_name: name.to_owned(),
            description: about.to_owned(),
            ..answer::Model::default()
        };
        vec![
            row("default", &self.opus, "Default", "The model to begin with"),
            row("opus", &self.opus, "Opus", "For hard problems"),
            row("sonnet", &self.sonnet, "Sonnet", "For everyday work"),
            row("haiku", &self.haiku, "Haiku", "For quick answers"),
        ]
    }
}
