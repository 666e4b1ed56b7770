//! Lists every file of every session without opening them.

use std::collections::HashMap;
use std::fs::{self, DirEntry, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quipu_message::line::replace_lone_surrogates;
use quipu_message::{Head, SessionId};
use rayon::prelude::*;

use crate::lines::{LineReader, RawLine};
use crate::problem::FileError;

/// A session and the paths of all its transcript files.
#[derive(Debug, Clone)]
pub struct SessionFiles {
    /// Id of the session.
    pub id: SessionId,
    /// Path of the project folder.
    pub folder: Arc<Path>,
    /// Name of the project folder, such as `-home-dev-app`.
    pub project: Arc<str>,
    /// The session file, if it exists, then the files of its subagents. Never empty.
    pub files: Vec<TranscriptFile>,
    /// Modification time of the subagents folder in nanoseconds since 1970. `None` if there is no
    /// such folder, or if a later change might not show in its time: it changed just now, or has
    /// folders in it.
    pub subagents_modified: Option<i64>,
}

/// Results of an earlier listing, which save opening files and reading folders.
pub trait ListingHints: Sync {
    /// Session of a subagent whose file is in the project folder; `None` if not known.
    fn session_of_subagent(&self, _path: &Path) -> Option<SessionId> {
        None
    }

    /// Names of the files in a subagents folder, separated by `/`, if they are known for this
    /// modification time.
    fn subagent_names(&self, _folder: &Path, _modified: i64) -> Option<&str> {
        None
    }
}

impl ListingHints for () {}

impl SessionFiles {
    /// Path of the folder with its subagents, whether or not it exists.
    pub fn subagents_folder(&self) -> PathBuf {
        self.folder.join(self.id.as_str()).join("subagents")
    }
}

impl SessionFiles {
    /// The session file, or the file of a subagent if the session file is missing.
    pub fn main_file(&self) -> &TranscriptFile {
        &self.files[0]
    }

    /// Number of files that belong to subagents.
    pub fn subagent_count(&self) -> usize {
        self.files.iter().filter(|file| file.is_subagent).count()
    }
}

/// A transcript file and its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Whether the file belongs to a subagent.
    pub is_subagent: bool,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Time of the last write, in nanoseconds since 1970.
    pub modified: i64,
    /// Inode number, which distinguishes the file from a later one of the same name; 0 on systems without
    /// inodes.
    pub inode: u64,
}

/// Lists the project folders of config folders. Folders that cannot be read are returned as
/// errors.
pub fn list_project_folders(config_dirs: &[PathBuf]) -> (Vec<PathBuf>, Vec<FileError>) {
    let (mut folders, mut errors) = (Vec::new(), Vec::new());
    for dir in config_dirs.iter().map(|dir| dir.join("projects")).filter(|dir| dir.exists()) {
        folders.extend(read_folder(&dir, &mut errors).iter().map(DirEntry::path).filter(|path| path.is_dir()));
    }
    folders.sort();
    (folders, errors)
}

/// Lists the sessions of project folders with the files of their subagents, including those that
/// older versions put into the project folder. Folders that cannot be read are returned as
/// errors.
pub fn list_session_files(projects: &[PathBuf], hints: &impl ListingHints) -> (Vec<SessionFiles>, Vec<FileError>) {
    // Listing a folder mostly waits for the file system: several at a time are faster.
    let done: Vec<(Vec<SessionFiles>, Vec<FileError>)> =
        projects.par_iter().map(|folder| list_project(folder, hints)).collect();
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for (sessions, problems) in done {
        found.extend(sessions);
        errors.extend(problems);
    }
    // By bytes: comparing paths part by part is slow.
    found.sort_unstable_by(|a: &SessionFiles, b| a.main_file().path.as_os_str().cmp(b.main_file().path.as_os_str()));
    (found, errors)
}

/// Lists the files of one session; `None` if the session file does not exist. Subagents that
/// older versions put into the project folder are not included.
pub fn find_session_files(session: &Path) -> Option<SessionFiles> {
    let folder = session.parent()?;
    let id = session.file_stem()?.to_str()?;
    let meta = fs::metadata(session).ok()?;
    let mut files = vec![file_from_metadata(session.to_owned(), &meta)?];
    files.extend(list_subagent_files(&folder.join(id).join("subagents"), &mut Vec::new()).0);
    files[1..].sort_by(|a, b| a.path.cmp(&b.path));
    let project = folder.file_name()?.to_string_lossy().into();
    Some(SessionFiles { id: id.into(), folder: folder.into(), project, files, subagents_modified: None })
}

/// A folder that changed less than this ago may change again without a new modification time,
/// because the clocks of file systems are coarse.
const MTIME_SETTLE_TIME: Duration = Duration::from_secs(2);

