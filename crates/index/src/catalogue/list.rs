//! The sessions as `ls` lists them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use jiff::Timestamp;
use quipu_conversation::{Metrics, Tokens, parse_timestamp};
use quipu_transcript::find::SessionFiles;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};

use super::message_rows;
use crate::search::lossy;

/// One session, in the shape of `quipu ls --json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListedSession {
    /// The session.
    pub session_id: String,
    /// The name of the project's folder.
    pub project: String,
    /// The working directory it began in.
    pub cwd: Option<String>,
    /// Its file.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The person's title, or the one made up.
    pub title: Option<String>,
    /// What the person asked first.
    pub first_prompt: Option<String>,
    /// The earliest time in it.
    pub started_at: Option<String>,
    /// The latest time in it.
    pub ended_at: Option<String>,
    /// Requests of the person.
    pub turns: u64,
    /// API messages.
    pub messages: u64,
    /// Models that answered.
    pub models: Vec<String>,
    /// Tokens of the messages it holds, copies of other sessions' included.
    pub tokens: Tokens,
    /// What they cost.
    pub cost_usd: f64,
    /// Models without a price.
    pub unpriced_models: Vec<String>,
    /// Whether it was compacted.
    pub compacted: bool,
    /// The earlier session it shares its first entry with.
    pub forked_from: Option<String>,
    /// The session it goes on with after an old-style compaction.
    pub continues: Option<String>,
    /// How many subagents it set to work.
    pub subagents: usize,
    /// The git branch it began on.
    pub git_branch: Option<String>,
    /// The last version that wrote it.
    pub version: Option<String>,
    /// When its files were last written, in nanoseconds since 1970.
    #[serde(skip)]
    pub modified_ns: i64,
    #[serde(skip)]
    links: SessionLinks,
}

/// What ties sessions together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct SessionLinks {
    first_uuid: Option<String>,
    forked_from: Option<String>,
    last_uuid: Option<String>,
    continues_leaf: Option<String>,
}

impl ListedSession {
    pub(super) fn new(history: &SessionFiles, metrics: Metrics) -> Self {
        let mut listed = Self {
            session_id: history.id.to_string(),
            project: history.project.to_string(),
            path: history.main_file().path.clone(),
            subagents: history.subagent_count(),
            ..Self::default()
        };
        listed.set_metrics(metrics);
        listed
    }

    fn set_metrics(&mut self, metrics: Metrics) {
        let Metrics { started_at, ended_at, turns, messages, models, tokens, cost_usd, unpriced_models, facts, .. } =
            metrics;
        self.cwd = facts.cwd;
        self.title = facts.title;
        self.first_prompt = facts.first_prompt;
        (self.started_at, self.ended_at) = (started_at, ended_at);
        (self.turns, self.messages) = (turns, messages);
        (self.models, self.unpriced_models) = (models, unpriced_models);
        (self.tokens, self.cost_usd) = (tokens, cost_usd);
        self.compacted = facts.compacted;
        (self.git_branch, self.version) = (facts.git_branch, facts.version);
        self.links = SessionLinks {
            first_uuid: facts.first_uuid,
            forked_from: facts.forked_from,
            last_uuid: facts.last_uuid,
            continues_leaf: facts.continues_leaf,
        };
    }

    /// When the last message was written, in nanoseconds since 1970; when the files were
    /// last written, where no message has a time.
    pub fn last_active_ns(&self) -> i128 {
        let time = self.ended_at.as_deref().and_then(parse_timestamp);
        time.map_or(i128::from(self.modified_ns), Timestamp::as_nanosecond)
    }

    /// As it is kept.
    pub(super) fn to_stored(&self) -> String {
        // JSON has no text for a path that is not Unicode.
        let bytes = match self.path.to_str() {
            Some(_) => None,
            None => Some(self.path.as_os_str().as_encoded_bytes()),
        };
        serde_json::to_string(&(self, &self.links, bytes)).unwrap_or_default()
    }

    /// As it was kept, with the metrics counted anew when there are some.
    pub(super) fn from_stored(text: &str, metrics: Option<Metrics>) -> Option<Self> {
        let (mut listed, links, bytes): (Self, SessionLinks, Option<Vec<u8>>) = serde_json::from_str(text).ok()?;
        listed.links = links;
        if let Some(bytes) = bytes {
            listed.path = message_rows::path_from_sql(ValueRef::Blob(&bytes));
        }
        if let Some(metrics) = metrics {
            listed.set_metrics(metrics);
        }
        Some(listed)
    }
}

/// Every session that is there, or those of which files vanished; latest first.
pub(super) fn list_sessions(db: &Connection, vanished: bool) -> rusqlite::Result<Vec<ListedSession>> {
    let mut select = db.prepare_cached(
        "SELECT listed, (SELECT max(modified) FROM file WHERE session = session.id AND NOT gone)
         FROM session JOIN story ON story.session = session.id WHERE NOT gone AND vanished = ?",
    )?;
    let mut rows = select.query([vanished])?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next()? {
        let kept = ListedSession::from_stored(row.get_ref(0)?.as_str()?, None);
        let modified: Option<i64> = row.get(1)?;
        listed.extend(kept.map(|session| ListedSession { modified_ns: modified.unwrap_or_default(), ..session }));
    }
    listed.sort_by_cached_key(|session| (Reverse(session.last_active_ns()), session.path.clone()));
    set_forked_from(&mut listed);
    set_continues(&mut listed);
    Ok(listed)
}

/// A fork shares its first entry with an earlier session, or names that session.
fn set_forked_from(sessions: &mut [ListedSession]) {
    let mut earliest: HashMap<String, (Option<String>, String)> = HashMap::new();
    for session in sessions.iter() {
        let Some(uuid) = &session.links.first_uuid else { continue };
        let this = (session.ended_at.clone(), session.session_id.clone());
        let first = earliest.entry(uuid.clone()).or_insert_with(|| this.clone());
        if this < *first {
            *first = this;
        }
    }
    for session in sessions {
        let first = session.links.first_uuid.as_ref().and_then(|uuid| earliest.get(uuid));
        let shared = first.map(|(_, id)| id.clone()).filter(|id| *id != session.session_id);
        session.forked_from = shared.or_else(|| session.links.forked_from.clone());
    }
}

/// An old-style compaction began a new file and named the last line of the old one.
fn set_continues(sessions: &mut [ListedSession]) {
    let last = |session: &ListedSession| Some((session.links.last_uuid.clone()?, session.session_id.clone()));
    let by_last: HashMap<String, String> = sessions.iter().filter_map(last).collect();
    for session in sessions {
        session.continues = session.links.continues_leaf.as_ref().and_then(|leaf| by_last.get(leaf)).cloned();
    }
}
