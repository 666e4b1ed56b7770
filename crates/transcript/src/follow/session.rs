//! A session file and the files of its subagents, followed together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{ChangeWatcher, FollowEvent, Follower};
use crate::find::{self, SubagentFile};
use crate::problem::FileError;

/// Whose line it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineSource {
    /// The session itself.
    Session,
    /// One of its subagents.
    Subagent(SubagentFile),
}

/// Follows a session with its subagents, also those that begin later.
#[derive(Debug)]
pub struct SessionFollower {
    main: Follower,
    subagents: BTreeMap<PathBuf, (SubagentFile, Follower)>,
}

impl SessionFollower {
    /// Follows the session of a file, from its start.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Ok(Self { main: Follower::open(path)?, subagents: BTreeMap::new() })
    }

    /// Follows the session from the first line in the last `bytes` of each file.
    pub fn open_near_end(path: &Path, bytes: u64) -> Result<Self, FileError> {
        let mut session = Self { main: Follower::open_near_end(path, bytes)?, subagents: BTreeMap::new() };
        session.open_new_subagents(|path| Follower::open_near_end(path, bytes));
        Ok(session)
    }

    /// The session's file.
    pub fn path(&self) -> &Path {
        self.main.path()
    }

    /// Asks to be woken when a file of the session changes.
    pub fn watch(&self, changes: &mut ChangeWatcher) {
        changes.watch(self.path().parent().unwrap_or(Path::new("")), false);
        // The folder may not be there yet: its creation is a change of the folder above.
        changes.watch(&self.path().with_extension(""), true);
    }

    /// Whether a changed file or folder is one of the session's.
    pub fn is_session_path(&self, changed: &Path) -> bool {
        changed == self.path() || changed.starts_with(self.path().with_extension(""))
    }

    /// What happened since the last call, the session's lines before its subagents';
    /// empty when nothing did. A large file comes in pieces: call again until nothing
    /// comes.
    pub fn poll(&mut self) -> Result<Vec<(LineSource, FollowEvent)>, FileError> {
        let events = self.main.poll()?;
        let mut all: Vec<_> = events.into_iter().map(|event| (LineSource::Session, event)).collect();
        self.open_new_subagents(Follower::open);
        for (file, follower) in self.subagents.values_mut() {
            // A subagent's file that cannot be read does not end the session's view.
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
