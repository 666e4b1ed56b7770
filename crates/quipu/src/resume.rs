//! `quipu resume`: prints or runs the command that resumes a session in its folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Result;
use quipu_transcript::ResumeCommand;
use quipu_transcript::find::find_project_folder;
use serde_json::json;

use crate::args::ResumeArgs;
use crate::catalogue;
use crate::claude_dirs::{claude_dirs, no_sessions_error};
use crate::environment;
use crate::error::Failure;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::sessions;

pub(crate) fn run(args: &ResumeArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let path = match &args.session {
        Some(spec) => sessions::resolve_session(spec, global)?,
        None => latest_session(global)?,
    };
    let resume = ResumeCommand::from_file(&path, usual_config_dir().as_deref())?;
    if args.run {
        return exec(&resume, output);
    }
    if global.json {
        output.print_json(&json!({
            "session_id": resume.session_id, "cwd": resume.cwd, "config_dir": resume.config_dir,
            "command": [ResumeCommand::PROGRAM, "--resume", resume.session_id], "shell": resume.shell_command()?,
        }))?;
    } else {
        output.print_bytes(format!("{}\n", resume.shell_command()?).as_bytes())?;
        if !Path::new(&resume.cwd).is_dir() && !global.quiet {
            let cwd = quipu_render::sanitize(&resume.cwd);
            let _ = writeln!(anstream::stderr().lock(), "warning: the folder '{cwd}' does not exist");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// File of the latest session of the current folder, or else of all sessions.
fn latest_session(global: &GlobalArgs) -> Result<PathBuf> {
    let sessions = catalogue::list_sessions(global)?;
    let here = std::env::current_dir()?;
    let folders: Vec<PathBuf> = claude_dirs(global).iter().filter_map(|dir| find_project_folder(dir, &here)).collect();
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folders: Vec<PathBuf> = folders.iter().map(|folder| canonical(folder)).collect();
    let is_here = |path: &Path| path.parent().is_some_and(|folder| folders.contains(&canonical(folder)));
    let session = sessions.iter().find(|session| is_here(&session.path)).or_else(|| sessions.first());
    session.map(|session| session.path.clone()).ok_or_else(|| no_sessions_error(global))
}

/// The config folder that an agent uses by itself.
pub(crate) fn usual_config_dir() -> Option<PathBuf> {
    let default = environment::home_dir().map(|home| home.join(".claude"));
    environment::var("CLAUDE_CONFIG_DIR").map(PathBuf::from).or(default)
}

/// Replaces this process by the agent; on Unix it returns only if that fails.
#[expect(clippy::disallowed_methods, reason = "the agent replaces this process")]
fn exec(resume: &ResumeCommand, output: &Output) -> Result<ExitCode> {
    if !Path::new(&resume.cwd).is_dir() {
        let message = format!("the folder '{}' does not exist", resume.cwd);
        return Err(Failure::error("resume.no_such_folder", message, "create it, or move the session"));
    }
    let mut command = Command::new(ResumeCommand::PROGRAM);
    command.args(["--resume", &resume.session_id]).current_dir(&resume.cwd);
    if let Some(dir) = &resume.config_dir {
        command.env("CLAUDE_CONFIG_DIR", dir);
    }
    output.print_bytes(b"")?;
    #[cfg(unix)]
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    let error = match command.status() {
        Ok(status) => return Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))),
        Err(error) => error,
    };
    let hint = "install it, or put it on your PATH";
    Err(Failure::error("resume.cannot_start", format!("cannot start `{}`: {error}", ResumeCommand::PROGRAM), hint))
}
