//! The archive of usage of deleted session files, in the user's data folder.
//!
//! `usage.jsonl` is only appended to: one JSON line for a session each time a refresh finds
//! that files of it were deleted. It outlives the index, so its fields are never renamed and
//! unknown fields are ignored.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::Tokens;
use quipu_conversation::usage::{MessageUsage, ServingInfo, SubagentAttribution};
use quipu_transcript::{LineReader, RawLine};
use serde::{Deserialize, Serialize};

use crate::ledger::SessionUsage;
use crate::listed_session::ListedSession;
use crate::store::canonical_dirs;

/// One session with deleted files: a line of the archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VanishedSession {
    /// Config folder of the session.
    pub(crate) dir: PathBuf,
    /// First timestamp of its file, in milliseconds since 1970.
    pub(crate) begins: Option<i64>,
    /// The values that `quipu ls` showed.
    pub(crate) session: ListedSession,
    pub(crate) messages: Vec<VanishedMessage>,
}

/// One API message; fields with default values are omitted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct VanishedMessage {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u64>,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    geo: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<i64>,
    tokens: Tokens,
    /// Web searches by the counter in `usage`.
    #[serde(skip_serializing_if = "is_zero")]
    searches: u64,
    /// Web searches that have a result. Stored apart from the counter, because a copy of the
    /// message in another session may lack the result.
    #[serde(skip_serializing_if = "is_zero")]
    searches_found: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    times: Vec<i64>,
    lines: [u64; 2],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
    /// Type of the subagent; absent for the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    turn: u32,
    #[serde(skip_serializing_if = "is_false")]
    is_progress: bool,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_false(is: &bool) -> bool {
    !is
}

impl VanishedMessage {
    /// Converts a message; `agent` has the type and turn of its subagent.
    pub(crate) fn new(message: &MessageUsage, agent: Option<&SubagentAttribution>) -> Self {
        let ServingInfo { model, speed, geo } = &*message.serving;
        let kind = agent.and_then(|agent| agent.agent_type.as_deref()).unwrap_or(crate::usage::UNKNOWN_AGENT);
        Self {
            key: message.key,
            model: model.clone(),
            speed: speed.clone(),
            geo: geo.clone(),
            time: message.earliest_time.map(Timestamp::as_millisecond),
            tokens: message.tokens,
            searches: message.reported_searches,
            searches_found: message.answered_searches,
            cost_usd: message.recorded_cost_usd,
            times: message.line_times_ms.to_vec(),
            lines: message.line_hashes,
            tools: message.tools.iter().map(ToString::to_string).collect(),
            agent: message.agent.as_ref().map(|_| kind.into()),
            turn: agent.map_or(message.turn, |agent| agent.turn),
            is_progress: message.is_progress,
        }
    }

    /// Converts back. The `agent` of the result is the type of the subagent instead of its id.
    pub(crate) fn into_usage(self) -> MessageUsage {
        MessageUsage {
            key: self.key,
            has_usage: true,
            is_progress: self.is_progress,
            serving: Arc::new(ServingInfo { model: self.model, speed: self.speed, geo: self.geo }),
            tokens: self.tokens,
            earliest_time: self.time.and_then(|time| Timestamp::from_millisecond(time).ok()),
            recorded_cost_usd: self.cost_usd,
            reported_searches: self.searches,
            answered_searches: self.searches_found,
            line_times_ms: self.times.into(),
            line_hashes: self.lines,
            tools: self.tools.into_iter().map(Arc::from).collect(),
            agent: self.agent.map(Arc::from),
            turn: self.turn,
        }
    }
}

/// The file `usage.jsonl`.
#[derive(Debug, Clone)]
pub(crate) struct UsageArchive {
    path: PathBuf,
}

impl UsageArchive {
    /// The archive in a data folder; the file need not exist.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { path: folder.join("usage.jsonl") }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Size in bytes; 0 if there is no file.
    pub(crate) fn len(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |meta| meta.len())
    }

    /// Appends sessions and syncs the file, because it will be the only copy.
    pub(crate) fn append(&self, sessions: &[VanishedSession]) -> io::Result<()> {
        let mut text = Vec::new();
        for session in sessions {
            serde_json::to_writer(&mut text, session)?;
            text.push(b'\n');
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.path)?;
        file.lock()?;
        // Ends a line that a crash cut off, so that only this line is lost.
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                text.insert(0, b'\n');
            }
        }
        file.write_all(&text)?;
        file.sync_all()
    }

    /// Reads the sessions of some config folders from an offset on. Lines that cannot be
    /// parsed are skipped.
    pub(crate) fn read(&self, from: u64, dirs: &[PathBuf]) -> io::Result<Vec<VanishedSession>> {
        let mut file = match fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(from))?;
        let mut lines = LineReader::new(file);
        let mut sessions = Vec::new();
        while let Some(line) = lines.next()? {
            let RawLine::Line { bytes, .. } = line else { continue };
            let session = serde_json::from_slice::<VanishedSession>(bytes);
            sessions.extend(session.ok().filter(|session| dirs.contains(&session.dir)));
        }
        Ok(sessions)
    }
}

/// Reads the archived usage of deleted session files in some config folders, for a
/// [`UsageLedger`](crate::UsageLedger). `folder` is the data folder.
pub fn archived_usage(folder: &Path, dirs: &[PathBuf]) -> io::Result<Vec<SessionUsage>> {
    let kept = UsageArchive::new(folder).read(0, &canonical_dirs(dirs))?;
    let sessions = kept.into_iter().map(|kept| {
        let messages: Vec<MessageUsage> = kept.messages.into_iter().map(VanishedMessage::into_usage).collect();
        let begins = kept.begins.and_then(|begins| Timestamp::from_millisecond(begins).ok());
        // Messages name the type of the subagent instead of its id.
        let kinds = messages.iter().filter_map(|message| message.agent.as_deref()).map(str::to_owned);
        let agents =
            kinds.map(|kind| (kind.clone(), SubagentAttribution { agent_type: Some(kind), turn: 0 })).collect();
        let session = SessionUsage::new(kept.session.session_id.into(), kept.session.project.into(), begins, &messages);
        session.with_subagents(agents).into_vanished()
    });
    Ok(sessions.collect())
}
