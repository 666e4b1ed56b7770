//! The commands that run at the same time and may disturb each other.
//!
//! Names of files in a command without a sandbox are checked before it starts. A command beside it could
//! replace such a name by a link. So a command does not start while another runs that could do this, or
//! whose names it could replace itself:
//!
//! | starts | must not run at the same time |
//! |---|---|
//! | in the sandbox, can write | commands with names in use |
//! | without a sandbox, names used at its start, or git later | commands in the sandbox that can write |
//! | without a sandbox, names used throughout | those, and commands without a sandbox |
//!
//! What rules allow without names is not started beside names that are used throughout either. That is
//! checked only with its permission, because the user may approve it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::restricted_paths::GuardedPath;

/// How long names that a command uses at its start count as in use: the shell first defines what the user's
/// own shell defines.
const START_DURATION: Duration = Duration::from_secs(5);

/// When a command without a sandbox uses the names that were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameUse {
    /// When it starts: it changes to a folder, or redirects to a file.
    AtStart,
    /// At any time until it ends git may look for its repository, which only commands in the sandbox are
    /// not trusted with.
    Repository,
    /// At any time until it ends.
    Throughout,
}

/// The running commands of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct RunningCommands(Arc<Mutex<CommandList>>);

#[derive(Debug, Default)]
struct CommandList {
    last_id: u64,
    /// Id of the last command in the sandbox that could write; 0 if there was none.
    last_writer: u64,
    /// In the order in which they started.
    commands: Vec<Command>,
}

#[derive(Debug)]
struct Command {
    id: u64,
    /// The guarded paths that existed before a command in the sandbox; `None` without a sandbox.
    guarded_before: Option<Vec<GuardedPath>>,
    name_use: Option<NameUse>,
    started_at: Instant,
}

impl Command {
    fn uses_names(&self) -> bool {
        match self.name_use {
            Some(NameUse::AtStart) => self.started_at.elapsed() < START_DURATION,
            Some(NameUse::Repository | NameUse::Throughout) => true,
            None => false,
        }
    }

    fn is_sandboxed(&self) -> bool {
        self.guarded_before.is_some()
    }
}

impl CommandList {
    /// Whether a command may start that uses names; `checked_after` is the id of the last command that had
    /// started when they were checked.
    fn allows_names(&self, name_use: NameUse, checked_after: u64) -> bool {
        match name_use {
            NameUse::AtStart | NameUse::Repository => {
                self.last_writer <= checked_after && !self.commands.iter().any(Command::is_sandboxed)
            }
            NameUse::Throughout => self.last_id <= checked_after && self.commands.is_empty(),
        }
    }

    fn add(&mut self, guarded_before: Option<Vec<GuardedPath>>, name_use: Option<NameUse>) -> u64 {
        self.last_id += 1;
        if guarded_before.is_some() {
            self.last_writer = self.last_id;
        }
        self.commands.push(Command { id: self.last_id, guarded_before, name_use, started_at: Instant::now() });
        self.last_id
    }
}

/// One running command; it ends on drop.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    id: u64,
    all: RunningCommands,
}

impl RunningCommands {
    /// Whether a command runs whose names are in use, now or only `throughout`.
    pub(super) fn uses_names(&self, throughout: bool) -> bool {
        let is_used = |command: &Command| match throughout {
            true => command.name_use == Some(NameUse::Throughout),
            false => command.uses_names(),
        };
        self.0.lock().commands.iter().any(is_used)
    }

    /// Returns the id of the last command that has started, to be read before names are checked.
    pub(super) fn last_id(&self) -> u64 {
        self.0.lock().last_id
    }

    /// Whether a command with names that are checked now could start.
    pub(super) fn allows_names(&self, name_use: NameUse) -> bool {
        let list = self.0.lock();
        list.allows_names(name_use, list.last_id)
    }

