//! Looking for what was said: what to look for, what was found, and the scan that
//! needs no index.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use jiff::Timestamp;
use memchr::memmem::Finder;
use quipu_conversation::moment;
use quipu_message::View;
use quipu_message::line::mend;
use quipu_message::view::CALL;
use quipu_transcript::find::History;
use quipu_transcript::{FileError, Lines, Piece};
use serde::Serialize;

use crate::said::{Calls, Kind, Said, said};

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Words; all of them must be there, those in quotes one after the other.
    pub text: String,
    /// Only in projects whose folder contains this.
    pub project: Option<String>,
    /// Only what these say.
    pub role: Option<Role>,
    /// Only calls and results of this tool.
    pub tool: Option<String>,
    /// From this moment on.
    pub since: Option<Timestamp>,
    /// At most so many.
    pub limit: usize,
}

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model: its answers, its thinking and its calls of tools.
    Assistant,
    /// The model's thinking alone.
    Thinking,
    /// Tools: what they are called with and what they give back.
    Tool,
}

impl Role {
    pub(crate) fn holds(self, kind: Kind) -> bool {
        match self {
            Self::User => kind == Kind::Prompt,
            Self::Assistant => matches!(kind, Kind::Answer | Kind::Thinking | Kind::Call),
            Self::Thinking => kind == Kind::Thinking,
            Self::Tool => matches!(kind, Kind::Call | Kind::Result),
        }
    }
}

impl Query {
    pub(crate) fn wants(&self, kind: Kind, tool: Option<&str>, time: Option<Timestamp>) -> bool {
        self.role.is_none_or(|role| role.holds(kind))
            && self.tool.as_deref().is_none_or(|wanted| tool.is_some_and(|tool| tool.eq_ignore_ascii_case(wanted)))
            && self.since.is_none_or(|since| time.is_some_and(|time| time >= since))
    }

    pub(crate) fn wants_project(&self, project: &str) -> bool {
        self.project.as_ref().is_none_or(|part| project.to_lowercase().contains(&part.to_lowercase()))
    }
}

/// Something that was found. The shape of `quipu search --json`.
#[derive(Debug, Clone, Serialize)]
pub struct Hit {
    /// The session.
    pub session_id: String,
    /// The line's id.
    pub uuid: Option<String>,
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: u64,
    /// When it was said.
    pub timestamp: Option<String>,
    /// `user`, `assistant` or `tool`.
    pub role: &'static str,
    /// The tool called or answering.
    pub tool: Option<String>,
    /// Some of what was said, with what was looked for in «».
    pub snippet: String,
    /// How well it fits; more is better.
    pub score: f64,
    /// The name of the project's folder.
    pub project: String,
}

/// The line of a file that begins at an offset.
pub(crate) fn line_at(path: &Path, offset: u64) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(match Lines::new(file).next()? {
        Some(Piece::Line { bytes, .. }) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    })
}

/// About so many characters before and after a hit are shown.
const AROUND: usize = 70;

