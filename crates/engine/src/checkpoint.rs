//! Backups of files before they change, so that a host can restore them to their state before a
//! prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use quipu_message::bookkeeping::{FileBackup, FileHistoryDelta, FileHistorySnapshot, FileSnapshot};
use quipu_message::control::response::RewindFilesResponse;
use quipu_message::{Entry, Json, Maybe, Uuid};
use sha2::{Digest, Sha256};

use crate::clock::now;
use crate::line_diff::count_changed_lines;
use crate::path::{TargetPath, resolve};
use crate::private_file;
use crate::safe_file;
use crate::tool::{FileChangeObserver, Workspace};

/// The largest file that is backed up and restored, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// The file backups of a session.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
    root: PathBuf,
    state: Mutex<CheckpointState>,
}

#[derive(Debug, Default)]
struct CheckpointState {
    /// UUIDs of the prompts, each with the backups of the files known by then.
    snapshots: Vec<(Uuid, BTreeMap<PathBuf, FileBackup>)>,
    /// The first backup of each file: before anything changed it.
    first_backups: BTreeMap<PathBuf, FileBackup>,
    versions: BTreeMap<PathBuf, u64>,
    /// Files that only the transcript names. It may come from someone else, so they are read only where
    /// the session may change files ([`Self::can_restore`]), and restored only if it may change them now.
    from_transcript: BTreeSet<PathBuf>,
    /// Entries that the transcript does not hold yet.
    pending_entries: Vec<Entry>,
}

impl Checkpoints {
    /// Backups are written to `folder`; recorded paths are relative to `root`. `entries` of an earlier
    /// run restore the backups it made, except those outside the folder of backups.
    pub(crate) fn restore(folder: PathBuf, root: &Path, entries: &[Entry]) -> Self {
        let mut state = CheckpointState::default();
        for entry in entries {
            match entry {
                Entry::FileHistorySnapshot(line) => {
                    let Some((prompt, snapshot)) = line.message_id.get().zip(line.snapshot.read::<FileSnapshot>().ok())
                    else {
                        continue;
                    };
                    let backups = snapshot.tracked_file_backups.into_iter().filter(|(_, backup)| is_in_folder(backup));
                    let backups: BTreeMap<PathBuf, FileBackup> =
                        backups.map(|(path, backup)| (root.join(path), backup)).collect();
                    backups.iter().for_each(|(path, backup)| state.add_known_backup(path, backup));
                    state.snapshots.push((prompt.clone(), backups));
                }
                Entry::FileHistoryDelta(line) => {
                    if let Some((path, backup)) = line.tracking_path.get().zip(line.backup.read::<FileBackup>().ok())
                        && is_in_folder(&backup)
                    {
                        state.add_known_backup(&root.join(path), &backup);
                    }
                }
                _ => {}
            }
        }
        state.from_transcript = state.first_backups.keys().cloned().collect();
        Self { folder, root: root.to_owned(), state: Mutex::new(state) }
    }

    /// Backs up every file known so far, as the state before this prompt.
    pub(crate) fn snapshot(&self, prompt: &Uuid, workspace: &Workspace) {
        let mut state = self.lock();
        let restorable = |path: &PathBuf| Some((path.clone(), state.restorable_file(path, workspace)?));
        let paths: Vec<(PathBuf, PathBuf)> = state.first_backups.keys().filter_map(restorable).collect();
        let mut backups = BTreeMap::new();
        for (path, real) in paths {
            let now = safe_file::read(&real, MAX_FILE_BYTES).ok();
            // A file that cannot be backed up now is restored from its first backup.
            if let Ok(backup) = self.back_up(&mut state, &path, now.as_deref()) {
                backups.insert(path, backup);
            }
        }
        let tracked = backups.iter().map(|(path, backup)| (self.display_path(path), backup.clone())).collect();
        let snapshot = FileSnapshot {
            message_id: Maybe::Value(prompt.clone()),
            tracked_file_backups: tracked,
            timestamp: Maybe::Value(now()),
            ..FileSnapshot::default()
        };
        state.pending_entries.push(Entry::FileHistorySnapshot(Box::new(FileHistorySnapshot {
            message_id: Maybe::Value(prompt.clone()),
            snapshot: Json::from_serialize(&snapshot),
            is_snapshot_update: Maybe::Value(false),
            ..FileHistorySnapshot::default()
        })));
        state.snapshots.push((prompt.clone(), backups));
    }

    /// Removes and returns the entries that the session file does not hold yet.
    pub(crate) fn take_pending_entries(&self) -> Vec<Entry> {
        std::mem::take(&mut self.lock().pending_entries)
    }

