//! The catalogue of this machine's sessions, up to date.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use quipu_index::{Catalogue, IndexError};
use tempfile::TempDir;

use crate::args::Global;
use crate::error::warn;
use crate::prices;
use crate::sessions::claude_dirs;

/// An open catalogue; one in a folder of its own when the cache cannot be written.
pub(crate) struct Opened {
    pub(crate) catalogue: Catalogue,
    _folder: Option<TempDir>,
}

/// Opens the catalogue and reads what is new, with a bar when that takes long.
pub(crate) fn refreshed(global: &Global) -> Result<Opened> {
    let mut opened = open(global)?;
    let bar = bar("reading sessions", global);
    let errors = opened.catalogue.refresh(&|done, all| step(&bar, done, all))?;
    bar.finish_and_clear();
    errors.iter().for_each(|error| warn(error));
    if let Some(aside) = opened.catalogue.set_aside() {
        warn(&format!("the index was broken and is made anew; the old one is {}", aside.display()));
    }
    Ok(opened)
}

fn open(global: &Global) -> Result<Opened> {
    let dirs = claude_dirs(global);
    let opened = match cache_folder() {
        Some(folder) => Catalogue::open(&folder, &dirs, prices::load()?),
        None => return open_aside(&dirs),
    };
    match opened {
        Ok(catalogue) => Ok(Opened { catalogue, _folder: None }),
        Err(error @ IndexError::Create { .. }) => {
            warn(&format!("{error}: the index is made for this command alone"));
            open_aside(&dirs)
        }
        Err(error) => Err(error.into()),
    }
}

fn open_aside(dirs: &[PathBuf]) -> Result<Opened> {
    let folder = tempfile::tempdir()?;
    let catalogue = Catalogue::open(folder.path(), dirs, prices::load()?)?;
    Ok(Opened { catalogue, _folder: Some(folder) })
}

/// Where things are kept that can be made anew.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = || {
        let home = std::env::home_dir()?;
        Some(if cfg!(target_os = "macos") { home.join("Library/Caches") } else { home.join(".cache") })
    };
    set("XDG_CACHE_HOME").or_else(|| set("LOCALAPPDATA")).or_else(usual).map(|folder| folder.join("quipu"))
}

/// Drawn on stderr, only when that is a terminal and there is something to wait for.
pub(crate) fn bar(what: &'static str, global: &Global) -> ProgressBar {
    if global.quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

pub(crate) fn step(bar: &ProgressBar, done: usize, all: usize) {
    if bar.length().is_none() {
        bar.set_length(all as u64);
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar.set_position(done as u64);
}
