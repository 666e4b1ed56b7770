//! Brings the index up to date in the background, so that no request waits for it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_conversation::price::Prices;
use quipu_index::{Catalogue, IndexError};
use quipu_transcript::error_chain;

use crate::app::App;
use crate::event::Event;

/// Least time between the starts of two refreshes, so that a busy session does not keep a core busy.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(2);

/// The thread that refreshes the index.
pub(crate) struct IndexWorker {
    app: Arc<App>,
    thread: Option<JoinHandle<()>>,
}

impl IndexWorker {
    /// Starts a thread that lists the sessions at once and then refreshes the index, now and
    /// whenever it is requested.
    pub(crate) fn start(app: &Arc<App>) -> Self {
        let worker = Arc::clone(app);
        let spawned = std::thread::Builder::new().name("index".to_owned()).spawn(move || run(&worker));
        Self { app: Arc::clone(app), thread: spawned.ok() }
    }

    /// Ends the thread. A refresh that is running is not waited for: each of its transactions is
    /// complete.
    pub(crate) fn stop(self) {
        self.app.index.request_refresh();
        if let Some(thread) = self.thread.filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}

fn run(app: &App) {
    let mut catalogue = match open_catalogue(app) {
        Ok(catalogue) => catalogue,
        Err(error) => {
            tracing::warn!(target: "quipu::server", error = error_chain(&error), "no index");
            app.list.set_indexed(Vec::new());
            return;
        }
    };
    // What the last run knew, and both ends of the files that are new.
    app.list.set_indexed(catalogue.sessions().unwrap_or_default());
    app.send(Event::Sessions);
    while !app.is_stopping() {
        let started = Instant::now();
        app.send(Event::Index { state: "updating" });
        if let Err(error) = refresh(app, &mut catalogue) {
            tracing::warn!(target: "quipu::server", error = error_chain(&error), "the index was not refreshed");
        }
        app.send(Event::Index { state: "ready" });
        app.index.wait_for_request(started + MIN_REFRESH_INTERVAL, || app.is_stopping());
    }
}

/// Brings the index and the list of sessions up to date, and the texts if there was a search.
fn refresh(app: &App, catalogue: &mut Catalogue) -> Result<(), IndexError> {
    catalogue.refresh(&|_, _| ())?;
    app.list.set_indexed(catalogue.sessions()?);
    app.index.set_ready();
    app.send(Event::Sessions);
    if app.index.wants_texts() {
        catalogue.index_text(&|_, _| ())?;
        app.index.set_has_texts();
    }
    Ok(())
}

/// Opens the index of the server's config folders.
pub(crate) fn open_catalogue(app: &App) -> Result<Catalogue, IndexError> {
    let catalogue = Catalogue::open(&app.cache_folder, &app.claude_dirs, Prices::clone(&app.prices))?;
    Ok(match &app.data_folder {
        Some(folder) => catalogue.with_data_folder(folder),
        None => catalogue,
    })
}