#[expect(clippy::disallowed_methods, reason = "compared with the times of the file system")]
fn list_project(folder: &Path, hints: &impl ListingHints) -> (Vec<SessionFiles>, Vec<FileError>) {
    let project: Arc<str> = folder.file_name().unwrap_or_default().to_string_lossy().into();
    let folder_path: Arc<Path> = folder.into();
    let settled_before = SystemTime::now().checked_sub(MTIME_SETTLE_TIME).map_or(0, nanos_since_epoch);
    let mut errors = Vec::new();
    let mut sessions: HashMap<SessionId, (Vec<TranscriptFile>, Option<i64>)> = HashMap::new();
    for entry in read_folder(folder, &mut errors) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        match name.strip_suffix(".jsonl") {
            Some(stem) => {
                let Some(mut file) = stat_entry(&entry) else { continue };
                file.is_subagent = stem.starts_with("agent-");
                let id = if file.is_subagent {
                    hints.session_of_subagent(&file.path).or_else(|| read_session_id(&file.path))
                } else {
                    None
                };
                sessions.entry(id.unwrap_or_else(|| stem.into())).or_default().0.push(file);
            }
            None if entry.file_type().is_ok_and(|kind| !kind.is_file()) => {
                let folder = folder.join(name).join("subagents");
                let Ok(meta) = fs::metadata(&folder) else { continue };
                let modified = meta.modified().map_or(0, nanos_since_epoch);
                let (agents, is_flat) = match hints.subagent_names(&folder, modified) {
                    Some(names) => (stat_subagent_files(&folder, names), true),
                    None => list_subagent_files(&folder, &mut errors),
                };
                if !agents.is_empty() {
                    let (files, listed) = sessions.entry(name.into()).or_default();
                    files.extend(agents);
                    *listed = (is_flat && modified < settled_before).then_some(modified);
                }
            }
            None => {}
        }
    }
    let session = |(id, (mut files, subagents_listed)): (SessionId, (Vec<TranscriptFile>, Option<i64>))| {
        files.sort_by(|a, b| (a.is_subagent, &a.path).cmp(&(b.is_subagent, &b.path)));
        SessionFiles {
            id,
            folder: Arc::clone(&folder_path),
            project: Arc::clone(&project),
            files,
            subagents_modified: subagents_listed,
        }
    };
    (sessions.into_iter().map(session).collect(), errors)
}

/// Lists the subagent files in a folder and below; the flag is true if it has no subfolders.
fn list_subagent_files(folder: &Path, errors: &mut Vec<FileError>) -> (Vec<TranscriptFile>, bool) {
    let is_agent = |name: &str| name.starts_with("agent-") && name.ends_with(".jsonl");
    let (mut agents, mut folders, mut listed) = (Vec::new(), vec![folder.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        listed += 1;
        for entry in read_folder(&folder, errors) {
            // A symbolic link to a folder may form a cycle, so only links to files are followed.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if entry.file_name().to_str().is_some_and(is_agent) {
                agents.extend(stat_entry(&entry).map(mark_as_subagent));
            }
        }
    }
    (agents, listed == 1)
}

/// Metadata of subagent files whose names are known, separated by `/`.
fn stat_subagent_files(folder: &Path, names: &str) -> Vec<TranscriptFile> {
    let paths = names.split('/').map(|name| folder.join(name));
    paths
        .filter_map(|path| fs::metadata(&path).ok().and_then(|meta| file_from_metadata(path, &meta)))
        .map(mark_as_subagent)
        .collect()
}

fn mark_as_subagent(file: TranscriptFile) -> TranscriptFile {
    TranscriptFile { is_subagent: true, ..file }
}

fn read_folder(folder: &Path, errors: &mut Vec<FileError>) -> Vec<DirEntry> {
    let listed: io::Result<Vec<DirEntry>> = fs::read_dir(folder).and_then(Iterator::collect);
    listed.unwrap_or_else(|source| {
        errors.push(FileError::Open { path: folder.to_owned(), source });
        Vec::new()
    })
}

fn stat_entry(entry: &DirEntry) -> Option<TranscriptFile> {
    let meta = match entry.metadata().ok()? {
        // A symbolic link counts as its target.
        meta if meta.is_symlink() => fs::metadata(entry.path()).ok()?,
        meta => meta,
    };
    file_from_metadata(entry.path(), &meta)
}

fn file_from_metadata(path: PathBuf, meta: &Metadata) -> Option<TranscriptFile> {
    let modified = meta.modified().map_or(0, nanos_since_epoch);
    meta.is_file().then(|| TranscriptFile { path, is_subagent: false, bytes: meta.len(), modified, inode: inode(meta) })
}

fn nanos_since_epoch(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

/// Session id from the first ten lines of a file; `None` if none of them has one.
pub(super) fn read_session_id(path: &Path) -> Option<SessionId> {
    let mut lines = LineReader::new(File::open(path).ok()?);
    for _ in 0..10 {
        let RawLine::Line { bytes, .. } = lines.next().ok()?? else { continue };
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        if let Some(id) = Head::read(&replace_lone_surrogates(text))
            .ok()
            .and_then(|head| head.session_id.as_deref().map(SessionId::from))
        {
            return Some(id);
        }
    }
    None
}
