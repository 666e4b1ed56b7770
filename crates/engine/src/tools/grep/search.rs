//! Searches one file.

use std::io;
use std::path::Path;

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use quipu_message::Maybe;
use quipu_message::tool::{GrepInput, GrepMode};
use regex::bytes::Regex;

use crate::safe_file;

/// Maximum length of a line in the output.
const MAX_LINE_BYTES: usize = 500;
/// Maximum number of lines collected.
const MAX_LINES: usize = 100_000;

/// Maximum size of a line, and in a search across lines of a file, as for files that are read.
const MAX_SEARCHED_BYTES: usize = 64 << 20;

/// Matches in one file.
#[derive(Debug, Default)]
pub(super) struct FileMatches {
    /// Formatted lines.
    pub(super) lines: Vec<String>,
    /// Number of matching lines.
    pub(super) match_count: u64,
}

/// Searches files with one pattern and output format.
pub(super) struct FileSearcher {
    matcher: RegexMatcher,
    searcher: Searcher,
    format: LineFormat,
    kept_lines: usize,
}

/// Format of the lines in the output.
#[derive(Debug, Clone)]
struct LineFormat {
    shows_lines: bool,
    shows_names: bool,
    shows_numbers: bool,
    /// Pattern whose matches are shown instead of whole lines.
    only_matching: Option<Regex>,
}

impl FileSearcher {
    /// Creates a searcher for a call; with `names` each line starts with the file name.
    pub(super) fn new(matcher: RegexMatcher, request: &GrepInput, names: bool) -> Self {
        let lines = request.output_mode.get() == Some(&GrepMode::Content);
        let around = request.around.get().or(request.context.get()).copied().unwrap_or(0);
        let context = |asked: &Maybe<u64>| {
            let asked = asked.get().copied().unwrap_or(around);
            if lines { usize::try_from(asked).unwrap_or(usize::MAX).min(MAX_LINES) } else { 0 }
        };
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .multi_line(request.multiline.is_true())
            .heap_limit(Some(MAX_SEARCHED_BYTES))
            .before_context(context(&request.before))
            .after_context(context(&request.after))
            .build();
        let look = LineFormat {
            shows_lines: lines,
            shows_names: names,
            shows_numbers: request.line_numbers.get().copied().unwrap_or(true),
            only_matching: request.only_matching.is_true().then(|| only_matching_regex(request)).flatten(),
        };
        Self { matcher, searcher, format: look, kept_lines: 0 }
    }

    /// Whether the output mode shows lines.
    pub(super) fn shows_lines(&self) -> bool {
        self.format.shows_lines
    }

    /// Searches a file at its resolved path; `None` if nothing matches, or it cannot be read or is too large.
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

fn only_matching_regex(request: &GrepInput) -> Option<Regex> {
    let case = if request.ignore_case.is_true() { "i" } else { "" };
    let dots = if request.multiline.is_true() { "s" } else { "" };
    Regex::new(&format!("(?m{case}{dots}:{})", request.pattern)).ok()
}

/// Collects the lines of one file.
struct MatchSink<'a> {
    format: &'a LineFormat,
    file_name: &'a str,
    max_lines: usize,
    matches: FileMatches,
}

impl MatchSink<'_> {
    /// Adds a line with `mark` between its parts; returns `false` if the limit is reached.
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
            let mut hits = only.find_iter(found.bytes());
            return Ok(hits.all(|hit| self.push_line(found.line_number(), ':', hit.as_bytes())));
        }
        let first = found.line_number();
        let mut lines = found.lines().enumerate();
        Ok(lines.all(|(i, line)| self.push_line(first.map(|n| n + i as u64), ':', line)))
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.format.only_matching.is_some() || self.push_line(line.line_number(), '-', line.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.matches.lines.push("--".to_owned());
        Ok(true)
    }
}
