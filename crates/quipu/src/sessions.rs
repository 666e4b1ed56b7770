//! Which session is meant.

use std::path::PathBuf;

use anyhow::Result;
use quipu_transcript::find;

use crate::args::Global;

/// Where the agent keeps its things.
pub(crate) fn claude_dirs(global: &Global) -> Vec<PathBuf> {
    if !global.claude_dir.is_empty() {
        return global.claude_dir.clone();
    }
    let home = || std::env::home_dir().map(|home| home.join(".claude"));
    std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(home).into_iter().collect()
}

/// The file of the session a person names.
pub(crate) fn find(spec: &str, global: &Global) -> Result<PathBuf> {
    // A path needs no look at the sessions.
    let path = PathBuf::from(spec);
    if path.is_file() {
        return Ok(path);
    }
    let (sessions, _) = find::sessions(&claude_dirs(global));
    Ok(find::resolve(spec, &sessions)?)
}
