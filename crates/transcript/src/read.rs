//! Reads files as entries and problems, and builds conversations from them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use quipu_conversation::{Conversation, Problem, ProblemKind, describe_read_error};
use quipu_message::{Entry, ReadError};

use crate::find;
use crate::lines::{LineEnding, LineReader, RawLine};
use crate::problem::{FileError, error_chain};

/// An entry with its position in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedEntry {
    /// Number of the line, counted from 1.
    pub line: u64,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// The line as it is in the file, without its line ending; empty after
    /// [`Entries::without_text`].
    pub text: Box<str>,
    /// The parsed entry.
    pub entry: Entry,
}

/// Reads a source as entries and problems, in order. Ends after an I/O error,
/// which is the last problem.
#[derive(Debug)]
pub struct Entries<R> {
    lines: LineReader<R>,
    path: String,
    pending_problems: VecDeque<Problem>,
    crlf_reported: bool,
    failed: bool,
    keeps_text: bool,
}

impl Entries<File> {
    /// Opens a file. Fails if it cannot be opened or is a folder.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Ok(Self::new(open_file(path)?, path.display().to_string()))
    }
}

/// Opens a file for reading. Fails if it is a folder.
pub(crate) fn open_file(path: &Path) -> Result<File, FileError> {
    let file = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
        true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        false => Ok(file),
    });
    file.map_err(|source| FileError::Open { path: path.to_owned(), source })
}

impl<R: Read> Entries<R> {
    /// Reads from any source. `path` is the name that problems give it.
    pub fn new(input: R, path: impl Into<String>) -> Self {
        let lines = LineReader::new(input);
        Self {
            lines,
            path: path.into(),
            pending_problems: VecDeque::new(),
            crlf_reported: false,
            failed: false,
            keeps_text: true,
        }
    }

    /// Leaves [`LocatedEntry::text`] empty, which saves copying every line.
    pub fn without_text(self) -> Self {
        Self { keeps_text: false, ..self }
    }

    /// Number of bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.lines.offset()
    }

    fn read_next(&mut self) -> io::Result<Option<Result<LocatedEntry, Problem>>> {
        let path = &self.path;
        let Some(raw_line) = self.lines.next()? else { return Ok(None) };
        let problem = |kind, line, offset, message: String| Problem { kind, path: path.clone(), line, offset, message };
        let (line, offset, bytes, ending, bom) = match raw_line {
            RawLine::TooLong { number, offset, len, .. } => {
                return Ok(Some(Err(problem(ProblemKind::TooLong, number, offset, format!("a line of {len} bytes")))));
            }
            RawLine::Line { number, offset, bytes, ending, has_bom: bom } => (number, offset, bytes, ending, bom),
        };
        if bom {
            self.pending_problems.push_back(problem(
                ProblemKind::Bom,
                line,
                offset,
                "begins with a byte-order mark".to_owned(),
            ));
        }
        if ending == LineEnding::CrLf && !self.crlf_reported {
            self.crlf_reported = true;
            self.pending_problems.push_back(problem(ProblemKind::Crlf, line, offset, "lines end in CR LF".to_owned()));
        }
        let read = match parse_entry(bytes) {
            Ok((text, entry)) => {
                if ending == LineEnding::None {
                    let message = "the last line has no line end".to_owned();
                    self.pending_problems.push_back(problem(ProblemKind::NoFinalNewline, line, offset, message));
                }
                let text = if self.keeps_text { text.into() } else { Box::default() };
                Ok(LocatedEntry { line, offset, text, entry })
            }
            Err((_, message)) if ending == LineEnding::None && !bytes.is_empty() => {
                Err(problem(ProblemKind::Torn, line, offset, format!("the last line is cut off ({message})")))
            }
            Err((kind, message)) => Err(problem(kind, line, offset, message)),
        };
        Ok(Some(read))
    }
}