/// The surroundings of the first hit, on one line, with the hits marked.
pub(crate) fn snippet(text: &str, hits: &[Range<usize>]) -> String {
    let first = hits.first().cloned().unwrap_or(0..0);
    let from = text[..first.start].char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let to = text[first.end..].char_indices().nth(AROUND).map_or(text.len(), |(at, _)| first.end + at);
    let mut out = String::new();
    if from > 0 {
        out.push('…');
    }
    let mut at = from;
    for hit in hits.iter().filter(|hit| hit.start >= from && hit.end <= to) {
        if hit.start >= at {
            out.push_str(&text[at..hit.start]);
            out.extend(["«", &text[hit.clone()], "»"]);
            at = hit.end;
        }
    }
    out.push_str(&text[at..to]);
    if to < text.len() {
        out.push('…');
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Finds some words in a text, whatever their case.
pub(crate) fn marker(words: &[String]) -> Option<RegexMatcher> {
    let escaped: Vec<String> = words.iter().map(|word| literal(word)).collect();
    RegexMatcherBuilder::new().case_insensitive(true).build(&escaped.join("|")).ok()
}

/// Where a pattern matches, the first few places.
pub(crate) fn found(matcher: &RegexMatcher, text: &str) -> Vec<Range<usize>> {
    let mut hits = Vec::new();
    let every = matcher.find_iter(text.as_bytes(), |hit| {
        hits.push(hit.start()..hit.end());
        hits.len() < 64
    });
    debug_assert!(every.is_ok(), "the matcher cannot fail");
    hits
}

/// A text as a pattern that matches it alone.
fn literal(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// What to look for in the files themselves.
#[derive(Debug)]
pub struct Pattern {
    /// Matches what was said.
    said: RegexMatcher,
    /// Matches the bytes of every line worth reading; none when any may be.
    line: Option<RegexMatcher>,
}

/// Why a pattern cannot be looked for.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the pattern {pattern}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    #[source]
    pub source: grep_regex::Error,
}

impl Pattern {
    /// This very text.
    pub fn exact(text: &str) -> Result<Self, PatternError> {
        let fail = |source| PatternError { pattern: text.to_owned(), source };
        // As it stands in JSON: escaped, and what is not ASCII perhaps as numbers.
        let escaped = serde_json::Value::from(text).to_string();
        let raw = &escaped[1..escaped.len() - 1];
        let mut spellings = vec![literal(raw)];
        if !raw.is_ascii() {
            spellings.push(literal(&numbered(raw)));
        }
        Ok(Self {
            said: RegexMatcher::new(&literal(text)).map_err(fail)?,
            line: Some(RegexMatcher::new_line_matcher(&spellings.join("|")).map_err(fail)?),
        })
    }

    /// Whatever a regular expression matches in what was said. `^` and `$` match at
    /// the lines of a text.
    pub fn regex(pattern: &str) -> Result<Self, PatternError> {
        let fail = |source| PatternError { pattern: pattern.to_owned(), source };
        let said = RegexMatcherBuilder::new().multi_line(true).build(pattern).map_err(fail)?;
        Ok(Self { said, line: None })
    }
}

/// Characters that are not ASCII as JSON may spell them.
fn numbered(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

/// Looks for a pattern in the files of a session, without the index: how often it is
/// there, and the latest places.
pub fn scan_for(history: &History, pattern: &Pattern, query: &Query) -> (usize, Vec<Hit>, Vec<FileError>) {
    let (mut count, mut hits, mut errors) = (0, Vec::new(), Vec::new());
    if !query.wants_project(&history.project) {
        return (count, hits, errors);
    }
    for file in &history.files {
        let mut scan = Scan {
            path: &file.path,
            pattern,
            query,
            count: 0,
            latest: VecDeque::new(),
            calls: Calls::new(),
            all_calls: None,
        };
        let read = match &pattern.line {
            Some(line) => searcher().search_path(line, &file.path, &mut scan),
            None => scan.every_line(),
        };
        errors.extend(read.err().map(|source| FileError::Open { path: file.path.clone(), source }));
        count += scan.count;
        let places = std::mem::take(&mut scan.latest);
        hits.extend(places.into_iter().filter_map(|place| scan.hit(place, history)));
    }
    (count, hits, errors)
}

fn searcher() -> Searcher {
    SearcherBuilder::new().binary_detection(BinaryDetection::none()).line_number(true).build()
}

struct Scan<'a> {
    path: &'a Path,
    pattern: &'a Pattern,
    query: &'a Query,
    count: usize,
    /// The latest places, as many as are wanted.
    latest: VecDeque<Place>,
    calls: Calls,
    /// Every call of the file, once one was not among the lines that were read.
    all_calls: Option<Calls>,
}

/// Where something was found.
struct Place {
    line: u64,
    offset: u64,
    block: usize,
}

impl Scan<'_> {
    fn every_line(&mut self) -> io::Result<()> {
        let mut lines = Lines::new(File::open(self.path)?);
        while let Some(piece) = lines.next()? {
            if let Piece::Line { number, offset, bytes, .. } = piece {
                self.line(number, offset, bytes);
            }
        }
        Ok(())
    }

    fn line(&mut self, line: u64, offset: u64, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = mend(&text);
        let Ok(view) = View::read(&text) else { return };
        let time = view.timestamp.as_deref().and_then(moment);
        for Said { block, kind, tool, text } in said(&view, &mut self.calls) {
            if !self.pattern.said.is_match(text.as_bytes()).unwrap_or_default() {
                continue;
            }
            let asks_for_tool = self.query.tool.is_some() && kind == Kind::Result;
            let tool = tool.or_else(|| asks_for_tool.then(|| self.asked(&view)).flatten());
            if self.query.wants(kind, tool.as_deref(), time) {
                self.count += 1;
                self.latest.push_back(Place { line, offset, block });
                if self.latest.len() > self.query.limit {
                    self.latest.pop_front();
                }
            }
        }
    }

    /// Reads a place again to show it.
    fn hit(&mut self, place: Place, history: &History) -> Option<Hit> {
        let line = line_at(self.path, place.offset).ok()??;
        let line = mend(&line);
        let view = View::read(&line).ok()?;
        let Said { kind, tool, text, .. } =
            said(&view, &mut Calls::new()).into_iter().find(|said| said.block == place.block)?;
        let found = found(&self.pattern.said, &text);
        Some(Hit {
            session_id: history.id.to_string(),
            uuid: view.uuid.as_deref().map(str::to_owned),
            path: self.path.to_owned(),
            line: place.line,
            timestamp: view.timestamp.as_deref().map(str::to_owned),
            role: kind.role(),
            tool: tool.or_else(|| (kind == Kind::Result).then(|| self.asked(&view)).flatten()),
            snippet: snippet(&text, &found),
            score: found.len() as f64,
            project: history.project.to_string(),
        })
    }

    /// The tool of a result whose call was not among the lines that were read.
    fn asked(&mut self, view: &View<'_>) -> Option<String> {
        let content = view.message.as_ref()?.content.as_ref()?;
        let call = content.blocks().iter().find_map(|block| block.tool_use_id.as_deref())?;
        let path = self.path;
        self.all_calls.get_or_insert_with(|| calls_in(path).unwrap_or_default()).get(call).cloned()
    }
}

/// Every call of a tool in a file.
fn calls_in(path: &Path) -> io::Result<Calls> {
    let mut calls = Calls::new();
    let mut lines = Lines::new(File::open(path)?);
    let asks = Finder::new(CALL);
    while let Some(piece) = lines.next()? {
        let Piece::Line { bytes, .. } = piece else { continue };
        if asks.find(bytes).is_none() {
            continue;
        }
        let text = String::from_utf8_lossy(bytes);
        if let Ok(view) = View::read(&mend(&text)) {
            let content = view.message.as_ref().and_then(|message| message.content.as_ref());
            let blocks = content.into_iter().flat_map(|content| content.blocks());
            calls.extend(blocks.filter_map(|block| Some((block.id.as_deref()?.into(), block.name.as_deref()?.into()))));
        }
    }
    Ok(calls)
}

impl Sink for &mut Scan<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let bytes = found.bytes();
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        self.line(found.line_number().unwrap_or_default(), found.absolute_byte_offset(), line);
        Ok(true)
    }
}
