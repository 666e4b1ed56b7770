//! Follows a session file together with the files of its subagents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{ChangeWatcher, FollowEvent, Follower};
use crate::find::{self, SubagentFile};
use crate::problem::FileError;

/// Which file of a session a line was written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineSource {
    /// The session file.
    Session,
    /// The file of this subagent.
    Subagent(SubagentFile),
}

/// Follows a session with its subagents, including those that start later.
#[derive(Debug)]
pub struct SessionFollower {
    main: Follower,
    subagents: BTreeMap<PathBuf, (SubagentFile, Follower)>,
}

impl SessionFollower {
    /// Follows a session from the start of its file. Fails if the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Ok(Self { main: Follower::open(path)?, subagents: BTreeMap::new() })
    }

    /// Follows a session from the first line in the last `bytes` bytes of each file.
    pub fn open_near_end(path: &Path, bytes: u64) -> Result<Self, FileError> {
        let mut session = Self { main: Follower::open_near_end(path, bytes)?, subagents: BTreeMap::new() };
        session.open_new_subagents(|path| Follower::open_near_end(path, bytes));
        Ok(session)
    }

    /// Follows a session from a line of its file that begins at this offset, and its subagents from
    /// the start of their files.
    pub fn open_at(path: &Path, line: u64, offset: u64) -> Result<Self, FileError> {
        Ok(Self { main: Follower::open_at(path, line, offset)?, subagents: BTreeMap::new() })
    }

    /// Path of the session file.
    pub fn path(&self) -> &Path {
        self.main.path()
    }

    /// Makes `changes` watch the files of this session.
    pub fn watch(&self, changes: &mut ChangeWatcher) {
        changes.watch(self.path().parent().unwrap_or(Path::new("")), false);
        // The folder may not exist yet; its creation is a change of its parent, watched above.
        changes.watch(&self.path().with_extension(""), true);
    }

    /// Whether a path is the session file or in the folder of the session.
    pub fn is_session_path(&self, changed: &Path) -> bool {
        changed == self.path() || changed.starts_with(self.path().with_extension(""))
    }

    /// Returns what happened since the last call, the session file before its subagents; empty if
    /// nothing did. A large file is returned in parts: call again until the result is empty.
    pub fn poll(&mut self) -> Result<Vec<(LineSource, FollowEvent)>, FileError> {
        let events = self.main.poll()?;
        let mut all: Vec<_> = events.into_iter().map(|event| (LineSource::Session, event)).collect();
        self.open_new_subagents(Follower::open);
        for (file, follower) in self.subagents.values_mut() {
            // A subagent file that cannot be read must not stop the view of the session.
            let events = follower.poll().unwrap_or_default();
            all.extend(events.into_iter().map(|event| (LineSource::Subagent(file.clone()), event)));
        }
        Ok(all)
    }

    fn open_new_subagents(&mut self, open: impl Fn(&Path) -> Result<Follower, FileError>) {
        for path in find::list_subagent_paths(self.path()) {
            if self.subagents.contains_key(&path) {
                continue;
            }
            if let (Some(file), Ok(follower)) = (SubagentFile::from_path(path.clone()), open(&path)) {
                self.subagents.insert(path, (file, follower));
            }
        }
    }
}
