//! `quipu follow --all`: every session, and which of them wait for the user.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use quipu_conversation::{Activity, ActivityState};
use quipu_render::{SessionContext, sanitize};
use quipu_transcript::{ChangeWatcher, LiveSession, NewSessions, SessionFollower};
use serde_json::json;

use super::{MAX_CHANGE_WAIT, TAIL_BYTES, print_status, session_context};
use crate::args::FollowArgs;
use crate::claude_dirs::claude_dirs;
use crate::global::GlobalArgs;
use crate::live_view::LiveView;
use crate::output::Output;

/// Sessions written within this time are followed from the start.
const RECENT_MAX_AGE: Duration = Duration::from_secs(12 * 3600);
/// Most sessions that are followed from the start.
const MAX_RECENT_SESSIONS: usize = 50;
/// A tool that normally returns at once and is silent for longer waits for a permission.
const SILENCE_BEFORE_WAITING: Duration = Duration::from_secs(3);

pub(super) fn run(args: &FollowArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let mut changes = ChangeWatcher::new();
    let mut new_sessions = NewSessions::new(&claude_dirs(global), &mut changes);
    let mut watched =
        WatchedSessions { sessions: BTreeMap::new(), view: LiveView::new(output, global.json, args.full), output };
    for file in new_sessions.sessions().into_iter().take(MAX_RECENT_SESSIONS) {
        #[expect(clippy::disallowed_methods, reason = "compared with the times of the file system")]
        let silence = SystemTime::now().duration_since(file.modified).unwrap_or_default();
        if silence < RECENT_MAX_AGE {
            // A file that cannot be read now is tried again when it changes.
            let _ = watched.open(&file.path, TAIL_BYTES, silence);
        }
    }
    print_status(global, "following all sessions; Ctrl-C to stop");
    watched.report_activity(global.json)?;
    loop {
        let changed = changes.wait(MAX_CHANGE_WAIT);
        if let Some(path) = new_sessions.poll(&changed, &mut changes) {
            let _ = watched.open(&path, u64::MAX, Duration::ZERO);
        }
        let concerned = new_sessions.session_files_for(&changed);
        for path in &concerned {
            if !watched.sessions.contains_key(path) {
                let _ = watched.open(path, TAIL_BYTES, Duration::ZERO);
            }
        }
        watched.show_new_items(&concerned)?;
        watched.report_activity(global.json)?;
    }
}

struct WatchedSessions<'o> {
    sessions: BTreeMap<PathBuf, WatchedSession>,
    view: LiveView<'o>,
    output: &'o Output,
}

struct WatchedSession {
    session: LiveSession,
    context: Rc<SessionContext>,
    /// State of the session as of its last line.
    activity: Activity,
    /// When its last line was read.
    last_line_at: Instant,
    reported: (ActivityState, Option<String>),
}

