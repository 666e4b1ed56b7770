//! Why the agent cannot begin or go on.

use quipu_api::EndpointError;
use quipu_message::ReadError;
use quipu_transcript::{AppendError, FileError, ForkError};

use crate::settings::SettingsError;

/// Why the agent cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The API cannot be asked as described.
    #[error("cannot ask the API")]
    Endpoint(#[from] EndpointError),
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Stdin cannot be trusted any further.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The session's file cannot be written.
    #[error("cannot write the session file")]
    Append(#[from] AppendError),
    /// The session cannot be forked.
    #[error("cannot fork the session")]
    Fork(#[from] ForkError),
    /// The session's file cannot be read.
    #[error("cannot read the session file")]
    File(#[from] FileError),
    /// There is no such session.
    #[error("No conversation found with session ID: {id}")]
    SessionNotFound {
        /// The session asked for.
        id: String,
    },
    /// There is no session of this title.
    #[error("no session of this directory has the id or title '{title}'; `quipu ls .` lists them")]
    TitleNotFound {
        /// What was asked for.
        title: String,
    },
    /// The line to go on from is not in the session.
    #[error("no message {uuid} in session {id}")]
    EntryNotFound {
        /// The session.
        id: String,
        /// The line.
        uuid: String,
    },
    /// More would be left behind than the turn that was named.
    #[error("Resume rejected by --resume-drops-turn: {reason}")]
    ResumeDropsMore {
        /// What.
        reason: String,
    },
    /// A new session cannot have this id.
    #[error("Session ID {id} is already in use.")]
    SessionIdInUse {
        /// The id.
        id: String,
    },
    /// A session's id is a UUID.
    #[error("{id} is not a UUID, which a session id must be")]
    InvalidSessionId {
        /// The id.
        id: String,
    },
    /// There is nothing to do.
    #[error("no prompt: give one after -p, or on stdin")]
    NoPrompt,
    /// Asking for nothing is too dangerous as root.
    #[error("--dangerously-skip-permissions cannot be used as root: any command could do anything")]
    BypassAsRoot,
    /// A sandbox is required, and there is none.
    #[error("commands cannot be held in a sandbox here: {reason}")]
    SandboxUnavailable {
        /// Why.
        reason: String,
    },
    /// A flag holds what it cannot.
    #[error("{flag}: {reason}")]
    InvalidFlag {
        /// The flag.
        flag: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// An environment variable holds what it cannot.
    #[error("{name}: {reason}")]
    InvalidVariable {
        /// The variable.
        name: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The user's requests go to a cloud that is not supported; nothing may be sent
    /// elsewhere in its place.
    #[error(
        "{name} is set, but quipu-agent sends requests only to the Anthropic API or to ANTHROPIC_BASE_URL; unset \
         {name} if that is what you want"
    )]
    UnsupportedProvider {
        /// The variable that names the cloud.
        name: &'static str,
    },
    /// What is said cannot be written.
    #[error("cannot write the output")]
    Output(#[source] std::io::Error),
    /// The system does not give what every program needs.
    #[error("cannot set up: {what}")]
    Setup {
        /// What.
        what: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl EngineError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Endpoint(error) => error.code(),
            Self::Settings(error) => error.code(),
            Self::Input(error) => error.code(),
            Self::Append(error) => error.code(),
            Self::Fork(error) => error.code(),
            Self::File(error) => error.code(),
            Self::SessionNotFound { .. } | Self::TitleNotFound { .. } => "session.not_found",
            Self::EntryNotFound { .. } => "session.no_line",
            Self::ResumeDropsMore { .. } => "session.drops_more",
            Self::SessionIdInUse { .. } => "session.in_use",
            Self::InvalidSessionId { .. } => "session.bad_id",
            Self::NoPrompt => "agent.no_prompt",
            Self::BypassAsRoot => "agent.root",
            Self::SandboxUnavailable { .. } => "agent.no_sandbox",
            Self::InvalidFlag { .. } => "agent.bad_flag",
            Self::InvalidVariable { .. } => "agent.bad_variable",
            Self::UnsupportedProvider { .. } => "agent.other_provider",
            Self::Output(_) => "agent.output",
            Self::Setup { .. } => "agent.system",
        }
    }
}

/// The longest line of stdin, in bytes: more than the API takes in one request.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// Why the input cannot be trusted any further.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A line is not JSON.
    #[error("cannot read a line of stdin ({length} characters): not JSON")]
    NotJson {
        /// How long the line is.
        length: usize,
    },
    /// A prompt is not one.
    #[error("a user line on stdin needs a message with role 'user', got '{role}'")]
    WrongRole {
        /// The role it has.
        role: String,
    },
    /// A known line has a bad body.
    #[error("cannot read a line of stdin")]
    Malformed(#[source] ReadError),
    /// A line is longer than anything that could be sent on.
    #[error("a line of stdin is longer than {} MiB", MAX_LINE_BYTES >> 20)]
    TooLong,
    /// Reading failed.
    #[error("cannot read stdin")]
    Read(#[source] std::io::Error),
}

impl InputError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => "input.not_json",
            Self::WrongRole { .. } => "input.role",
            Self::Malformed(_) => "input.malformed",
            Self::TooLong => "input.too_long",
            Self::Read(_) => "input.read",
        }
    }
}