impl<R: Read> Iterator for Entries<R> {
    type Item = Result<LocatedEntry, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(problem) = self.pending_problems.pop_front() {
            return Some(Err(problem));
        }
        if self.failed {
            return None;
        }
        self.read_next().unwrap_or_else(|error| {
            self.failed = true;
            let (path, offset) = (self.path.clone(), self.lines.offset());
            Some(Err(Problem { kind: ProblemKind::CannotRead, path, line: 0, offset, message: error.to_string() }))
        })
    }
}

/// Parses one line into its text and its entry; an error has a kind and a message.
fn parse_entry(bytes: &[u8]) -> Result<(&str, Entry), (ProblemKind, String)> {
    parse_line(bytes, |text| Ok((text, Entry::read(text)?)))
}

/// Parses one line; an error has a kind and a message.
pub(crate) fn parse_line<'a, T>(
    bytes: &'a [u8],
    parse: impl FnOnce(&'a str) -> Result<T, ReadError>,
) -> Result<T, (ProblemKind, String)> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err((ProblemKind::Blank, "a blank line".to_owned()));
    }
    if bytes.iter().all(|&b| b == 0) {
        return Err((ProblemKind::Nul, format!("{} NUL bytes, as a crash may leave them", bytes.len())));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| (ProblemKind::NotUtf8, format!("not UTF-8 after byte {} of the line", e.valid_up_to())))?;
    parse(text).map_err(|error| (ProblemKind::from(&error), describe_read_error(&error)))
}

/// Builds the conversation of a session file and of its subagents' files. A subagent file that
/// cannot be opened becomes a problem of the conversation; only the session file itself can fail.
pub fn load_session(path: &Path) -> Result<Conversation, FileError> {
    let mut conversation = load_file(path)?;
    attach_subagents(&mut conversation, find::list_subagents(path));
    Ok(conversation)
}

fn attach_subagents(conversation: &mut Conversation, subagents: Vec<find::SubagentFile>) {
    for subagent in subagents {
        match Entries::open(&subagent.path) {
            Ok(entries) => conversation.attach_subagent(
                &subagent.agent_id,
                subagent.tool_use_id.as_ref(),
                build_conversation(entries),
            ),
            Err(error) => {
                conversation.push_problem(Problem {
                    kind: error.problem_kind(),
                    path: subagent.path.display().to_string(),
                    line: 0,
                    offset: 0,
                    message: error_chain(&error),
                });
            }
        }
    }
}

/// Builds the conversation of one file, without subagents.
pub fn load_file(path: &Path) -> Result<Conversation, FileError> {
    Ok(build_conversation(Entries::open(path)?))
}

/// Builds the conversation of any source, such as standard input. An I/O error becomes a
/// problem of the conversation.
pub fn load_reader(input: impl Read) -> Conversation {
    build_conversation(Entries::new(input, "-"))
}

fn build_conversation<R: Read>(entries: Entries<R>) -> Conversation {
    let mut conversation = Conversation::default();
    for read in entries.without_text() {
        match read {
            Ok(located) => conversation.push(located.line, located.entry),
            // Problems of the file as a whole do not hide any entry.
            Err(problem) if problem.kind.is_harmless() => {}
            Err(problem) => conversation.push_problem(problem),
        }
    }
    conversation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_file_that_cannot_be_opened_is_a_problem_and_not_the_end() {
        let line = r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#;
        let mut conversation = load_reader(line.as_bytes());
        let missing_file = find::SubagentFile {
            path: "/nonexistent/agent-a1.jsonl".into(),
            agent_id: "a1".into(),
            tool_use_id: None,
            parent_agent_id: None,
            agent_type: None,
            description: None,
        };
        attach_subagents(&mut conversation, vec![missing_file]);
        let problem = &conversation.problems()[0];
        assert_eq!((problem.line, problem.kind), (0, ProblemKind::FileNotFound));
        let texts: Vec<_> = conversation.for_ui().into_iter().filter_map(|item| item.text).collect();
        assert_eq!(texts[0], "hi");
        assert!(texts[1].starts_with("cannot open /nonexistent/agent-a1.jsonl: "), "{texts:?}");
    }
}
