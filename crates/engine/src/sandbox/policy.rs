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
    #[serde(with = "path_bytes::list")]
    pub(super) readable: Vec<PathBuf>,
    /// Files and folders that may be read and executed.
    #[serde(with = "path_bytes::list")]
    pub(super) executable: Vec<PathBuf>,
    /// Folders that may be written, in addition to `temp_folder`.
    #[serde(with = "path_bytes::list")]
    pub(super) writable: Vec<PathBuf>,
    /// Existing files and folders inside the readable ones that may not be opened.
    #[serde(with = "path_bytes::list")]
    pub(super) covered: Vec<PathBuf>,
    /// Existing files and folders inside the writable ones that may not be changed.
    #[serde(with = "path_bytes::list")]
    pub(super) read_only: Vec<PathBuf>,
    /// Folders inside the writable ones that may not be renamed, because they contain what is
    /// `covered` or `read_only`: another command could be starting, which finds these by name.
    #[serde(with = "path_bytes::list")]
    pub(super) pinned: Vec<PathBuf>,
    /// Sockets that the command may create.
    pub(super) network: NetworkAccess,
    /// Whether modes, owners, times and extended attributes of files may be changed,
    /// where files may be written.
    pub(super) allows_attribute_changes: bool,
    /// Temporary folder of this command.
    #[serde(with = "path_bytes")]
    pub(super) temp_folder: PathBuf,
    /// The folder the command starts in.
    #[serde(with = "path_bytes")]
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

/// Paths as text if they are text, else as bytes: names of files need not be text.
mod path_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum PathBytes {
        Text(String),
        Bytes(Vec<u8>),
    }

    impl From<&Path> for PathBytes {
        fn from(path: &Path) -> Self {
            let bytes = || Self::Bytes(path.as_os_str().as_bytes().to_vec());
            path.to_str().map_or_else(bytes, |text| Self::Text(text.to_owned()))
        }
    }

    impl From<PathBytes> for PathBuf {
        fn from(path: PathBytes) -> Self {
            match path {
                PathBytes::Text(text) => text.into(),
                PathBytes::Bytes(bytes) => OsString::from_vec(bytes).into(),
            }
        }
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        PathBytes::from(path).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        PathBytes::deserialize(deserializer).map(PathBuf::from)
    }

    pub(super) mod list {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(paths.iter().map(|path| PathBytes::from(path.as_path())))
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
            let paths = Vec::<PathBytes>::deserialize(deserializer)?;
            Ok(paths.into_iter().map(PathBuf::from).collect())
        }
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
