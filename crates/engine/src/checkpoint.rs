//! Copies of files before they change, so that a host can put them back to where
//! they were before a prompt.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use quipu_message::bookkeeping::{FileBackup, FileHistoryDelta, FileHistorySnapshot, FileSnapshot};
use quipu_message::control::response::RewindFilesResponse;
use quipu_message::{Entry, Json, Maybe, Uuid};
use sha2::{Digest, Sha256};
use similar::{ChangeTag, TextDiff};

use crate::clock::now;
use crate::private_file;
use crate::tool::FileChangeObserver;

/// The copies of a session.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    folder: PathBuf,
    root: PathBuf,
    state: Mutex<CheckpointState>,
}

#[derive(Debug, Default)]
struct CheckpointState {
    /// The prompts, each with the copies of the files known by then.
    snapshots: Vec<(Uuid, BTreeMap<PathBuf, FileBackup>)>,
    /// The first copy of each file: as it was before anything changed it.
    first_backups: BTreeMap<PathBuf, FileBackup>,
    versions: BTreeMap<PathBuf, u64>,
    /// Lines that the session's file does not hold yet.
    pending_entries: Vec<Entry>,
}

impl Checkpoints {
    /// Copies go to `folder`; paths are noted as seen from `root`. What a session's file
    /// notes of earlier copies is taken up again.
    pub(crate) fn restore(folder: PathBuf, root: &Path, notes: &[Entry]) -> Self {
        let mut kept = CheckpointState::default();
        for note in notes {
            match note {
                Entry::FileHistorySnapshot(line) => {
                    let Some((prompt, snapshot)) = line.message_id.get().zip(line.snapshot.read::<FileSnapshot>().ok())
                    else {
                        continue;
                    };
                    let copies = snapshot.tracked_file_backups.into_iter();
                    let copies: BTreeMap<PathBuf, FileBackup> =
                        copies.map(|(path, copy)| (root.join(path), copy)).collect();
                    copies.iter().for_each(|(path, copy)| kept.add_known_backup(path, copy));
                    kept.snapshots.push((prompt.clone(), copies));
                }
                Entry::FileHistoryDelta(line) => {
                    if let Some((path, copy)) = line.tracking_path.get().zip(line.backup.read::<FileBackup>().ok()) {
                        kept.add_known_backup(&root.join(path), &copy);
                    }
                }
                _ => {}
            }
        }
        Self { folder, root: root.to_owned(), state: Mutex::new(kept) }
    }

    /// A prompt begins: every file known so far is copied as it is now.
    pub(crate) fn snapshot(&self, prompt: &Uuid) {
        let mut kept = self.lock();
        let paths: Vec<PathBuf> = kept.first_backups.keys().cloned().collect();
        let mut copies = BTreeMap::new();
        for path in paths {
            let now = fs::read(&path).ok();
            // A file that cannot be copied now is put back from its first copy.
            if let Ok(copy) = self.back_up(&mut kept, &path, now.as_deref()) {
                copies.insert(path, copy);
            }
        }
        let tracked = copies.iter().map(|(path, copy)| (self.display_path(path), copy.clone())).collect();
        let snapshot = FileSnapshot {
            message_id: Maybe::Value(prompt.clone()),
            tracked_file_backups: tracked,
            timestamp: Maybe::Value(now()),
            ..FileSnapshot::default()
        };
        kept.pending_entries.push(Entry::FileHistorySnapshot(Box::new(FileHistorySnapshot {
            message_id: Maybe::Value(prompt.clone()),
            snapshot: Json::from_serialize(&snapshot),
            is_snapshot_update: Maybe::Value(false),
            ..FileHistorySnapshot::default()
        })));
        kept.snapshots.push((prompt.clone(), copies));
    }

    /// Removes and returns the entries that the session file does not hold yet.
    pub(crate) fn take_pending_entries(&self) -> Vec<Entry> {
        std::mem::take(&mut self.lock().pending_entries)
    }

