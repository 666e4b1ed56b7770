//! One file after the other.

use std::io;
use std::path::Path;

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use quipu_message::Maybe;
use quipu_message::tool::GrepInput;
use regex::bytes::Regex;

use crate::safe_file;

/// How much of a line is shown, in bytes.
const MAX_LINE_BYTES: usize = 500;
/// How many lines are kept at all.
const MAX_LINES: usize = 100_000;

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    /// The lines, as they are shown.
    pub(super) lines: Vec<String>,
    /// How many lines matched.
    pub(super) match_count: u64,
}

/// A search through files.
pub(super) struct FileSearcher {
    matcher: RegexMatcher,
    searcher: Searcher,
    format: LineFormat,
    kept_lines: usize,
}

/// How lines are shown.
#[derive(Debug, Clone)]
struct LineFormat {
    shows_lines: bool,
    shows_names: bool,
    shows_numbers: bool,
    /// What matched, when only that is shown.
    only_matching: Option<Regex>,
}

impl FileSearcher {
    /// A search as asked for; `names` puts the file before each line.
    pub(super) fn new(matcher: RegexMatcher, wanted: &GrepInput, names: bool) -> Self {
        let lines = wanted.output_mode.text() == Some("content");
        let around = wanted.around.get().or(wanted.context.get()).copied().unwrap_or(0);
        let context = |asked: &Maybe<u64>| {
            let asked = asked.get().copied().unwrap_or(around);
            if lines { usize::try_from(asked).unwrap_or(usize::MAX).min(MAX_LINES) } else { 0 }
        };
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .multi_line(wanted.multiline.is_true())
            .before_context(context(&wanted.before))
            .after_context(context(&wanted.after))
            .build();
        let look = LineFormat {
            shows_lines: lines,
            shows_names: names,
            shows_numbers: wanted.line_numbers.get().copied().unwrap_or(true),
            only_matching: wanted.only_matching.is_true().then(|| only_matching_regex(wanted)).flatten(),
        };
        Self { matcher, searcher, format: look, kept_lines: 0 }
    }

    /// Whether lines are what is asked for.
    pub(super) fn shows_lines(&self) -> bool {
        self.format.shows_lines
    }

    /// Searches a file at its resolved path; `None` if nothing matches or it cannot be read.
    pub(super) fn search_file(&mut self, path: &Path, name: &str) -> Option<FileMatches> {
        let room = MAX_LINES.checked_sub(self.kept_lines).filter(|room| *room > 0)?;
        let mut lines =
            MatchSink { format: &self.format, file_name: name, max_lines: room, matches: FileMatches::default() };
        let file = safe_file::open(path).ok()?;
        self.searcher.search_file(&self.matcher, &file, &mut lines).ok()?;
        self.kept_lines += lines.matches.lines.len();
        Some(lines.matches).filter(|found| found.match_count > 0)
    }
}

fn only_matching_regex(wanted: &GrepInput) -> Option<Regex> {
    let case = if wanted.ignore_case.is_true() { "i" } else { "" };
    let dots = if wanted.multiline.is_true() { "s" } else { "" };
    Regex::new(&format!("(?m{case}{dots}:{})", wanted.pattern)).ok()
}

/// Takes the lines of one file.
struct MatchSink<'a> {
    format: &'a LineFormat,
    file_name: &'a str,
    max_lines: usize,
    matches: FileMatches,
}

impl MatchSink<'_> {
    /// Adds a line, with `mark` between its parts; false when there is no more room.
    fn push_line(&mut self, number: Option<u64>, mark: char, line: &[u8]) -> bool {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let long = line.len() > MAX_LINE_BYTES;
        let text = String::from_utf8_lossy(if long { &line[..MAX_LINE_BYTES] } else { line });
        let name = if self.format.shows_names { format!("{}{mark}", self.file_name) } else { String::new() };
        let number = number.filter(|_| self.format.shows_numbers).map(|n| format!("{n}{mark}")).unwrap_or_default();
        let end = if long { " [cut]" } else { "" };
        self.matches.lines.push(format!("{name}{number}{text}{end}"));
        self.matches.lines.len() < self.max_lines
    }
}

impl Sink for MatchSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches.match_count += 1;
        if !self.format.shows_lines {
            return Ok(true);
        }
        let look = self.format;
        if let Some(only) = &look.only_matching {
            let mut room = true;
            for hit in only.find_iter(found.bytes()) {
                room &= self.push_line(found.line_number(), ':', hit.as_bytes());
            }
            return Ok(room);
        }
        let first = found.line_number();
        let mut room = true;
        for (i, line) in found.lines().enumerate() {
            room &= self.push_line(first.map(|n| n + i as u64), ':', line);
        }
        Ok(room)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.format.only_matching.is_some() || self.push_line(line.line_number(), '-', line.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.matches.lines.push("--".to_owned());
        Ok(true)
    }
}
