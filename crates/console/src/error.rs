//! Errors of a chat.

use std::io;

/// Why a chat failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The agent cannot be started, or ended by itself.
    #[error(transparent)]
    Agent(#[from] quipu_sdk::Error),
    /// The terminal cannot be used.
    #[error("cannot use the terminal")]
    Terminal(#[source] io::Error),
    /// Prompts cannot be read from standard input.
    #[error("cannot read prompts from standard input")]
    Input(#[source] io::Error),
    /// Answers cannot be written to standard output.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
}

impl ChatError {
    /// Stable error code, such as `chat.terminal`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Agent(error) => error.code(),
            Self::Terminal(_) => "chat.terminal",
            Self::Input(_) => "chat.input",
            Self::Output(_) => "chat.output",
        }
    }
}
