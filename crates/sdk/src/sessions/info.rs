//! Options and results of session functions.

use std::path::PathBuf;
use std::time::SystemTime;

use quipu_message::{SessionId, Uuid};
use quipu_transcript::SessionOverview;
use quipu_transcript::find::SessionFile;

/// The page of a list of sessions.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListOptions {
    /// Maximum number of sessions; `None` for all.
    pub limit: Option<usize>,
    /// Number of newest sessions to skip.
    pub offset: usize,
}

/// Options of a fork.
#[derive(Debug, Clone, Default)]
pub struct ForkOptions {
    /// UUID of the last entry to copy, with the path to it; `None` copies everything.
    pub up_to: Option<Uuid>,
    /// Title of the fork; `None` means the original's title or first prompt, followed by ` (fork)`.
    pub title: Option<String>,
}

/// What is known of a session without its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Id of the session.
    pub id: SessionId,
    /// Name of the project's folder.
    pub project: String,
    /// Path of its transcript.
    pub path: PathBuf,
    /// Modification time of the file.
    pub modified: SystemTime,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Text for a list: the title, or else the last prompt, an old summary, or the first prompt. Empty if
    /// there is none of them.
    pub summary: String,
    /// Title set by the user, else the generated one.
    pub title: Option<String>,
    /// Whether the user set the title.
    pub is_titled: bool,
    /// First user prompt, on one line of at most 200 characters.
    pub first_prompt: Option<String>,
    /// Last user prompt, shortened in the same way.
    pub last_prompt: Option<String>,
    /// Tag set by the user.
    pub tag: Option<String>,
    /// Git branch at the end of the session.
    pub git_branch: Option<String>,
    /// Working directory at the start of the session.
    pub cwd: Option<String>,
    /// Time of the first entry, as ISO 8601 text.
    pub created_at: Option<String>,
}

impl SessionInfo {
    pub(super) fn new(file: SessionFile, outline: SessionOverview, directory: Option<String>) -> Self {
        let SessionFile { path, id, project, modified, bytes } = file;
        Self {
            summary: outline.sdk_summary().unwrap_or_default().to_owned(),
            title: outline.title().map(str::to_owned),
            is_titled: outline.custom_title.is_some(),
            first_prompt: outline.first_prompt,
            last_prompt: outline.last_prompt,
            tag: outline.tag,
            git_branch: outline.git_branch,
            cwd: outline.cwd.or(directory),
            created_at: outline.started_at,
            id,
            project,
            path,
            modified,
            bytes,
        }
    }
}
