//! Which sessions are active, and which of them wait for the user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quipu_conversation::{Activity, ActivityState};
use quipu_transcript::{FileError, LiveSession, SessionFollower};
use schemars::JsonSchema;
use serde::Serialize;

/// Bytes to read at the end of a session to know what it is doing.
const TAIL_BYTES: u64 = 512 << 10;
/// Sessions that were written to within this time are followed from the start.
pub(crate) const RECENT_MAX_AGE: Duration = Duration::from_secs(12 * 3600);
/// Sessions that are followed at most; each holds its last entries.
const MAX_FOLLOWED: usize = 24;
/// A session with a line this recent is live.
const LIVE_MAX_AGE: Duration = Duration::from_secs(5 * 60);
/// A turn without a line for this long does not run any more, as far as one can see.
const TURN_MAX_SILENCE: Duration = Duration::from_secs(30);
/// A tool that normally returns at once and is silent for longer waits for a permission.
const SILENCE_BEFORE_WAITING: Duration = Duration::from_secs(3);

/// What a session is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct LiveState {
    /// Whether a line was written in the last minutes.
    pub(crate) live: bool,
    /// What the agent does or waits for; `None` if the session is not followed.
    pub(crate) activity: Option<ActivityState>,
    /// Text of the question, first line of the plan, or name of the tool.
    pub(crate) activity_detail: Option<String>,
    /// What the session waits for: `permission`, `question`, `plan` or `prompt`.
    pub(crate) waiting: Option<ActivityState>,
    /// Timestamp of the last line, as written.
    #[serde(skip)]
    pub(crate) since: Option<String>,
}

/// The sessions that are followed.
#[derive(Debug, Default)]
pub(crate) struct LiveSessions {
    sessions: Mutex<BTreeMap<PathBuf, FollowedSession>>,
}

#[derive(Debug)]
struct FollowedSession {
    session: LiveSession,
    activity: Activity,
    last_line_at: Instant,
}

impl LiveSessions {
    /// Reads the new lines of a session and follows it from now on. `silence` is the time since its
    /// last line. Fails if the file cannot be read.
    pub(crate) fn update(&self, path: &Path, silence: Duration) -> Result<(), FileError> {
        let mut sessions = self.sessions.lock();
        let read_at = Instant::now().checked_sub(silence).unwrap_or_else(Instant::now);
        match sessions.get_mut(path) {
            Some(followed) => {
                let mut has_lines = false;
                while followed.session.read_new_lines()? {
                    has_lines = true;
                    // Items are shown by the page; taking them here keeps the list of new ones short.
                    followed.session.new_items(0)?;
                }
                if has_lines {
                    followed.last_line_at = read_at;
                    followed.activity = followed.session.conversation().activity();
                }
            }
            None => {
                let mut session = LiveSession::new(SessionFollower::open_near_end(path, TAIL_BYTES)?);
                session.read_to_end(0)?;
                let activity = session.conversation().activity();
                sessions.insert(path.to_owned(), FollowedSession { session, activity, last_line_at: read_at });
            }
        }
        if sessions.len() > MAX_FOLLOWED
            && let Some(oldest) =
                sessions.iter().min_by_key(|(_, followed)| followed.last_line_at).map(|(path, _)| path.clone())
        {
            sessions.remove(&oldest);
        }
        Ok(())
    }

    /// Stops following a session whose file is gone.
    pub(crate) fn remove(&self, path: &Path) {
        self.sessions.lock().remove(path);
    }

    /// What a session is doing.
    pub(crate) fn state(&self, path: &Path) -> LiveState {
        self.sessions.lock().get(path).map(FollowedSession::state).unwrap_or_default()
    }

    /// Whether a turn seems to run in a session: the last line is recent and does not end a turn.
    pub(crate) fn is_being_written(&self, path: &Path) -> bool {
        self.sessions.lock().get(path).is_some_and(|followed| {
            let state = followed.activity.state;
            followed.last_line_at.elapsed() < TURN_MAX_SILENCE
                && !state.is_waiting()
                && !matches!(state, ActivityState::Ended | ActivityState::New)
        })
    }

    /// What all followed sessions are doing.
    pub(crate) fn states(&self) -> BTreeMap<PathBuf, LiveState> {
        self.sessions.lock().iter().map(|(path, followed)| (path.clone(), followed.state())).collect()
    }
}

impl FollowedSession {
    fn state(&self) -> LiveState {
        let silence = self.last_line_at.elapsed();
        let mut activity = self.activity.clone();
        if silence >= SILENCE_BEFORE_WAITING {
            activity = activity.after_silence();
        }
        let is_waiting = activity.state.is_waiting() && activity.is_certain;
        LiveState {
            live: silence < LIVE_MAX_AGE && activity.state != ActivityState::Ended,
            activity: Some(activity.state),
            activity_detail: activity.detail,
            waiting: Some(activity.state).filter(|_| is_waiting),
            since: activity.last_timestamp,
        }
    }
}
