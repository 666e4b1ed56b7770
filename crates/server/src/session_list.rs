//! All sessions, as the index knows them, and those that it does not know yet.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use parking_lot::{Condvar, Mutex, RwLock};
use quipu_index::ListedSession;
use quipu_transcript::find::{self, SessionFile};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;

/// One session of a list, in the shape of `quipu ls --json` with fields of the page.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SessionRow {
    /// Names the session in addresses: its id, or `PROJECT:ID` if several sessions have the id.
    pub(crate) key: String,
    /// The session; without counts if it is not in the index yet.
    #[serde(flatten)]
    pub(crate) session: ListedSession,
    /// Whether the index knows the session, so that its counts are complete.
    pub(crate) is_indexed: bool,
}

impl SessionRow {
    /// Whether the project folder or the working directory contains a text, in any case of letters.
    pub(crate) fn is_in_project(&self, part: &str) -> bool {
        let part = part.to_lowercase();
        let contains = |text: &str| text.to_lowercase().contains(&part);
        contains(&self.session.project) || self.session.cwd.as_deref().is_some_and(contains)
    }
}

/// The tags of a session: its one tag, split at commas.
pub(crate) fn split_tags(tag: Option<&str>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in tag.unwrap_or_default().split([',', '，']).map(str::trim).filter(|tag| !tag.is_empty()) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

/// All sessions. Read at once; replaced as a whole.
#[derive(Debug)]
pub(crate) struct SessionList {
    claude_dirs: Vec<PathBuf>,
    rows: RwLock<Arc<Vec<SessionRow>>>,
    /// Whether the sessions have been listed once.
    is_listed: Mutex<bool>,
    listed: Condvar,
}

/// Longest wait for the first list, which reads both ends of each file.
const MAX_LIST_WAIT: Duration = Duration::from_secs(2);

impl SessionList {
    pub(crate) fn new(claude_dirs: &[PathBuf]) -> Self {
        let (is_listed, listed) = (Mutex::new(false), Condvar::new());
        Self { claude_dirs: claude_dirs.to_vec(), rows: RwLock::default(), is_listed, listed }
    }

    /// The sessions, latest first.
    pub(crate) fn rows(&self) -> Arc<Vec<SessionRow>> {
        Arc::clone(&self.rows.read())
    }

    /// The sessions, latest first. Waits for the first list after the start, so that a page that is
    /// loaded at once does not show that there are no sessions.
    pub(crate) fn first_rows(&self) -> Arc<Vec<SessionRow>> {
        let mut is_listed = self.is_listed.lock();
        if !*is_listed {
            self.listed.wait_for(&mut is_listed, MAX_LIST_WAIT);
        }
        drop(is_listed);
        self.rows()
    }

    /// Replaces the list by the sessions of the index and those files that it does not have. Reads
    /// both ends of these files.
    pub(crate) fn set_indexed(&self, indexed: Vec<ListedSession>) {
        let known: HashSet<&Path> = indexed.iter().map(|session| session.path.as_path()).collect();
        let (files, _) = find::list_sessions(&self.claude_dirs);
        let new: Vec<SessionFile> = files.into_iter().filter(|file| !known.contains(file.path.as_path())).collect();
        let new: Vec<ListedSession> = new.par_iter().map(ListedSession::from_file_ends).collect();
        let mut rows: Vec<SessionRow> = indexed.into_iter().map(|session| row(session, true)).collect();
        rows.extend(new.into_iter().map(|session| row(session, false)));
        rows.sort_by_cached_key(|row| (std::cmp::Reverse(row.session.last_active_ns()), row.session.path.clone()));
        set_keys(&mut rows);
        *self.rows.write() = Arc::new(rows);
        *self.is_listed.lock() = true;
        self.listed.notify_all();
    }

    /// File of the session with this key. Sessions that were created a moment ago are found, too.
    pub(crate) fn resolve(&self, key: &str) -> Result<PathBuf, ApiError> {
        let listed = self.rows().iter().find(|row| row.key == key).map(|row| row.session.path.clone());
        if let Some(path) = listed.filter(|path| path.is_file()) {
            return Ok(path);
        }
        // Only names of existing files are compared, so that no key leads outside of the projects.
        let (files, _) = find::list_sessions(&self.claude_dirs);
        let (project, id) = key.rsplit_once(':').map_or((None, key), |(project, id)| (Some(project), id));
        let is_named = |file: &&SessionFile| {
            file.id.as_str() == key || file.id.as_str() == id && project == Some(file.project.as_str())
        };
        let mut found = files.iter().filter(is_named);
        match (found.next(), found.next()) {
            (Some(file), None) => Ok(file.path.clone()),
            (None, _) => Err(ApiError::not_found("session.not_found", format!("no session matches '{key}'"))
                .with_hint("/api/sessions lists the keys of sessions")),
            (Some(_), Some(_)) => {
                let message = format!("several sessions match '{key}'");
                Err(ApiError::new(StatusCode::CONFLICT, "session.ambiguous", message).with_hint("use PROJECT:ID"))
            }
        }
    }

    /// Changes a row until the next refresh, which reads the same from the file.
    pub(crate) fn change_row(&self, path: &Path, change: impl FnOnce(&mut ListedSession)) {
        let mut rows = self.rows.write();
        if let Some(row) = Arc::make_mut(&mut rows).iter_mut().find(|row| row.session.path == path) {
            change(&mut row.session);
        }
    }

    /// Removes a session that was deleted.
    pub(crate) fn remove(&self, path: &Path) {
        Arc::make_mut(&mut self.rows.write()).retain(|row| row.session.path != path);
    }

    /// Key of a session file. That of a new session is its id, until it is in the list.
    pub(crate) fn key_of(&self, path: &Path) -> String {
        let id = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.rows().iter().find(|row| row.session.path == path).map_or_else(id, |row| row.key.clone())
    }

    /// The row of a session file; `None` if it is not in the list yet.
    pub(crate) fn row_of(&self, path: &Path) -> Option<SessionRow> {
        self.rows().iter().find(|row| row.session.path == path).cloned()
    }
}

fn row(session: ListedSession, is_indexed: bool) -> SessionRow {
    SessionRow { key: session.session_id.clone(), session, is_indexed }
}

/// Ids that several sessions have are completed with their projects.
fn set_keys(rows: &mut [SessionRow]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in rows.iter() {
        *counts.entry(row.session.session_id.clone()).or_default() += 1;
    }
    for row in rows.iter_mut().filter(|row| counts.get(&row.session.session_id).is_some_and(|&count| count > 1)) {
        row.key = format!("{}:{}", row.session.project, row.session.session_id);
    }
}
