//! Search queries and hits.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use quipu_message::line::readable_text;
use serde::{Serialize, Serializer};

use crate::line_text::TextKind;
use crate::terms::TermMatch;

mod file_hits;
mod file_search;

pub use file_hits::FileHits;
pub use file_search::{MatchingLine, Pattern, hits_in_line, matching_lines};

/// Filters and limits of a search.
#[derive(Debug, Clone)]
pub struct Query {
    /// Only these sessions; `None` for all.
    pub sessions: Option<HashSet<SessionKey>>,
    /// Only texts of this role.
    pub role: Option<SearchRole>,
    /// Only calls and results of this tool; the case of letters is ignored.
    pub tool: Option<String>,
    /// Only messages at or after this time.
    pub since: Option<Timestamp>,
    /// Only messages before this time.
    pub until: Option<Timestamp>,
    /// Largest number of hits.
    pub limit: usize,
    /// Largest number of hits in one session.
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
    /// Name of the project folder.
    pub project: String,
    /// Id of the session.
    pub id: String,
}

/// Whose texts to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchRole {
    /// The user: everything typed, including prompts queued while the agent worked.
    User,
    /// The model: responses, thinking and tool calls.
    Assistant,
    /// Thinking of the model only.
    Thinking,
    /// Tool calls and tool results.
    Tool,
    /// The program: notices, hooks, summaries, titles and texts for the model only.
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

    /// Whether the filters include a session; `project` is the name of its project folder.
    pub fn includes_session(&self, project: &str, id: &str) -> bool {
        let key = || SessionKey { project: project.to_owned(), id: id.to_owned() };
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&key()))
    }

    /// Whether any filter is set.
    pub(crate) fn is_filtered(&self) -> bool {
        self.sessions.is_some()
            || self.role.is_some()
            || self.tool.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }
}

/// Result of a search.
#[derive(Debug, Default)]
pub struct SearchHits {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// Sessions with more hits than [`Query::limit_per_session`] allows.
    pub capped_sessions: HashSet<SessionKey>,
    /// Whether there may be more hits: too many candidates lacked the punctuation of the query
    /// to test them all.
    pub is_incomplete: bool,
}

/// A text that matches, in the shape of `quipu search --json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Hit {
    /// Id of the session.
    pub session_id: String,
    /// UUID of the entry; `None` if it has none.
    pub uuid: Option<String>,
    /// Path of the file.
    #[serde(serialize_with = "lossy")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Line number in that file, counted from 1.
    pub line: u64,
    /// Timestamp of the entry, as written.
    pub timestamp: Option<String>,
    /// `user`, `assistant`, `tool` or `system`.
    pub role: &'static str,
    /// Name of the tool, for tool calls and results.
    pub tool: Option<String>,
    /// The text around the first match, on one line, with the matches in «».
    pub snippet: String,
    /// Score; higher is better.
    pub score: f64,
    /// Name of the project folder.
    pub project: String,
    /// Name of a subagent file for `quipu show`, such as `agent-ID`; `None` for session files.
    pub agent: Option<String>,
    /// Whether it is a title of the session rather than part of the conversation.
    #[serde(skip)]
    pub is_title: bool,
}

impl Hit {
    /// Key of its session.
    pub fn session(&self) -> SessionKey {
        SessionKey { project: self.project.clone(), id: self.session_id.clone() }
    }

    /// Hits with the same key are shown once: copies of an entry in forks, and titles, which
    /// are written repeatedly.
    pub fn dedup_key(&self) -> (String, &str) {
        let entry = match &self.uuid {
            Some(uuid) => uuid.clone(),
            None if self.is_title => self.session_id.clone(),
            None => format!("{}:{}", self.path.display(), self.line),
        };
        (entry, &self.snippet)
    }
}

/// Serialises a path; characters that are not Unicode are replaced.
pub(crate) fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Name of a subagent file; `None` for a session file.
pub(crate) fn agent_name(path: &Path) -> Option<String> {
    path.file_stem()?.to_str().filter(|name| name.starts_with("agent-")).map(str::to_owned)
}

/// Reads the line of a file that starts at an offset, as readable text.
pub(crate) fn read_line_at(path: &Path, offset: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut line = Vec::new();
    // Most lines fit into this buffer; a larger one takes longer to fill.
    BufReader::with_capacity(8 << 10, file).read_until(b'\n', &mut line)?;
    Ok(readable_text(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned())
}

/// Number of characters shown before and after a match.
const SNIPPET_CONTEXT_CHARS: usize = 70;

/// The part of a text with the most different terms, on one line, with the matches in «».
pub(crate) fn snippet(text: &str, matches: &[TermMatch]) -> String {
    let around = |found: &Range<usize>| {
        let from = text[..found.start].char_indices().rev().nth(SNIPPET_CONTEXT_CHARS - 1).map_or(0, |(at, _)| at);
        let to =
            text[found.end..].char_indices().nth(SNIPPET_CONTEXT_CHARS).map_or(text.len(), |(at, _)| found.end + at);
        from..to
    };
    let is_inside =
        |found: &Range<usize>, window: &Range<usize>| found.start >= window.start && found.end <= window.end;
    let terms = |window: &Range<usize>| {
        let inside = matches.iter().filter(|(_, found)| is_inside(found, window));
        inside.map(|(term, _)| *term).collect::<HashSet<_>>().len()
    };
    // The first of the best: `max_by_key` takes the last.
    let windows = matches.iter().map(|(_, found)| around(found));
    let window = windows.rev().max_by_key(|window| terms(window)).unwrap_or_else(|| around(&(0..0)));
    let mut out = String::new();
    if window.start > 0 {
        out.push('…');
    }
    let mut at = window.start;
    for (_, found) in matches.iter().filter(|(_, found)| is_inside(found, &window)) {
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
