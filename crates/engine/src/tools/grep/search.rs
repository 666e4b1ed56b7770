//! One file after the other.

use std::io;
use std::path::Path;

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use quipu_message::Maybe;
use quipu_message::tool::GrepInput;
use regex::bytes::Regex;

use crate::tool::open;

/// How much of a line is shown, in bytes.
const LINE_LENGTH: usize = 500;
/// How many lines are kept at all.
const MOST_LINES: usize = 100_000;

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The lines, as they are shown.
    pub(super) lines: Vec<String>,
    /// How many lines matched.
    pub(super) matches: u64,
}

/// A search through files.
pub(super) struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    look: Look,
    kept: usize,
}

/// How lines are shown.
#[derive(Debug, Clone)]
struct Look {
    lines: bool,
    names: bool,
    numbers: bool,
    /// What matched, when only that is shown.
    only: Option<Regex>,
}

impl Search {
    /// A search as asked for; `names` puts the file before each line.
    pub(super) fn new(matcher: RegexMatcher, wanted: &GrepInput, names: bool) -> Self {
        let lines = wanted.output_mode.text() == Some("content");
        let around = wanted.around.get().or(wanted.context.get()).copied().unwrap_or(0);
        let context = |asked: &Maybe<u64>| {
            let asked = asked.get().copied().unwrap_or(around);
            if lines { usize::try_from(asked).unwrap_or(usize::MAX).min(MOST_LINES) } else { 0 }
        };
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .multi_line(wanted.multiline.is_true())
            .before_context(context(&wanted.before))
            .after_context(context(&wanted.after))
            .build();
        let look = Look {
            lines,
            names,
            numbers: wanted.line_numbers.get().copied().unwrap_or(true),
            only: wanted.only_matching.is_true().then(|| only(wanted)).flatten(),
        };
        Self { matcher, searcher, look, kept: 0 }
    }

    /// Whether lines are what is asked for.
    pub(super) fn shows_lines(&self) -> bool {
        self.look.lines
    }

    /// Searches a file at its resolved path; `None` if nothing matches or it cannot be read.
    pub(super) fn file(&mut self, path: &Path, name: &str) -> Option<Found> {
        let room = MOST_LINES.checked_sub(self.kept).filter(|room| *room > 0)?;
        let mut lines = Lines { look: &self.look, name, room, found: Found::default() };
        let file = open::open(path).ok()?;
        self.searcher.search_file(&self.matcher, &file, &mut lines).ok()?;
        self.kept += lines.found.lines.len();
        Some(lines.found).filter(|found| found.matches > 0)
    }
}

fn only(wanted: &GrepInput) -> Option<Regex> {
    let case = if wanted.ignore_case.is_true() { "i" } else { "" };
    let dots = if wanted.multiline.is_true() { "s" } else { "" };
    Regex::new(&format!("(?m{case}{dots}:{})", wanted.pattern)).ok()
}

/// Takes the lines of one file.
struct Lines<'a> {
    look: &'a Look,
    name: &'a str,
    room: usize,
    found: Found,
}

impl Lines<'_> {
    /// Adds a line, with `mark` between its parts; false when there is no more room.
    fn push(&mut self, number: Option<u64>, mark: char, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let long = line.len() > LINE_LENGTH;
        let text = String::from_utf8_lossy(if long { &line[..LINE_LENGTH] } else { line });
        let name = if self.look.names { format!("{}{mark}", self.name) } else { String::new() };
        let number = number.filter(|_| self.look.numbers).map(|n| format!("{n}{mark}")).unwrap_or_default();
        let end = if long { " [cut]" } else { "" };
        self.found.lines.push(format!("{name}{number}{text}{end}"));
        self.found.lines.len() < self.room
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.found.matches += 1;
        if !self.look.lines {
            return Ok(true);
        }
        let look = self.look;
        if let Some(only) = &look.only {
            let mut room = true;
            for hit in only.find_iter(found.bytes()) {
                room &= self.push(found.line_number(), ':', hit.as_bytes());
            }
            return Ok(room);
        }
        let first = found.line_number();
        let mut room = true;
        for (i, line) in found.lines().enumerate() {
            room &= self.push(first.map(|n| n + i as u64), ':', line);
        }
        Ok(room)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.look.only.is_some() || self.push(line.line_number(), '-', line.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.found.lines.push("--".to_owned());
        Ok(true)
    }
}
