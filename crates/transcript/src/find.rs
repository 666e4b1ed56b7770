//! Lists session files and their subagents, and finds a session by its id.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quipu_message::bookkeeping::SubagentMeta;
use quipu_message::{AgentId, ToolUseId};

use crate::problem::FileError;

mod project;
mod session;
mod session_files;

pub use project::{find_project_folder, project_folder_name};
pub use session::{ResolveError, SessionFile, list_sessions, list_sessions_in, resolve_session, resolve_subagent};
pub use session_files::{
    ListingHints, SessionFiles, TranscriptFile, find_session_files, list_project_folders, list_session_files,
};

/// Transcript file of a subagent and what its `.meta.json` file records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentFile {
    /// Path of the transcript file.
    pub path: PathBuf,
    /// Id of the subagent, from the name of the file.
    pub agent_id: AgentId,
    /// Tool call that started the subagent; `None` if not recorded.
    pub tool_use_id: Option<ToolUseId>,
    /// Subagent that started this one; `None` if the main agent did.
    pub parent_agent_id: Option<AgentId>,
    /// Type of the subagent, such as `Explore`.
    pub agent_type: Option<String>,
    /// Short description of its task, from the tool call.
    pub description: Option<String>,
}

impl SubagentFile {
    /// Reads the id from the name of the file and the rest from its `.meta.json` file.
    pub(crate) fn from_path(path: PathBuf) -> Option<Self> {
        let agent_id = AgentId::from(path.file_name()?.to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl")?);
        let meta = fs::read_to_string(path.with_extension("meta.json")).ok();
        let meta = meta.and_then(|text| serde_json::from_str::<SubagentMeta>(&text).ok()).unwrap_or_default();
        Some(Self {
            path,
            agent_id,
            tool_use_id: meta.tool_use_id.into_option(),
            parent_agent_id: meta.parent_agent_id.into_option(),
            agent_type: meta.agent_type.into_option(),
            description: meta.description.into_option(),
        })
    }
}

/// Reads what is known about the subagent of a file. `None` if the file is not named
/// `agent-<id>.jsonl`.
pub fn subagent_file(path: &Path) -> Option<SubagentFile> {
    SubagentFile::from_path(path.to_owned())
}

/// Lists the subagents of a session file: `<session>/subagents/agent-<id>.jsonl` and below.
pub fn list_subagents(session: &Path) -> Vec<SubagentFile> {
    list_subagent_paths(session).into_iter().filter_map(SubagentFile::from_path).collect()
}

/// Paths of the subagent files of a session; the files are not opened.
pub(crate) fn list_subagent_paths(session: &Path) -> Vec<PathBuf> {
    list_jsonl_files(&session.with_extension("").join("subagents")).0
}

/// Lists the subagents of a session that older versions put into the folder of the session file.
/// Opens every `agent-*.jsonl` file there to see which session it belongs to.
pub fn list_legacy_subagents(session: &Path) -> Vec<SubagentFile> {
    let (Some(folder), Some(id)) = (session.parent(), session.file_stem().and_then(|id| id.to_str())) else {
        return Vec::new();
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<SubagentFile> = entries
        .filter_map(SubagentFile::from_path)
        .filter(|file| session_files::read_session_id(&file.path).is_some_and(|owner| owner.as_str() == id))
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Lists all `.jsonl` files under a path, sorted; just the path if it is a file. Folders that
/// cannot be read are returned as errors.
pub fn list_jsonl_files(path: &Path) -> (Vec<PathBuf>, Vec<FileError>) {
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
