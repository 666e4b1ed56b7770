//! Searching the files themselves, without the index.

use std::fs::File;
use std::io;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use memchr::memmem::Finder;
use quipu_conversation::moment;
use quipu_message::View;
use quipu_message::line::mend;
use quipu_transcript::find::History;
use quipu_transcript::{FileError, Lines, Piece};
use regex::{Regex, RegexBuilder};

use super::{Hit, PatternError, Query, agent_name, line_at, snippet};
use crate::said::{Calls, Kind, Reader, Said};
use crate::terms::{Mark, Terms};

/// What to look for in the files themselves.
#[derive(Debug)]
pub struct Pattern {
    text: TextPattern,
    /// Matches the bytes of every line that may hold it; `None` if any line may.
    line: Option<RegexMatcher>,
}

#[derive(Debug)]
enum TextPattern {
    Regex(Regex),
    Terms(Terms),
}

/// No more than this many matches are marked in one text.
const MAX_MARKS: usize = 64;

impl Pattern {
    /// This very text, with its case.
    pub fn exact(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let fail = |source| PatternError::Syntax { pattern: text.to_owned(), source };
        let said = RegexBuilder::new(&regex::escape(text)).size_limit(64 << 20).build().map_err(fail)?;
        Ok(Self { text: TextPattern::Regex(said), line: in_json(text, false) })
    }

    /// Whatever a regular expression matches in what was said. `^` and `$` match at the
    /// lines of a text.
    pub fn regex(pattern: &str) -> Result<Self, PatternError> {
        if pattern.is_empty() {
            return Err(PatternError::Empty);
        }
        let fail = |source| PatternError::Syntax { pattern: pattern.to_owned(), source };
        let said = RegexBuilder::new(pattern).multi_line(true).build().map_err(fail)?;
        Ok(Self { text: TextPattern::Regex(said), line: None })
    }

    /// What the index is asked for, found without it.
    pub fn terms(terms: Terms) -> Self {
        let line = terms.longest().and_then(|text| in_json(text, true));
        Self { text: TextPattern::Terms(terms), line }
    }

    /// Where it is in a text; `None` if it is not there.
    fn marks(&self, text: &str) -> Option<Vec<Mark>> {
        match &self.text {
            TextPattern::Terms(terms) => terms.marks(text),
            TextPattern::Regex(regex) => {
                let found = regex.find_iter(text).take(MAX_MARKS).map(|found| (0, found.range()));
                Some(found.collect::<Vec<_>>()).filter(|marks| !marks.is_empty())
            }
        }
    }
}

/// Matches a text as it may be written in JSON: characters as they are or escaped. Only its
/// longest piece without white space counts, which is enough to choose lines.
fn in_json(text: &str, any_case: bool) -> Option<RegexMatcher> {
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

/// A line of a session's files that may hold what is looked for.
#[derive(Debug, Clone)]
pub struct Place {
    /// Which of the session's files.
    file: usize,
    line: u64,
    offset: u64,
}

/// Looks for a pattern in the files of a session. Where it can be, lines are only looked
/// at, not parsed: [`hits_at`] says what they hold.
pub fn places(history: &History, pattern: &Pattern) -> (Vec<Place>, Vec<FileError>) {
    let (mut places, mut errors) = (Vec::new(), Vec::new());
    for (file, found) in history.files.iter().enumerate() {
        let mut lines = Matching { file, places: &mut places };
        let read = match &pattern.line {
            Some(line) => searcher().search_path(line, &found.path, &mut lines),
            None => lines.every(&found.path, pattern),
        };
        errors.extend(read.err().map(|source| FileError::Open { path: found.path.clone(), source }));
    }
    (places, errors)
}

/// What a place holds of what is looked for.
pub fn hits_at(history: &History, place: &Place, pattern: &Pattern, query: &Query) -> Vec<Hit> {
    let path = &history.files[place.file].path;
    let Ok(line) = line_at(path, place.offset) else { return Vec::new() };
    let line = mend(&line);
    let Ok(view) = View::read(&line) else { return Vec::new() };
    let time = view.timestamp.as_deref().and_then(moment);
    let mut hits = Vec::new();
    for Said { kind, tool, text, .. } in Reader::new(path, Calls::new()).said(&view, &line) {
        let Some(marks) = pattern.marks(&text) else { continue };
        let tool = tool.or_else(|| (kind == Kind::Result).then(|| called(path, &view)).flatten());
        if query.wants(kind, tool.as_deref(), time) {
            hits.push(Hit {
                session_id: history.id.to_string(),
                uuid: view.uuid.as_deref().map(str::to_owned),
                path: path.clone(),
                line: place.line,
                timestamp: view.timestamp.as_deref().map(str::to_owned),
                role: kind.role(),
                tool,
                snippet: snippet(&text, &marks),
                score: marks.len() as f64,
                project: history.project.to_string(),
                agent: agent_name(path),
                is_title: kind == Kind::Title,
            });
        }
    }
    hits
}

fn searcher() -> Searcher {
    SearcherBuilder::new().binary_detection(BinaryDetection::none()).line_number(true).build()
}

/// Gathers the lines that match.
struct Matching<'a> {
    file: usize,
    places: &'a mut Vec<Place>,
}

impl Matching<'_> {
    /// Reads every line: what is said may look quite different in its file.
    fn every(&mut self, path: &Path, pattern: &Pattern) -> io::Result<()> {
        let mut lines = Lines::new(File::open(path)?);
        let mut reader = Reader::new(path, Calls::new());
        while let Some(piece) = lines.next()? {
            let Piece::Line { number, offset, bytes, .. } = piece else { continue };
            let text = String::from_utf8_lossy(bytes);
            let text = mend(&text);
            let Ok(view) = View::read(&text) else { continue };
            if reader.said(&view, &text).iter().any(|said| pattern.marks(&said.text).is_some()) {
                self.places.push(Place { file: self.file, line: number, offset });
            }
        }
        Ok(())
    }
}

impl Sink for &mut Matching<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.line_number().unwrap_or_default();
        self.places.push(Place { file: self.file, line, offset: found.absolute_byte_offset() });
        Ok(true)
    }
}

/// The tool that a result answers: its call stands above it in the file.
fn called(path: &Path, view: &View<'_>) -> Option<String> {
    let content = view.message.as_ref()?.content.as_ref()?;
    let call = content.blocks().iter().find_map(|block| block.tool_use_id.as_deref())?;
    let mut lines = Lines::new(File::open(path).ok()?);
    let finder = Finder::new(call);
    while let Some(piece) = lines.next().ok()? {
        let Piece::Line { bytes, .. } = piece else { continue };
        if finder.find(bytes).is_none() {
            continue;
        }
        let text = String::from_utf8_lossy(bytes);
        let text = mend(&text);
        let Ok(view) = View::read(&text) else { continue };
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let mut blocks = content.into_iter().flat_map(|content| content.blocks());
        if let Some(block) = blocks.find(|block| block.id.as_deref() == Some(call)) {
            return block.name.as_deref().map(str::to_owned);
        }
    }
    None
}
