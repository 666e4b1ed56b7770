//! Opens sessions without holding them: the skeleton in memory, entries read from the files when
//! they are shown.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use quipu_conversation::{EntryReader, LineFacts, Problem, ProblemKind, Skeleton, SkeletonView};

use crate::find::{self, SubagentFile};
use crate::lines::{LineEnding, LineReader, RawLine};
use crate::problem::{FileError, error_chain};
use crate::read::{open_file, parse_line};

mod open_session;

pub use open_session::OpenSession;

/// Bytes of lines that are read together.
const BATCH_BYTES: usize = 8 << 20;

/// Batches of fewer bytes are not worth a thread.
const MIN_PARALLEL_BYTES: usize = 1 << 20;

/// More threads do not help: lines are added one after the other.
const MAX_THREADS: usize = 8;

/// A session of any length: its skeleton, and the files that entries are read from.
///
/// ```
/// use quipu_conversation::UiOptions;
/// use quipu_transcript::SessionSkeleton;
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("s.jsonl");
/// # std::fs::write(&path, "{\"type\":\"user\",\"uuid\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n")?;
/// let session = SessionSkeleton::open(&path)?;
/// let last = session.view().tail(20, UiOptions::default(), |_| ());
/// assert_eq!(last[0].text.as_deref(), Some("hi"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SessionSkeleton {
    skeleton: Skeleton,
    files: EntryFiles,
}

impl SessionSkeleton {
    /// Reads a session file and the files of its subagents once, without keeping their entries.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::open_with(path, FileSkeleton::read)
    }

    /// Reads one file, without those of subagents.
    pub fn open_file(path: &Path) -> Result<Self, FileError> {
        Ok(Self::assemble(path, FileSkeleton::read(path)?, []))
    }

    /// As [`open`](Self::open); `read` returns the skeleton of each file, which may be a stored one.
    pub fn open_with(
        path: &Path,
        mut read: impl FnMut(&Path) -> Result<FileSkeleton, FileError>,
    ) -> Result<Self, FileError> {
        let main = read(path)?;
        let subagents = find::list_subagents(path).into_iter().map(|subagent| {
            let file = read(&subagent.path);
            (subagent, file)
        });
        Ok(Self::assemble(path, main, subagents))
    }

    /// Joins the skeletons of the session file and of its subagents' files.
    fn assemble(
        path: &Path,
        main: FileSkeleton,
        subagents: impl IntoIterator<Item = (SubagentFile, Result<FileSkeleton, FileError>)>,
    ) -> Self {
        let mut files = EntryFiles::new(path);
        let mut skeleton = main.finish(path);
        for (subagent, file) in subagents {
            match file {
                Ok(file) => {
                    let number = files.add(&subagent.path);
                    let inner = file.finish(&subagent.path);
                    skeleton.attach_subagent(&subagent.agent_id, subagent.tool_use_id.as_ref(), inner, number);
                }
                Err(error) => skeleton.push_problem(Problem {
                    kind: error.problem_kind(),
                    path: subagent.path.display().to_string(),
                    line: 0,
                    offset: 0,
                    message: error_chain(&error),
                }),
            }
        }
        Self { skeleton, files }
    }

    /// The session for reading.
    pub fn view(&self) -> SkeletonView<'_> {
        self.skeleton.view(&self.files)
    }
}

/// The skeleton of the complete lines of one file. It can be stored, and continued when the file
/// has grown.
#[derive(Debug, Clone, Default)]
pub struct FileSkeleton {
    /// The lines so far.
    pub skeleton: Skeleton,
    /// Offset after the last complete line.
    pub offset: u64,
    /// Number of complete lines.
    pub lines: u64,
    /// The last line if it has no line ending: it is still being written, or was cut off.
    unterminated: Option<Vec<u8>>,
    /// Why reading ended before the end of the file.
    read_error: Option<String>,
}

impl FileSkeleton {
    /// A stored skeleton of the first `lines` lines, which end at `offset`.
    pub fn from_stored(skeleton: Skeleton, offset: u64, lines: u64) -> Self {
        Self { skeleton, offset, lines, ..Self::default() }
    }

