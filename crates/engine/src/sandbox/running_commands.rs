//! The commands that run at the same time and may disturb each other.
//!
//! Names of files in a command without a sandbox are checked before it starts. A command beside it could
//! replace such a name by a link. So a command does not start while another runs that could do this, or
//! whose names it could replace itself:
//!
//! | starts | must not run at the same time |
//! |---|---|
//! | in the sandbox, can write | commands with names in use |
//! | by a rule, without names | commands with names used throughout |
//! | by a rule, names used at its start, or git | those, and commands in the sandbox that can write |
//! | by a rule, names used throughout | all others that can write, with or without a sandbox |
//!
//! What the user approves starts beside all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::restricted_paths::{GuardedPath, PathMatcher};

/// How long names that a command uses at its start count as in use: the shell first defines what the user's
/// own shell defines.
const START_DURATION: Duration = Duration::from_secs(5);

/// When a command without a sandbox uses the names that were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameUse {
    /// It uses none.
    Never,
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
    /// How many of them have ended.
    ended_writers: u64,
    /// In the order in which they started.
    commands: Vec<Command>,
}

#[derive(Debug)]
struct Command {
    id: u64,
    /// What a command in the sandbox can write; `None` without a sandbox.
    writer: Option<Writer>,
    /// `None` in the sandbox, and if the user approved it.
    name_use: Option<NameUse>,
    started_at: Instant,
}

/// A command in the sandbox that can write.
#[derive(Debug)]
struct Writer {
    access: WriteAccess,
    /// The guarded paths that existed before it.
    guarded_before: Vec<GuardedPath>,
}

/// What a command in the sandbox can write.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteAccess {
    /// The folders and files that it can write.
    pub(super) writable: Vec<PathBuf>,
    /// Those inside them that it cannot.
    pub(super) read_only: Vec<PathBuf>,
    /// The paths that rules did not let it change.
    pub(super) unwritable: PathMatcher,
}

impl Writer {
    /// Whether the command could have made a guarded path: commands of subagents have folders of their own.
    fn can_write(&self, path: &Path) -> bool {
        let is_inside = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        is_inside(&self.access.writable) && !is_inside(&self.access.read_only)
    }
}

impl Command {
    fn uses_names(&self) -> bool {
        match self.name_use {
            Some(NameUse::AtStart) => self.started_at.elapsed() < START_DURATION,
            Some(NameUse::Repository | NameUse::Throughout) => true,
            Some(NameUse::Never) | None => false,
        }
    }

    fn is_sandboxed(&self) -> bool {
        self.writer.is_some()
    }
}

impl CommandList {
    /// Whether a command may start that uses names; `checked_after` is the id of the last command that had
    /// started when they were checked.
    fn allows_names(&self, name_use: NameUse, checked_after: u64) -> bool {
        let has_names = self.commands.iter().any(|command| command.name_use == Some(NameUse::Throughout));
        let is_same = match name_use {
            NameUse::Never => true,
            NameUse::AtStart | NameUse::Repository => {
                self.last_writer <= checked_after && !self.commands.iter().any(Command::is_sandboxed)
            }
            NameUse::Throughout => self.last_id <= checked_after && self.commands.is_empty(),
        };
        is_same && !has_names
    }

    fn add(&mut self, writer: Option<Writer>, name_use: Option<NameUse>) -> u64 {
        self.last_id += 1;
        if writer.is_some() {
            self.last_writer = self.last_id;
        }
        self.commands.push(Command { id: self.last_id, writer, name_use, started_at: Instant::now() });
        self.last_id
    }
}

/// Why a command in the sandbox cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotAdded {
    /// A command runs whose names are in use.
    NamesInUse,
    /// A command has ended since guarded paths were searched.
    SearchAgain,
}

/// One running command; it ends on drop.
#[derive(Debug)]
pub(crate) struct RunningCommand {
    id: u64,
    all: RunningCommands,
}

impl RunningCommands {
    /// Whether a command runs whose names are in use.
    pub(super) fn uses_names(&self) -> bool {
        self.0.lock().commands.iter().any(Command::uses_names)
    }

    /// Returns how many commands in the sandbox that could write have ended, for
    /// [`add_writer`](Self::add_writer).
    pub(super) fn ended_writers(&self) -> u64 {
        self.0.lock().ended_writers
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
        let mut writers = list.commands.iter().filter_map(|command| command.writer.as_ref());
        let existed = |writer: &Writer| writer.guarded_before.iter().any(|guarded| guarded.path == path);
        writers.any(|writer| writer.can_write(path) && !existed(writer))
    }

    /// Adds a command in the sandbox that can write and starts now. `guarded_before` are the guarded
    /// paths that exist, searched after `ended_writers` had ended: what another one made and lost since then is
    /// still among them.
    pub(super) fn add_writer(
        &self,
        access: WriteAccess,
        guarded_before: Vec<GuardedPath>,
        ended_writers: u64,
    ) -> Result<RunningCommand, NotAdded> {
        let mut list = self.0.lock();
        if list.commands.iter().any(Command::uses_names) {
            return Err(NotAdded::NamesInUse);
        }
        if list.ended_writers != ended_writers {
            return Err(NotAdded::SearchAgain);
        }
        let writer = Writer { access, guarded_before };
        Ok(RunningCommand { id: list.add(Some(writer), None), all: self.clone() })
    }

