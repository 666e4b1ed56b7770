//! What is known of every session file, kept in a database and brought up to date by
//! reading only what is new.
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

pub(crate) use fold::fold_session;
pub use usage_query::SessionStatus;

/// How far the work is: done, and all of it.
pub type ProgressCallback<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The catalogue of the sessions of some config folders.
#[derive(Debug)]
pub struct Catalogue {
    pub(crate) store: Store,
    pub(crate) config_dirs: Vec<PathBuf>,
    prices: Prices,
    archive: Option<UsageArchive>,
    archive_error: Option<(PathBuf, io::Error)>,
}

impl Catalogue {
    /// Opens the catalogue of these config folders under a cache folder.
    pub fn open(cache: &Path, dirs: &[PathBuf], prices: Prices) -> Result<Self, IndexError> {
        let dirs = canonical_dirs(dirs);
        // Each set of folders has a database of its own, so that none sees another's.
        let name = dirs.iter().fold(0, |name, dir| mix_bits(name ^ stable_hash(dir.as_os_str().as_encoded_bytes())));
        let store = Store::open(&cache.join(format!("index-{name:016x}.sqlite")))?;
        Ok(Self { store, config_dirs: dirs, prices, archive: None, archive_error: None })
    }

    /// A catalogue in memory, for when no folder can be written. It has to read every
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

    /// Keeps what was counted of files that vanish in a data folder, and counts what is
    /// kept there.
    pub fn with_data_folder(self, folder: &Path) -> Self {
        Self { archive: Some(UsageArchive::new(folder)), ..self }
    }

    /// Why the usage of files that vanished could not be kept or read, and where; it is
    /// then only in the index.
    pub fn archive_error(&self) -> Option<(&Path, &io::Error)> {
        self.archive_error.as_ref().map(|(path, error)| (&**path, error))
    }

    /// Sets the database aside as broken and begins another: for when an answer failed
    /// with [`IndexError::is_corrupt`]. A [refresh](Self::refresh) fills it.
    pub fn rebuild(&mut self) -> Result<(), IndexError> {
        self.store = Store::recreate(&self.store.path.clone())?;
        Ok(())
    }

    /// The database.
    pub fn path(&self) -> &Path {
        &self.store.path
    }

    /// Looks through the whole database for damage. Reads all of it.
    pub fn check_integrity(&self) -> Result<(), IndexError> {
        let check = || {
            let found: String = self.store.db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            let damaged = || rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            if found == "ok" { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(damaged(), Some(found))) }
        };
        check().map_err(|source| self.store.database_error(source))
    }

    /// Where a broken database was put when this one was made in its place.
    pub fn broken_database(&self) -> Option<&Path> {
        self.store.broken_database.as_deref()
    }

    /// Brings the catalogue up to date. Files and folders that cannot be read are
    /// named; the rest goes on.
    pub fn refresh(&mut self, progress: ProgressCallback<'_>) -> Result<Vec<FileError>, IndexError> {
        let path = self.store.path.clone();
        let _span = tracing::debug_span!(target: "quipu::index", "refresh", path = %path.display()).entered();
        let fail = |source| IndexError::Database { path: path.clone(), source };
        match refresh::refresh(self, progress).map_err(fail) {
            // Broken where opening it does not look.
            Err(error) if error.is_corrupt() => {
                self.store = Store::recreate(&path)?;
                refresh::refresh(self, progress).map_err(fail)
            }
            done => done,
        }
    }

    /// Makes all that is said findable, after a [refresh](Self::refresh).
    pub fn index_text(&mut self, progress: ProgressCallback<'_>) -> Result<Vec<FileError>, IndexError> {
        let path = self.store.path.clone();
        let _span = tracing::debug_span!(target: "quipu::index", "index_text", path = %path.display()).entered();
        text_index::update_text_index(self, progress).map_err(|source| IndexError::Database { path, source })
    }

    /// Finds what was said, best first, after [`index_text`](Self::index_text). Nothing if
    /// the terms [have no words](SearchTerms::has_words).
    pub fn search(&self, terms: &SearchTerms, query: &Query) -> Result<SearchHits, IndexError> {
        index_search::search_index(&self.store.db, terms, query).map_err(|source| self.store.database_error(source))
    }

    /// Hands out what was used in a window, as credited: message by message when the
    /// grouping needs it, added up otherwise.
    pub fn for_each_usage(
        &self,
        by: GroupBy,
        window: &TimeWindow,
        take: impl FnMut(&UsageRecord<'_>),
    ) -> Result<(), IndexError> {
        let read = if by.needs_messages() {
            usage_query::for_each_credited_message(&self.store.db, &self.prices, take)
        } else {
            usage_query::for_each_credited_sum(&self.store.db, &self.prices, window, take)
        };
        read.map_err(|source| self.store.database_error(source))
    }

    /// Whether a file is in one of the config folders.
    pub fn contains_path(&self, path: &Path) -> bool {
        self.config_dirs.iter().any(|dir| path.starts_with(dir.join("projects")))
    }

    /// Brings one session up to date, unless another command is at it, and returns what is
    /// known of it; `None` when there is no such file. Other sessions are not looked at.
    pub fn session_status(&mut self, file: &Path) -> Result<Option<SessionStatus>, IndexError> {
        let Some(history) = find::find_session_files(file) else { return Ok(None) };
        let status = refresh::refresh_session(self, &history)
            .and_then(|()| usage_query::session_status(&self.store.db, &history));
        status.map_err(|source| self.store.database_error(source))
    }

    /// Every session of which files vanished, as `ls` listed it; latest first.
    pub fn vanished_sessions(&self) -> Result<Vec<ListedSession>, IndexError> {
        list::list_sessions(&self.store.db, true).map_err(|source| self.store.database_error(source))
    }

    /// Every session that is there, as `ls` lists it; latest first.
    pub fn sessions(&self) -> Result<Vec<ListedSession>, IndexError> {
        list::list_sessions(&self.store.db, false).map_err(|source| self.store.database_error(source))
    }
}
