//! `quipu follow --all`: every session, and which of them wait for the user.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use quipu_conversation::{Activity, State};
use quipu_render::clean;
use quipu_transcript::{Changes, SessionFollower};
use serde_json::json;

use super::newest::NewSessions;
use super::{LAST_BYTES, Session, WAIT, say};
use crate::args::{FollowArgs, Global};
use crate::live::{Place, View};
use crate::output::Output;

/// Sessions written to this lately are looked at when the command begins.
const RECENT: Duration = Duration::from_secs(12 * 3600);
/// At most so many of them.
const MAX_RECENT: usize = 50;
/// After so long a silence a tool that takes no time must be waiting for something.
const SILENCE: Duration = Duration::from_secs(3);

pub(super) fn run(args: &FollowArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    let mut changes = Changes::new();
    let mut new = NewSessions::new(global, &mut changes);
    let mut watched = Watched { sessions: BTreeMap::new(), view: View::new(output, global.json, args.full), output };
    for file in new.sessions().into_iter().take(MAX_RECENT) {
        let silence = SystemTime::now().duration_since(file.modified).unwrap_or_default();
        if silence < RECENT {
            // One that cannot be read now may be readable when it changes.
            let _ = watched.open(&file.path, LAST_BYTES, silence);
        }
    }
    say(global, "following all sessions; Ctrl-C to stop");
    watched.report(global.json)?;
    loop {
        let changed = changes.wait(WAIT);
        if let Some(path) = new.look(&changed, &mut changes) {
            let _ = watched.open(&path, u64::MAX, Duration::ZERO);
        }
        let concerned = new.sessions_of(&changed);
        for path in &concerned {
            if !watched.sessions.contains_key(path) {
                let _ = watched.open(path, LAST_BYTES, Duration::ZERO);
            }
        }
        watched.take(&concerned)?;
        watched.report(global.json)?;
    }
}

struct Watched<'o> {
    sessions: BTreeMap<PathBuf, One>,
    view: View<'o>,
    output: &'o Output,
}

struct One {
    session: Session,
    place: Rc<Place>,
    /// What it does, as of its last line.
    activity: Activity,
    /// When its last line came.
    heard: Instant,
    reported: (State, Option<String>),
}

impl Watched<'_> {
    /// Begins to follow a session. What its file ends with is read, not shown; with
    /// `u64::MAX` bytes the session has just begun, and all of it is shown.
    fn open(&mut self, path: &Path, bytes: u64, silence: Duration) -> Result<()> {
        let mut session = Session::new(SessionFollower::open_near_end(path, bytes)?);
        let is_new = bytes == u64::MAX;
        let recent = session.catch_up(if is_new { usize::MAX } else { 0 })?;
        let id = session.place().session_id.unwrap_or_default();
        let project = session.live.cwd().map_or_else(
            || path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned(),
            |cwd| Path::new(cwd).file_name().unwrap_or_default().to_string_lossy().into_owned(),
        );
        let bold = self.output.style(Style::new().bold());
        let heading = format!("{bold}{}{bold:#} {}", clean(short(&id)), clean(&project));
        let base = session.live.cwd().map(str::to_owned);
        let place = Rc::new(Place { heading: Some(heading), base, ..session.place() });
        self.view.show(&place, recent, Vec::new())?;
        let heard = Instant::now().checked_sub(silence).unwrap_or_else(Instant::now);
        let activity = session.live.activity();
        self.sessions.insert(path.to_owned(), One { session, place, activity, heard, reported: (State::New, None) });
        Ok(())
    }

    /// Shows what has come: of the sessions that changed, or of all where nothing is known.
    fn take(&mut self, changed: &BTreeSet<PathBuf>) -> Result<()> {
        let mut vanished = Vec::new();
        for (path, one) in &mut self.sessions {
            if !changed.is_empty() && !changed.contains(path) {
                continue;
            }
            loop {
                match one.session.take() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        vanished.push(path.clone());
                        break;
                    }
                }
                one.heard = Instant::now();
                let items = one.session.news(0)?;
                one.activity = one.session.live.activity();
                self.view.show(&one.place, items, Vec::new())?;
            }
            if !path.exists() {
                vanished.push(path.clone());
            }
        }
        vanished.iter().for_each(|path| drop(self.sessions.remove(path)));
        Ok(())
    }

    /// Says which sessions have begun to wait, and on a terminal what all of them do.
    fn report(&mut self, json: bool) -> Result<()> {
        let mut status = Vec::new();
        for one in self.sessions.values_mut() {
            let mut activity = one.activity.clone();
            if one.heard.elapsed() >= SILENCE {
                activity = activity.after_silence();
            }
            let now = (activity.state, activity.detail.clone());
            let is_news = activity.state.is_waiting() && activity.is_certain && one.reported != now;
            if activity.is_certain {
                one.reported = now;
            }
            let words = words(&activity);
            if is_news && json {
                let line = json!({
                    "session_id": one.place.session_id, "uuid": null, "kind": "system", "timestamp": activity.since,
                    "text": words, "waiting_for": activity.state, "title": one.session.live.title(),
                });
                self.view.note(&line.to_string())?;
            } else if is_news && !self.view.is_drawn_again() {
                let heading = one.place.heading.as_deref().unwrap_or_default();
                self.view.note(&format!("\n── {heading} {words}"))?;
            }
            if activity.state != State::Ended && activity.state != State::New {
                status.push(line(one, &activity, &words, self.output));
            }
        }
        // Those that wait come last: they stand lowest on the screen.
        status.sort();
        let rows = status.into_iter().map(|(_, row)| row);
        self.view.set_status(std::iter::once(String::new()).chain(rows).collect())
    }
}

/// A row of the status: what sorts it, and its text.
fn line(one: &One, activity: &Activity, words: &str, output: &Output) -> ((bool, bool, u64), String) {
    let waits = activity.state.is_waiting();
    let style = output.style(if waits { AnsiColor::Yellow.on_default() } else { Style::new().dimmed() });
    let heading = one.place.heading.as_deref().unwrap_or_default();
    let room = output.width.saturating_sub(30).max(10);
    let words: String = clean(words).chars().take(room).collect();
    let key = (waits, activity.state != State::Prompt, u64::MAX - one.heard.elapsed().as_secs());
    (key, format!("{heading} {style}{words}{style:#}"))
}

fn words(activity: &Activity) -> String {
    let detail = activity.detail.as_deref().unwrap_or_default();
    let detail = clean(detail).replace('\n', " ");
    match activity.state {
        State::New => "has not begun".to_owned(),
        State::Working => "works".to_owned(),
        State::Tool => format!("runs {detail}"),
        State::Permission => format!("waits for your permission: {detail}"),
        State::Question => format!("waits for your answer: {detail}"),
        State::Plan => format!("waits for you to approve its plan: {detail}"),
        State::Prompt => "waits for your next prompt".to_owned(),
        State::Ended => "has ended".to_owned(),
    }
}

/// The first part of an id.
fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
