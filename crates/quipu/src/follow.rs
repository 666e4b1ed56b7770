//! `quipu follow`

use std::collections::{BTreeSet, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use quipu_conversation::{Live, LiveAgent, LiveItem, State};
use quipu_transcript::{Changes, Followed, SessionFollower, Source};

use crate::args::{FollowArgs, Global};
use crate::live::{Place, View};
use crate::output::Output;
use crate::sessions;

mod all;
mod newest;

use newest::NewSessions;

/// Long enough: something is waited for in any case.
const WAIT: Duration = Duration::from_secs(60);

/// Enough to see what a session does.
const LAST_BYTES: u64 = 512 << 10;

pub(crate) fn run(args: &FollowArgs, global: &Global, output: &Output) -> Result<ExitCode> {
    if args.all {
        return all::run(args, global, output);
    }
    let mut changes = Changes::new();
    let mut newer = (args.session == "latest").then(|| NewSessions::new(global, &mut changes));
    let mut path = match &mut newer {
        Some(newer) if newer.sessions().is_empty() => {
            say(global, "no session yet; waiting for one to begin");
            newer.wait(&mut changes)
        }
        _ => sessions::find(&args.session, global)?,
    };
    loop {
        path = follow(&path, args, global, output, &mut changes, newer.as_mut())?;
    }
}

/// Follows a session until a newer one begins, where that is wanted. Returns the newer one.
fn follow(
    path: &Path,
    args: &FollowArgs,
    global: &Global,
    output: &Output,
    changes: &mut Changes,
    mut newer: Option<&mut NewSessions>,
) -> Result<PathBuf> {
    let mut session = Session::new(SessionFollower::open(path)?);
    session.follower.watch(changes);
    say(global, &format!("following {}; Ctrl-C to stop", path.display()));
    let recent = session.catch_up(args.tail)?;
    let place = Rc::new(Place { base: session.live.cwd().map(str::to_owned), ..session.place() });
    let mut view = View::new(output, global.json, args.full);
    view.show(&place, recent, Vec::new())?;
    loop {
        let changed = changes.wait(WAIT);
        while session.take()? {
            let items = session.news(args.tail)?;
            view.show(&place, items, Vec::new())?;
        }
        let Some(newer) = &mut newer else { continue };
        let began = newer.look(&changed, changes);
        if let Some(path) = began.or_else(|| resumed(&session, &newer.sessions_of(&changed))) {
            view.finish(&place)?;
            return Ok(path);
        }
    }
}

/// Another session that goes on while this one waits for its user's next prompt.
fn resumed(session: &Session, changed: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let own = session.live.activity();
    let others = changed.iter().filter(|path| *path != session.follower.path());
    let mut others = others.filter(|_| matches!(own.state, State::Prompt | State::Ended));
    let is_later = |path: &&PathBuf| {
        let mut other = Session::new(SessionFollower::open_near_end(path, LAST_BYTES).ok()?);
        other.catch_up(0).ok()?;
        Some(other.live.activity().since > own.since)
    };
    others.find(|path| is_later(path).unwrap_or_default()).cloned()
}

/// A session that is being followed.
struct Session {
    follower: SessionFollower,
    live: Live,
    /// Whether the file is read from its start again, because it was cut or replaced.
    is_restarted: bool,
}

impl Session {
    fn new(follower: SessionFollower) -> Self {
        Self { follower, live: Live::default(), is_restarted: false }
    }

    /// Where its items belong.
    fn place(&self) -> Place {
        let stem = || self.follower.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let session_id = self.live.session_id().map(|id| id.as_str().to_owned()).or_else(stem);
        Place { session_id, ..Place::default() }
    }

    /// Takes the lines that have come; false when there are none.
    fn take(&mut self) -> Result<bool> {
        let events = self.follower.poll()?;
        let any = !events.is_empty();
        for (source, event) in events {
            match (source, event) {
                (Source::Session, Followed::Line { number, bytes, .. }) => {
                    self.live.push_line(number, &String::from_utf8_lossy(&bytes));
                }
                (Source::Session, Followed::Truncated | Followed::Replaced) => {
                    self.live = Live::default();
                    self.is_restarted = true;
                }
                (Source::Subagent(file), Followed::Line { number, bytes, .. }) => {
                    let task = file.description.or(file.agent_type);
                    let agent = LiveAgent { agent_id: Some(file.agent_id), tool_use_id: file.tool_use_id, task };
                    self.live.push_agent_line(&agent, number, &String::from_utf8_lossy(&bytes));
                }
                (Source::Subagent(_), _) => {}
            }
        }
        Ok(any)
    }

    /// What is new. Of a file that is read from its start again, the last items.
    fn news(&mut self, tail: usize) -> Result<Vec<LiveItem>> {
        if std::mem::take(&mut self.is_restarted) { self.catch_up(tail) } else { Ok(self.live.changes()) }
    }

    /// Reads all there is and returns the last items of it, by time.
    fn catch_up(&mut self, tail: usize) -> Result<Vec<LiveItem>> {
        let (mut own, mut of_agents) = (VecDeque::new(), VecDeque::new());
        loop {
            for change in self.live.changes() {
                let list = if change.agent.is_some() { &mut of_agents } else { &mut own };
                keep(list, change, tail);
            }
            if !self.take()? {
                break;
            }
        }
        self.is_restarted = false;
        let mut items: Vec<LiveItem> = own.into_iter().chain(of_agents).collect();
        items.sort_by(|a, b| a.item.timestamp.cmp(&b.item.timestamp));
        items.drain(..items.len().saturating_sub(tail));
        Ok(items)
    }
}

/// Keeps the last items; a tool call that changed takes the place it had.
fn keep(list: &mut VecDeque<LiveItem>, change: LiveItem, most: usize) {
    let id = |item: &LiveItem| item.item.tool.as_ref().map(|tool| tool.id.clone());
    if change.is_update {
        if let Some(known) = list.iter_mut().find(|item| id(item) == id(&change)) {
            *known = change;
        }
        return;
    }
    list.push_back(change);
    if list.len() > most {
        list.pop_front();
    }
}

/// Says something on standard error, unless that is unwanted.
fn say(global: &Global, text: &str) {
    if !global.quiet {
        let _ = writeln!(anstream::stderr().lock(), "{}", quipu_render::clean(text));
    }
}
