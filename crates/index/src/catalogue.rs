//! What is known of every session file, kept in a database and brought up to date by
//! reading only what is new.
//!
//! ```text
//!   files ─ find ─┬─ unchanged ── nothing to do
//!                 └─ changed ──── fold (on all cores) ── message rows ── credit ── used
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_conversation::price::Prices;
use quipu_transcript::FileError;

use crate::hashed::{hash, mix};
use crate::store::{IndexError, Store};
use crate::usage::{Used, Window};

mod credit;
mod fold;
mod list;
mod refresh;
mod rows;
mod sums;

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

    /// Where a broken database was put when this one was made in its place.
    pub fn set_aside(&self) -> Option<&Path> {
        self.store.set_aside.as_deref()
    }

    /// Brings the catalogue up to date. Files and folders that cannot be read are
    /// named; the rest goes on.
    pub fn refresh(&mut self, progress: Progress<'_>) -> Result<Vec<FileError>, IndexError> {
        let path = self.store.path.clone();
        refresh::refresh(self, progress).map_err(|source| IndexError::Database { path, source })
    }

    /// Hands out what was used in a window, as credited.
    pub fn each_used(&self, window: &Window, take: impl FnMut(&Used<'_>)) -> Result<(), IndexError> {
        self.read_used(window, take).map_err(|source| self.store.error(source))
    }

    fn read_used(&self, window: &Window, mut take: impl FnMut(&Used<'_>)) -> rusqlite::Result<()> {
        let db = &self.store.db;
        let names = rows::names(db)?;
        let served = rows::served(db)?;
        let mut hand = |(session, project): &(String, Arc<str>), how: i64, used: Used<'_>| {
            let model = served.get(&how).map_or("", |served| &served.model);
            take(&Used { session, project, model, ..used });
        };
        // A quarter of an hour that the window cuts is counted message by message.
        let cut = [window.since, window.until].map(|edge| edge.and_then(rows::cut_quarter));
        let mut close = Vec::new();
        let mut select = db.prepare_cached("SELECT session, sums FROM used")?;
        let mut found = select.query([])?;
        while let Some(row) = found.next()? {
            let session: i64 = row.get(0)?;
            let Some(name) = names.get(&session) else { continue };
            sums::each(row.get_ref(1)?.as_blob()?, |slot, used| match slot.quarter {
                Some(quarter) if cut.contains(&Some(quarter)) => close.push((session, name)),
                _ => hand(name, slot.served, used),
            });
        }
        close.dedup();
        for (session, name) in close {
            for (message, served, is_copy) in rows::messages(db, session)? {
                let quarter = message.time.map(|time| time.as_millisecond().div_euclid(rows::QUARTER_MS));
                if message.is_told && !is_copy && quarter.is_some() && cut.contains(&quarter) {
                    hand(name, served, Used::of("", "", &message, &self.prices));
                }
            }
        }
        Ok(())
    }

    /// Every session that is there, as `ls` lists it; latest first.
    pub fn sessions(&self) -> Result<Vec<Listed>, IndexError> {
        list::sessions(&self.store.db).map_err(|source| self.store.error(source))
    }
}
