//! `quipu resume`: prints or runs the command that resumes a session in its folder.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Result;
use quipu_transcript::SessionOverview;
use quipu_transcript::find::{find_project_folder, project_folder_name};
use serde_json::json;

use crate::args::ResumeArgs;
use crate::catalogue;
use crate::claude_dirs::{claude_dirs, no_sessions_error};
use crate::environment;
use crate::error::Failure;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::sessions;

/// Program that resumes sessions.
const AGENT_PROGRAM: &str = "claude";

pub(crate) fn run(args: &ResumeArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let path = match &args.session {
        Some(spec) => sessions::resolve_session(spec, global)?,
        None => latest_session(global)?,
    };
    let resume = ResumeCommand::from_file(&path)?;
    if args.run {
        return resume.exec(output);
    }
    if global.json {
        output.print_json(&json!({
            "session_id": resume.id, "cwd": resume.cwd, "config_dir": resume.config_dir,
            "command": [AGENT_PROGRAM, "--resume", resume.id], "shell": resume.shell_command()?,
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

/// Session id, folder and environment of the command that resumes a session.
struct ResumeCommand {
    id: String,
    cwd: String,
    /// Config folder to pass to the agent; `None` if it is the default one.
    config_dir: Option<String>,
}

impl ResumeCommand {
    fn from_file(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)?;
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if id.starts_with("agent-") {
            let hint = "name the session it belongs to";
            return Err(Failure::error("resume.subagent", format!("'{id}' is a subagent, not a session"), hint));
        }
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let config = path.ancestors().nth(3).filter(|_| path.ancestors().nth(2).is_some_and(is_projects_folder));
        let Some(config) = config else {
            let message = format!("'{}' is not in a config folder", path.display());
            let hint = "agents find sessions in <config folder>/projects/<project>/<session>.jsonl";
            return Err(Failure::error("resume.not_in_projects", message, hint));
        };
        let Some(cwd) = session_cwd(&path, &folder)? else {
            let message = format!("the session '{id}' does not say which folder it belongs to");
            return Err(Failure::error(
                "resume.no_folder",
                message,
                format!("run `{AGENT_PROGRAM} --resume {id}` there"),
            ));
        };
        if [id.as_str(), &cwd].iter().any(|text| text.chars().any(char::is_control)) || id.starts_with('-') {
            let message = "the session's id or folder has characters that are not safe in a command";
            return Err(Failure::error("resume.unsafe", message, "run the agent yourself"));
        }
        let default = environment::home_dir().map(|home| home.join(".claude"));
        let usual = environment::var("CLAUDE_CONFIG_DIR").map(PathBuf::from).or(default);
        let config_dir = (usual.as_deref() != Some(config)).then(|| config.to_string_lossy().into_owned());
        Ok(Self { id, cwd, config_dir })
    }

    /// The command, quoted for a shell.
    fn shell_command(&self) -> Result<String> {
        let set = match &self.config_dir {
            Some(dir) => format!("CLAUDE_CONFIG_DIR={} ", shell_quote(dir)?),
            None => String::new(),
        };
        Ok(format!("cd {} && {set}{AGENT_PROGRAM} --resume {}", shell_quote(&self.cwd)?, shell_quote(&self.id)?))
    }

    /// Replaces this process by the agent; on Unix it returns only if that fails.
    #[expect(clippy::disallowed_methods, reason = "the agent replaces this process")]
    fn exec(&self, output: &Output) -> Result<ExitCode> {
        if !Path::new(&self.cwd).is_dir() {
            let message = format!("the folder '{}' does not exist", self.cwd);
            return Err(Failure::error("resume.no_such_folder", message, "create it, or move the session"));
        }
        let mut command = Command::new(AGENT_PROGRAM);
        command.args(["--resume", &self.id]).current_dir(&self.cwd);
        if let Some(dir) = &self.config_dir {
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
        Err(Failure::error("resume.cannot_start", format!("cannot start `{AGENT_PROGRAM}`: {error}"), hint))
    }
}

fn is_projects_folder(folder: &Path) -> bool {
    folder.file_name() == Some("projects".as_ref())
}

/// Working directory of a session. The first one in the file, unless it does not belong to the
/// project folder and a later one does.
fn session_cwd(path: &Path, folder: &str) -> Result<Option<String>> {
    let first = SessionOverview::read_both_ends(path)?.cwd;
    if first.as_deref().is_none_or(|cwd| project_folder_name(cwd) == folder) {
        return Ok(first);
    }
    let conversation = quipu_transcript::load_file(path)?;
    let named = conversation.path().into_iter().filter_map(|node| node.entry.envelope()?.cwd.text());
    let fits = named.map(str::to_owned).find(|cwd| project_folder_name(cwd) == folder);
    Ok(fits.or(first))
}

fn shell_quote(text: &str) -> Result<Cow<'_, str>> {
    Ok(shlex::try_quote(text)?)
}
