//! Entries or problems, one line at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use quipu_conversation::{Conversation, Fault};
use quipu_message::{Entry, ReadError};

use crate::find;
use crate::lines::{Ending, Lines, Piece};
use crate::problem::{FileError, Problem};

/// An entry and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The line, counted from 1.
    pub line: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// The line as it was written.
    pub text: Box<str>,
    /// What it says.
    pub entry: Entry,
}

/// Reads a source as entries and problems, in order. Ends after an I/O error,
/// which is the last problem.
#[derive(Debug)]
pub struct Entries<R> {
    lines: Lines<R>,
    path: String,
    waiting: VecDeque<Problem>,
    crlf_said: bool,
    broken: bool,
}

impl Entries<File> {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            false => Ok(file),
        });
        let file = file.map_err(|source| FileError::Open { path: path.to_owned(), source })?;
        Ok(Self::new(file, path.display().to_string()))
    }
}

impl<R: Read> Entries<R> {
    /// Reads from any source; `path` is what problems name.
    pub fn new(input: R, path: impl Into<String>) -> Self {
        let lines = Lines::new(input);
        Self { lines, path: path.into(), waiting: VecDeque::new(), crlf_said: false, broken: false }
    }

    /// How many bytes have been read.
    pub fn bytes(&self) -> u64 {
        self.lines.offset()
    }

    fn read(&mut self) -> io::Result<Option<Result<Located, Problem>>> {
        let path = &self.path;
        let Some(piece) = self.lines.next()? else { return Ok(None) };
        let problem = |code, line, offset, message: String| Problem { code, path: path.clone(), line, offset, message };
        let (line, offset, bytes, ending, bom) = match piece {
            Piece::TooLong { number, offset, len, .. } => {
                return Ok(Some(Err(problem("line.too_long", number, offset, format!("a line of {len} bytes")))));
            }
            Piece::Line { number, offset, bytes, ending, bom } => (number, offset, bytes, ending, bom),
        };
        if bom {
            self.waiting.push_back(problem("file.bom", line, offset, "begins with a byte-order mark".to_owned()));
        }
        if ending == Ending::CrLf && !self.crlf_said {
            self.crlf_said = true;
            self.waiting.push_back(problem("file.crlf", line, offset, "lines end in CR LF".to_owned()));
        }
        let read = match entry(bytes) {
            Ok((text, entry)) => {
                if ending == Ending::None {
                    let message = "the last line has no line end".to_owned();
                    self.waiting.push_back(problem("file.no_final_newline", line, offset, message));
                }
                Ok(Located { line, offset, text, entry })
            }
            Err((_, message)) if ending == Ending::None && !bytes.is_empty() => {
                Err(problem("line.torn", line, offset, format!("the last line is cut off ({message})")))
            }
            Err((code, message)) => Err(problem(code, line, offset, message)),
        };
        Ok(Some(read))
    }
}

impl<R: Read> Iterator for Entries<R> {
    type Item = Result<Located, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(problem) = self.waiting.pop_front() {
            return Some(Err(problem));
        }
        if self.broken {
            return None;
        }
        self.read().unwrap_or_else(|error| {
            self.broken = true;
            let (path, offset) = (self.path.clone(), self.lines.offset());
            Some(Err(Problem { code: "file.cannot_read", path, line: 0, offset, message: error.to_string() }))
        })
    }
}

/// Reads one line's bytes; what is wrong has a code and words.
fn entry(bytes: &[u8]) -> Result<(Box<str>, Entry), (&'static str, String)> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(("line.blank", "a blank line".to_owned()));
    }
    if bytes.iter().all(|&b| b == 0) {
        return Err(("line.nul", format!("{} NUL bytes, as a crash may leave them", bytes.len())));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| ("line.not_utf8", format!("not UTF-8 after byte {} of the line", e.valid_up_to())))?;
    let entry = Entry::read(text).map_err(|error| {
        let message = match &error {
            ReadError::NotJson(source) => format!("not JSON: {source}"),
            ReadError::Foreign => "a JSON value without a string `type`; another program's?".to_owned(),
            ReadError::Malformed(source) => format!("malformed {source}"),
        };
        (error.code(), message)
    })?;
    Ok((text.into(), entry))
}

/// Folds a session file, with the files of its subagents beside it. A subagent's file
/// that cannot be opened becomes a fault of the conversation.
pub fn load(path: &Path) -> Result<Conversation, FileError> {
    let mut talk = load_alone(path)?;
    attach(&mut talk, find::subagents(path));
    Ok(talk)
}

fn attach(talk: &mut Conversation, subagents: Vec<find::SubagentFile>) {
    for subagent in subagents {
        match Entries::open(&subagent.path) {
            Ok(entries) => talk.attach(&subagent.agent_id, subagent.tool_use_id.as_ref(), fold(entries)),
            Err(error) => {
                let why = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
                talk.push_fault(Fault { line: 0, code: error.code(), message: format!("{error}{why}") });
            }
        }
    }
}

/// Folds one file, without the files beside it.
pub fn load_alone(path: &Path) -> Result<Conversation, FileError> {
    Ok(fold(Entries::open(path)?))
}

/// Folds any source, such as standard input.
pub fn load_reader(input: impl Read) -> Conversation {
    fold(Entries::new(input, "-"))
}

fn fold<R: Read>(entries: Entries<R>) -> Conversation {
    let mut talk = Conversation::default();
    for read in entries {
        match read {
            Ok(located) => talk.push(located.line, located.entry),
            // Oddities of the file as a whole hide nothing from the reader.
            Err(problem)
                if matches!(problem.code, "line.blank" | "file.bom" | "file.crlf" | "file.no_final_newline") => {}
            Err(Problem { code, line, message, .. }) => talk.push_fault(Fault { line, code, message }),
        }
    }
    talk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_file_that_cannot_be_opened_is_a_fault_and_not_the_end() {
        let line = r#"{"type":"user","uuid":"a","message":{"role":"user","content":"hi"}}"#;
        let mut talk = load_reader(line.as_bytes());
        let gone = find::SubagentFile {
            path: "/nonexistent/agent-a1.jsonl".into(),
            agent_id: "a1".into(),
            tool_use_id: None,
            parent_agent_id: None,
            agent_type: None,
            description: None,
        };
        attach(&mut talk, vec![gone]);
        let fault = &talk.faults()[0];
        assert_eq!((fault.line, fault.code), (0, "file.not_found"));
        let texts: Vec<_> = talk.for_ui().into_iter().filter_map(|item| item.text).collect();
        assert_eq!(texts[0], "hi");
        assert!(texts[1].starts_with("cannot open /nonexistent/agent-a1.jsonl: "), "{texts:?}");
    }
}
