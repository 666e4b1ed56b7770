//! One session as `quipu ls` lists it.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use jiff::Timestamp;
use quipu_conversation::{Metrics, Tokens, parse_timestamp};
use quipu_transcript::SessionOverview;
use quipu_transcript::find::{SessionFile, SessionFiles};
use rusqlite::types::ValueRef;
use serde::{Deserialize, Serialize};

use crate::search::lossy;
use crate::store::path_from_sql;

/// One session, in the shape of `quipu ls --json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ListedSession {
    /// Id of the session.
    pub session_id: String,
    /// Name of the project folder.
    pub project: String,
    /// Working directory of the first entry that has one.
    pub cwd: Option<String>,
    /// Path of the session file.
    #[serde(serialize_with = "lossy")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Title given by the user, or else the generated one.
    pub title: Option<String>,
    /// Tag given by the user.
    pub tag: Option<String>,
    /// First prompt of the user.
    pub first_prompt: Option<String>,
    /// Earliest timestamp, as ISO 8601.
    pub started_at: Option<String>,
    /// Latest timestamp, as ISO 8601.
    pub ended_at: Option<String>,
    /// Number of turns.
    pub turns: u64,
    /// Number of API messages.
    pub messages: u64,
    /// Models that responded.
    pub models: Vec<String>,
    /// Tokens of all its messages, including copies from other sessions.
    pub tokens: Tokens,
    /// Cost of those messages in US dollars, without unpriced ones.
    pub cost_usd: f64,
    /// Models that have no price.
    pub unpriced_models: Vec<String>,
    /// Whether the conversation was compacted.
    pub compacted: bool,
    /// Id of the session it was forked from.
    pub forked_from: Option<String>,
    /// Id of the session it continues after an old-style compaction.
    pub continues: Option<String>,
    /// Number of subagents that have a file.
    pub subagents: usize,
    /// Git branch of the first entry that has one.
    pub git_branch: Option<String>,
    /// Version of the agent that wrote it last.
    pub version: Option<String>,
    /// Modification time of its files, in nanoseconds since 1970.
    #[serde(skip)]
    pub modified_ns: i64,
    #[serde(skip)]
    pub(crate) links: SessionLinks,
}

/// UUIDs that show how sessions are related.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SessionLinks {
    pub(crate) first_uuid: Option<String>,
    pub(crate) forked_from: Option<String>,
    pub(crate) last_uuid: Option<String>,
    pub(crate) continues_leaf: Option<String>,
}

impl ListedSession {
    pub(crate) fn new(history: &SessionFiles, metrics: Metrics) -> Self {
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

    /// What both ends of a session file show, for a session that is not indexed yet: without counts,
    /// models and cost.
    pub fn from_file_ends(file: &SessionFile) -> Self {
        let overview = SessionOverview::read_both_ends(&file.path).unwrap_or_default();
        let modified = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            session_id: file.id.to_string(),
            project: file.project.clone(),
            title: overview.title().or(overview.summary.as_deref()).map(str::to_owned),
            cwd: overview.cwd,
            path: file.path.clone(),
            tag: overview.tag,
            first_prompt: overview.first_prompt,
            started_at: overview.started_at,
            ended_at: overview.ended_at,
            git_branch: overview.git_branch,
            modified_ns: i64::try_from(modified.as_nanos()).unwrap_or_default(),
            ..Self::default()
        }
    }

    fn set_metrics(&mut self, metrics: Metrics) {
        let Metrics { started_at, ended_at, turns, messages, models, tokens, cost_usd, unpriced_models, facts, .. } =
            metrics;
        self.cwd = facts.cwd;
        self.title = facts.title;
        (self.tag, self.first_prompt) = (facts.tag, facts.first_prompt);
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

    /// Time of the last entry in nanoseconds since 1970, or the modification time if no entry
    /// has a time.
    pub fn last_active_ns(&self) -> i128 {
        let time = self.ended_at.as_deref().and_then(parse_timestamp);
        time.map_or(i128::from(self.modified_ns), Timestamp::as_nanosecond)
    }

    /// JSON for the column `listed`.
    pub(crate) fn to_stored(&self) -> String {
        // JSON cannot hold a path that is not Unicode, so its bytes are stored too.
        let bytes = match self.path.to_str() {
            Some(_) => None,
            None => Some(self.path.as_os_str().as_encoded_bytes()),
        };
        serde_json::to_string(&(self, &self.links, bytes)).unwrap_or_default()
    }

    /// Parses the column `listed` and replaces the metrics if new ones are given; `None` if
    /// the text is damaged.
    pub(crate) fn from_stored(text: &str, metrics: Option<Metrics>) -> Option<Self> {
        let (mut listed, links, bytes): (Self, SessionLinks, Option<Vec<u8>>) = serde_json::from_str(text).ok()?;
        listed.links = links;
        if let Some(bytes) = bytes {
            listed.path = path_from_sql(ValueRef::Blob(&bytes));
        }
        if let Some(metrics) = metrics {
            listed.set_metrics(metrics);
        }
        Some(listed)
    }
}
