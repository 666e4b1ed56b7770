//! The commands that run in the sandbox at the same time, and the guarded paths that existed before each.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::restricted_paths::GuardedPath;

/// The running commands of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningCommands(Arc<Mutex<CommandList>>);

#[derive(Debug, Default)]
struct CommandList {
    last_id: u64,
    /// Ids, in the order in which the commands started, with the paths that existed before.
    commands: Vec<(u64, Vec<GuardedPath>)>,
}

/// One running command; it ends on drop.
#[derive(Debug)]
pub(super) struct RunningCommand {
    id: u64,
    all: RunningCommands,
}

impl RunningCommands {
    /// Whether no command runs.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().commands.is_empty()
    }

    /// Whether one of the running commands may have made a guarded path: it did not exist before.
    pub(super) fn may_have_made(&self, path: &Path) -> bool {
        let list = self.0.lock();
        list.commands.iter().any(|(_, before)| !before.iter().any(|guarded| guarded.path == path))
    }

    /// Adds a command that starts now, with the guarded paths that exist.
    pub(super) fn add(&self, guarded: Vec<GuardedPath>) -> RunningCommand {
        let mut list = self.0.lock();
        list.last_id += 1;
        let id = list.last_id;
        list.commands.push((id, guarded));
        RunningCommand { id, all: self.clone() }
    }
}

impl RunningCommand {
    /// Returns the guarded paths that existed before the command, for the check at its end.
    ///
    /// What did not exist before this command does not count as existing for the commands that started
    /// after it either: this one may have made it for them, and removes it or loses it now.
    pub(super) fn guarded_before(&self) -> Vec<GuardedPath> {
        let mut list = self.all.0.lock();
        let Some(at) = list.commands.iter().position(|(id, _)| *id == self.id) else { return Vec::new() };
        let before = list.commands[at].1.clone();
        list.commands[at + 1..].iter_mut().for_each(|(_, later)| later.retain(|path| path.existed(&before)));
        before
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.guarded_before();
        self.all.0.lock().commands.retain(|(id, _)| *id != self.id);
    }
}
