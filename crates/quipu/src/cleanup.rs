//! Finds sessions that Claude Code will delete soon.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quipu_index::ListedSession;
use quipu_render::sanitize;
use serde::Serialize;
use serde_json::Value;

use crate::format::count;

/// Days that Claude Code keeps sessions by default.
const DEFAULT_CLEANUP_DAYS: u64 = 30;
/// How many days before the deletion to warn.
const WARN_DAYS_AHEAD: u64 = 7;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Sessions of one config folder that will be deleted soon.
#[derive(Debug, Serialize)]
pub(crate) struct UpcomingCleanup {
    /// Path of the settings file with `cleanupPeriodDays`.
    settings: PathBuf,
    /// Days that a session is kept after its last write.
    cleanup_period_days: u64,
    /// Number of sessions that will be deleted within a week.
    sessions: usize,
}

impl UpcomingCleanup {
    /// Returns the config folders with sessions that will be deleted within a week.
    pub(crate) fn find(dirs: &[PathBuf], sessions: &[ListedSession]) -> Vec<Self> {
        #[expect(clippy::disallowed_methods, reason = "compared with the times of the file system")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let found = dirs.iter().map(|dir| {
            let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
            let settings = dir.join("settings.json");
            let days = cleanup_period_days(&settings);
            let kept = DAY.saturating_mul(u32::try_from(days.saturating_sub(WARN_DAYS_AHEAD)).unwrap_or(u32::MAX));
            let is_soon = |session: &&ListedSession| {
                let written = Duration::from_nanos(session.modified_ns.max(0).cast_unsigned());
                session.path.starts_with(&dir) && written.saturating_add(kept) < now
            };
            Self { settings, cleanup_period_days: days, sessions: sessions.iter().filter(is_soon).count() }
        });
        found.filter(|cleanup| cleanup.sessions > 0).collect()
    }

    /// The warning for the user.
    pub(crate) fn warning(&self) -> String {
        format!(
            "{} will be deleted by Claude Code within {WARN_DAYS_AHEAD} days (cleanupPeriodDays is {}).\n\
             Their usage stays counted; to keep the conversations, raise cleanupPeriodDays in {}.",
            count(self.sessions, "session"),
            self.cleanup_period_days,
            sanitize(&self.settings.to_string_lossy()),
        )
    }
}

fn cleanup_period_days(settings: &Path) -> u64 {
    let settings: Option<Value> = fs::read(settings).ok().and_then(|text| serde_json::from_slice(&text).ok());
    settings.and_then(|settings| settings.get("cleanupPeriodDays")?.as_u64()).unwrap_or(DEFAULT_CLEANUP_DAYS)
}
