//! Errors of session functions.

use quipu_message::{AgentId, SessionId};
use quipu_transcript::{AppendError, DeleteError, FileError, ForkError, LabelError};

/// Why a session could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The id is empty or not a plain name.
    #[error("{:?} is not a session id", id.as_str())]
    BadId {
        /// The id that was given.
        id: SessionId,
    },
    /// There is no such session, or its file is empty.
    #[error("no session {id}")]
    NotFound {
        /// The id that was given.
        id: SessionId,
    },
    /// The session has no file of this subagent.
    #[error("no subagent {agent_id} in session {id}")]
    NoSubagent {
        /// Id of the session.
        id: SessionId,
        /// Id of the subagent that was given.
        agent_id: AgentId,
    },
    /// The title is blank.
    #[error("the title is blank")]
    NoTitle,
    /// The tag is blank; pass `None` to remove a tag.
    #[error("the tag is blank")]
    NoTag,
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] FileError),
    /// A line cannot be appended.
    #[error(transparent)]
    Write(#[from] AppendError),
    /// The session cannot be forked.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The session cannot be deleted.
    #[error(transparent)]
    Delete(#[from] DeleteError),
}

impl SessionError {
    /// Stable error code, for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadId { .. } => "session.bad_id",
            Self::NotFound { .. } => "session.not_found",
            Self::NoSubagent { .. } => "session.no_subagent",
            Self::NoTitle => "session.no_title",
            Self::NoTag => "session.no_tag",
            Self::Read(error) => error.code(),
            Self::Write(error) => error.code(),
            Self::Fork(error) => error.code(),
            Self::Delete(error) => error.code(),
        }
    }
}

impl From<LabelError> for SessionError {
    fn from(error: LabelError) -> Self {
        match error {
            LabelError::Blank { field: "title" } => Self::NoTitle,
            LabelError::Blank { .. } => Self::NoTag,
            LabelError::Append(error) => error.into(),
        }
    }
}
