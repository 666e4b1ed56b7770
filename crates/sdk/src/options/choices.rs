//! Options that are a choice.

use std::path::PathBuf;

use quipu_message::Json;

/// Declares a choice of words, open for words of newer agents.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $word:literal ),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
            /// A word that this crate does not know.
            Other(String),
        }

        impl $name {
            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $word, )+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $( $word => Self::$variant, )+
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

words! {
    /// What may be done without asking.
    PermissionMode {
        /// Whatever rules do not allow is asked for.
        Default = "default",
        /// Changes of files are allowed too.
        AcceptEdits = "acceptEdits",
        /// Nothing is changed until a plan is accepted.
        Plan = "plan",
        /// Whatever rules do not allow is refused.
        DontAsk = "dontAsk",
        /// Another model decides.
        Auto = "auto",
        /// Everything is allowed.
        BypassPermissions = "bypassPermissions",
    }
}

words! {
    /// How hard the model works.
    Effort {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much.
        High = "high",
        /// More.
        XHigh = "xhigh",
        /// As much as it can.
        Max = "max",
    }
}

words! {
    /// Whose settings.
    SettingSource {
        /// The person's.
        User = "user",
        /// The project's, shared with others; its `CLAUDE.md` too.
        Project = "project",
        /// The project's, on this machine only.
        Local = "local",
    }
}

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