impl WatchedSessions<'_> {
    /// Starts to follow a session. The last `bytes` of its file are read but not shown; with
    /// `u64::MAX` the session has just started and all of it is shown.
    fn open(&mut self, path: &Path, bytes: u64, silence: Duration) -> Result<()> {
        let mut session = LiveSession::new(SessionFollower::open_near_end(path, bytes)?);
        let is_new = bytes == u64::MAX;
        let recent = session.read_to_end(if is_new { usize::MAX } else { 0 })?;
        let id = session_context(&session).session_id.unwrap_or_default();
        let project = session.conversation().cwd().map_or_else(
            || path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned(),
            |cwd| Path::new(cwd).file_name().unwrap_or_default().to_string_lossy().into_owned(),
        );
        let bold = self.output.style(Style::new().bold());
        let heading = format!("{bold}{}{bold:#} {}", sanitize(short_id(&id)), sanitize(&project));
        let base = session.conversation().cwd().map(str::to_owned);
        let context =
            Rc::new(SessionContext { heading: Some(heading), base_folder: base, ..session_context(&session) });
        self.view.show_items(&context, recent, Vec::new())?;
        let last_line_at = Instant::now().checked_sub(silence).unwrap_or_else(Instant::now);
        let activity = session.conversation().activity();
        self.sessions.insert(
            path.to_owned(),
            WatchedSession { session, context, activity, last_line_at, reported: (ActivityState::New, None) },
        );
        Ok(())
    }

    /// Shows new items of the sessions that changed, or of all if `changed` is empty.
    fn show_new_items(&mut self, changed: &BTreeSet<PathBuf>) -> Result<()> {
        let mut vanished = Vec::new();
        for (path, watched) in &mut self.sessions {
            if !changed.is_empty() && !changed.contains(path) {
                continue;
            }
            loop {
                match watched.session.read_new_lines() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        vanished.push(path.clone());
                        break;
                    }
                }
                watched.last_line_at = Instant::now();
                let items = watched.session.new_items(0)?;
                watched.activity = watched.session.conversation().activity();
                self.view.show_items(&watched.context, items, Vec::new())?;
            }
            if !path.exists() {
                vanished.push(path.clone());
            }
        }
        vanished.iter().for_each(|path| drop(self.sessions.remove(path)));
        Ok(())
    }

    /// Says which sessions have begun to wait, and on a terminal what all of them do.
    fn report_activity(&mut self, json: bool) -> Result<()> {
        let mut status = Vec::new();
        for watched in self.sessions.values_mut() {
            let mut activity = watched.activity.clone();
            if watched.last_line_at.elapsed() >= SILENCE_BEFORE_WAITING {
                activity = activity.after_silence();
            }
            let now = (activity.state, activity.detail.clone());
            let is_news = activity.state.is_waiting() && activity.is_certain && watched.reported != now;
            if activity.is_certain {
                watched.reported = now;
            }
            let words = describe_activity(&activity);
            if is_news && json {
                let line = json!({
                    "session_id": watched.context.session_id, "uuid": null, "kind": "system", "timestamp": activity.last_timestamp,
                    "text": words, "waiting_for": activity.state, "title": watched.session.conversation().title(),
                });
                self.view.print_line(&line.to_string())?;
            } else if is_news && !self.view.can_redraw() {
                let heading = watched.context.heading.as_deref().unwrap_or_default();
                self.view.print_line(&format!("\n── {heading} {words}"))?;
            }
            if activity.state != ActivityState::Ended && activity.state != ActivityState::New {
                status.push(status_row(watched, &activity, &words, self.output));
            }
        }
        // Those that wait come last: they stand lowest on the screen.
        status.sort();
        let rows = status.into_iter().map(|(_, row)| row);
        self.view.set_status(std::iter::once(String::new()).chain(rows).collect())
    }
}

/// A row of the status: what sorts it, and its text.
fn status_row(
    watched: &WatchedSession,
    activity: &Activity,
    words: &str,
    output: &Output,
) -> ((bool, bool, u64), String) {
    let waits = activity.state.is_waiting();
    let style = output.style(if waits { AnsiColor::Yellow.on_default() } else { Style::new().dimmed() });
    let heading = watched.context.heading.as_deref().unwrap_or_default();
    let room = output.width.saturating_sub(30).max(10);
    let words: String = sanitize(words).chars().take(room).collect();
    let key = (waits, activity.state != ActivityState::Prompt, u64::MAX - watched.last_line_at.elapsed().as_secs());
    (key, format!("{heading} {style}{words}{style:#}"))
}

fn describe_activity(activity: &Activity) -> String {
    let detail = activity.detail.as_deref().unwrap_or_default();
    let detail = sanitize(detail).replace('\n', " ");
    match activity.state {
        ActivityState::New => "has not begun".to_owned(),
        ActivityState::Working => "works".to_owned(),
        ActivityState::Tool => format!("runs {detail}"),
        ActivityState::Permission => format!("waits for your permission: {detail}"),
        ActivityState::Question => format!("waits for your answer: {detail}"),
        ActivityState::Plan => format!("waits for you to approve its plan: {detail}"),
        ActivityState::Prompt => "waits for your next prompt".to_owned(),
        ActivityState::Ended => "has ended".to_owned(),
    }
}

/// The first part of an id.
fn short_id(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
