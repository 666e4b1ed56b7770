//! What one command may do, as the launcher is told.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What one command may do, and the command. The engine makes it, the launcher enforces
/// all of it or fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Policy {
    /// Whether to use namespaces and mounts. Without them nothing can be `covered` or
    /// `read_only`.
    pub(super) uses_mounts: bool,
    /// Files and folders that may be read.
    pub(super) readable: Vec<PathBuf>,
    /// Files and folders that may be read and executed.
    pub(super) executable: Vec<PathBuf>,
    /// Folders that may be written, beside `temp`.
    pub(super) writable: Vec<PathBuf>,
    /// Existing files and folders inside the readable ones that may not be opened.
    pub(super) covered: Vec<PathBuf>,
    /// Existing files and folders inside the writable ones that may not be changed.
    pub(super) read_only: Vec<PathBuf>,
    /// Which sockets may be made.
    pub(super) network: NetworkAccess,
    /// Whether modes, owners, times and extended attributes of files may be changed,
    /// where files may be written.
    pub(super) allows_attribute_changes: bool,
    /// A folder for this command alone.
    pub(super) temp_folder: PathBuf,
    /// The folder the command starts in.
    pub(super) cwd: PathBuf,
    /// The program and its arguments; empty for the self-test.
    pub(super) argv: Vec<String>,
    /// All variables of its environment.
    pub(super) env: Vec<(String, String)>,
}

impl Policy {
    /// The policy as the launcher reads it from stdin: one line.
    pub(super) fn to_line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Which sockets a command may make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NetworkAccess {
    /// Pairs of its own only.
    #[default]
    None,
    /// Those of the internet.
    Internet,
    /// Also Unix sockets, through which other programs may do things for it.
    WithUnixSockets,
}
