//! `quipu follow`

use std::collections::{BTreeSet, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use quipu_conversation::{ActivityState, LiveConversation, LiveItem, LiveSubagent};
use quipu_transcript::{ChangeWatcher, FollowEvent, LineSource, SessionFollower};

use crate::args::FollowArgs;
use crate::global::GlobalArgs;
use crate::live_view::{LiveView, SessionContext};
use crate::output::Output;
use crate::sessions;

mod all;
mod new_sessions;

use new_sessions::NewSessions;

/// Longest wait for a change; the watcher returns earlier on its own.
const MAX_CHANGE_WAIT: Duration = Duration::from_secs(60);

/// Bytes to read at the end of a session to know what it is doing.
const TAIL_BYTES: u64 = 512 << 10;

pub(crate) fn run(args: &FollowArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    if args.all {
        return all::run(args, global, output);
    }
    let mut changes = ChangeWatcher::new();
    let mut newer = (args.session == "latest").then(|| NewSessions::new(global, &mut changes));
    let mut path = match &mut newer {
        Some(newer) if newer.sessions().is_empty() => {
            print_status(global, "no session yet; waiting for one to begin");
            newer.wait(&mut changes)
        }
        _ => sessions::resolve_session(&args.session, global)?,
    };
    loop {
        path = follow(&path, args, global, output, &mut changes, newer.as_mut())?;
    }
}

/// Follows a session. If `newer` is given, returns the path of the next session that starts.
fn follow(
    path: &Path,
    args: &FollowArgs,
    global: &GlobalArgs,
    output: &Output,
    changes: &mut ChangeWatcher,
    mut newer: Option<&mut NewSessions>,
) -> Result<PathBuf> {
    let mut session = FollowedSession::new(SessionFollower::open(path)?);
    session.follower.watch(changes);
    print_status(global, &format!("following {}; Ctrl-C to stop", path.display()));
    let recent = session.read_to_end(args.tail)?;
    let context = Rc::new(SessionContext { base_folder: session.live.cwd().map(str::to_owned), ..session.context() });
    let mut view = LiveView::new(output, global.json, args.full);
    view.show_items(&context, recent, Vec::new())?;
    loop {
        let changed = changes.wait(MAX_CHANGE_WAIT);
        while session.read_new_lines()? {
            let items = session.new_items(args.tail)?;
            view.show_items(&context, items, Vec::new())?;
        }
        let Some(newer) = &mut newer else { continue };
        let began = newer.poll(&changed, changes);
        if let Some(path) = began.or_else(|| resumed_session(&session, &newer.session_files_for(&changed))) {
            view.finish(&context)?;
            return Ok(path);
        }
    }
}

/// Another session that continues while this one waits for the next prompt of the user.
fn resumed_session(session: &FollowedSession, changed: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let own = session.live.activity();
    let others = changed.iter().filter(|path| *path != session.follower.path());
    let mut others = others.filter(|_| matches!(own.state, ActivityState::Prompt | ActivityState::Ended));
    let is_later = |path: &&PathBuf| {
        let mut other = FollowedSession::new(SessionFollower::open_near_end(path, TAIL_BYTES).ok()?);
        other.read_to_end(0).ok()?;
        Some(other.live.activity().last_timestamp > own.last_timestamp)
    };
    others.find(|path| is_later(path).unwrap_or_default()).cloned()
}

/// A followed session and its conversation so far.
struct FollowedSession {
    follower: SessionFollower,
    live: LiveConversation,
    /// Whether the file is read from its start again, because it was truncated or replaced.
    is_restarted: bool,
}

impl FollowedSession {
    fn new(follower: SessionFollower) -> Self {
        Self { follower, live: LiveConversation::default(), is_restarted: false }
    }

    /// Context for the items of this session.
    fn context(&self) -> SessionContext {
        let stem = || self.follower.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let session_id = self.live.session_id().map(|id| id.as_str().to_owned()).or_else(stem);
        SessionContext { session_id, ..SessionContext::default() }
    }

    /// Reads new lines; false if there are none.
    fn read_new_lines(&mut self) -> Result<bool> {
        let events = self.follower.poll()?;
        let any = !events.is_empty();
        for (source, event) in events {
            match (source, event) {
                (LineSource::Session, FollowEvent::Line { number, bytes, .. }) => {
                    self.live.push_line(number, &String::from_utf8_lossy(&bytes));
                }
                (LineSource::Session, FollowEvent::Truncated | FollowEvent::Replaced) => {
                    self.live = LiveConversation::default();
                    self.is_restarted = true;
                }
                (LineSource::Subagent(file), FollowEvent::Line { number, bytes, .. }) => {
                    let task = file.description.or(file.agent_type);
                    let agent = LiveSubagent { agent_id: Some(file.agent_id), tool_use_id: file.tool_use_id, task };
                    self.live.push_agent_line(&agent, number, &String::from_utf8_lossy(&bytes));
                }
                (LineSource::Subagent(_), _) => {}
            }
        }
        Ok(any)
    }

    /// New items; the last `tail` items if the file is read from its start again.
    fn new_items(&mut self, tail: usize) -> Result<Vec<LiveItem>> {
        if std::mem::take(&mut self.is_restarted) { self.read_to_end(tail) } else { Ok(self.live.changes()) }
    }

    /// Reads to the end of the file and returns the last `tail` items by time.
    fn read_to_end(&mut self, tail: usize) -> Result<Vec<LiveItem>> {
        let (mut own, mut of_agents) = (VecDeque::new(), VecDeque::new());
        loop {
            for change in self.live.changes() {
                let list = if change.agent.is_some() { &mut of_agents } else { &mut own };
                keep_last(list, change, tail);
            }
            if !self.read_new_lines()? {
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

/// Keeps the last items; an updated tool call replaces its earlier version.
fn keep_last(list: &mut VecDeque<LiveItem>, change: LiveItem, max_items: usize) {
    let id = |item: &LiveItem| item.item.tool.as_ref().map(|tool| tool.id.clone());
    if change.is_update {
        if let Some(known) = list.iter_mut().find(|item| id(item) == id(&change)) {
            *known = change;
        }
        return;
    }
    list.push_back(change);
    if list.len() > max_items {
        list.pop_front();
    }
}

/// Prints a line on stderr, unless `--quiet` is given.
fn print_status(global: &GlobalArgs, text: &str) {
    if !global.quiet {
        let _ = writeln!(anstream::stderr().lock(), "{}", quipu_render::sanitize(text));
    }
}
