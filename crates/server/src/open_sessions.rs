//! The sessions that were opened last, within a limit on memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
use quipu_index::SkeletonStore;
use quipu_transcript::{FileError, OpenSession};

/// Lines of all open sessions together; a line takes about 200 bytes.
const MAX_LINES: u64 = 200_000;
/// Open sessions, however short they are.
const MAX_SESSIONS: usize = 24;

/// The sessions that were opened last. Others are opened again from their stored skeletons.
#[derive(Debug)]
pub(crate) struct OpenSessions {
    store: SkeletonStore,
    /// The session used last is the last one.
    sessions: Mutex<Vec<(PathBuf, SharedSession)>>,
}

/// A session that several requests read. `None` until its file has been read.
type SharedSession = Arc<RwLock<Option<OpenSession>>>;

impl OpenSessions {
    pub(crate) fn new(store: SkeletonStore) -> Self {
        Self { store, sessions: Mutex::default() }
    }

    /// Calls `read` with a session that is up to date. Fails if its file cannot be read.
    pub(crate) fn with<T>(&self, path: &Path, read: impl FnOnce(&OpenSession) -> T) -> Result<T, FileError> {
        let shared = self.shared(path);
        let guard = match self.up_to_date(path, &shared) {
            Ok(guard) => guard,
            Err(error) => {
                self.sessions.lock().retain(|(other, _)| other != path);
                return Err(error);
            }
        };
        let Some(session) = &*guard else { unreachable!("a session that was read is open") };
        let result = read(session);
        drop(guard);
        self.close_oldest();
        Ok(result)
    }

    fn shared(&self, path: &Path) -> SharedSession {
        let mut sessions = self.sessions.lock();
        let known = sessions.iter().position(|(other, _)| other == path);
        let shared = known.map_or_else(SharedSession::default, |index| sessions.remove(index).1);
        sessions.push((path.to_owned(), Arc::clone(&shared)));
        shared
    }

    /// Opens the session, or reads what was written since the last request. Requests for other
    /// windows of the same session wait for that, and not for each other: while nothing is written,
    /// they read at the same time.
    fn up_to_date<'a>(
        &self,
        path: &Path,
        shared: &'a RwLock<Option<OpenSession>>,
    ) -> Result<RwLockReadGuard<'a, Option<OpenSession>>, FileError> {
        let guard = shared.upgradable_read();
        if guard.as_ref().is_some_and(OpenSession::is_up_to_date) {
            return Ok(RwLockUpgradableReadGuard::downgrade(guard));
        }
        let mut guard = RwLockUpgradableReadGuard::upgrade(guard);
        match &mut *guard {
            Some(session) => _ = session.update(|path| self.store.read(path))?,
            None => *guard = Some(OpenSession::open(path, |path| self.store.read(path))?),
        }
        Ok(RwLockWriteGuard::downgrade(guard))
    }

    fn close_oldest(&self) {
        let mut sessions = self.sessions.lock();
        // A session that is being opened counts when it is.
        let lines = |shared: &SharedSession| {
            shared.try_read().and_then(|session| session.as_ref().map(OpenSession::lines)).unwrap_or_default()
        };
        let mut total: u64 = sessions.iter().map(|(_, shared)| lines(shared)).sum();
        while sessions.len() > 1 && (total > MAX_LINES || sessions.len() > MAX_SESSIONS) {
            let (_, closed) = sessions.remove(0);
            total -= lines(&closed).min(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use quipu_index::SkeletonStore;

    use super::OpenSessions;

    #[test]
    fn a_window_does_not_wait_for_another_request_that_reads_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        fs::write(&path, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n").unwrap();
        let sessions = OpenSessions::new(SkeletonStore::new(folder.path()));
        let (is_reading, reading) = channel();
        let (is_done, done) = channel();
        let has_finished = std::thread::scope(|scope| {
            let (sessions, path) = (&sessions, &path);
            let first = scope.spawn(move || {
                sessions.with(path, |_| {
                    is_reading.send(()).unwrap();
                    done.recv_timeout(Duration::from_secs(10)).is_ok()
                })
            });
            reading.recv().unwrap();
            assert_eq!(sessions.with(path, |session| session.view().len()).unwrap(), 1);
            // Fails if the first request gave up first.
            let _ = is_done.send(());
            first.join().unwrap().unwrap()
        });
        assert!(has_finished);
    }
}