    /// Adds a command without a sandbox that starts now. `names` is `None` if the user approved it; otherwise when it
    /// uses names, and the last command that had started when these were checked. Returns `None` if they may lead
    /// elsewhere now.
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
    /// What did not exist before this command, where it can write, does not count as existing for the commands that
    /// started after it either: this one may have made it for them, and removes it or loses it now.
    pub(super) fn guarded_before(&self) -> Vec<GuardedPath> {
        let mut list = self.all.0.lock();
        let Some(at) = list.commands.iter().position(|command| command.id == self.id) else { return Vec::new() };
        let (until, later) = list.commands.split_at_mut(at + 1);
        let Some(writer) = until[at].writer.as_ref() else { return Vec::new() };
        for later in later.iter_mut().filter_map(|command| command.writer.as_mut()) {
            later.guarded_before.retain(|guarded| {
                guarded.existed(&writer.guarded_before)
                    || !writer.can_write(&guarded.path)
                    // Rules name it only since this command has started.
                    || guarded.is_by_rule() && !(writer.access.unwritable.matches)(&guarded.path)
            });
        }
        writer.guarded_before.clone()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.guarded_before();
        let mut list = self.all.0.lock();
        let is_writer = list.commands.iter().any(|command| command.id == self.id && command.is_sandboxed());
        list.ended_writers += u64::from(is_writer);
        list.commands.retain(|command| command.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_writer(running: &RunningCommands) -> Result<RunningCommand, NotAdded> {
        running.add_writer(WriteAccess::default(), Vec::new(), running.ended_writers())
    }

    fn add_by_rule(running: &RunningCommands, name_use: NameUse) -> Option<RunningCommand> {
        running.add_unsandboxed(Some((name_use, running.last_id())))
    }

    #[test]
    fn a_command_does_not_start_beside_one_that_could_replace_its_names() {
        let running = RunningCommands::default();
        let allowed = || {
            let all = [NameUse::Never, NameUse::AtStart, NameUse::Repository, NameUse::Throughout];
            all.map(|name_use| running.allows_names(name_use))
        };
        let writer = add_writer(&running).unwrap();
        assert_eq!(allowed(), [true, false, false, false]);
        drop(writer);
        let server = add_by_rule(&running, NameUse::Never).unwrap();
        assert_eq!(allowed(), [true, true, true, false]);
        drop(server);
        let held = add_by_rule(&running, NameUse::Throughout).unwrap();
        assert_eq!(allowed(), [false; 4]);
        assert_eq!(add_writer(&running).unwrap_err(), NotAdded::NamesInUse);
        // The user approved it.
        assert!(running.add_unsandboxed(None).is_some());
        drop(held);
        let starting = add_by_rule(&running, NameUse::AtStart).unwrap();
        assert!(add_writer(&running).is_err());
        running.0.lock().commands[0].started_at -= START_DURATION;
        drop(add_writer(&running).unwrap());
        drop(starting);
        let git = add_by_rule(&running, NameUse::Repository).unwrap();
        running.0.lock().commands[0].started_at -= START_DURATION;
        assert!(add_writer(&running).is_err());
        drop(git);
        assert!(add_writer(&running).is_ok());
    }

    #[test]
    fn names_are_checked_again_after_a_command_that_could_write() {
        let running = RunningCommands::default();
        let before = running.last_id();
        drop(running.add_unsandboxed(None));
        assert!(running.add_unsandboxed(Some((NameUse::Throughout, before))).is_none());
        assert!(running.add_unsandboxed(Some((NameUse::AtStart, before))).is_some());
        drop(add_writer(&running).unwrap());
        assert!(running.add_unsandboxed(Some((NameUse::AtStart, before))).is_none());
        assert!(add_by_rule(&running, NameUse::AtStart).is_some());
    }

    #[test]
    fn guarded_paths_are_searched_again_after_a_command_has_ended() {
        let running = RunningCommands::default();
        let writer = add_writer(&running).unwrap();
        let ended = running.ended_writers();
        drop(writer);
        assert_eq!(running.add_writer(WriteAccess::default(), Vec::new(), ended).unwrap_err(), NotAdded::SearchAgain);
        assert!(add_writer(&running).is_ok());
    }

    #[test]
    fn what_a_command_cannot_write_still_exists_for_later_ones() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("sub/.npmrc");
        std::fs::create_dir(temp.path().join("sub")).unwrap();
        std::fs::write(&path, "").unwrap();
        let all = vec![temp.path().to_owned()];
        let access = |writable: &[PathBuf], read_only: &[PathBuf]| WriteAccess {
            writable: writable.to_vec(),
            read_only: read_only.to_vec(),
            unwritable: PathMatcher::default(),
        };
        let guarded = || GuardedPath::new(&path, &path.symlink_metadata().unwrap(), &all);
        let kept = |first: WriteAccess| {
            let running = RunningCommands::default();
            let first = running.add_writer(first, Vec::new(), 0).unwrap();
            let second = running.add_writer(access(&all, &[]), vec![guarded()], 0).unwrap();
            drop(first);
            second.guarded_before()
        };
        assert_eq!(kept(access(&all, &[])), []);
        // A subagent in a worktree has folders of its own, and the session cannot write in them.
        assert_eq!(kept(access(&[temp.path().join("worktree")], &[])), [guarded()]);
        assert_eq!(kept(access(&all, &[temp.path().join("sub")])), [guarded()]);
    }
}
