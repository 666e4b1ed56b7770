//! What is wrong, and where.

use std::io;
use std::path::PathBuf;

use serde::Serialize;

/// Something wrong with a line or a file, with its place. The rest is still read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A stable name, such as `line.not_json`.
    pub code: &'static str,
    /// The file; `-` for standard input.
    pub path: String,
    /// The line, counted from 1; 0 when the whole file is meant.
    pub line: u64,
    /// Where the line begins, in bytes from the start of the file.
    pub offset: u64,
    /// What is wrong, in words.
    pub message: String,
}

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
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => "file.not_found",
            Self::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => "file.no_permission",
            Self::Open { .. } => "file.cannot_open",
            Self::Read { .. } => "file.cannot_read",
        }
    }
}
