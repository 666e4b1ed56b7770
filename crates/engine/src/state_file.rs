//! `.claude.json`: the state that Claude Code keeps about the user and every folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::text_file;

/// The name of the file.
pub(crate) const NAME: &str = ".claude.json";

/// The largest file that is read, in bytes: it grows with every project.
pub(crate) const MAX_BYTES: u64 = 64 << 20;

/// Path of the file: in `CLAUDE_CONFIG_DIR`, or else in `HOME`.
pub(crate) fn path(env: &BTreeMap<String, String>) -> PathBuf {
    let var = |name: &str| env.get(name).filter(|value| !value.is_empty());
    let folder = var("CLAUDE_CONFIG_DIR").or_else(|| var("HOME")).map_or("/", String::as_str);
    Path::new(folder).join(NAME)
}

/// Reads the file; empty if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    match text_file::read(path, None, MAX_BYTES) {
        Err(_) if path.symlink_metadata().is_err() => Ok(String::new()),
        read => read,
    }
}