    /// Restores files to their state before a prompt, or with `dry_run` only reports the changes; `None` if
    /// there is no such prompt. Of the files that only the transcript names, only those are restored that the
    /// session `may_change`.
    pub(crate) fn rewind(
        &self,
        prompt: &Uuid,
        dry_run: bool,
        workspace: &Workspace,
        may_change: impl Fn(&Path) -> bool,
    ) -> Option<io::Result<RewindFilesResponse>> {
        let state = self.lock();
        let (_, backups) = state.snapshots.iter().find(|(uuid, _)| uuid == prompt)?;
        let mut done = RewindFilesResponse { can_rewind: true, ..RewindFilesResponse::default() };
        let (mut changed, mut plus, mut minus, mut links) = (Vec::new(), 0, 0, 0);
        for (path, first) in &state.first_backups {
            let real = state.restorable_file(path, workspace);
            let may_restore = |real: &PathBuf| !state.from_transcript.contains(path) || may_change(real);
            let Some(real) = real.filter(may_restore) else { continue };
            if path.is_symlink() {
                links += 1;
                continue;
            }
            let backup = backups.get(path).unwrap_or(first);
            match self.restore_file(&real, backup, dry_run) {
                Ok(None) => {}
                Ok(Some(RestoredFile::Changed { added, removed })) => {
                    changed.push(path.display().to_string());
                    plus += added;
                    minus += removed;
                }
                Err(error) => return Some(Err(error)),
            }
        }
        if dry_run {
            (done.files_changed, done.insertions, done.deletions) =
                (Maybe::Value(changed), Maybe::Value(plus), Maybe::Value(minus));
        } else {
            done.skipped_links = Maybe::Value(links);
        }
        Some(Ok(done))
    }

    fn restore_file(&self, path: &Path, backup: &FileBackup, dry_run: bool) -> io::Result<Option<RestoredFile>> {
        let then = backup.backup_file_name.as_ref().map(|name| self.read_backup(name)).transpose()?;
        let now = match safe_file::read(path, MAX_FILE_BYTES) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if then == now {
            return Ok(None);
        }
        if !dry_run {
            match (&then, &now) {
                (Some(bytes), Some(_)) => safe_file::replace(path, bytes)?,
                (Some(bytes), None) => safe_file::create(path, bytes)?,
                (None, _) => safe_file::remove(path)?,
            }
        }
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        let (old, new) = (text(&now), text(&then));
        let (added, removed) = count_changed_lines(&old, &new);
        Ok(Some(RestoredFile::Changed { added, removed }))
    }

    /// Reads a backup. It must be a file of the folder of backups and not a link.
    fn read_backup(&self, name: &str) -> io::Result<Vec<u8>> {
        let folder = resolve(&self.folder).ok_or(io::ErrorKind::NotFound)?;
        safe_file::read(&folder.join(name), MAX_FILE_BYTES)
    }

    /// Copies a file's bytes; a file that is not there has a copy without a name.
    fn back_up(&self, state: &mut CheckpointState, path: &Path, bytes: Option<&[u8]>) -> io::Result<FileBackup> {
        let version = state.versions.entry(path.to_owned()).or_default();
        // A resumed session file may contain any number.
        *version = version.saturating_add(1);
        let parent = path.parent().map(|parent| parent.display().to_string());
        let mut backup = FileBackup {
            version: Maybe::Value(*version),
            backup_time: Maybe::Value(now()),
            real_parent_dir: parent.into(),
            ..FileBackup::default()
        };
        if let Some(bytes) = bytes {
            let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
            let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            let name = format!("{hash}@v{version}");
            private_file::write_file(&self.folder.join(&name), bytes)?;
            backup.backup_file_name = Some(name);
        }
        Ok(backup)
    }

    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    fn lock(&self) -> MutexGuard<'_, CheckpointState> {
        self.state.lock()
    }
}

impl CheckpointState {
    /// Resolves a file that may be read and restored: this run changed it and no link leads elsewhere since, or it is
    /// one of those that the session may change. The links may change later, so it must not be resolved again. `None` if
    /// it may not.
    fn restorable_file(&self, path: &Path, workspace: &Workspace) -> Option<PathBuf> {
        let target = TargetPath::new(path);
        let real = target.real.clone()?;
        let is_inside = workspace.folders().iter().any(|folder| real.starts_with(folder));
        let may_change = || !workspace.is_target_guarded(&target) && !workspace.sandbox().is_restricted(&real);
        let is_changed_file = || !self.from_transcript.contains(path) && real == path;
        (is_inside && may_change() || is_changed_file()).then_some(real)
    }

    /// Adds a backup of an earlier run.
    fn add_known_backup(&mut self, path: &Path, backup: &FileBackup) {
        self.first_backups.entry(path.to_owned()).or_insert_with(|| backup.clone());
        let version = self.versions.entry(path.to_owned()).or_default();
        *version = backup.version.get().copied().unwrap_or_default().max(*version);
    }
}

/// Whether a backup of a transcript is a file directly in the folder of backups, or has none.
fn is_in_folder(backup: &FileBackup) -> bool {
    backup.backup_file_name.as_ref().is_none_or(|name| {
        let mut parts = Path::new(name).components();
        matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
    })
}

enum RestoredFile {
    Changed { added: u64, removed: u64 },
}

