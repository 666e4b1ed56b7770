//! A session that stays open: when its files grow, only their new lines are read.

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use quipu_conversation::SkeletonView;

use super::{FileSkeleton, SessionSkeleton};
use crate::append::is_same_file;
use crate::find::{self, SubagentFile};
use crate::problem::FileError;

/// A [`SessionSkeleton`] that can be brought up to date.
#[derive(Debug)]
pub struct OpenSession {
    path: PathBuf,
    main: GrowingFile,
    /// `None` for a file that cannot be read.
    subagents: Vec<(SubagentFile, Option<GrowingFile>)>,
    session: SessionSkeleton,
}

/// Reads the skeleton of a file, or takes a stored one.
type ReadFile<'a> = &'a mut dyn FnMut(&Path) -> Result<FileSkeleton, FileError>;

impl OpenSession {
    /// Opens a session file and the files of its subagents; `read` returns the skeleton of each,
    /// which may be a stored one. Fails if the session file cannot be read.
    pub fn open(
        path: &Path,
        mut read: impl FnMut(&Path) -> Result<FileSkeleton, FileError>,
    ) -> Result<Self, FileError> {
        let main = GrowingFile::open(path, &mut read)?;
        let mut subagents = Vec::new();
        add_new_subagents(path, &mut subagents, &mut read);
        let session = assemble(path, &main, &subagents);
        Ok(Self { path: path.to_owned(), main, subagents, session })
    }

    /// Reads what was written since the last call: only new lines, or a whole file if it was cut or
    /// replaced; `read` is for those. Returns whether anything changed. Fails if the session file
    /// can no longer be read.
    pub fn update(
        &mut self,
        mut read: impl FnMut(&Path) -> Result<FileSkeleton, FileError>,
    ) -> Result<bool, FileError> {
        let mut has_changed = self.main.update(&self.path, &mut read)?;
        for (subagent, file) in &mut self.subagents {
            match file {
                Some(growing) => match growing.update(&subagent.path, &mut read) {
                    Ok(changed) => has_changed |= changed,
                    Err(_) => (*file, has_changed) = (None, true),
                },
                None => {
                    *file = GrowingFile::open(&subagent.path, &mut read).ok();
                    has_changed |= file.is_some();
                }
            }
        }
        has_changed |= add_new_subagents(&self.path, &mut self.subagents, &mut read);
        if has_changed {
            self.session = assemble(&self.path, &self.main, &self.subagents);
        }
        Ok(has_changed)
    }

    /// Whether no file changed since the session was opened or updated, so that
    /// [`update`](Self::update) would read nothing.
    pub fn is_up_to_date(&self) -> bool {
        let is_same = |path: &Path, file: &GrowingFile| metadata(path).is_ok_and(|metadata| file.has_state(&metadata));
        let is_known = |path: &PathBuf| self.subagents.iter().any(|(known, _)| known.path == *path);
        is_same(&self.path, &self.main)
            && self.subagents.iter().all(|(known, file)| file.as_ref().is_some_and(|file| is_same(&known.path, file)))
            && find::list_subagent_paths(&self.path).iter().all(is_known)
    }

    /// Path of the session file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The session for reading.
    pub fn view(&self) -> SkeletonView<'_> {
        self.session.view()
    }

    /// The subagents that have their own file.
    pub fn subagents(&self) -> impl Iterator<Item = &SubagentFile> {
        self.subagents.iter().map(|(subagent, _)| subagent)
    }

    /// Identifies the content of the files: differs after each change.
    pub fn version(&self) -> String {
        let (mut bytes, mut modified, mut count) = (0, Duration::ZERO, 0);
        for file in self.files() {
            bytes += file.metadata.len();
            modified = modified.max(since_epoch(&file.metadata));
            count += 1;
        }
        format!("{count}-{bytes:x}-{:x}", modified.as_nanos())
    }

    /// Number of lines of all files, which determines the memory that the session needs.
    pub fn lines(&self) -> u64 {
        self.files().map(|file| file.skeleton.lines).sum()
    }

    fn files(&self) -> impl Iterator<Item = &GrowingFile> {
        self.subagents.iter().filter_map(|(_, file)| file.as_ref()).chain([&self.main])
    }
}

/// Opens the files of subagents that are not in the list yet. Returns whether there are any.
fn add_new_subagents(
    session: &Path,
    subagents: &mut Vec<(SubagentFile, Option<GrowingFile>)>,
    read: ReadFile<'_>,
) -> bool {
    let known = subagents.len();
    for path in find::list_subagent_paths(session) {
        if subagents[..known].iter().all(|(known, _)| known.path != path)
            && let Some(subagent) = SubagentFile::from_path(path)
        {
            let file = GrowingFile::open(&subagent.path, read).ok();
            subagents.push((subagent, file));
        }
    }
    let is_new = subagents.len() > known;
    subagents.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    is_new
}

/// Joins copies of the parts, so that the parts can be continued: an incomplete last line is not in
/// them.
fn assemble(path: &Path, main: &GrowingFile, subagents: &[(SubagentFile, Option<GrowingFile>)]) -> SessionSkeleton {
    let parts = subagents.iter().map(|(subagent, file)| {
        let skeleton = file.as_ref().map(|file| file.skeleton.clone());
        (subagent.clone(), skeleton.map_or_else(|| FileSkeleton::read(&subagent.path), Ok))
    });
    SessionSkeleton::assemble(path, main.skeleton.clone(), parts)
}

/// The skeleton of a file, and the state of the file before it was read.
#[derive(Debug)]
struct GrowingFile {
    skeleton: FileSkeleton,
    metadata: Metadata,
}

impl GrowingFile {
    fn open(path: &Path, read: ReadFile<'_>) -> Result<Self, FileError> {
        // First, so that a line written meanwhile is a change the next time.
        let metadata = metadata(path)?;
        Ok(Self { skeleton: read(path)?, metadata })
    }

    /// Returns whether the file changed.
    fn update(&mut self, path: &Path, read: ReadFile<'_>) -> Result<bool, FileError> {
        let metadata = metadata(path)?;
        if self.has_state(&metadata) {
            return Ok(false);
        }
        if is_same_file(&self.metadata, &metadata)
            && metadata.len() >= self.metadata.len()
            && ends_line(path, self.skeleton.offset)
        {
            self.skeleton.read_on(path)?;
        } else {
            self.skeleton = read(path)?;
        }
        self.metadata = metadata;
        Ok(true)
    }

    /// Whether the file was not written to since it was read.
    fn has_state(&self, metadata: &Metadata) -> bool {
        let state = |metadata: &Metadata| (metadata.len(), metadata.modified().ok());
        is_same_file(&self.metadata, metadata) && state(&self.metadata) == state(metadata)
    }
}

fn metadata(path: &Path) -> Result<Metadata, FileError> {
    fs::metadata(path).map_err(|source| FileError::Open { path: path.to_owned(), source })
}

fn since_epoch(metadata: &Metadata) -> Duration {
    metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default()
}

/// Whether a line of the file ends at an offset. If not, the file was rewritten.
fn ends_line(path: &Path, offset: u64) -> bool {
    let Some(last) = offset.checked_sub(1) else { return true };
    let mut byte = [0];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(last))?;
        file.read_exact(&mut byte)
    });
    read.is_ok() && byte == *b"\n"
}
