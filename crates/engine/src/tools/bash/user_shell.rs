//! The aliases, functions and variables that the user's `~/.bashrc` defines.

use std::env::{join_paths, split_paths};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessSession};
use tokio::io::AsyncReadExt as _;

use super::process::shell_quote;
use crate::guarded_paths::config_paths::{SafePrograms, ScriptVariables};
use crate::path::TargetPath;
use crate::private_file;
use crate::sandbox::USER_SHELL_FILE;
use crate::tool::{SECRET_VARIABLES, UserShell, Workspace};

/// Separates what `~/.bashrc` prints from the definitions.
const MARKER: &str = "--- quipu-agent: definitions ---";
/// How long `~/.bashrc` may take.
const SHELL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the definitions.
const MAX_SNAPSHOT_BYTES: u64 = 4 << 20;
/// Variables that belong to the shell that printed them, or name scripts that could be files of the session.
const SHELL_VARIABLES: [&str; 6] = ["PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV", "ENV"];

/// Lets an interactive bash read `~/.bashrc` and writes what it has then defined to a file. `None` if the user has no `~/.bashrc`, uses another shell, or it fails.
pub(super) async fn make_snapshot(workspace: &Workspace) -> Option<UserShell> {
    let is_bash = |shell: &OsStr| Path::new(shell).file_name().is_none_or(|name| name == "bash");
    let uses_bash = workspace.env().get(OsStr::new("SHELL")).is_none_or(|shell| is_bash(shell));
    if !uses_bash || !workspace.home()?.join(".bashrc").is_file() {
        return None;
    }
    let printed = tokio::time::timeout(SHELL_TIMEOUT, print_definitions(workspace)).await;
    let outcome = match printed {
        Ok(Ok(text)) => write_snapshot(workspace, &text),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    };
    if let Err(error) = &outcome {
        tracing::debug!(target: "quipu::sandbox", %error, "the definitions of ~/.bashrc are not used");
    }
    outcome.ok()
}

/// Prints the aliases, functions and exported variables of an interactive bash.
async fn print_definitions(workspace: &Workspace) -> io::Result<String> {
    let script = format!("echo; echo '{MARKER}'; alias -p; declare -f; export -p");
    let printed = run_bash(&["-i", "-c", &script], workspace).await?;
    let is_whole = (printed.len() as u64) < MAX_SNAPSHOT_BYTES;
    let text = String::from_utf8(printed).map_err(io::Error::other)?;
    match text.split_once(&format!("\n{MARKER}\n")) {
        Some((_, definitions)) if is_whole => Ok(definitions.to_owned()),
        _ => Err(io::Error::other("it defines too much, or ended early")),
    }
}

/// Runs bash in the folder of the session without a sandbox, and returns what it prints.
async fn run_bash(args: &[&str], workspace: &Workspace) -> io::Result<Vec<u8>> {
    let mut wrap = CommandWrap::with_new("bash", |shell| {
        shell.args(args).env_clear().envs(workspace.env()).current_dir(workspace.root());
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    });
    // Without a terminal of its own it cannot take that of the user.
    let mut child = wrap.wrap(ProcessSession).wrap(KillOnDrop).spawn()?;
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout().take() {
        stdout.take(MAX_SNAPSHOT_BYTES).read_to_end(&mut printed).await?;
    }
    // What it left running is not needed.
    let _ = child.start_kill();
    let _ = child.wait().await;
    Ok(printed)
}

/// Writes the definitions to a file that only the user can read. The agent's credentials are left out,
/// though `~/.bashrc` may set them, and so are folders of programs that commands in the sandbox can change.
fn write_snapshot(workspace: &Workspace, definitions: &str) -> io::Result<UserShell> {
    let is_kept = |line: &&str| {
        let name = line.strip_prefix("declare -x ").map(|rest| rest.split('=').next().unwrap_or(rest));
        name.is_none_or(|name| !SHELL_VARIABLES.contains(&name) && !SECRET_VARIABLES.contains(&name))
    };
    let (mut text, mut path) = (String::new(), OsString::new());
    for line in definitions.lines().filter(is_kept) {
        match line.strip_prefix("declare -x PATH=\"") {
            None => text.push_str(line),
            Some(rest) => {
                let value = rest.strip_suffix('"').filter(|value| !value.contains(['\\', '$', '`', '"']));
                let value = value.ok_or_else(|| io::Error::other("its PATH has special characters"))?;
                path = safe_programs(value.as_ref(), workspace);
                text.push_str(&format!("export PATH={}", shell_quote(&path.to_string_lossy())));
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("unset {}\n", SECRET_VARIABLES.join(" ")));
    let file = workspace.output_folder().join(USER_SHELL_FILE);
    private_file::write_file(&file, text.as_bytes())?;
    Ok(UserShell { file, path })
}

/// Returns a value of `PATH` without relative folders, folders of the session and those that links in the session lead
/// to. Folders inside the session are kept, resolved, if they are on the `PATH` of the agent or of the script that runs
/// before every command: these are guarded.
fn safe_programs(path: &OsStr, workspace: &Workspace) -> OsString {
    let own = workspace.env().get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let guarded: Vec<PathBuf> = split_paths(&own).chain(split_paths(&workspace.script_variables().path)).collect();
    let folders = workspace.folders();
    let is_inside = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let safe = |folder: PathBuf| {
        let target = TargetPath::new(&folder);
        let leads_through = target.names().any(is_inside);
        let is_kept = folder.is_absolute() && (!leads_through || guarded.contains(&folder));
        target.real.filter(|real| is_kept && !folders.contains(real)).map(|_| folder)
    };
    join_paths(split_paths(path).filter_map(safe)).unwrap_or(own)
}

/// Returns the `PATH` of commands after the script that runs before each of them: as it was when the session started,
/// and what the user's shell adds. The script may set another value for another folder, which is not guarded.
pub(super) fn path_after_scripts(workspace: &Workspace, user_shell: Option<&UserShell>) -> OsString {
    let script = safe_programs(&workspace.script_variables().path, workspace);
    let mut folders: Vec<PathBuf> = split_paths(&script).collect();
    let more = user_shell.map(|shell| split_paths(&shell.path).collect::<Vec<_>>()).unwrap_or_default();
    folders.extend(more);
    let mut unique = Vec::new();
    folders.into_iter().for_each(|folder| {
        if !unique.contains(&folder) {
            unique.push(folder)
        }
    });
    join_paths(unique).unwrap_or(script)
}

/// Finds out which variables the script sets that runs before every command, because what they name is guarded.
pub(crate) async fn find_script_variables(workspace: &Workspace) {
    let script = workspace.env_script();
    let print = "eval \"$1\" >/dev/null; printf '%s\\0' \"$PATH\" \"$BASH_ENV\" \"$ENV\"";
    let args = ["-c", print, "bash", &script];
    let printed = match script.is_empty() {
        true => None,
        false => tokio::time::timeout(SHELL_TIMEOUT, run_bash(&args, workspace)).await.ok().and_then(Result::ok),
    };
    let printed = printed.unwrap_or_default();
    let mut values = printed.split(|byte| *byte == 0).map(|value| OsString::from_vec(value.to_vec()));
    let path = values.next().unwrap_or_default();
    let scripts = values.filter(|value| !value.is_empty()).map(PathBuf::from).collect();
    let folders = workspace.folders();
    let path = SafePrograms::new(&path, &folders).path.unwrap_or(path);
    workspace.set_script_variables(ScriptVariables { path, scripts });
}
