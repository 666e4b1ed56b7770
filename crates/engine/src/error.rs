//! Errors that end the agent.

use quipu_api::EndpointError;
use quipu_message::ReadError;
use quipu_transcript::{AppendError, FileError, ForkError};

use crate::settings::SettingsError;

/// Why the agent cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The address or the credential of the API is invalid.
    #[error("cannot call the API")]
    Endpoint(#[from] EndpointError),
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Stdin cannot be read or understood.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The transcript cannot be written.
    #[error("cannot write the session file")]
    Append(#[from] AppendError),
    /// The session cannot be forked.
    #[error("cannot fork the session")]
    Fork(#[from] ForkError),
    /// The transcript cannot be read.
    #[error("cannot read the session file")]
    File(#[from] FileError),
    /// There is no session of this id.
    #[error("No conversation found with session ID: {id}")]
    SessionNotFound {
        /// The requested session id.
        id: String,
    },
    /// There is no session of this title.
    #[error("no session of this directory has the id or title '{title}'; `quipu ls .` lists them")]
    TitleNotFound {
        /// The requested id or title.
        title: String,
    },
    /// The entry to continue from is not in the session.
    #[error("no message {uuid} in session {id}")]
    EntryNotFound {
        /// Id of the session.
        id: String,
        /// UUID of the entry.
        uuid: String,
    },
    /// Resuming at an earlier entry would drop more than the named turn.
    #[error("Resume rejected by --resume-drops-turn: {reason}")]
    ResumeDropsMore {
        /// What else would be dropped.
        reason: String,
    },
    /// Another session has this id.
    #[error("Session ID {id} is already in use.")]
    SessionIdInUse {
        /// The requested session id.
        id: String,
    },
    /// A session id must be a UUID.
    #[error("{id} is not a UUID, which a session id must be")]
    InvalidSessionId {
        /// The requested session id.
        id: String,
    },
    /// There is no prompt.
    #[error("no prompt: give one after -p, or on stdin")]
    NoPrompt,
    /// Permission mode `bypassPermissions` may not be used as root.
    #[error("--dangerously-skip-permissions cannot be used as root: any command could do anything")]
    BypassAsRoot,
    /// A sandbox is required and not available.
    #[error("commands cannot be held in a sandbox here: {reason}")]
    SandboxUnavailable {
        /// Why it is not available.
        reason: String,
    },
    /// The value of a flag is invalid.
    #[error("{flag}: {reason}")]
    InvalidFlag {
        /// Name of the flag.
        flag: &'static str,
        /// What is wrong with the value.
        reason: String,
    },
    /// The value of an environment variable is invalid.
    #[error("{name}: {reason}")]
    InvalidVariable {
        /// Name of the variable.
        name: &'static str,
        /// What is wrong with the value.
        reason: String,
    },
    /// The environment selects an API provider that is not supported. Requests must not go to another
    /// one instead.
    #[error(
        "{name} is set, but quipu-agent sends requests only to the Anthropic API or to ANTHROPIC_BASE_URL; unset \
         {name} if that is what you want"
    )]
    UnsupportedProvider {
        /// The variable that selects the provider.
        name: &'static str,
    },
    /// Stdout cannot be written.
    #[error("cannot write the output")]
    Output(#[source] std::io::Error),
    /// The operating system refused a resource.
    #[error("cannot set up: {what}")]
    Setup {
        /// The resource that was refused.
        what: &'static str,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
}

impl EngineError {
    /// A stable code for scripts, such as `input.not_json`.
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

/// The most bytes of a line on stdin: more than the API accepts in one request.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;

/// Why stdin cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A line is not JSON.
    #[error("cannot read a line of stdin ({length} characters): not JSON")]
    NotJson {
        /// Length of the line in characters.
        length: usize,
    },
    /// A `user` line has a message of another role.
    #[error("a user line on stdin needs a message with role 'user', got '{role}'")]
    WrongRole {
        /// The role of the message.
        role: String,
    },
    /// A line of a known type has invalid fields.
    #[error("cannot read a line of stdin")]
    Malformed(#[source] ReadError),
    /// A line is longer than the limit.
    #[error("a line of stdin is longer than {} MiB", MAX_LINE_BYTES >> 20)]
    TooLong,
    /// Reading from stdin failed.
    #[error("cannot read stdin")]
    Read(#[source] std::io::Error),
}

impl InputError {
    /// A stable code for scripts, such as `input.not_json`.
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
