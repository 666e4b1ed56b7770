//! Types of single options.

use std::path::PathBuf;

use quipu_message::Json;

/// System prompt of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SystemPrompt {
    /// An empty system prompt.
    #[default]
    Empty,
    /// The agent's own system prompt.
    AgentDefault,
    /// The agent's own system prompt, followed by this text.
    Append(String),
    /// Only this text.
    Custom(String),
    /// The content of a file.
    File(PathBuf),
}

impl From<&str> for SystemPrompt {
    fn from(text: &str) -> Self {
        Self::Custom(text.to_owned())
    }
}

impl From<String> for SystemPrompt {
    fn from(text: String) -> Self {
        Self::Custom(text)
    }
}

/// Whether the model thinks before it responds, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThinkingMode {
    /// The model decides how much.
    Adaptive,
    /// At most this many tokens.
    Budget(u64),
    /// No thinking at all.
    Disabled,
}

/// Skills that the model may use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skills {
    /// All skills that are found.
    All,
    /// Skills with these names.
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

/// Sets one key of settings in JSON; `None` is an empty object.
pub(crate) fn insert_setting(settings: Option<&str>, key: &str, value: &Json) -> serde_json::Result<String> {
    let mut object: serde_json::Map<String, serde_json::Value> = match settings {
        Some(text) => serde_json::from_str(text)?,
        None => serde_json::Map::new(),
    };
    object.insert(key.to_owned(), value.to_value());
    serde_json::to_string(&object)
}
