//! Which files there are, and which one is meant.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quipu_message::bookkeeping::SubagentMeta;
use quipu_message::{AgentId, ToolUseId};

use crate::problem::FileError;

mod history;
mod project;
mod session;

pub use history::{FoundFile, Hints, History, histories, projects};
pub use project::project_folder;
pub use session::{ResolveError, SessionFile, resolve, sessions};

/// The file of a subagent, and the call it worked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentFile {
    /// The file.
    pub path: PathBuf,
    /// The subagent.
    pub agent_id: AgentId,
    /// The call, where the file beside it says so.
    pub tool_use_id: Option<ToolUseId>,
}

/// The subagents of a session file: `<session>/subagents/agent-<id>.jsonl`.
pub fn subagents(session: &Path) -> Vec<SubagentFile> {
    let folder = session.with_extension("").join("subagents");
    let mut found: Vec<SubagentFile> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let name = path.file_name()?.to_str()?;
            let agent_id = AgentId::from(name.strip_prefix("agent-")?.strip_suffix(".jsonl")?);
            let meta = fs::read_to_string(path.with_extension("meta.json")).ok();
            let meta = meta.and_then(|text| serde_json::from_str::<SubagentMeta>(&text).ok());
            Some(SubagentFile { tool_use_id: meta.and_then(|m| m.tool_use_id.into_option()), path, agent_id })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Every `.jsonl` file under a path, sorted; a path that is a file stands for
/// itself. Folders that cannot be read are named beside.
pub fn jsonl_files(path: &Path) -> (Vec<PathBuf>, Vec<FileError>) {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    if path.is_file() {
        return (vec![path.to_owned()], errors);
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let listed: io::Result<Vec<_>> = fs::read_dir(&folder).and_then(Iterator::collect);
        match listed {
            Err(source) => errors.push(FileError::Open { path: folder, source }),
            Ok(entries) => {
                for entry in entries {
                    let path = entry.path();
                    // A link to a folder may lead in a circle; only files are followed.
                    match entry.file_type() {
                        Ok(kind) if kind.is_dir() => folders.push(path),
                        Ok(_) if path.extension().is_some_and(|ext| ext == "jsonl") && path.is_file() => {
                            files.push(path)
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    files.sort();
    (files, errors)
}
