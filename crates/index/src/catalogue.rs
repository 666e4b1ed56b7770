//! What is known of every session file, kept in a database and brought up to date by
//! reading only what is new.
//!
//! ```text
//!   files ─ find ─┬─ unchanged ── nothing to do
//!                 └─ changed ──── fold (on all cores) ── message rows ── credit ── used
//! ```

use std::path::{Path, PathBuf};

use quipu_conversation::price::Prices;
use quipu_transcript::FileError;

use crate::hashed::{hash, mix};
use crate::search::{Hit, Query};
use crate::store::{IndexError, Store};
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

pub(crate) use fold::fold;
pub use list::Listed;

/// How far the work is: done, and all of it.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The catalogue of the sessions of some config folders.
#[derive(Debug)]
pub struct Catalogue {
    pub(crate) store: Store,
    pub(crate) dirs: Vec<PathBuf>,
    prices: Prices,
}

impl Catalogue {
    /// Opens the catalogue of these config folders under a cache folder.
    pub fn open(cache: &Path, dirs: &[PathBuf], prices: Prices) -> Result<Self, IndexError> {
        let mut dirs: Vec<PathBuf> =
            dirs.iter().map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.clone())).collect();
        dirs.sort();
        dirs.dedup();
        // Each set of folders has a database of its own, so that none sees another's.
        let name = dirs.iter().fold(0, |name, dir| mix(name ^ hash(dir.as_os_str().as_encoded_bytes())));
        let store = Store::open(&cache.join(format!("index-{name:016x}.sqlite")))?;
        Ok(Self { store, dirs, prices })
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

    /// Finds what was said, best first.
    pub fn search(&self, query: &Query) -> Result<Vec<Hit>, IndexError> {
        search::search(&self.store.db, query).map_err(|source| self.store.error(source))
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

    /// Every session that is there, as `ls` lists it; latest first.
    pub fn sessions(&self) -> Result<Vec<Listed>, IndexError> {
        list::sessions(&self.store.db).map_err(|source| self.store.error(source))
    }
}
