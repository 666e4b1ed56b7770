//! Looking for what was said: what to look for, what was found, and the scan that
//! needs no index.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
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
use quipu_transcript::find::History;
use quipu_transcript::{FileError, Lines, Piece};
use serde::Serialize;

use crate::said::{Calls, Kind, Said, said};

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Words; all of them must be there, those in quotes one after the other.
    pub text: String,
    /// Only in these sessions.
    pub sessions: Option<HashSet<SessionKey>>,
    /// Only what these say.
    pub role: Option<Role>,
    /// Only calls and results of this tool.
    pub tool: Option<String>,
    /// From this moment on.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
    /// At most so many.
    pub limit: usize,
}

/// A session among all projects: the same id may be found in several of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// The name of the project's folder.
    pub project: String,
    /// The session's id.
    pub id: String,
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
            && self.until.is_none_or(|until| time.is_some_and(|time| time < until))
    }

    /// Whether a session is to be searched, given the name of its project's folder.
    pub fn wants_session(&self, project: &str, id: &str) -> bool {
        let key = || SessionKey { project: project.to_owned(), id: id.to_owned() };
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&key()))
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
pub(crate) fn line_at(path: &Path, offset: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    // Most lines fit: a larger buffer takes longer to fill than they to read.
    BufReader::with_capacity(8 << 10, file).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned())
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

/// A line of a session's files that may hold what is looked for.
#[derive(Debug, Clone)]
pub struct Place {
    /// Which of the session's files.
    file: usize,
    line: u64,
    offset: u64,
}

/// Looks for a pattern in the files of a session, without the index. Lines are only
/// looked at, not read, where that can be: [`hits_at`] says what they hold.
pub fn places(history: &History, pattern: &Pattern) -> (Vec<Place>, Vec<FileError>) {
    let (mut places, mut errors) = (Vec::new(), Vec::new());
    for (file, found) in history.files.iter().enumerate() {
        let mut lines = Matching { file, places: &mut places };
        let read = match &pattern.line {
            Some(line) => searcher().search_path(line, &found.path, &mut lines),
            None => lines.every(&found.path, &pattern.said),
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
    for Said { kind, tool, text, .. } in said(&view, &mut Calls::new()) {
        let found = found(&pattern.said, &text);
        if found.is_empty() {
            continue;
        }
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
                snippet: snippet(&text, &found),
                score: found.len() as f64,
                project: history.project.to_string(),
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
    fn every(&mut self, path: &Path, pattern: &RegexMatcher) -> io::Result<()> {
        let mut lines = Lines::new(File::open(path)?);
        while let Some(piece) = lines.next()? {
            let Piece::Line { number, offset, bytes, .. } = piece else { continue };
            let text = String::from_utf8_lossy(bytes);
            let text = mend(&text);
            let Ok(view) = View::read(&text) else { continue };
            let said = said(&view, &mut Calls::new());
            if said.iter().any(|said| pattern.is_match(said.text.as_bytes()).unwrap_or_default()) {
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
