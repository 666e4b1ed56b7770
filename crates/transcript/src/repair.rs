//! Repairing a file: only on request, never without a backup, every change told.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use quipu_conversation::ProblemKind;
use quipu_message::line::replace_lone_surrogates;
use quipu_message::{Head, Line, Uuid};
use serde::Serialize;

use crate::append::sync_folder;
use crate::lines::{LineEnding, LineReader, RawLine};

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// The file.
    pub path: PathBuf,
    /// The file as it was.
    pub backup: PathBuf,
    /// Every change.
    pub changes: Vec<RepairChange>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairChange {
    /// The line in the file as it was, counted from 1.
    pub line: u64,
    /// Kind of problem that was repaired.
    #[serde(rename = "code")]
    pub kind: ProblemKind,
    /// What was done.
    pub action: &'static str,
}

/// Why a file could not be repaired. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// It cannot be read, or the repaired file cannot be written.
    #[error("cannot repair {}: {operation}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        operation: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It changed meanwhile.
    #[error("cannot repair {}: it is being written", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

impl RepairError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "repair.failed",
            Self::Busy { .. } => "repair.busy",
        }
    }
}

/// Repairs a file; none when there is nothing to repair. Lines that cannot be read
/// are left to the backup, line ends and marks are put right, and an entry whose
/// parent is not there is hung on the entry before it. Lines that are JSON but
/// unknown or another program's stay as they are.
pub fn repair(path: &Path) -> Result<Option<RepairReport>, RepairError> {
    let fail = |what| move |source| RepairError::Io { path: path.to_owned(), operation: what, source };
    let file = File::open(path).map_err(fail("opening it"))?;
    file.lock().map_err(fail("locking it"))?;
    let before = file.metadata().map_err(fail("looking at it"))?.len();
    let known = read_uuids(path).map_err(fail("reading it"))?;
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut fixed = tempfile::NamedTempFile::new_in(folder).map_err(fail("making a new file beside it"))?;
    let changes = write_repaired(path, &known, fixed.as_file_mut()).map_err(fail("writing it anew"))?;
    if changes.is_empty() {
        return Ok(None);
    }
    let backup = create_backup(path).map_err(fail("making a backup"))?;
    fixed.as_file().sync_all().map_err(fail("syncing it"))?;
    if file.metadata().map_err(fail("looking at it"))?.len() != before {
        return Err(RepairError::Busy { path: path.to_owned() });
    }
    fs::set_permissions(fixed.path(), file.metadata().map_err(fail("looking at it"))?.permissions())
        .map_err(fail("keeping its permissions"))?;
    fixed.persist(path).map_err(|error| error.error).map_err(fail("putting it in place"))?;
    sync_folder(folder).map_err(fail("syncing its folder"))?;
    Ok(Some(RepairReport { path: path.to_owned(), backup, changes }))
}

/// The ids of all entries.
fn read_uuids(path: &Path) -> io::Result<HashSet<String>> {
    let mut known = HashSet::new();
    for_each_line(path, |_, bytes, _, _| {
        if let Ok(text) = std::str::from_utf8(bytes)
            && let Ok(head) = Head::read(&replace_lone_surrogates(text))
        {
            known.extend(head.uuid.map(|uuid| uuid.to_string()));
        }
        Ok(())
    })?;
    Ok(known)
}

fn write_repaired(path: &Path, known: &HashSet<String>, out: &mut File) -> io::Result<Vec<RepairChange>> {
    let mut changes = Vec::new();
    let mut out = BufWriter::new(out);
    let mut last: Option<Uuid> = None;
    for_each_line(path, |line, bytes, ending, bom| {
        let mut change = |kind, action| changes.push(RepairChange { line, kind, action });
        if bom {
            change(ProblemKind::Bom, "mark left out");
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            change(ProblemKind::Blank, "left out");
            return Ok(());
        }
        let text = std::str::from_utf8(bytes).ok().and_then(|text| Line::parse(text).ok());
        let Some(mut text) = text else {
            change(ProblemKind::Unreadable, "left to the backup");
            return Ok(());
        };
        match ending {
            LineEnding::CrLf => change(ProblemKind::Crlf, "line end put right"),
            LineEnding::None => change(ProblemKind::NoFinalNewline, "line end added"),
            LineEnding::Lf => {}
        }
        let mended = replace_lone_surrogates(text.as_str()).into_owned();
        if let Ok(head) = Head::read(&mended) {
            if head.parent_uuid.as_ref().is_some_and(|parent| !known.contains(&**parent))
                && let Ok(relinked) = text.with_parent(last.as_ref())
            {
                change(ProblemKind::NoParent, "hung on the entry before it");
                text = relinked;
            }
            if head.is_chain_entry() && head.is_sidechain != Some(true) {
                last = head.uuid.as_deref().map(Uuid::from);
            }
        }
        writeln!(out, "{}", text.as_str())
    })?;
    out.flush()?;
    Ok(changes)
}

fn for_each_line(path: &Path, mut take: impl FnMut(u64, &[u8], LineEnding, bool) -> io::Result<()>) -> io::Result<()> {
    let mut lines = LineReader::new(File::open(path)?);
    while let Some(piece) = lines.next()? {
        match piece {
            RawLine::Line { number, bytes, ending, has_bom: bom, .. } => take(number, bytes, ending, bom)?,
            RawLine::TooLong { .. } => return Err(io::Error::other("a line is too long to hold")),
        }
    }
    Ok(())
}

/// Copies the file beside itself under a free name.
fn create_backup(path: &Path) -> io::Result<PathBuf> {
    for n in 1.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".bak{n}"));
        let to = PathBuf::from(name);
        let mut copy = match File::options().write(true).create_new(true).open(&to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        io::copy(&mut File::open(path)?, &mut copy)?;
        copy.sync_all()?;
        return Ok(to);
    }
    unreachable!("some number is free")
}
