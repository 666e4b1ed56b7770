//! The sessions on disk: list, read, rename, tag, delete and fork them.
//!
//! ```text
//!   Sessions ──┬── list, info      titles, prompts, tags, folders
//!              ├── load            the complete conversation
//!              ├── messages        the visible messages since the last compaction
//!              ├── rename, tag     append one line
//!              ├── fork, delete    copy or remove files
//!              └── subagents, subagent_messages
//! ```
//!
//! These functions block on file I/O; from async code, call them through `spawn_blocking`.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let project = dir.path().join("projects/-home-sam-app");
//! # std::fs::create_dir_all(&project)?;
//! # std::fs::write(project.join("7dc934ad-8100-4f16-9ba9-44fe9c2d9a4e.jsonl"),
//! #     "{\"type\":\"user\",\"uuid\":\"a\",\"parentUuid\":null,\"message\":{\"role\":\"user\",\"content\":\"How high is the tide?\"}}\n")?;
//! use quipu_sdk::sessions::{ListOptions, Sessions};
//!
//! let sessions = Sessions::new(dir.path()); // or Sessions::from_env()
//! let (listed, _errors) = sessions.list(&ListOptions { limit: Some(20), ..ListOptions::default() });
//! let latest = &listed[0];
//! assert_eq!(latest.summary, "How high is the tide?");
//!
//! sessions.rename(&latest.id, "Tides")?;
//! let fork = sessions.fork(&latest.id, &Default::default())?;
//! assert_eq!(sessions.info(&fork)?.title.as_deref(), Some("Tides (fork)"));
//! assert_eq!(sessions.messages(&fork)?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quipu_conversation::{Conversation, since_compaction};
use quipu_message::bookkeeping::CustomTitle;
use quipu_message::{AgentId, Entry, SessionId, Uuid};
use quipu_transcript::find::{self, SessionFile};
use quipu_transcript::{Fork, SessionOverview, load_file, load_session, set_tag, set_title};

mod error;
mod info;
mod worktrees;

pub use error::SessionError;
pub use info::{ForkOptions, ListOptions, SessionInfo};
pub use quipu_transcript::FileError;
pub use quipu_transcript::find::SubagentFile;

/// The sessions of one or more config folders, or those of one project in them.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    config_dirs: Vec<PathBuf>,
    /// Directories whose sessions are included; `None` means all.
    directories: Option<Vec<PathBuf>>,
}

/// A project's folder, with the directory it belongs to if that is known.
struct ProjectFolder {
    path: PathBuf,
    directory: Option<PathBuf>,
}

impl Sessions {
    /// All sessions of a config folder, such as `~/.claude`.
    pub fn new(config_dir: impl Into<PathBuf>) -> Self {
        Self { config_dirs: vec![config_dir.into()], directories: None }
    }

    /// All sessions of several config folders.
    pub fn from_dirs(config_dirs: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { config_dirs: config_dirs.into_iter().collect(), directories: None }
    }

    /// All sessions of the current user: in `CLAUDE_CONFIG_DIR`, or else in `~/.claude`.
    #[expect(clippy::disallowed_methods, reason = "named after what it reads")]
    pub fn from_env() -> Self {
        let named = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        Self::from_dirs(named.or_else(|| std::env::home_dir().map(|home| home.join(".claude"))))
    }

    /// Limits to the sessions of a project: of its directory and of all git worktrees of the same repository.
    #[must_use]
    pub fn in_project(self, directory: impl AsRef<Path>) -> Self {
        let directory = resolve_dir(directory.as_ref());
        let mut directories = vec![directory.clone()];
        directories.extend(worktrees::repository_worktrees(&directory).into_iter().filter(|other| *other != directory));
        Self { directories: Some(directories), ..self }
    }

    /// Limits to the sessions of a directory, without other worktrees.
    #[must_use]
    pub fn in_directory(self, directory: impl AsRef<Path>) -> Self {
        Self { directories: Some(vec![resolve_dir(directory.as_ref())]), ..self }
    }

