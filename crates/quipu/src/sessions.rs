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
    if spec.starts_with("agent-") {
        let (projects, _) = find::projects(&claude_dirs(global));
        return Ok(find::resolve_subagent(spec, &projects)?);
    }
    let (sessions, _) = find::sessions(&claude_dirs(global));
    Ok(find::resolve(spec, &sessions)?)
}

/// The session and the line named by `SESSION:LINE`. `None` if no digits follow a colon,
/// or a file has that very name.
pub(crate) fn split_line(spec: &str) -> (&str, Option<u64>) {
    let is_file = || std::path::Path::new(spec).is_file();
    match spec.rsplit_once(':') {
        Some((session, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) && !is_file() => {
            digits.parse().map_or((spec, None), |line| (session, Some(line)))
        }
        _ => (spec, None),
    }
}
