//! Searches the files without the index.

use std::fs::File;
use std::io;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use memchr::memmem::Finder;
use quipu_conversation::parse_timestamp;
use quipu_message::View;
use quipu_message::line::readable_text;
use quipu_transcript::find::SessionFiles;
use quipu_transcript::{FileError, LineReader, RawLine};
use regex::{Regex, RegexBuilder};

use super::{Hit, Query, agent_name, read_line_at, snippet};
use crate::line_text::{LineText, TextExtractor, TextKind, ToolNameByCall};
use crate::terms::{PatternError, SearchTerms, TermMatch};

/// A pattern to search files for.
#[derive(Debug)]
pub struct Pattern {
    text_pattern: TextPattern,
    /// Matches the bytes of lines that may match; `None` if every line must be parsed.
    line_matcher: Option<RegexMatcher>,
}

#[derive(Debug)]
enum TextPattern {
    Regex(Regex),
    Terms(SearchTerms),
}

/// Largest number of matches marked in one text.
const MAX_MATCHES_PER_TEXT: usize = 64;

impl Pattern {
    /// Matches exactly this text, with its case.
    pub fn exact(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let fail = |source| PatternError::Syntax { pattern: text.to_owned(), source };
        let said = RegexBuilder::new(&regex::escape(text)).size_limit(64 << 20).build().map_err(fail)?;
        Ok(Self { text_pattern: TextPattern::Regex(said), line_matcher: json_line_matcher(text, false) })
    }

    /// Matches a regular expression in the texts of lines. `^` and `$` match at line breaks of
    /// a text.
    pub fn regex(pattern: &str) -> Result<Self, PatternError> {
        if pattern.is_empty() {
            return Err(PatternError::Empty);
        }
        let fail = |source| PatternError::Syntax { pattern: pattern.to_owned(), source };
        let said = RegexBuilder::new(pattern).multi_line(true).build().map_err(fail)?;
        Ok(Self { text_pattern: TextPattern::Regex(said), line_matcher: None })
    }

    /// Matches the same texts as a search of the index.
    pub fn from_terms(terms: SearchTerms) -> Self {
        let line = terms.longest_required_text().and_then(|text| json_line_matcher(text, true));
        Self { text_pattern: TextPattern::Terms(terms), line_matcher: line }
    }

    /// Matches in a text; `None` if there are none.
    fn find_matches(&self, text: &str) -> Option<Vec<TermMatch>> {
        match &self.text_pattern {
            TextPattern::Terms(terms) => terms.find_matches(text),
            TextPattern::Regex(regex) => {
                let found = regex.find_iter(text).take(MAX_MATCHES_PER_TEXT).map(|found| (0, found.range()));
                Some(found.collect::<Vec<_>>()).filter(|marks| !marks.is_empty())
            }
        }
    }
}

/// Matches a text as JSON may write it, plain or escaped. Uses only its longest part without
/// white space, which is enough to select lines.
fn json_line_matcher(text: &str, any_case: bool) -> Option<RegexMatcher> {
    const MAX_CHARS: usize = 64;
    let mut pattern = String::new();
    let longest = text.split_whitespace().max_by_key(|piece| piece.len())?;
    for c in longest.chars().take(MAX_CHARS) {
        if c.is_ascii_alphanumeric() {
            pattern.push(c);
            continue;
        }
        let plain = regex::escape(c.encode_utf8(&mut [0; 4]));
        let units: String = c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!(r"\\u(?i:{unit:04x})")).collect();
        pattern.push_str(&match c {
            '"' | '\\' => format!(r"(?:\\{plain}|{units})"),
            '/' => format!(r"(?:\\?/|{units})"),
            _ => format!("(?:{plain}|{units})"),
        });
    }
    RegexMatcherBuilder::new().case_insensitive(any_case).line_terminator(Some(b'\n')).build(&pattern).ok()
}

/// A line of a session that may match.
#[derive(Debug, Clone)]
pub struct MatchingLine {
    /// Index of the file in the session.
    file_index: usize,
    line: u64,
    offset: u64,
}

