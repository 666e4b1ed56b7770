//! Watches the files of all sessions and reports what changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quipu_transcript::find::SessionFile;
use quipu_transcript::{ChangeWatcher, NewSessions};

use crate::app::App;
use crate::event::Event;
use crate::live_sessions::{LiveState, RECENT_MAX_AGE};

/// Longest wait for a change. Then states are looked at again, because silence changes them, too.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Starts a thread that reports changes until the server stops.
pub(crate) fn start(app: &Arc<App>) {
    let app = Arc::clone(app);
    let run = move || {
        let mut changes = ChangeWatcher::new();
        let mut new_sessions = NewSessions::new(&app.claude_dirs, &mut changes);
        let mut reported = BTreeMap::new();
        follow_recent(&app, &new_sessions.sessions());
        report_states(&app, &mut reported);
        while !app.is_stopping() {
            let changed = changes.wait(MAX_WAIT);
            if let Some(started) = new_sessions.poll(&changed, &mut changes) {
                app.index.request_refresh();
                report_session(&app, &started);
            }
            for path in existing_sessions(&new_sessions.session_files_for(&changed)) {
                app.index.request_refresh();
                report_session(&app, &path);
            }
            report_states(&app, &mut reported);
        }
    };
    // Without the thread the page shows what is there when it is loaded.
    if let Err(error) = std::thread::Builder::new().name("changes".to_owned()).spawn(run) {
        tracing::warn!(target: "quipu::server", %error, "changes are not reported");
    }
}

/// Follows the sessions that were written to in the last hours.
fn follow_recent(app: &App, sessions: &[SessionFile]) {
    for file in sessions {
        #[expect(clippy::disallowed_methods, reason = "compared with the times of the file system")]
        let silence = SystemTime::now().duration_since(file.modified).unwrap_or_default();
        if silence > RECENT_MAX_AGE || app.is_stopping() {
            break;
        }
        // A file that cannot be read now is tried again when it changes.
        let _ = app.live.update(&file.path, silence);
    }
}

/// Files that exist; the others are no longer followed.
fn existing_sessions(paths: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    paths.iter().filter(|path| path.is_file()).cloned().collect()
}

/// Reports that a session has new lines. First of all, because clients wait for it.
fn report_session(app: &App, path: &Path) {
    app.send(Event::Session { key: app.list.key_of(path) });
    if app.live.update(path, Duration::ZERO).is_err() {
        app.live.remove(path);
    }
}

/// Reports sessions that began or stopped to work or to wait.
fn report_states(app: &App, reported: &mut BTreeMap<PathBuf, LiveState>) {
    let states = app.live.states();
    for (path, state) in &states {
        if reported.get(path) != Some(state) {
            app.send(Event::Activity { key: app.list.key_of(path), state: state.clone() });
        }
    }
    *reported = states;
}
