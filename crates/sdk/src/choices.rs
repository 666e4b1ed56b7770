//! Options that are a choice.

use std::path::PathBuf;

use quipu_message::Json;

/// What the model is told first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SystemPrompt {
    /// Nothing.
    #[default]
    Empty,
    /// The agent's own words.
    AgentDefault,
    /// The agent's own words, and these.
    Append(String),
    /// These words alone.
    Custom(String),
    /// What a file says.
    File(PathBuf),
}

impl From<&str> for SystemPrompt {
    fn from(words: &str) -> Self {
        Self::Custom(words.to_owned())
    }
}

impl From<String> for SystemPrompt {
    fn from(words: String) -> Self {
        Self::Custom(words)
    }
}

/// Whether and how far the model thinks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingMode {
    /// As it sees fit.
    Adaptive,
    /// At most so many tokens.
    Budget(u64),
    /// Not at all.
    Disabled,
}

/// The skills the model is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skills {
    /// All that are found.
    All,
    /// These, by name.
    Named(Vec<String>),
}

impl<S: Into<String>, const N: usize> From<[S; N]> for Skills {
    fn from(names: [S; N]) -> Self {
        Self::Named(names.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<String>> for Skills {
    fn from(names: Vec<String>) -> Self {
        Self::Named(names)
    }
}

/// Puts one value into a JSON object that holds settings.
pub(crate) fn insert_setting(settings: Option<&str>, key: &str, value: &Json) -> serde_json::Result<String> {
    let mut object: serde_json::Map<String, serde_json::Value> = match settings {
        Some(text) => serde_json::from_str(text)?,
        None => serde_json::Map::new(),
    };
    object.insert(key.to_owned(), value.to_value());
    serde_json::to_string(&object)
}
