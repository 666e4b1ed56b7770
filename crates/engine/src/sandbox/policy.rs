//! Policy of one command, passed from the engine to the launcher.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Permissions of one command, and the command itself. The launcher enforces all of it or
/// fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Policy {
    /// Whether to use namespaces and mounts. Without them nothing can be `covered` or
    /// `read_only`.
    pub(super) uses_mounts: bool,
    /// Files and folders that may be read.
    pub(super) readable: Vec<PathBuf>,
    /// Files and folders that may be read and executed.
    pub(super) executable: Vec<PathBuf>,
    /// Folders that may be written, in addition to `temp_folder`.
    pub(super) writable: Vec<PathBuf>,
    /// Existing files and folders inside the readable ones that may not be opened.
    pub(super) covered: Vec<PathBuf>,
    /// Existing files and folders inside the writable ones that may not be changed.
    pub(super) read_only: Vec<PathBuf>,
    /// Folders inside the writable ones that may not be renamed, because they contain what is
    /// `covered` or `read_only`: another command could be starting, which finds these by name.
    pub(super) pinned: Vec<PathBuf>,
    /// Sockets that the command may create.
    pub(super) network: NetworkAccess,
    /// Whether modes, owners, times and extended attributes of files may be changed,
    /// where files may be written.
    pub(super) allows_attribute_changes: bool,
    /// Temporary folder of this command.
    pub(super) temp_folder: PathBuf,
    /// The folder the command starts in.
    pub(super) cwd: PathBuf,
    /// The program and its arguments; empty for the self-test.
    pub(super) argv: Vec<String>,
    /// The complete environment.
    pub(super) env: Vec<(String, String)>,
}

impl Policy {
    /// Serializes the policy as the line that the launcher reads from stdin.
    pub(super) fn to_line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Sockets that a command may create.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum NetworkAccess {
    /// Only socket pairs.
    #[default]
    None,
    /// Also internet sockets.
    Internet,
    /// Also Unix sockets, through which other programs can act for the command.
    WithUnixSockets,
}
