//! What can go wrong between a host and an agent.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quipu_message::Json;
use quipu_message::stream::ErrorEntry;

/// Why an agent could not be driven.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No program to start was found.
    #[error("no agent found: neither {} on the PATH, nor quipu-agent beside this program", .names.join(" nor "))]
    NotFound {
        /// The names that were looked for.
        names: Vec<String>,
    },
    /// The program cannot be started.
    #[error("cannot start {}", .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The program is older than what this crate speaks.
    #[error("the agent is version {version}, at least {needed} is needed")]
    TooOld {
        /// What it says it is.
        version: String,
        /// What is needed.
        needed: &'static str,
    },
    /// Options that cannot go together, or have no meaning.
    #[error("{what}")]
    Options {
        /// Which, and why.
        what: String,
    },
    /// The agent ended while something was still to come from it.
    #[error("the agent ended: {0}")]
    Ended(Exit),
    /// The conversation was closed on this side.
    #[error("the conversation is closed")]
    Closed,
    /// The agent did not answer, or did not listen, in time.
    #[error("{what} took longer than {after:?}")]
    Timeout {
        /// What was asked or done.
        what: String,
        /// How long was waited.
        after: Duration,
    },
    /// The agent said no.
    #[error("{request} was refused: {error}")]
    Refused {
        /// What was asked.
        request: String,
        /// The agent's words.
        error: String,
        /// The same in one word, from newer agents.
        code: Option<String>,
    },
    /// The answer has not the form it should have.
    #[error("the answer to {request} cannot be read")]
    BadResponse {
        /// What was asked.
        request: String,
        /// The answer as it came.
        response: Json,
        /// What is wrong with it.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// The agent said that it cannot go on.
    #[error("the agent cannot go on: {}", .0.to_text())]
    Agent(Box<ErrorEntry>),
    /// Something to be said cannot be written as JSON.
    #[error("cannot be written as JSON")]
    Serialise(#[source] Arc<serde_json::Error>),
    /// What the agent says cannot be read any more.
    #[error("cannot read from the agent")]
    Read(#[source] Arc<io::Error>),
}

impl Error {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "sdk.not_found",
            Self::Start { .. } => "sdk.cannot_start",
            Self::TooOld { .. } => "sdk.too_old",
            Self::Options { .. } => "sdk.options",
            Self::Ended(_) => "sdk.ended",
            Self::Closed => "sdk.closed",
            Self::Timeout { .. } => "sdk.timeout",
            Self::Refused { .. } => "sdk.refused",
            Self::BadResponse { .. } => "sdk.answer",
            Self::Agent(_) => "sdk.agent",
            Self::Serialise(_) => "sdk.serialise",
            Self::Read(_) => "sdk.read",
        }
    }

    pub(crate) fn invalid_options(what: impl Into<String>) -> Self {
        Self::Options { what: what.into() }
    }
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Exit {
    /// The code it ended with; none when a signal ended it, or when it is no process.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last that it wrote to stderr.
    pub stderr: String,
}

impl Exit {
    /// Whether it ended as it should.
    pub fn is_success(&self) -> bool {
        self.signal.is_none() && self.code.unwrap_or_default() == 0
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (_, Some(signal)) => write!(f, "killed by signal {signal}")?,
            (Some(code), None) => write!(f, "exit code {code}")?,
            (None, None) => write!(f, "it closed its side")?,
        }
        match self.stderr.trim() {
            "" => Ok(()),
            said => write!(f, "; on stderr: {said}"),
        }
    }
}