    /// Lists sessions, newest first, with the errors of folders and files that cannot be read.
    ///
    /// Reads only the requested page, and only the beginning and the end of large files: a title or tag in
    /// between is found by [`info`](Self::info), not here. Files without anything to show and files with only
    /// a subagent's lines are left out; of copies in several projects the newest is listed.
    pub fn list(&self, options: &ListOptions) -> (Vec<SessionInfo>, Vec<FileError>) {
        let (folders, mut errors) = self.folders();
        let paths: Vec<PathBuf> = folders.iter().map(|folder| folder.path.clone()).collect();
        let (files, more) = find::list_sessions_in(&paths);
        errors.extend(more);
        let (mut listed, mut seen, mut skipped) = (Vec::new(), HashSet::new(), 0);
        let sessions = files.into_iter().filter(|file| file.bytes > 0 && is_valid_id(&file.id));
        for file in sessions {
            if options.limit.is_some_and(|limit| listed.len() >= limit) {
                break;
            }
            if !seen.insert(file.id.clone()) {
                continue;
            }
            match SessionOverview::read_both_ends(&file.path) {
                Err(error) => errors.push(error),
                Ok(outline) if outline.is_subagent_only || outline.sdk_summary().is_none() => {}
                Ok(_) if skipped < options.offset => skipped += 1,
                Ok(outline) => listed.push(session_info(file, outline, &folders)),
            }
        }
        (listed, errors)
    }

    /// Returns what is known of one session. Reads all its lines.
    pub fn info(&self, id: &SessionId) -> Result<SessionInfo, SessionError> {
        let file = self.find_file(id)?;
        let outline = SessionOverview::read_all_lines(&file.path)?;
        Ok(session_info(file, outline, &self.folders().0))
    }

    /// Loads the complete conversation, with all branches, everything before compactions, and subagents.
    pub fn load(&self, id: &SessionId) -> Result<Conversation, SessionError> {
        Ok(load_session(&self.find_file(id)?.path)?)
    }

    /// Returns the visible messages: the `user` and `assistant` entries of the active branch since the last
    /// compaction, including its summary and the lines it kept. Entries that are hidden from the user are
    /// left out. [`load`](Self::load)`(id)?.path()` is the path with everything before compactions.
    pub fn messages(&self, id: &SessionId) -> Result<Vec<Entry>, SessionError> {
        Ok(visible_messages(&load_file(&self.find_file(id)?.path)?))
    }

    /// Sets the title of a session, trimmed.
    pub fn rename(&self, id: &SessionId, title: &str) -> Result<(), SessionError> {
        set_title(&self.find_file(id)?.path, title)?;
        Ok(())
    }

    /// Sets the tag of a session, or removes it with `None`. Invisible characters are removed and the tag is
    /// trimmed.
    pub fn tag(&self, id: &SessionId, tag: Option<&str>) -> Result<(), SessionError> {
        set_tag(&self.find_file(id)?.path, tag)?;
        Ok(())
    }

    /// Deletes a session: its file, its folder and its subagents, in all copies. This cannot be undone.
    ///
    /// Fails while a program appends to the file. If an agent has the session open without writing, this
    /// cannot be detected; that agent fails with its next entry.
    pub fn delete(&self, id: &SessionId) -> Result<(), SessionError> {
        for copy in self.find_copies(id)? {
            quipu_transcript::delete_session(&copy.path)?;
        }
        Ok(())
    }

    /// Copies a session to a new one beside the original: every entry, or the path to one, with new ids and a
    /// reference to the original. Files of subagents and file checkpoints are not copied.
    pub fn fork(&self, id: &SessionId, options: &ForkOptions) -> Result<SessionId, SessionError> {
        let file = self.find_file(id)?;
        let title = match options.title.as_deref().and_then(non_blank) {
            Some(title) => title,
            None => {
                let outline = SessionOverview::read_all_lines(&file.path)?;
                let title = outline.title().or(outline.first_prompt.as_deref()).unwrap_or("Forked session");
                format!("{title} (fork)")
            }
        };
        let (session_id, prompt_id) = (SessionId::from(new_id().as_str()), new_id());
        let fork = Fork {
            from: &file.path,
            to: &file.path.with_file_name(format!("{session_id}.jsonl")),
            session_id: &session_id,
            prompt_id: prompt_id.as_str(),
            last_uuid: options.up_to.as_ref(),
        };
        fork.run_with_new_ids(id, &[title_entry(&session_id, title)], &mut new_id)?;
        Ok(session_id)
    }

