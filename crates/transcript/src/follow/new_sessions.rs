//! Finds sessions that start while others are followed.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ChangeWatcher;
use crate::find::{self, SessionFile};

/// Longest wait for a change; the watcher returns earlier on its own.
const MAX_CHANGE_WAIT: Duration = Duration::from_secs(60);

/// How often all folders are listed, in case the operating system missed a change.
const SCAN_INTERVAL: Duration = Duration::from_secs(10);
/// How often all folders are listed if some cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Listing takes at most one part in this many of the time.
const SCAN_TIME_DIVISOR: u32 = 200;

/// Finds sessions that start, and the sessions that changed files belong to.
#[derive(Debug)]
pub struct NewSessions {
    dirs: Vec<PathBuf>,
    known: HashSet<PathBuf>,
    /// `projects` folders that are not watched yet.
    unwatched: Vec<PathBuf>,
    next_scan: Instant,
}

impl NewSessions {
    /// Lists the existing sessions of config folders and makes `changes` watch for new ones.
    pub fn new(config_dirs: &[PathBuf], changes: &mut ChangeWatcher) -> Self {
        // The operating system reports absolute paths.
        let absolute = |dir: &PathBuf| std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        let dirs: Vec<PathBuf> = config_dirs.iter().map(absolute).collect();
        let unwatched = dirs.iter().map(|dir| dir.join("projects")).collect();
        let mut new = Self { dirs, known: HashSet::new(), unwatched, next_scan: Instant::now() };
        new.watch(changes);
        let there = new.scan();
        new.known.extend(there.into_iter().map(|file| file.path));
        new
    }

    /// All sessions that exist now, latest first.
    pub fn sessions(&self) -> Vec<SessionFile> {
        find::list_sessions(&self.dirs).0
    }

    /// Blocks until a session starts and returns its path.
    pub fn wait(&mut self, changes: &mut ChangeWatcher) -> PathBuf {
        loop {
            let changed = changes.wait(MAX_CHANGE_WAIT);
            if let Some(path) = self.poll(&changed, changes) {
                return path;
            }
        }
    }

    /// The latest session that started since the last call; `None` if none did.
    pub fn poll(&mut self, changed: &BTreeSet<PathBuf>, changes: &mut ChangeWatcher) -> Option<PathBuf> {
        self.watch(changes);
        let is_project = |path: &PathBuf| self.dirs.iter().any(|dir| path.parent() == Some(&dir.join("projects")));
        // A session may have started in a new folder before the folder was watched.
        let mut found = if changed.iter().any(is_project) || Instant::now() >= self.next_scan {
            self.scan()
        } else {
            let files = changed.iter().filter(|path| self.is_session(path));
            files.filter_map(|path| SessionFile::from_path(path.clone())).collect()
        };
        found.retain(|file| file.bytes > 0 && !self.known.contains(&file.path));
        self.known.extend(found.iter().map(|file| file.path.clone()));
        found.into_iter().max_by_key(|file| file.modified).map(|file| file.path)
    }

    /// Session file that a changed file or folder belongs to; `None` if it is outside the projects.
    fn session_file_for(&self, changed: &Path) -> Option<PathBuf> {
        let projects = self.dirs.iter().map(|dir| dir.join("projects")).find(|dir| changed.starts_with(dir))?;
        let mut parts = changed.strip_prefix(&projects).ok()?.components();
        let (project, name) = (parts.next()?, parts.next()?);
        let path = projects.join(project).join(name);
        Some(if path.extension().is_some_and(|ext| ext == "jsonl") { path } else { path.with_extension("jsonl") })
    }

    /// Session files that changed files and folders belong to.
    pub fn session_files_for(&self, changed: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        changed.iter().filter_map(|path| self.session_file_for(path)).collect()
    }

    fn is_session(&self, path: &Path) -> bool {
        self.session_file_for(path).as_deref() == Some(path)
    }

    fn watch(&mut self, changes: &mut ChangeWatcher) {
        self.unwatched.retain(|folder| !(folder.is_dir() && changes.watch(folder, true)));
    }

    fn scan(&mut self) -> Vec<SessionFile> {
        let start = Instant::now();
        let found = self.sessions();
        let least = if self.unwatched.is_empty() { SCAN_INTERVAL } else { POLL_INTERVAL };
        self.next_scan = Instant::now() + least.max(start.elapsed() * SCAN_TIME_DIVISOR);
        found
    }
}
