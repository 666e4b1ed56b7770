//! What is wrong, and where.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use quipu_conversation::ProblemKind;

/// Why a file could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Reading it broke off.
    #[error("cannot read {} beyond byte {offset}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// How far reading came.
        offset: u64,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl FileError {
    /// The kind of problem that this error is in a report.
    pub fn problem_kind(&self) -> ProblemKind {
        match self {
            Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => ProblemKind::FileNotFound,
            Self::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => ProblemKind::NoPermission,
            Self::Open { .. } => ProblemKind::CannotOpen,
            Self::Read { .. } => ProblemKind::CannotRead,
        }
    }

    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        self.problem_kind().code()
    }
}

/// The message of an error and those of its causes, joined by `: `.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
