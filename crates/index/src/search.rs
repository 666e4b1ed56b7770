//! Searching what was said: what to look for, and what was found.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::line_text::TextKind;
use crate::terms::TermMatch;

mod file_search;

pub use file_search::{MatchingLine, Pattern, hits_in_line, matching_lines};

/// Where to look, and how much to return.
#[derive(Debug, Clone)]
pub struct Query {
    /// Only in these sessions; `None` is all.
    pub sessions: Option<HashSet<SessionKey>>,
    /// Only what these say.
    pub role: Option<SearchRole>,
    /// Only calls and results of this tool, in any case.
    pub tool: Option<String>,
    /// Only messages from this time on.
    pub since: Option<Timestamp>,
    /// Only messages before this time.
    pub until: Option<Timestamp>,
    /// At most this many hits.
    pub limit: usize,
    /// At most this many of them in one session.
    pub limit_per_session: usize,
}

impl Default for Query {
    fn default() -> Self {
        let (sessions, role, tool, since, until) = (None, None, None, None, None);
        Self { sessions, role, tool, since, until, limit: usize::MAX, limit_per_session: usize::MAX }
    }
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
pub enum SearchRole {
    /// The user: what was typed, also while the agent worked.
    User,
    /// The model: its answers, its thinking and its tool calls.
    Assistant,
    /// The model's thinking alone.
    Thinking,
    /// Tools: their calls and their results.
    Tool,
    /// The program: notices, hooks, summaries, titles, texts for the model alone.
    System,
}

impl SearchRole {
    pub(crate) fn includes(self, kind: TextKind) -> bool {
        match self {
            Self::User => kind == TextKind::Prompt,
            Self::Assistant => matches!(kind, TextKind::Response | TextKind::Thinking | TextKind::ToolCall),
            Self::Thinking => kind == TextKind::Thinking,
            Self::Tool => matches!(kind, TextKind::ToolCall | TextKind::ToolResult),
            Self::System => matches!(kind, TextKind::Notice | TextKind::Title),
        }
    }
}

impl Query {
    pub(crate) fn matches(&self, kind: TextKind, tool: Option<&str>, time: Option<Timestamp>) -> bool {
        self.role.is_none_or(|role| role.includes(kind))
            && self.tool.as_deref().is_none_or(|wanted| tool.is_some_and(|tool| tool.eq_ignore_ascii_case(wanted)))
            && self.since.is_none_or(|since| time.is_some_and(|time| time >= since))
            && self.until.is_none_or(|until| time.is_some_and(|time| time < until))
    }

    /// Whether a session is to be searched, given the name of its project's folder.
    pub fn includes_session(&self, project: &str, id: &str) -> bool {
        let key = || SessionKey { project: project.to_owned(), id: id.to_owned() };
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&key()))
    }

    /// Whether anything narrows the search.
    pub(crate) fn is_filtered(&self) -> bool {
        self.sessions.is_some()
            || self.role.is_some()
            || self.tool.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }
}

/// What a search found.
#[derive(Debug, Default)]
pub struct SearchHits {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// Sessions with more hits than [`Query::limit_per_session`] allows.
    pub capped_sessions: HashSet<SessionKey>,
    /// Whether there may be more hits that were not looked at, because too many candidates
    /// of the index do not have the signs that were asked for.
    pub is_incomplete: bool,
}

/// A place where a text was found. The shape of `quipu search --json`.
#[derive(Debug, Clone, Serialize)]
pub struct Hit {
    /// The session.
    pub session_id: String,
    /// UUID of the entry; `None` if it has none.
    pub uuid: Option<String>,
    /// The file.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The number of the line in that file, from 1.
    pub line: u64,
    /// When it was said, as written in the file.
    pub timestamp: Option<String>,
    /// `user`, `assistant`, `tool` or `system`.
    pub role: &'static str,
    /// The tool that is called or that returned it.
    pub tool: Option<String>,
    /// The text around the first match, on one line, with the matches in «».
    pub snippet: String,
    /// How well it matches; higher is better.
    pub score: f64,
    /// The name of the project's folder.
    pub project: String,
    /// The name that `quipu show` opens the file by, if it is a subagent's: `agent-ID`.
    pub agent: Option<String>,
    /// Whether it is a title of the session, which is no part of the conversation.
    #[serde(skip)]
    pub is_title: bool,
}

impl Hit {
    /// The session that it is in.
    pub fn session(&self) -> SessionKey {
        SessionKey { project: self.project.clone(), id: self.session_id.clone() }
    }

    /// What hits share that need to be shown only once: those on copies of an entry in
    /// forks, and on a title, which is written to a file again and again.
    pub fn dedup_key(&self) -> (String, &str) {
        let entry = match &self.uuid {
            Some(uuid) => uuid.clone(),
            None if self.is_title => self.session_id.clone(),
            None => format!("{}:{}", self.path.display(), self.line),
        };
        (entry, &self.snippet)
    }
}

/// JSON has no way to write a path that is not Unicode.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// The name of a subagent's file; `None` for a session's own.
pub(crate) fn agent_name(path: &Path) -> Option<String> {
    path.file_stem()?.to_str().filter(|name| name.starts_with("agent-")).map(str::to_owned)
}

/// The line of a file that begins at an offset.
pub(crate) fn read_line_at(path: &Path, offset: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    // Most lines fit: a larger buffer takes longer to fill than they to read.
    BufReader::with_capacity(8 << 10, file).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned())
}

/// About this many characters before and after a match are shown.
const SNIPPET_CONTEXT_CHARS: usize = 70;

/// A piece of a text that holds as many different terms as possible, on one line, with the
/// matches marked.
pub(crate) fn snippet(text: &str, marks: &[TermMatch]) -> String {
    let around = |found: &Range<usize>| {
        let from = text[..found.start].char_indices().rev().nth(SNIPPET_CONTEXT_CHARS - 1).map_or(0, |(at, _)| at);
        let to =
            text[found.end..].char_indices().nth(SNIPPET_CONTEXT_CHARS).map_or(text.len(), |(at, _)| found.end + at);
        from..to
    };
    let is_inside =
        |found: &Range<usize>, window: &Range<usize>| found.start >= window.start && found.end <= window.end;
    let terms = |window: &Range<usize>| {
        let inside = marks.iter().filter(|(_, found)| is_inside(found, window));
        inside.map(|(term, _)| *term).collect::<HashSet<_>>().len()
    };
    // The first of the best: `max_by_key` takes the last.
    let windows = marks.iter().map(|(_, found)| around(found));
    let window = windows.rev().max_by_key(|window| terms(window)).unwrap_or_else(|| around(&(0..0)));
    let mut out = String::new();
    if window.start > 0 {
        out.push('…');
    }
    let mut at = window.start;
    for (_, found) in marks.iter().filter(|(_, found)| is_inside(found, &window)) {
        if found.start >= at {
            out.push_str(&text[at..found.start]);
            out.extend(["«", &text[found.clone()], "»"]);
            at = found.end;
        }
    }
    out.push_str(&text[at..window.end]);
    if window.end < text.len() {
        out.push('…');
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}
