//! `quipu rename`, `quipu tag` and `quipu rm`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use quipu_render::sanitize;
use quipu_transcript::{SessionOverview, delete_idle_session, find, set_tag, set_title};
use serde_json::json;

use crate::args::{RenameArgs, RmArgs, TagArgs};
use crate::catalogue;
use crate::error::{Failure, print_warning};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::sessions;

pub(crate) fn rename(args: &RenameArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let session = SessionRef::find(&args.session, global)?;
    let title = set_title(&session.path, &args.title)?;
    if global.json {
        output.print_json(&json!({ "session_id": session.id, "title": title, "path": session.path }))?;
    } else {
        session.print_done(output, &format!("renamed to '{title}'"))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn tag(args: &TagArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let session = SessionRef::find(&args.session, global)?;
    let tag = match &args.tag {
        Some(tag) => set_tag(&session.path, Some(tag))?,
        None if args.clear => set_tag(&session.path, None)?,
        None => SessionOverview::read_all_lines(&session.path)?.tag,
    };
    if global.json {
        output.print_json(&json!({ "session_id": session.id, "tag": tag, "path": session.path }))?;
        return Ok(ExitCode::SUCCESS);
    }
    match (tag, args.clear) {
        (Some(tag), _) if args.tag.is_some() => session.print_done(output, &format!("tagged '{tag}'"))?,
        (Some(tag), _) => output.print_text(&format!("{}\n", sanitize(&tag)))?,
        (None, true) => session.print_done(output, "tag removed")?,
        (None, false) => session.print_done(output, "has no tag")?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn rm(args: &RmArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let session = SessionRef::find(&args.session, global)?;
    let subagents = find::list_subagents(&session.path).len();
    let before = std::fs::metadata(&session.path)?;
    if !args.yes && !confirm_deletion(&session, before.len(), subagents)? {
        return Err(Failure::error("rm.declined", "nothing was deleted", ""));
    }
    // Bring the index up to date first, so that reports keep the usage of the deleted session.
    if let Err(error) = catalogue::with_catalogue(global, |_| Ok(())) {
        print_warning(&format!("the usage of this session may be missing from reports: {error}"));
    }
    delete_idle_session(&session.path).map_err(|error| match error {
        quipu_transcript::DeleteError::Busy { path } => busy_error(&path),
        other => other.into(),
    })?;
    if global.json {
        output.print_json(&json!({
            "session_id": session.id, "deleted": true, "path": session.path,
            "bytes": before.len(), "subagents": subagents,
        }))?;
    } else {
        session.print_done(output, "deleted; its usage stays in the reports")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn busy_error(path: &Path) -> anyhow::Error {
    let message = format!("'{}' is being written to; nothing was deleted", path.display());
    Failure::error("delete.busy", message, "end the agent that works in this session, then try again")
}

/// Asks the user whether to delete the session; false unless the answer is `y` or `yes`.
fn confirm_deletion(session: &SessionRef, bytes: u64, subagents: usize) -> Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let hint = "pass --yes to delete without being asked";
        return Err(Failure::usage("rm.not_confirmed", "cannot ask for confirmation: not a terminal", hint));
    }
    let headline =
        SessionOverview::read_all_lines(&session.path).ok().and_then(|overview| overview.headline().map(str::to_owned));
    let title = headline.map(|title| format!(" '{}'", sanitize(&title))).unwrap_or_default();
    let more = match subagents {
        0 => String::new(),
        1 => " and 1 subagent".to_owned(),
        n => format!(" and {n} subagents"),
    };
    let kb = bytes.div_ceil(1024);
    let mut stderr = io::stderr().lock();
    write!(stderr, "Delete {}{title} ({kb} KB{more})? This cannot be undone. [y/N] ", sanitize(&session.id))?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Id and file of a session.
struct SessionRef {
    id: String,
    path: PathBuf,
}

impl SessionRef {
    fn find(spec: &str, global: &GlobalArgs) -> Result<Self> {
        let path = sessions::resolve_session(spec, global)?;
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if id.starts_with("agent-") {
            let hint = "name the session it belongs to";
            return Err(Failure::error("session.subagent", format!("'{id}' is a subagent, not a session"), hint));
        }
        Ok(Self { id, path })
    }

    /// Prints the id and what was done.
    fn print_done(&self, output: &Output, what: &str) -> Result<()> {
        output.print_text(&format!("{} {}\n", sanitize(&self.id), sanitize(what)))
    }
}
