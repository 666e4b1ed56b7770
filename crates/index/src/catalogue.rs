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
use quipu_transcript::{FileError, find};

use crate::hashed::{hash, mix};
use crate::kept::KeptUsage;
use crate::search::{Found, Query};
use crate::store::{IndexError, Store};
use crate::terms::Terms;
use crate::usage::{By, Used, Window};

mod credit;
mod fold;
mod list;
mod read;
mod refresh;
mod rows;
mod search;
mod sums;
mod text;
mod vanish;

pub(crate) use fold::fold;
pub use list::Listed;
pub use read::SessionStatus;

/// How far the work is: done, and all of it.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The catalogue of the sessions of some config folders.
#[derive(Debug)]
pub struct Catalogue {
    pub(crate) store: Store,
    pub(crate) dirs: Vec<PathBuf>,
    prices: Prices,
    kept: Option<KeptUsage>,
    kept_error: Option<(PathBuf, io::Error)>,
}

/// Config folders as they are kept: without links, each once, in order.
pub(crate) fn canonical(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = dirs.iter().map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.clone())).collect();
    dirs.sort();
    dirs.dedup();
    dirs
}

impl Catalogue {
    /// Opens the catalogue of these config folders under a cache folder.
    pub fn open(cache: &Path, dirs: &[PathBuf], prices: Prices) -> Result<Self, IndexError> {
        let dirs = canonical(dirs);
        // Each set of folders has a database of its own, so that none sees another's.
        let name = dirs.iter().fold(0, |name, dir| mix(name ^ hash(dir.as_os_str().as_encoded_bytes())));
        let store = Store::open(&cache.join(format!("index-{name:016x}.sqlite")))?;
        Ok(Self { store, dirs, prices, kept: None, kept_error: None })
    }

    /// A catalogue in memory, for when no folder can be written. It has to read every
    /// session.
    pub fn in_memory(dirs: &[PathBuf], prices: Prices) -> Result<Self, IndexError> {
        Ok(Self { store: Store::in_memory()?, dirs: canonical(dirs), prices, kept: None, kept_error: None })
    }

    /// Keeps what was counted of files that vanish in a data folder, and counts what is
    /// kept there.
    pub fn with_data(self, folder: &Path) -> Self {
        Self { kept: Some(KeptUsage::new(folder)), ..self }
    }

    /// Why the usage of files that vanished could not be kept or read, and where; it is
    /// then only in the index.
    pub fn kept_error(&self) -> Option<(&Path, &io::Error)> {
        self.kept_error.as_ref().map(|(path, error)| (&**path, error))
    }

    /// Sets the database aside as broken and begins another: for when an answer failed
    /// with [`IndexError::is_corrupt`]. A [refresh](Self::refresh) fills it.
    pub fn start_over(&mut self) -> Result<(), IndexError> {
        self.store = Store::anew(&self.store.path.clone())?;
        Ok(())
    }

    /// The database.
    pub fn path(&self) -> &Path {
        &self.store.path
    }

    /// Looks through the whole database for damage. Reads all of it.
    pub fn check(&self) -> Result<(), IndexError> {
        let check = || {
            let found: String = self.store.db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            let damaged = || rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            if found == "ok" { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(damaged(), Some(found))) }
        };
        check().map_err(|source| self.store.error(source))
    }

    /// Where a broken database was put when this one was made in its place.
    pub fn set_aside(&self) -> Option<&Path> {
        self.store.set_aside.as_deref()
    }

    /// Brings the catalogue up to date. Files and folders that cannot be read are
    /// named; the rest goes on.
    pub fn refresh(&mut self, progress: Progress<'_>) -> Result<Vec<FileError>, IndexError> {
        let path = self.store.path.clone();
        let fail = |source| IndexError::Database { path: path.clone(), source };
        match refresh::refresh(self, progress).map_err(fail) {
            // Broken where opening it does not look.
            Err(error) if error.is_corrupt() => {
                self.store = Store::anew(&path)?;
                refresh::refresh(self, progress).map_err(fail)
            }
            done => done,
        }
    }

    /// Makes all that is said findable, after a [refresh](Self::refresh).
    pub fn index_text(&mut self, progress: Progress<'_>) -> Result<Vec<FileError>, IndexError> {
        let path = self.store.path.clone();
        text::update(self, progress).map_err(|source| IndexError::Database { path, source })
    }

    /// Finds what was said, best first, after [`index_text`](Self::index_text). Nothing if
    /// the terms [have no words](Terms::has_words).
    pub fn search(&self, terms: &Terms, query: &Query) -> Result<Found, IndexError> {
        search::search(&self.store.db, terms, query).map_err(|source| self.store.error(source))
    }

    /// Hands out what was used in a window, as credited: message by message when the
    /// grouping needs it, added up otherwise.
    pub fn each_used(&self, by: By, window: &Window, take: impl FnMut(&Used<'_>)) -> Result<(), IndexError> {
        let read = if by.needs_messages() {
            read::messages(&self.store.db, &self.prices, take)
        } else {
            read::sums(&self.store.db, &self.prices, window, take)
        };
        read.map_err(|source| self.store.error(source))
    }

    /// Whether a file is in one of the config folders.
    pub fn covers(&self, path: &Path) -> bool {
        self.dirs.iter().any(|dir| path.starts_with(dir.join("projects")))
    }

    /// Brings one session up to date, unless another command is at it, and returns what is
    /// known of it; `None` when there is no such file. Other sessions are not looked at.
    pub fn session(&mut self, file: &Path) -> Result<Option<SessionStatus>, IndexError> {
        let Some(history) = find::history(file) else { return Ok(None) };
        let status = refresh::refresh_session(self, &history).and_then(|()| read::session(&self.store.db, &history));
        status.map_err(|source| self.store.error(source))
    }

    /// Every session of which files vanished, as `ls` listed it; latest first.
    pub fn vanished(&self) -> Result<Vec<Listed>, IndexError> {
        list::sessions(&self.store.db, true).map_err(|source| self.store.error(source))
    }

    /// Every session that is there, as `ls` lists it; latest first.
    pub fn sessions(&self) -> Result<Vec<Listed>, IndexError> {
        list::sessions(&self.store.db, false).map_err(|source| self.store.error(source))
    }
}
