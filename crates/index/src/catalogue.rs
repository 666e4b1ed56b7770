//! The database of all sessions. A refresh reads only new lines.
//!
//! ```text
//!   files ─ find ─┬─ unchanged ── nothing to do
//!                 └─ changed ──── fold (on all cores) ── message rows ── credit ── used
//! ```

use std::io;
use std::path::{Path, PathBuf};

use quipu_conversation::price::Prices;
use quipu_conversation::usage::stable_hash;
use quipu_transcript::{FileError, find};

use crate::hashing::mix_bits;
use crate::listed_session::ListedSession;
use crate::search::{Query, SearchHits};
use crate::store::{IndexError, Store, canonical_dirs};
use crate::terms::SearchTerms;
use crate::usage::{GroupBy, TimeWindow, UsageRecord};
use crate::usage_archive::UsageArchive;

mod crediting;
mod fold;
mod index_search;
mod list;
mod message_rows;
mod refresh;
mod text_index;
mod usage_query;
mod usage_sums;
mod vanished;

pub(crate) use fold::{fold_session, hash_tail};
pub use usage_query::SessionStatus;

/// Called with the work done and the total work, in sessions or megabytes.
pub type ProgressCallback<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The index of the sessions in some config folders.
#[derive(Debug)]
pub struct Catalogue {
    pub(crate) store: Store,
    pub(crate) config_dirs: Vec<PathBuf>,
    prices: Prices,
    archive: Option<UsageArchive>,
    archive_error: Option<(PathBuf, io::Error)>,
}

impl Catalogue {
    /// Opens or creates the database of these config folders in the folder `cache`.
    pub fn open(cache: &Path, dirs: &[PathBuf], prices: Prices) -> Result<Self, IndexError> {
        let dirs = canonical_dirs(dirs);
        // Each set of folders has its own database, so that reports do not mix.
        let name = dirs.iter().fold(0, |name, dir| mix_bits(name ^ stable_hash(dir.as_os_str().as_encoded_bytes())));
        let store = Store::open(&cache.join(format!("index-{name:016x}.sqlite")))?;
        Ok(Self { store, config_dirs: dirs, prices, archive: None, archive_error: None })
    }

    /// Creates a catalogue in memory, if no folder is writable. Its first refresh reads every
    /// session.
    pub fn in_memory(dirs: &[PathBuf], prices: Prices) -> Result<Self, IndexError> {
        Ok(Self {
            store: Store::in_memory()?,
            config_dirs: canonical_dirs(dirs),
            prices,
            archive: None,
            archive_error: None,
        })
    }

    /// Archives the usage of deleted files in `usage.jsonl` in this folder, and counts the
    /// usage archived there.
    pub fn with_data_folder(self, folder: &Path) -> Self {
        Self { archive: Some(UsageArchive::new(folder)), ..self }
    }

    /// Path and error if the archive could not be read or written; the usage of deleted files
    /// is then only in the index.
    pub fn archive_error(&self) -> Option<(&Path, &io::Error)> {
        self.archive_error.as_ref().map(|(path, error)| (&**path, error))
    }

    /// Renames the database and creates an empty one. Call it if a query failed with
    /// [`IndexError::is_corrupt`], then [refresh](Self::refresh).
    pub fn rebuild(&mut self) -> Result<(), IndexError> {
        self.store = Store::recreate(&self.store.path.clone())?;
        Ok(())
    }

    /// Path of the database.
    pub fn path(&self) -> &Path {
        &self.store.path
    }