    /// Puts the files back to where they were before a prompt, or only says what would
    /// change; `None` if there is no such prompt.
    pub(crate) fn rewind(&self, prompt: &Uuid, only_say: bool) -> Option<io::Result<RewindFilesResponse>> {
        let kept = self.lock();
        let (_, copies) = kept.snapshots.iter().find(|(uuid, _)| uuid == prompt)?;
        let mut done = RewindFilesResponse { can_rewind: true, ..RewindFilesResponse::default() };
        let (mut changed, mut plus, mut minus, mut links) = (Vec::new(), 0, 0, 0);
        for (path, first) in &kept.first_backups {
            let copy = copies.get(path).unwrap_or(first);
            match self.restore_file(path, copy, only_say) {
                Ok(None) => {}
                Ok(Some(RestoredFile::SkippedLink)) => links += 1,
                Ok(Some(RestoredFile::Changed { added, removed })) => {
                    changed.push(path.display().to_string());
                    plus += added;
                    minus += removed;
                }
                Err(error) => return Some(Err(error)),
            }
        }
        if only_say {
            (done.files_changed, done.insertions, done.deletions) =
                (Maybe::Value(changed), Maybe::Value(plus), Maybe::Value(minus));
        } else {
            done.skipped_links = Maybe::Value(links);
        }
        Some(Ok(done))
    }

    fn restore_file(&self, path: &Path, copy: &FileBackup, only_say: bool) -> io::Result<Option<RestoredFile>> {
        if path.is_symlink() {
            return Ok(Some(RestoredFile::SkippedLink));
        }
        let then = copy.backup_file_name.as_ref().map(|name| fs::read(self.folder.join(name))).transpose()?;
        let now = fs::read(path).ok();
        if then == now {
            return Ok(None);
        }
        if !only_say {
            match &then {
                Some(bytes) => fs::write(path, bytes)?,
                None => fs::remove_file(path)?,
            }
        }
        let text = |bytes: &Option<Vec<u8>>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        let (old, new) = (text(&now), text(&then));
        let diff = TextDiff::from_lines(&old, &new);
        let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count() as u64;
        Ok(Some(RestoredFile::Changed { added: count(ChangeTag::Insert), removed: count(ChangeTag::Delete) }))
    }

    /// Copies a file's bytes; a file that is not there has a copy without a name.
    fn back_up(&self, kept: &mut CheckpointState, path: &Path, bytes: Option<&[u8]>) -> io::Result<FileBackup> {
        let version = kept.versions.entry(path.to_owned()).or_default();
        *version += 1;
        let parent = path.parent().map(|parent| parent.display().to_string());
        let mut copy = FileBackup {
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
            copy.backup_file_name = Some(name);
        }
        Ok(copy)
    }

    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    fn lock(&self) -> MutexGuard<'_, CheckpointState> {
        self.state.lock()
    }
}

impl CheckpointState {
    /// Takes a copy up that was made before.
    fn add_known_backup(&mut self, path: &Path, copy: &FileBackup) {
        self.first_backups.entry(path.to_owned()).or_insert_with(|| copy.clone());
        let version = self.versions.entry(path.to_owned()).or_default();
        *version = copy.version.get().copied().unwrap_or_default().max(*version);
    }
}

enum RestoredFile {
    SkippedLink,
    Changed { added: u64, removed: u64 },
}

impl FileChangeObserver for Checkpoints {
    fn before_change(&self, path: &Path, old: Option<&[u8]>) -> io::Result<()> {
        let mut kept = self.lock();
        if kept.first_backups.contains_key(path) {
            return Ok(());
        }
        let copy = self.back_up(&mut kept, path, old)?;
        let prompt = kept.snapshots.last().map(|(uuid, _)| uuid.clone());
        kept.pending_entries.push(Entry::FileHistoryDelta(Box::new(FileHistoryDelta {
            message_id: prompt.clone().into(),
            snapshot_message_id: prompt.into(),
            tracking_path: Maybe::Value(self.display_path(path)),
            backup: Json::from_serialize(&copy),
            timestamp: Maybe::Value(now()),
            ..FileHistoryDelta::default()
        })));
        kept.first_backups.insert(path.to_owned(), copy);
        Ok(())
    }
}
