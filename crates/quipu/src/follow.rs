//! `quipu follow`

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use quipu_conversation::ActivityState;
use quipu_render::SessionContext;
use quipu_transcript::{ChangeWatcher, LiveSession, NewSessions, SessionFollower};

use crate::args::FollowArgs;
use crate::claude_dirs::claude_dirs;
use crate::global::GlobalArgs;
use crate::live_view::LiveView;
use crate::output::Output;
use crate::sessions;
use crate::skeleton::open_skeleton;

mod all;

/// Longest wait for a change; the watcher returns earlier on its own.
const MAX_CHANGE_WAIT: Duration = Duration::from_secs(60);

/// Files up to this size are read whole.
const LARGE_FILE_BYTES: u64 = 8 << 20;

/// Items that are read before those shown, so that late results find their tool calls.
const MORE_ITEMS: usize = 30;

/// Bytes to read at the end of a session to know what it is doing.
const TAIL_BYTES: u64 = 512 << 10;

pub(crate) fn run(args: &FollowArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    if args.all {
        return all::run(args, global, output);
    }
    let mut changes = ChangeWatcher::new();
    let mut newer = (args.session == "latest").then(|| NewSessions::new(&claude_dirs(global), &mut changes));
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
    let mut session = LiveSession::new(open_follower(path, args.tail)?);
    session.follower().watch(changes);
    print_status(global, &format!("following {}; Ctrl-C to stop", path.display()));
    let recent = session.read_to_end(args.tail)?;
    let context = Rc::new(SessionContext {
        base_folder: session.conversation().cwd().map(str::to_owned),
        ..session_context(&session)
    });
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

/// Follows a session from a line before its last items: of a large file the lines before are not
/// read.
fn open_follower(path: &Path, tail: usize) -> Result<SessionFollower> {
    let is_large = path.metadata().is_ok_and(|meta| meta.len() > LARGE_FILE_BYTES);
    if is_large && let Some((line, offset)) = open_skeleton(path)?.view().tail_start(tail + MORE_ITEMS) {
        return Ok(SessionFollower::open_at(path, line, offset)?);
    }
    Ok(SessionFollower::open(path)?)
}

/// Another session that continues while this one waits for the next prompt of the user.
fn resumed_session(session: &LiveSession, changed: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let own = session.conversation().activity();
    let others = changed.iter().filter(|path| *path != session.follower().path());
    let mut others = others.filter(|_| matches!(own.state, ActivityState::Prompt | ActivityState::Ended));
    let is_later = |path: &&PathBuf| {
        let mut other = LiveSession::new(SessionFollower::open_near_end(path, TAIL_BYTES).ok()?);
        other.read_to_end(0).ok()?;
        Some(other.conversation().activity().last_timestamp > own.last_timestamp)
    };
    others.find(|path| is_later(path).unwrap_or_default()).cloned()
}

/// Context for the items of a session.
fn session_context(session: &LiveSession) -> SessionContext {
    let stem = || session.follower().path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let session_id = session.conversation().session_id().map(|id| id.as_str().to_owned()).or_else(stem);
    SessionContext { session_id, ..SessionContext::default() }
}

/// Prints a line on stderr, unless `--quiet` is given.
fn print_status(global: &GlobalArgs, text: &str) {
    if !global.quiet {
        let _ = writeln!(anstream::stderr().lock(), "{}", quipu_render::sanitize(text));
    }
}