    /// Reads a file from its start. Fails if it cannot be opened.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let mut file = Self::default();
        file.read_on(path)?;
        Ok(file)
    }

    /// Reads the lines after [`offset`](Self::offset). Fails if the file cannot be opened.
    pub fn read_on(&mut self, path: &Path) -> Result<(), FileError> {
        let reader = EntryFiles::new(path);
        let mut file = open_file(path)?;
        let (first_offset, first_line) = (self.offset, self.lines);
        file.seek(SeekFrom::Start(first_offset)).map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        (self.unterminated, self.read_error) = (None, None);
        let mut lines = LineReader::new(file);
        let mut batch = LineBatch::default();
        loop {
            let line = match lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    self.read_error = Some(error.to_string());
                    break;
                }
            };
            let length = line.byte_len();
            match line {
                RawLine::Line { bytes, ending: LineEnding::None, .. } => {
                    self.unterminated = Some(bytes.to_vec());
                    break;
                }
                RawLine::Line { number, offset, bytes, has_bom, .. } => {
                    let bom_length = if has_bom { 3 } else { 0 };
                    batch.push(first_line + number, first_offset + offset + bom_length, bytes);
                }
                RawLine::TooLong { number, offset, len, .. } => {
                    self.push_batch(&mut batch, path, &reader);
                    let (line, offset) = (first_line + number, first_offset + offset);
                    let (path, message) = (path.display().to_string(), format!("a line of {len} bytes"));
                    self.skeleton.push_problem(Problem { kind: ProblemKind::TooLong, path, line, offset, message });
                }
            }
            self.offset += length;
            self.lines += 1;
            if batch.text.len() >= BATCH_BYTES {
                self.push_batch(&mut batch, path, &reader);
            }
        }
        self.push_batch(&mut batch, path, &reader);
        Ok(())
    }

    /// Adds lines in order, after their facts were read on all cores, and empties the batch.
    fn push_batch(&mut self, batch: &mut LineBatch, path: &Path, reader: &EntryFiles) {
        for (line, facts) in batch.lines.iter().zip(batch.read_facts()) {
            match facts {
                Some(facts) => self.skeleton.push_facts(facts, reader),
                None => self.push_line(line.number, line.offset, &batch.text[line.range.clone()], path, reader),
            }
        }
        batch.text.clear();
        batch.lines.clear();
    }

    /// Adds a line; one that is not an entry becomes a problem.
    fn push_line(&mut self, line: u64, offset: u64, bytes: &[u8], path: &Path, reader: &EntryFiles) {
        let pushed = parse_line(bytes, |text| self.skeleton.push_line(line, offset, text, reader));
        if let Err((kind, message)) = pushed {
            self.push_problem(Problem { kind, path: path.display().to_string(), line, offset, message });
        }
    }

    fn push_problem(&mut self, problem: Problem) {
        // Problems of the file as a whole do not hide any entry.
        if !problem.kind.is_harmless() {
            self.skeleton.push_problem(problem);
        }
    }

    /// The skeleton with the last line, even if that has no line ending.
    fn finish(mut self, path: &Path) -> Skeleton {
        let (line, offset, reader) = (self.lines + 1, self.offset, EntryFiles::new(path));
        if let Some(bytes) = self.unterminated.take() {
            let pushed = parse_line(&bytes, |text| self.skeleton.push_line(line, offset, text, &reader));
            if let Err((_, message)) = pushed {
                let message = format!("the last line is cut off ({message})");
                let path = path.display().to_string();
                self.push_problem(Problem { kind: ProblemKind::Torn, path, line, offset, message });
            }
        }
        if let Some(message) = self.read_error.take() {
            let path = path.display().to_string();
            self.push_problem(Problem { kind: ProblemKind::CannotRead, path, line: 0, offset, message });
        }
        self.skeleton
    }
}

/// Lines that are read together, so that several threads can work on them.
#[derive(Debug, Default)]
struct LineBatch {
    text: Vec<u8>,
    lines: Vec<BatchedLine>,
}

#[derive(Debug)]
struct BatchedLine {
    number: u64,
    offset: u64,
    /// Where it is in the text of the batch.
    range: Range<usize>,
}

impl LineBatch {
    fn push(&mut self, number: u64, offset: u64, bytes: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(bytes);
        self.lines.push(BatchedLine { number, offset, range: start..self.text.len() });
    }

    /// The facts of each line; `None` for lines whose entry must be read, or that are none.
    fn read_facts(&self) -> Vec<Option<LineFacts<'_>>> {
        let read = |line: &BatchedLine| {
            let text = std::str::from_utf8(&self.text[line.range.clone()]).ok()?;
            LineFacts::read(line.number, line.offset, text)
        };
        let read_all = |lines: &[BatchedLine]| lines.iter().map(read).collect::<Vec<_>>();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        if threads == 1 || self.text.len() < MIN_PARALLEL_BYTES {
            return read_all(&self.lines);
        }
        // Lines differ in length, so that equal numbers of lines may be unequal work.
        let part_bytes = self.text.len() / threads + 1;
        let parts = self.lines.chunk_by(|a, b| a.range.start / part_bytes == b.range.start / part_bytes);
        std::thread::scope(|scope| {
            let running: Vec<_> = parts.map(|part| scope.spawn(move || read_all(part))).collect();
            running
                .into_iter()
                .flat_map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }
}

/// Reads entries from files by position. The file used last stays open.
#[derive(Debug)]
struct EntryFiles {
    paths: Vec<PathBuf>,
    open: Mutex<Option<(u32, File)>>,
}

impl EntryFiles {
    fn new(path: &Path) -> Self {
        Self { paths: vec![path.to_owned()], open: Mutex::default() }
    }

    /// Adds a file and returns its number.
    fn add(&mut self, path: &Path) -> u32 {
        self.paths.push(path.to_owned());
        self.paths.len() as u32 - 1
    }
}

impl EntryReader for EntryFiles {
    fn read(&self, number: u32, offset: u64, length: u32) -> Option<String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_none_or(|(other, _)| *other != number) {
            *open = Some((number, File::open(self.paths.get(number as usize)?).ok()?));
        }
        let (_, file) = open.as_mut()?;
        let mut bytes = vec![0; length as usize];
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut bytes)).ok()?;
        String::from_utf8(bytes).ok()
    }
}
