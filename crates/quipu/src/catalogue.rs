//! Opens the index of this machine's sessions and brings it up to date.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};
use indicatif::{ProgressBar, ProgressStyle};
use quipu_index::{Catalogue, IndexError, ListedSession};
use quipu_transcript::error_chain;

use crate::claude_dirs::claude_dirs;
use crate::error::{print_warning, print_warnings};
use crate::global::GlobalArgs;
use crate::prices;

/// Brings the catalogue up to date and calls `ask` with it. A damaged index is renamed and built
/// again; if the index cannot be written, one in memory is used for this command. `ask` may be
/// called twice, so it must print only when it succeeds.
pub(crate) fn with_catalogue<T>(global: &GlobalArgs, ask: impl Fn(&mut Catalogue) -> Result<T>) -> Result<T> {
    let (mut catalogue, mut is_in_memory) = open(global)?;
    let mut has_started_over = false;
    loop {
        let error = match refresh(&mut catalogue, global).and_then(|()| ask(&mut catalogue)) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match error.downcast_ref::<IndexError>() {
            Some(index) if index.is_corrupt() && !has_started_over => {
                has_started_over = true;
                catalogue.rebuild()?;
            }
            Some(index) if index.is_storage_error() && !is_in_memory => {
                (catalogue, is_in_memory) = (open_in_memory(index, global)?, true);
            }
            _ => return Err(error),
        }
    }
}

/// All sessions that exist, latest first.
pub(crate) fn list_sessions(global: &GlobalArgs) -> Result<Vec<ListedSession>> {
    with_catalogue(global, |catalogue| Ok(catalogue.sessions()?))
}

/// Reads new lines of the session files, with a progress bar.
fn refresh(catalogue: &mut Catalogue, global: &GlobalArgs) -> Result<()> {
    let bar = progress_bar("reading sessions", global);
    let errors = catalogue.refresh(&|done, all| update_progress(&bar, done, all));
    bar.finish_and_clear();
    print_warnings(&errors?);
    if let Some(aside) = catalogue.broken_database() {
        print_warning(&format!("the index was damaged and is built again; the old one is {}", aside.display()));
    }
    if let Some((path, error)) = catalogue.archive_error() {
        print_warning(&format!("cannot keep the usage of deleted sessions in {}: {error}", path.display()));
    }
    Ok(())
}

/// Opens the catalogue without bringing it up to date. The flag is true if it is in memory.
pub(crate) fn open(global: &GlobalArgs) -> Result<(Catalogue, bool)> {
    let dirs = claude_dirs(global);
    let Some(folder) = cache_folder() else {
        return Ok((with_data_folder(Catalogue::in_memory(&dirs, prices::load()?)?), true));
    };
    match Catalogue::open(&folder, &dirs, prices::load()?) {
        Ok(catalogue) => Ok((with_data_folder(catalogue), false)),
        Err(error) if error.is_storage_error() => Ok((open_in_memory(&error, global)?, true)),
        Err(error) => Err(error.into()),
    }
}

fn open_in_memory(error: &IndexError, global: &GlobalArgs) -> Result<Catalogue> {
    print_warning(&format!("{}; using an index in memory for this command", error_chain(error)));
    Ok(with_data_folder(Catalogue::in_memory(&claude_dirs(global), prices::load()?)?))
}

fn with_data_folder(catalogue: Catalogue) -> Catalogue {
    match data_folder() {
        Some(folder) => catalogue.with_data_folder(&folder),
        None => catalogue,
    }
}

/// Folder for data that cannot be rebuilt; `None` without a home folder.
pub(crate) fn data_folder() -> Option<PathBuf> {
    Some(choose_native_strategy().ok()?.data_dir().join("quipu"))
}

/// Folder for data that can be rebuilt, such as the index; `None` without a home folder.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    Some(choose_native_strategy().ok()?.cache_dir().join("quipu"))
}

/// Folder for state that is not data, such as the token of `serve`; `None` without a home folder.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let strategy = choose_native_strategy().ok()?;
    // On macOS there is no folder for state.
    Some(strategy.state_dir().unwrap_or_else(|| strategy.data_dir()).join("quipu"))
}

/// A progress bar on stderr; hidden with `--quiet` or if stderr is not a terminal.
pub(crate) fn progress_bar(what: &'static str, global: &GlobalArgs) -> ProgressBar {
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

pub(crate) fn update_progress(bar: &ProgressBar, done: usize, all: usize) {
    if bar.length().is_none() {
        bar.set_length(all as u64);
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar.set_position(done as u64);
}
