//! `quipu doctor`: checks that everything the commands need exists and works.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::AnsiColor;
use anyhow::Result;
use quipu_render::sanitize;
use quipu_transcript::find;
use serde::Serialize;
use serde_json::json;

use crate::catalogue;
use crate::claude_dirs::claude_dirs;
use crate::config;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::prices;

mod sandbox;

/// Result of one check, in the shape of `quipu doctor --json`.
#[derive(Debug, Serialize)]
struct CheckResult {
    /// Stable name of the check, such as `index`.
    name: &'static str,
    status: CheckStatus,
    /// Description of the result.
    text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// File or folder that was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckStatus {
    /// Works as expected.
    Ok,
    /// Something optional is missing.
    Missing,
    /// Something required does not work.
    Failed,
}

impl CheckResult {
    fn new(name: &'static str, status: CheckStatus, text: impl Into<String>) -> Self {
        Self { name, status, text: text.into(), hint: None, path: None }
    }

    fn with_path(self, path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

pub(crate) fn run(global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let mut checks: Vec<CheckResult> = claude_dirs(global).iter().map(|dir| check_sessions(dir)).collect();
    checks.extend([check_index(global), check_prices(), check_settings()]);
    checks.push(check_program("claude", "`quipu resume --run` starts it"));
    checks.push(check_program("quipu-agent", "it is installed with quipu"));
    checks.extend(sandbox::sandbox_checks());
    let failed = checks.iter().any(|check| check.status == CheckStatus::Failed);
    if global.json {
        output.print_json(&json!({ "ok": !failed, "version": env!("CARGO_PKG_VERSION"), "checks": checks }))?;
    } else {
        output.print_text(&checks.iter().map(|check| check_row(check, output)).collect::<String>())?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn check_row(check: &CheckResult, output: &Output) -> String {
    let (color, mark, word) = match check.status {
        CheckStatus::Ok => (AnsiColor::Green, "✓", "ok"),
        CheckStatus::Missing => (AnsiColor::Yellow, "-", "missing"),
        CheckStatus::Failed => (AnsiColor::Red, "✗", "failed"),
    };
    let style = output.style(color.on_default());
    let word = if output.color { String::new() } else { format!(" {word:<7}") };
    let hint = check.hint.as_ref().map(|hint| format!("\n  hint: {}", sanitize(hint))).unwrap_or_default();
    format!("{style}{mark}{style:#}{word} {}: {}{hint}\n", check.name, sanitize(&check.text))
}

/// Checks that the sessions of a config folder can be read.
fn check_sessions(dir: &Path) -> CheckResult {
    let projects = dir.join("projects");
    let shown = projects.display();
    if !projects.is_dir() {
        let text = format!("{shown} does not exist");
        return CheckResult::new("sessions", CheckStatus::Missing, text)
            .with_path(projects)
            .with_hint("run an agent once, or name its folder with --claude-dir");
    }
    let (files, errors) = find::list_sessions(&[dir.to_owned()]);
    let mb = files.iter().map(|file| file.bytes).sum::<u64>().div_ceil(1 << 20);
    let unreadable = files.iter().filter(|file| fs::File::open(&file.path).is_err()).count();
    let sessions = match files.len() {
        1 => "1 session".to_owned(),
        n => format!("{n} sessions"),
    };
    let text = format!("{sessions}, {mb} MB, in {shown}");
    match errors.len() + unreadable {
        0 => CheckResult::new("sessions", CheckStatus::Ok, text).with_path(projects),
        n => {
            let text = format!("{text}; {n} files or folders cannot be read");
            CheckResult::new("sessions", CheckStatus::Failed, text)
                .with_path(projects)
                .with_hint("check who may read them")
        }
    }
}

/// Checks that the index can be opened and brought up to date.
fn check_index(global: &GlobalArgs) -> CheckResult {
    let Some(folder) = catalogue::cache_folder() else {
        return CheckResult::new("index", CheckStatus::Missing, "no folder to keep it in")
            .with_hint("set XDG_CACHE_HOME or HOME");
    };
    if prices::load().is_err() {
        return CheckResult::new("index", CheckStatus::Missing, "not checked, because the prices cannot be read");
    }
    let result =
        catalogue::with_catalogue(global, |catalogue| Ok((catalogue.path().to_owned(), catalogue.check_integrity())));
    let (path, checked) = match result {
        Ok(answer) => answer,
        Err(error) => {
            let text = format!("{}: {error:#}", folder.display());
            return CheckResult::new("index", CheckStatus::Failed, text)
                .with_path(folder)
                .with_hint("it can be deleted at any time");
        }
    };
    if !path.starts_with(&folder) {
        let text = format!("{} cannot be written: each command makes its own index", folder.display());
        return CheckResult::new("index", CheckStatus::Failed, text)
            .with_path(folder)
            .with_hint("check who may write there");
    }
    match checked {
        Ok(()) => {
            let mb = fs::metadata(&path).map_or(0, |meta| meta.len()).div_ceil(1 << 20);
            CheckResult::new("index", CheckStatus::Ok, format!("sound, {mb} MB, {}", path.display())).with_path(path)
        }
        Err(error) => CheckResult::new("index", CheckStatus::Failed, format!("{}: {error}", path.display()))
            .with_path(path)
            .with_hint("delete it: the next command makes it again"),
    }
}

fn check_prices() -> CheckResult {
    let Some(path) = prices::prices_path() else { return CheckResult::new("prices", CheckStatus::Ok, "built in") };
    let shown = path.display();
    match prices::load() {
        Err(error) => CheckResult::new("prices", CheckStatus::Failed, format!("{error:#}"))
            .with_hint("correct the file")
            .with_path(path),
        Ok(_) if path.exists() => {
            CheckResult::new("prices", CheckStatus::Ok, format!("built in, with yours from {shown}")).with_path(path)
        }
        Ok(_) => CheckResult::new("prices", CheckStatus::Ok, format!("built in; your own would be in {shown}"))
            .with_path(path),
    }
}

/// Checks the settings file.
fn check_settings() -> CheckResult {
    let Some(path) = config::config_path() else { return CheckResult::new("settings", CheckStatus::Ok, "none") };
    let shown = path.display();
    match config::load() {
        Ok(Some(config)) => {
            let text = match config.trusted.len() {
                0 => shown.to_string(),
                1 => format!("{shown}, 1 trusted folder"),
                more => format!("{shown}, {more} trusted folders"),
            };
            CheckResult::new("settings", CheckStatus::Ok, text).with_path(path)
        }
        Ok(None) => {
            CheckResult::new("settings", CheckStatus::Ok, format!("none; they would be in {shown}")).with_path(path)
        }
        Err(error) => CheckResult::new("settings", CheckStatus::Failed, format!("{error:#}"))
            .with_path(path)
            .with_hint("correct the file"),
    }
}

/// Checks for a program on the PATH or in the folder of this one.
fn check_program(name: &'static str, hint: &str) -> CheckResult {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let path = crate::environment::var("PATH").unwrap_or_default();
    let own_folder = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let mut found = env::split_paths(&path).chain(own_folder).map(|folder| folder.join(&file));
    match found.find(|path| path.is_file()) {
        Some(path) => CheckResult::new(name, CheckStatus::Ok, path.display().to_string()).with_path(path),
        None => CheckResult::new(name, CheckStatus::Missing, "not on your PATH").with_hint(hint),
    }
}