/// Finds lines of a session that may match, without parsing them if possible; also returns the
/// files that could not be read. [`hits_in_line`] then tests each line.
pub fn matching_lines(history: &SessionFiles, pattern: &Pattern) -> (Vec<MatchingLine>, Vec<FileError>) {
    let (mut places, mut errors) = (Vec::new(), Vec::new());
    for (file, found) in history.files.iter().enumerate() {
        let mut lines = MatchCollector { file, places: &mut places };
        let read = match &pattern.line_matcher {
            Some(line) => new_searcher().search_path(line, &found.path, &mut lines),
            None => lines.scan_all_lines(&found.path, pattern),
        };
        errors.extend(read.err().map(|source| FileError::Open { path: found.path.clone(), source }));
    }
    (places, errors)
}

/// The hits in a line; empty if it does not match.
pub fn hits_in_line(history: &SessionFiles, place: &MatchingLine, pattern: &Pattern, query: &Query) -> Vec<Hit> {
    let path = &history.files[place.file_index].path;
    let Ok(line) = read_line_at(path, place.offset) else { return Vec::new() };
    let Ok(view) = View::read(&line) else { return Vec::new() };
    let time = view.timestamp.as_deref().and_then(parse_timestamp);
    let mut hits = Vec::new();
    for LineText { kind, tool, text, .. } in TextExtractor::new(path, ToolNameByCall::new()).line_texts(&view, &line) {
        let Some(marks) = pattern.find_matches(&text) else { continue };
        let tool = tool.or_else(|| (kind == TextKind::ToolResult).then(|| tool_name_for_result(path, &view)).flatten());
        if query.matches(kind, tool.as_deref(), time) {
            hits.push(Hit {
                session_id: history.id.to_string(),
                uuid: view.uuid.as_deref().map(str::to_owned),
                path: path.clone(),
                line: place.line,
                timestamp: view.timestamp.as_deref().map(str::to_owned),
                role: kind.role_name(),
                tool,
                snippet: snippet(&text, &marks),
                score: marks.len() as f64,
                project: history.project.to_string(),
                agent: agent_name(path),
                is_title: kind == TextKind::Title,
            });
        }
    }
    hits
}

fn new_searcher() -> Searcher {
    SearcherBuilder::new().binary_detection(BinaryDetection::none()).line_number(true).build()
}

/// Collects matching lines.
struct MatchCollector<'a> {
    file: usize,
    places: &'a mut Vec<MatchingLine>,
}

impl MatchCollector<'_> {
    /// Parses every line, because JSON may write a text in many ways.
    fn scan_all_lines(&mut self, path: &Path, pattern: &Pattern) -> io::Result<()> {
        let mut lines = LineReader::new(File::open(path)?);
        let mut reader = TextExtractor::new(path, ToolNameByCall::new());
        while let Some(piece) = lines.next()? {
            let RawLine::Line { number, offset, bytes, .. } = piece else { continue };
            let text = readable_text(bytes);
            let Ok(view) = View::read(&text) else { continue };
            if reader.line_texts(&view, &text).iter().any(|said| pattern.find_matches(&said.text).is_some()) {
                self.places.push(MatchingLine { file_index: self.file, line: number, offset });
            }
        }
        Ok(())
    }
}

impl Sink for &mut MatchCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.line_number().unwrap_or_default();
        self.places.push(MatchingLine { file_index: self.file, line, offset: found.absolute_byte_offset() });
        Ok(true)
    }
}

/// Name of the tool that a result belongs to, from its call earlier in the file.
fn tool_name_for_result(path: &Path, view: &View<'_>) -> Option<String> {
    let content = view.message.as_ref()?.content.as_ref()?;
    let call = content.blocks().iter().find_map(|block| block.tool_use_id.as_deref())?;
    let mut lines = LineReader::new(File::open(path).ok()?);
    let finder = Finder::new(call);
    while let Some(piece) = lines.next().ok()? {
        let RawLine::Line { bytes, .. } = piece else { continue };
        if finder.find(bytes).is_none() {
            continue;
        }
        let text = readable_text(bytes);
        let Ok(view) = View::read(&text) else { continue };
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let mut blocks = content.into_iter().flat_map(|content| content.blocks());
        if let Some(block) = blocks.find(|block| block.id.as_deref() == Some(call)) {
            return block.name.as_deref().map(str::to_owned);
        }
    }
    None
}