    /// Returns the subagents that have a file.
    pub fn subagents(&self, id: &SessionId) -> Result<Vec<SubagentFile>, SessionError> {
        let path = self.find_file(id)?.path;
        let mut found = find::list_subagents(&path);
        found.extend(find::list_legacy_subagents(&path));
        Ok(found)
    }

    /// Returns the visible messages of a subagent, as [`messages`](Self::messages) does.
    pub fn subagent_messages(&self, id: &SessionId, agent_id: &AgentId) -> Result<Vec<Entry>, SessionError> {
        let found = self.subagents(id)?.into_iter().find(|subagent| subagent.agent_id == *agent_id);
        let no_subagent = || SessionError::NoSubagent { id: id.clone(), agent_id: agent_id.clone() };
        Ok(visible_messages(&load_file(&found.ok_or_else(no_subagent)?.path)?))
    }

    /// The file of a session; of several copies the newest that is not empty.
    fn find_file(&self, id: &SessionId) -> Result<SessionFile, SessionError> {
        let found = self.find_copies(id)?.into_iter().find(|file| file.bytes > 0);
        found.ok_or_else(|| SessionError::NotFound { id: id.clone() })
    }

    fn find_copies(&self, id: &SessionId) -> Result<Vec<SessionFile>, SessionError> {
        if !is_valid_id(id) {
            return Err(SessionError::BadId { id: id.clone() });
        }
        let name = format!("{id}.jsonl");
        let (folders, _) = self.folders();
        let mut copies: Vec<SessionFile> =
            folders.iter().filter_map(|folder| SessionFile::from_path(folder.path.join(&name))).collect();
        copies.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
        if copies.is_empty() { Err(SessionError::NotFound { id: id.clone() }) } else { Ok(copies) }
    }

    fn folders(&self) -> (Vec<ProjectFolder>, Vec<FileError>) {
        let Some(directories) = &self.directories else {
            let (paths, errors) = find::list_project_folders(&self.config_dirs);
            return (paths.into_iter().map(|path| ProjectFolder { path, directory: None }).collect(), errors);
        };
        let mut folders: Vec<ProjectFolder> = Vec::new();
        for config in &self.config_dirs {
            for directory in directories {
                if let Some(path) = find::find_project_folder(config, directory)
                    && folders.iter().all(|folder| folder.path != path)
                {
                    folders.push(ProjectFolder { path, directory: Some(directory.clone()) });
                }
            }
        }
        (folders, Vec::new())
    }
}

/// The entries of the active branch that the user sees.
fn visible_messages(conversation: &Conversation) -> Vec<Entry> {
    let is_visible = |entry: &Entry| match entry {
        Entry::User(user) => !user.is_meta.is_true() && !user.is_virtual.is_true(),
        Entry::Assistant(answer) => !answer.is_virtual.is_true(),
        _ => false,
    };
    let active = since_compaction(&conversation.path());
    active.into_iter().map(|node| &node.entry).filter(|entry| is_visible(entry)).cloned().collect()
}

fn session_info(file: SessionFile, outline: SessionOverview, folders: &[ProjectFolder]) -> SessionInfo {
    let folder = folders.iter().find(|folder| Some(&*folder.path) == file.path.parent());
    let directory = folder.and_then(|folder| folder.directory.as_ref());
    SessionInfo::new(file, outline, directory.map(|directory| directory.to_string_lossy().into_owned()))
}

fn title_entry(id: &SessionId, title: String) -> Entry {
    Entry::CustomTitle(Box::new(CustomTitle { title, session_id: id.clone().into(), ..CustomTitle::default() }))
}

/// The trimmed text; `None` if it is blank.
fn non_blank(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Whether a text can be a session id: a plain name that cannot refer to another folder.
fn is_valid_id(id: &SessionId) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let id = id.as_str();
    (1..=200).contains(&id.len()) && !id.starts_with(['.', '-']) && id.chars().all(plain)
}

/// A directory in the form that agents record: absolute, with links resolved.
fn resolve_dir(directory: &Path) -> PathBuf {
    let absolute = || std::path::absolute(directory).ok();
    directory.canonicalize().ok().or_else(absolute).unwrap_or_else(|| directory.to_owned())
}

fn new_id() -> Uuid {
    Uuid::from(uuid::Uuid::new_v4().to_string())
}