    /// Checks the whole database for damage; reads all of it.
    pub fn check_integrity(&self) -> Result<(), IndexError> {
        let check = || {
            let found: String = self.store.db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            let damaged = || rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            if found == "ok" { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(damaged(), Some(found))) }
        };
        check().map_err(|source| self.store.database_error(source))
    }

    /// Path of a damaged database that this one replaced; `None` if there was none.
    pub fn broken_database(&self) -> Option<&Path> {
        self.store.broken_database.as_deref()
    }

    /// Brings the index up to date. Returns the files and folders that cannot be read; all
    /// others are indexed. A damaged database is replaced.
    pub fn refresh(&mut self, progress: ProgressCallback<'_>) -> Result<Vec<FileError>, IndexError> {
        let path = self.store.path.clone();
        let _span = tracing::debug_span!(target: "quipu::index", "refresh", path = %path.display()).entered();
        let fail = |source| IndexError::Database { path: path.clone(), source };
        match refresh::refresh(self, progress).map_err(fail) {
            // Damage that opening the database does not notice.
            Err(error) if error.is_corrupt() => {
                self.store = Store::recreate(&path)?;
                refresh::refresh(self, progress).map_err(fail)
            }
            done => done,
        }
    }

    /// Brings the full-text index up to date; call it after [`refresh`](Self::refresh).
    pub fn index_text(&mut self, progress: ProgressCallback<'_>) -> Result<Vec<FileError>, IndexError> {
        let path = self.store.path.clone();
        let _span = tracing::debug_span!(target: "quipu::index", "index_text", path = %path.display()).entered();
        text_index::update_text_index(self, progress).map_err(|source| IndexError::Database { path, source })
    }

    /// Searches the full-text index, best hits first; call it after
    /// [`index_text`](Self::index_text). Empty if the terms [have no
    /// words](SearchTerms::has_words).
    pub fn search(&self, terms: &SearchTerms, query: &Query) -> Result<SearchHits, IndexError> {
        index_search::search_index(&self.store.db, terms, query).map_err(|source| self.store.database_error(source))
    }

    /// Passes the credited usage in a window to `visit`: message by message if the grouping
    /// needs it, otherwise in sums.
    pub fn for_each_usage(
        &self,
        group_by: GroupBy,
        window: &TimeWindow,
        visit: impl FnMut(&UsageRecord<'_>),
    ) -> Result<(), IndexError> {
        let read = if group_by.needs_messages() {
            usage_query::for_each_credited_message(&self.store.db, &self.prices, visit)
        } else {
            usage_query::for_each_credited_sum(&self.store.db, &self.prices, window, visit)
        };
        read.map_err(|source| self.store.database_error(source))
    }

    /// Whether a file is in one of the config folders.
    pub fn contains_path(&self, path: &Path) -> bool {
        self.config_dirs.iter().any(|dir| path.starts_with(dir.join("projects")))
    }

    /// Brings one session up to date and returns its status; `None` if there is no such file.
    /// Reads no other session. If another command is refreshing, returns the stored status.
    pub fn session_status(&mut self, file: &Path) -> Result<Option<SessionStatus>, IndexError> {
        let Some(session_files) = find::find_session_files(file) else { return Ok(None) };
        let status = refresh::refresh_session(self, &session_files)
            .and_then(|()| usage_query::session_status(&self.store.db, &session_files));
        status.map_err(|source| self.store.database_error(source))
    }

    /// What `quipu ls` shows of a session; `None` if a line of it is not in the index. Reads only
    /// the index.
    pub fn indexed_session(&self, file: &Path) -> Result<Option<ListedSession>, IndexError> {
        let Some(session_files) = find::find_session_files(file) else { return Ok(None) };
        let status = match refresh::is_indexed(&self.store.db, &session_files) {
            Ok(true) => usage_query::session_status(&self.store.db, &session_files),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        status.map(|status| Some(status?.session)).map_err(|source| self.store.database_error(source))
    }

    /// Sessions whose files were deleted, latest first.
    pub fn vanished_sessions(&self) -> Result<Vec<ListedSession>, IndexError> {
        list::list_sessions(&self.store.db, true).map_err(|source| self.store.database_error(source))
    }

    /// Existing sessions, latest first.
    pub fn sessions(&self) -> Result<Vec<ListedSession>, IndexError> {
        list::list_sessions(&self.store.db, false).map_err(|source| self.store.database_error(source))
    }
}
