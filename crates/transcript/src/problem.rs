//! What is wrong, and where.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use quipu_conversation::ProblemKind;

/// Why a file could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// Reading failed after the file was opened.
    #[error("cannot read {} beyond byte {offset}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Number of bytes read before the error.
        offset: u64,
        /// Error of the operating system.
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

    /// Stable code for scripts, such as `file.not_found`.
    pub fn code(&self) -> &'static str {
        self.problem_kind().code()
    }
}

/// The message of an error and those of its causes, joined by `: `.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
