//! The models: what people call them, how much they read and write.

use quipu_message::control::answer;

/// What is asked for when nobody says otherwise.
pub const DEFAULT: &str = "claude-opus-5-5";

/// The model for small side questions.
pub const SMALL: &str = "claude-haiku-4-5";

/// Short names, the model behind each, and what it is good for.
const NAMES: [(&str, &str, &str, &str); 4] = [
    ("default", DEFAULT, "Default", "The model to begin with"),
    ("opus", DEFAULT, "Opus", "For hard problems"),
    ("sonnet", "claude-sonnet-4-5", "Sonnet", "For everyday work"),
    ("haiku", SMALL, "Haiku", "For quick answers"),
];

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

/// The model behind a name; a name that is not short stands for itself.
pub fn resolve(name: &str) -> String {
    let found = NAMES.iter().find(|(short, ..)| *short == name);
    found.map_or_else(|| name.to_owned(), |(_, model, ..)| (*model).to_owned())
}

/// Whether a model thinks as far as it sees fit.
pub fn is_adaptive(model: &str) -> bool {
    Size::of(model).output == 128_000
}

/// The models, as hosts list them.
pub fn list() -> Vec<answer::Model> {
    let row = |(value, model, name, about): &(&str, &str, &str, &str)| answer::Model {
        value: (*value).to_owned(),
        resolved_model: (*model).to_owned().into(),
        display_name: (*name).to_owned(),
        description: (*about).to_owned(),
        ..answer::Model::default()
    };
    NAMES.iter().map(row).collect()
}
