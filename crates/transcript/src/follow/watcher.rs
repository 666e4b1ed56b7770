//! When to look again: what the system says about changes under some folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

/// How long to wait at most where the system reports nothing, as on network file systems.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Waits for files under some folders to be created, written, removed or renamed. Nothing
/// runs while nothing happens.
#[derive(Debug)]
pub struct ChangeWatcher {
    watcher: Option<RecommendedWatcher>,
    events: Receiver<Option<PathBuf>>,
}

impl ChangeWatcher {
    /// Watches nothing yet.
    pub fn new() -> Self {
        let (sender, events) = channel();
        let watcher = notify::recommended_watcher(move |event| forward_event(event, &sender)).ok();
        Self { watcher, events }
    }

    /// Watches the files of a folder, and with `deep` those of all folders below. False
    /// when the system cannot: then [`wait`](Self::wait) returns twice a second.
    pub fn watch(&mut self, folder: &Path, deep: bool) -> bool {
        let mode = if deep { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        self.watcher.as_mut().is_some_and(|watcher| watcher.watch(folder, mode).is_ok())
    }

    /// Waits until something changes, at most half a second. Returns the files and folders
    /// that changed, as far as the system tells; empty when the time is over, or when it
    /// lost count: then everything may have changed.
    pub fn wait(&mut self, timeout: Duration) -> BTreeSet<PathBuf> {
        let timeout = timeout.min(POLL_INTERVAL);
        let mut changed = BTreeSet::new();
        match self.events.recv_timeout(timeout) {
            Ok(first) => {
                for path in std::iter::once(first).chain(self.events.try_iter()) {
                    match path {
                        Some(path) => changed.insert(path),
                        None => return BTreeSet::new(),
                    };
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // There is no watcher.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(timeout),
        }
        changed
    }
}

impl Default for ChangeWatcher {
    fn default() -> Self {
        Self::new()
    }
}

/// Passes on what changes files. Files that are merely opened are no news: following them
/// may itself open them.
fn forward_event(event: notify::Result<Event>, sender: &Sender<Option<PathBuf>>) {
    // Nobody listens any more once the receiver is dropped.
    let send = |path| drop(sender.send(path));
    match event {
        Ok(event) if event.need_rescan() => send(None),
        Ok(Event { kind, paths, .. }) => match kind {
            EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => {}
            _ => paths.into_iter().for_each(|path| send(Some(path))),
        },
        Err(_) => send(None),
    }
}