impl FileChangeObserver for Checkpoints {
    fn before_change(&self, path: &Path, old: Option<&[u8]>) -> io::Result<()> {
        let mut state = self.lock();
        if state.first_backups.contains_key(path) {
            return Ok(());
        }
        let backup = self.back_up(&mut state, path, old)?;
        let prompt = state.snapshots.last().map(|(uuid, _)| uuid.clone());
        state.pending_entries.push(Entry::FileHistoryDelta(Box::new(FileHistoryDelta {
            message_id: prompt.clone().into(),
            snapshot_message_id: prompt.into(),
            tracking_path: Maybe::Value(self.display_path(path)),
            backup: Json::from_serialize(&backup),
            timestamp: Maybe::Value(now()),
            ..FileHistoryDelta::default()
        })));
        state.first_backups.insert(path.to_owned(), backup);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::sandbox::{PathMatcher, RestrictionSource, SandboxRestrictions};
    use crate::tool::WorkspaceOptions;

    /// The entry of a transcript that names files, each with its backup.
    fn snapshot_entry(prompt: &Uuid, backups: &[(&str, Option<&str>)]) -> Entry {
        let backup = |name: Option<&str>| FileBackup {
            backup_file_name: name.map(str::to_owned),
            version: Maybe::Value(1),
            ..FileBackup::default()
        };
        let snapshot = FileSnapshot {
            message_id: Maybe::Value(prompt.clone()),
            tracked_file_backups: backups.iter().map(|(path, name)| ((*path).to_owned(), backup(*name))).collect(),
            ..FileSnapshot::default()
        };
        Entry::FileHistorySnapshot(Box::new(FileHistorySnapshot {
            message_id: Maybe::Value(prompt.clone()),
            snapshot: Json::from_serialize(&snapshot),
            ..FileHistorySnapshot::default()
        }))
    }

    #[test]
    fn a_transcript_restores_only_files_that_the_session_may_change() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().canonicalize().unwrap();
        let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
        for name in ["p/.git/config", "p/made", "p/changed", "p/refused", "outside", "evil", "backups/b@v1"] {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(folder.join("outside"), folder.join("p/link")).unwrap();
        let outside = folder.join("outside").display().to_string();
        let removed = [outside.as_str(), "../evil", ".git/config", "link", "made", "refused"].map(|path| (path, None));
        let written = [("changed", Some("b@v1")), ("new", Some("../evil"))];
        let prompt = Uuid::from("22222222-2222-4333-8444-666666666666");
        let entry = snapshot_entry(&prompt, &[&removed[..], &written].concat());
        let checkpoints = Checkpoints::restore(folder.join("backups"), &folder.join("p"), &[entry]);
        let workspace = Workspace::new(folder.join("p"), WorkspaceOptions::default());
        workspace.sandbox().set_restrictions(RestrictionSource::new(|| {
            let matches = Arc::new(|path: &Path| path.ends_with("refused"));
            let unwritable = PathMatcher { matches, ..PathMatcher::default() };
            SandboxRestrictions { unwritable, ..SandboxRestrictions::default() }
        }));

        checkpoints.snapshot(&Uuid::from("33333333-2222-4333-8444-666666666666"), &workspace);
        let copies = fs::read_dir(folder.join("backups")).unwrap();
        let copies: Vec<_> = copies.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
        let known = ["backups/b@v1", "p/made", "p/changed"];
        assert!(copies.iter().all(|copy| known.contains(&copy.as_str())), "{copies:?}");

        checkpoints.rewind(&prompt, false, &workspace, |_| false).unwrap().unwrap();
        for name in ["p/changed", "p/made"] {
            assert_eq!(text(name).as_deref(), Some(name), "{name} may not be changed");
        }
        checkpoints.rewind(&prompt, false, &workspace, |_| true).unwrap().unwrap();
        assert_eq!(text("p/changed").as_deref(), Some("backups/b@v1"));
        assert_eq!((text("p/made"), text("p/new")), (None, None));
        for name in ["outside", "evil", "p/.git/config", "p/refused"] {
            assert_eq!(text(name).as_deref(), Some(name), "{name} is left alone");
        }
    }

    #[test]
    fn a_backup_that_is_a_link_is_not_restored() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().canonicalize().unwrap();
        ["p", "backups"].iter().for_each(|name| fs::create_dir(folder.join(name)).unwrap());
        fs::write(folder.join("outside"), "secret").unwrap();
        std::os::unix::fs::symlink(folder.join("outside"), folder.join("backups/b@v1")).unwrap();
        let prompt = Uuid::from("22222222-2222-4333-8444-666666666666");
        let entry = snapshot_entry(&prompt, &[("new", Some("b@v1"))]);
        let checkpoints = Checkpoints::restore(folder.join("backups"), &folder.join("p"), &[entry]);
        let workspace = Workspace::new(folder.join("p"), WorkspaceOptions::default());
        assert!(checkpoints.rewind(&prompt, false, &workspace, |_| true).unwrap().is_err());
        assert!(!folder.join("p/new").exists());
    }
}
