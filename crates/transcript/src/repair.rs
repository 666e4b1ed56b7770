//! Repairs a file: only on request, with a backup, and with a report of every change.

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

/// Result of a repair, in the shape of `quipu check --repair --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Path of the file.
    pub path: PathBuf,
    /// Path of the copy of the unrepaired file.
    pub backup: PathBuf,
    /// All changes, in the order of the file.
    pub changes: Vec<RepairChange>,
}

/// One change to a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairChange {
    /// Number of the line in the unrepaired file, counted from 1.
    pub line: u64,
    /// Kind of problem that was repaired.
    #[serde(rename = "code")]
    pub kind: ProblemKind,
    /// What was done about it.
    pub action: &'static str,
}

/// Why a file could not be repaired. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// It cannot be read, or the repaired file cannot be written.
    #[error("cannot repair {}: {operation}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// What was attempted, such as `opening it`.
        operation: &'static str,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file grew during the repair.
    #[error("cannot repair {}: it is being written", path.display())]
    Busy {
        /// Path of the file.
        path: PathBuf,
    },
}

impl RepairError {
    /// Stable code for scripts, such as `repair.busy`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "repair.failed",
            Self::Busy { .. } => "repair.busy",
        }
    }
}

/// Repairs a file; `None` if there is nothing to repair. Lines that are not JSON are removed
/// (the backup has them), line endings and byte-order marks are corrected, and an entry whose
/// parent is missing becomes a child of the entry before it. JSON lines of unknown types stay as
/// they are.
pub fn repair(path: &Path) -> Result<Option<RepairReport>, RepairError> {
    let io_error = |what| move |source| RepairError::Io { path: path.to_owned(), operation: what, source };
    let file = File::open(path).map_err(io_error("opening it"))?;
    file.lock().map_err(io_error("locking it"))?;
    let before = file.metadata().map_err(io_error("reading its metadata"))?.len();
    let uuids = read_uuids(path).map_err(io_error("reading it"))?;
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut repaired =
        tempfile::NamedTempFile::new_in(folder).map_err(io_error("creating a new file in its folder"))?;
    let changes =
        write_repaired(path, &uuids, repaired.as_file_mut()).map_err(io_error("writing the repaired file"))?;
    if changes.is_empty() {
        return Ok(None);
    }
    let backup = create_backup(path).map_err(io_error("making a backup"))?;
    repaired.as_file().sync_all().map_err(io_error("syncing it"))?;
    if file.metadata().map_err(io_error("reading its metadata"))?.len() != before {
        return Err(RepairError::Busy { path: path.to_owned() });
    }
    fs::set_permissions(repaired.path(), file.metadata().map_err(io_error("reading its metadata"))?.permissions())
        .map_err(io_error("keeping its permissions"))?;
    repaired.persist(path).map_err(|error| error.error).map_err(io_error("putting it in place"))?;
    sync_folder(folder).map_err(io_error("syncing its folder"))?;
    Ok(Some(RepairReport { path: path.to_owned(), backup, changes }))
}

/// UUIDs of all entries.
fn read_uuids(path: &Path) -> io::Result<HashSet<String>> {
    let mut uuids = HashSet::new();
    for_each_line(path, |_, bytes, _, _| {
        if let Ok(text) = std::str::from_utf8(bytes)
            && let Ok(head) = Head::read(&replace_lone_surrogates(text))
        {
            uuids.extend(head.uuid.map(|uuid| uuid.to_string()));
        }
        Ok(())
    })?;
    Ok(uuids)
}

fn write_repaired(path: &Path, uuids: &HashSet<String>, out: &mut File) -> io::Result<Vec<RepairChange>> {
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
        let readable = replace_lone_surrogates(text.as_str()).into_owned();
        if let Ok(head) = Head::read(&readable) {
            if head.parent_uuid.as_ref().is_some_and(|parent| !uuids.contains(&**parent))
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
    while let Some(raw_line) = lines.next()? {
        match raw_line {
            RawLine::Line { number, bytes, ending, has_bom: bom, .. } => take(number, bytes, ending, bom)?,
            RawLine::TooLong { .. } => return Err(io::Error::other("a line is too long to hold")),
        }
    }
    Ok(())
}

/// Copies the file to the first free name of the form `<name>.bak<n>`.
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