    /// Whether one of the running commands may have made a guarded path: it did not exist before.
    pub(super) fn may_have_made(&self, path: &Path) -> bool {
        let list = self.0.lock();
        let mut before = list.commands.iter().filter_map(|command| command.guarded_before.as_ref());
        before.any(|before| !before.iter().any(|guarded| guarded.path == path))
    }

    /// Adds a command in the sandbox that can write and starts now, with the guarded paths that exist; `None` if
    /// a command runs whose names are in use.
    pub(super) fn add_writer(&self, guarded: Vec<GuardedPath>) -> Option<RunningCommand> {
        let mut list = self.0.lock();
        let is_free = !list.commands.iter().any(Command::uses_names);
        is_free.then(|| RunningCommand { id: list.add(Some(guarded), None), all: self.clone() })
    }

    /// Adds a command without a sandbox that starts now, with names that were checked after `last_id` had
    /// started; `None` if these may lead elsewhere now.
    pub(super) fn add_unsandboxed(&self, names: Option<(NameUse, u64)>) -> Option<RunningCommand> {
        let mut list = self.0.lock();
        let is_free = names.is_none_or(|(name_use, last_id)| list.allows_names(name_use, last_id));
        is_free.then(|| RunningCommand { id: list.add(None, names.map(|names| names.0)), all: self.clone() })
    }
}

impl RunningCommand {
    /// Returns the guarded paths that existed before the command, for the check at its end; empty if it has no
    /// sandbox.
    ///
    /// What did not exist before this command does not count as existing for the commands that started
    /// after it either: this one may have made it for them, and removes it or loses it now.
    pub(super) fn guarded_before(&self) -> Vec<GuardedPath> {
        let mut list = self.all.0.lock();
        let Some(at) = list.commands.iter().position(|command| command.id == self.id) else { return Vec::new() };
        let Some(before) = list.commands[at].guarded_before.clone() else { return Vec::new() };
        let later = list.commands[at + 1..].iter_mut().filter_map(|command| command.guarded_before.as_mut());
        later.for_each(|later| later.retain(|path| path.existed(&before)));
        before
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.guarded_before();
        self.all.0.lock().commands.retain(|command| command.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_does_not_start_beside_one_that_could_replace_its_names() {
        let running = RunningCommands::default();
        let check = |name_use| running.allows_names(name_use);
        let writer = running.add_writer(Vec::new()).unwrap();
        assert!(!check(NameUse::AtStart) && !check(NameUse::Throughout));
        drop(writer);
        let server = running.add_unsandboxed(None).unwrap();
        assert!(check(NameUse::AtStart) && !check(NameUse::Throughout));
        drop(server);
        let held = running.add_unsandboxed(Some((NameUse::Throughout, running.last_id()))).unwrap();
        assert!(running.add_writer(Vec::new()).is_none() && running.uses_names(true));
        drop(held);
        let starting = running.add_unsandboxed(Some((NameUse::AtStart, running.last_id()))).unwrap();
        assert!(running.add_writer(Vec::new()).is_none() && !running.uses_names(true));
        running.0.lock().commands[0].started_at -= START_DURATION;
        drop(running.add_writer(Vec::new()).unwrap());
        drop(starting);
        assert!(running.add_writer(Vec::new()).is_some());
    }

    #[test]
    fn names_are_checked_again_after_a_command_that_could_write() {
        let running = RunningCommands::default();
        let before = running.last_id();
        drop(running.add_unsandboxed(None));
        assert!(running.add_unsandboxed(Some((NameUse::Throughout, before))).is_none());
        assert!(running.add_unsandboxed(Some((NameUse::AtStart, before))).is_some());
        drop(running.add_writer(Vec::new()).unwrap());
        assert!(running.add_unsandboxed(Some((NameUse::AtStart, before))).is_none());
        assert!(running.add_unsandboxed(Some((NameUse::AtStart, running.last_id()))).is_some());
    }
}
