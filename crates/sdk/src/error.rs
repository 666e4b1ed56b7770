//! Errors of conversations with an agent.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quipu_message::Json;
use quipu_message::stream::ErrorEntry;

/// Why an operation on an agent failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No agent program was found.
    #[error("no agent found: neither {} on the PATH, nor quipu-agent in the folder of this program", .names.join(" nor "))]
    NotFound {
        /// Names that were searched for.
        names: Vec<String>,
    },
    /// The agent program cannot be started.
    #[error("cannot start {}", .program.display())]
    Start {
        /// Path of the program.
        program: PathBuf,
        /// Error of the system.
        #[source]
        source: Arc<io::Error>,
    },
    /// The agent is too old for this crate.
    #[error("the agent is version {version}, at least {needed} is needed")]
    TooOld {
        /// Version that the agent reports.
        version: String,
        /// Oldest supported version.
        needed: &'static str,
    },
    /// The options are invalid or exclude each other.
    #[error("{what}")]
    Options {
        /// Which options, and why.
        what: String,
    },
    /// The agent exited during a turn or a request.
    #[error("the agent ended: {0}")]
    Ended(Exit),
    /// The host closed the conversation.
    #[error("the conversation is closed")]
    Closed,
    /// The agent did not respond, or did not read, in time.
    #[error("{what} took longer than {after:?}")]
    Timeout {
        /// Name of the operation.
        what: String,
        /// Time limit that was exceeded.
        after: Duration,
    },
    /// The agent refused a control request.
    #[error("{request} was refused: {error}")]
    Refused {
        /// Subtype of the control request.
        request: String,
        /// Error message of the agent.
        error: String,
        /// Error code, from newer agents.
        code: Option<String>,
    },
    /// A control response does not have the expected form.
    #[error("cannot read the response to {request}")]
    BadResponse {
        /// Subtype of the control request.
        request: String,
        /// The response as JSON.
        response: Json,
        /// Why it cannot be read.
        #[source]
        source: Arc<serde_json::Error>,
    },
    /// The agent reported a fatal error.
    #[error("the agent failed: {}", .0.to_text())]
    Agent(Box<ErrorEntry>),
    /// A value cannot be written as JSON.
    #[error("cannot write a value as JSON")]
    Serialise(#[source] Arc<serde_json::Error>),
    /// Reading the agent's output failed.
    #[error("cannot read from the agent")]
    Read(#[source] Arc<io::Error>),
}

impl Error {
    /// Stable error code, such as `sdk.timeout`.
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

/// How an agent exited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Exit {
    /// Exit code; `None` if a signal killed it, or if it is not a process.
    pub code: Option<i32>,
    /// Number of the signal that killed it.
    pub signal: Option<i32>,
    /// Last lines that it wrote to stderr.
    pub stderr: String,
}

impl Exit {
    /// Whether the exit code is 0 or absent and no signal killed it.
    pub fn is_success(&self) -> bool {
        self.signal.is_none() && self.code.unwrap_or_default() == 0
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (_, Some(signal)) => write!(f, "killed by signal {signal}")?,
            (Some(code), None) => write!(f, "exit code {code}")?,
            (None, None) => write!(f, "it closed the connection")?,
        }
        match self.stderr.trim() {
            "" => Ok(()),
            stderr => write!(f, "; on stderr: {stderr}"),
        }
    }
}
