//! Waits until the operating system reports a change under some folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

/// Longest wait, for file systems that report no changes, such as network file systems.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Waits until files under the watched folders are created, written, removed or renamed.
#[derive(Debug)]
pub struct ChangeWatcher {
    watcher: Option<RecommendedWatcher>,
    events: Receiver<Option<PathBuf>>,
}

impl ChangeWatcher {
    /// Creates a watcher that watches no folder yet.
    pub fn new() -> Self {
        let (sender, events) = channel();
        let watcher = notify::recommended_watcher(move |event| forward_event(event, &sender)).ok();
        Self { watcher, events }
    }

    /// Watches the files of a folder and, with `deep`, of all folders below. Returns false if the
    /// operating system cannot watch it; [`wait`](Self::wait) still returns twice a second.
    pub fn watch(&mut self, folder: &Path, deep: bool) -> bool {
        let mode = if deep { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        self.watcher.as_mut().is_some_and(|watcher| watcher.watch(folder, mode).is_ok())
    }

    /// Blocks until something changes, at most half a second. Returns the paths that changed. Empty
    /// if the time is over or the operating system lost events; then anything may have changed.
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
            // The watcher could not be created.
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

/// Forwards events that change files. Opening a file is not one: following opens files itself.
fn forward_event(event: notify::Result<Event>, sender: &Sender<Option<PathBuf>>) {
    // Sending fails only after the `ChangeWatcher` is dropped.
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
