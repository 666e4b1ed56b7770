//! What is asked and told about sessions.

use std::path::PathBuf;
use std::time::SystemTime;

use quipu_message::{SessionId, Uuid};
use quipu_transcript::SessionOverview;
use quipu_transcript::find::SessionFile;

/// Which sessions of a list are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListOptions {
    /// How many at most.
    pub limit: Option<usize>,
    /// How many of the newest to pass over.
    pub offset: usize,
}

/// What to fork, and what to call it.
#[derive(Debug, Clone, Default)]
pub struct ForkOptions {
    /// The last entry to copy, with the path that leads to it; none copies everything.
    pub up_to: Option<Uuid>,
    /// The fork's title; none takes the original's, or its first prompt, with ` (fork)`.
    pub title: Option<String>,
}

/// What is known of a session without reading the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Id of the session.
    pub id: SessionId,
    /// The name of the project's folder.
    pub project: String,
    /// Path of its transcript.
    pub path: PathBuf,
    /// When the file was last written.
    pub modified: SystemTime,
    /// How large it is.
    pub bytes: u64,
    /// What to call it in a list: its title, or else its last prompt, an old summary, its
    /// first prompt. Empty when it has none of them.
    pub summary: String,
    /// Title set by the user, else the generated one.
    pub title: Option<String>,
    /// Whether the user set the title.
    pub is_titled: bool,
    /// First user prompt, on one line of at most 200 characters.
    pub first_prompt: Option<String>,
    /// Last user prompt, shortened likewise.
    pub last_prompt: Option<String>,
    /// Tag set by the user.
    pub tag: Option<String>,
    /// The git branch it was last on.
    pub git_branch: Option<String>,
    /// The directory it began in.
    pub cwd: Option<String>,
    /// When it began, as ISO 8601 text.
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
