//! `quipu doctor`: whether all that the commands need is there and works.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::AnsiColor;
use anyhow::Result;
use quipu_render::clean;
use quipu_transcript::find;
use serde::Serialize;
use serde_json::json;

use crate::args::Global;
use crate::catalogue;
use crate::config;
use crate::output::Output;
use crate::prices;
use crate::sessions::claude_dirs;

mod sandbox;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    /// What was looked at, as a stable name.
    name: &'static str,
    status: Status,
    /// What was found, for people.
    text: String,
    /// What can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Where, when it is in one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// It is as it should be.
    Ok,
    /// Something is missing that not everybody needs.
    Missing,
    /// Something does not work.
    Failed,
}

impl Check {
    fn new(name: &'static str, status: Status, text: impl Into<String>) -> Self {
        Self { name, status, text: text.into(), hint: None, path: None }
    }

    fn at(self, path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

pub(crate) fn run(global: &Global, output: &Output) -> Result<ExitCode> {
    let mut checks: Vec<Check> = claude_dirs(global).iter().map(|dir| sessions(dir)).collect();
    checks.extend([index(global), price_table(), settings()]);
    checks.push(program("claude", "`quipu resume --run` starts it"));
    checks.push(program("quipu-agent", "it is installed with quipu"));
    checks.extend(sandbox::checks());
    let failed = checks.iter().any(|check| check.status == Status::Failed);
    if global.json {
        output.json(&json!({ "ok": !failed, "version": env!("CARGO_PKG_VERSION"), "checks": checks }))?;
    } else {
        output.text(&checks.iter().map(|check| row(check, output)).collect::<String>())?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn row(check: &Check, output: &Output) -> String {
    let (color, mark, word) = match check.status {
        Status::Ok => (AnsiColor::Green, "✓", "ok"),
        Status::Missing => (AnsiColor::Yellow, "-", "missing"),
        Status::Failed => (AnsiColor::Red, "✗", "failed"),
    };
    let style = output.style(color.on_default());
    let word = if output.color { String::new() } else { format!(" {word:<7}") };
    let hint = check.hint.as_ref().map(|hint| format!("\n  hint: {}", clean(hint))).unwrap_or_default();
    format!("{style}{mark}{style:#}{word} {}: {}{hint}\n", check.name, clean(&check.text))
}

/// The sessions of a config folder.
fn sessions(dir: &Path) -> Check {
    let projects = dir.join("projects");
    let shown = projects.display();
    if !projects.is_dir() {
        let text = format!("{shown} does not exist");
        return Check::new("sessions", Status::Missing, text)
            .at(projects)
            .hint("run an agent once, or name its folder with --claude-dir");
    }
    let (files, errors) = find::sessions(&[dir.to_owned()]);
    let mb = files.iter().map(|file| file.bytes).sum::<u64>().div_ceil(1 << 20);
    let unreadable = files.iter().filter(|file| fs::File::open(&file.path).is_err()).count();
    let sessions = match files.len() {
        1 => "1 session".to_owned(),
        n => format!("{n} sessions"),
    };
    let text = format!("{sessions}, {mb} MB, in {shown}");
    match errors.len() + unreadable {
        0 => Check::new("sessions", Status::Ok, text).at(projects),
        n => {
            let text = format!("{text}; {n} files or folders cannot be read");
            Check::new("sessions", Status::Failed, text).at(projects).hint("check who may read them")
        }
    }
}

/// Whether the index can be opened and brought up to date.
fn index(global: &Global) -> Check {
    let Some(folder) = catalogue::cache_folder() else {
        return Check::new("index", Status::Missing, "no folder to keep it in").hint("set XDG_CACHE_HOME or HOME");
    };
    if prices::load().is_err() {
        return Check::new("index", Status::Missing, "not checked, because the prices cannot be read");
    }
    let asked = catalogue::with(global, |catalogue| Ok((catalogue.path().to_owned(), catalogue.check())));
    let (path, checked) = match asked {
        Ok(answer) => answer,
        Err(error) => {
            let text = format!("{}: {error:#}", folder.display());
            return Check::new("index", Status::Failed, text).at(folder).hint("it can be deleted at any time");
        }
    };
    if !path.starts_with(&folder) {
        let text = format!("{} cannot be written: each command makes its own index", folder.display());
        return Check::new("index", Status::Failed, text).at(folder).hint("check who may write there");
    }
    match checked {
        Ok(()) => {
            let mb = fs::metadata(&path).map_or(0, |meta| meta.len()).div_ceil(1 << 20);
            Check::new("index", Status::Ok, format!("sound, {mb} MB, {}", path.display())).at(path)
        }
        Err(error) => Check::new("index", Status::Failed, format!("{}: {error}", path.display()))
            .at(path)
            .hint("delete it: the next command makes it again"),
    }
}

fn price_table() -> Check {
    let Some(path) = prices::path() else { return Check::new("prices", Status::Ok, "built in") };
    let shown = path.display();
    match prices::load() {
        Err(error) => Check::new("prices", Status::Failed, format!("{error:#}")).hint("correct the file").at(path),
        Ok(_) if path.exists() => {
            Check::new("prices", Status::Ok, format!("built in, with yours from {shown}")).at(path)
        }
        Ok(_) => Check::new("prices", Status::Ok, format!("built in; your own would be in {shown}")).at(path),
    }
}

/// The settings file beside the prices.
fn settings() -> Check {
    let Some(path) = config::path() else { return Check::new("settings", Status::Ok, "none") };
    let shown = path.display();
    match config::load() {
        Ok(Some(config)) => {
            let text = match config.trusted.len() {
                0 => shown.to_string(),
                1 => format!("{shown}, 1 trusted folder"),
                more => format!("{shown}, {more} trusted folders"),
            };
            Check::new("settings", Status::Ok, text).at(path)
        }
        Ok(None) => Check::new("settings", Status::Ok, format!("none; they would be in {shown}")).at(path),
        Err(error) => Check::new("settings", Status::Failed, format!("{error:#}")).at(path).hint("correct the file"),
    }
}

/// A program on the PATH, or beside this one.
fn program(name: &'static str, hint: &str) -> Check {
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let mut found = env::split_paths(&path).chain(beside).map(|folder| folder.join(&file));
    match found.find(|path| path.is_file()) {
        Some(path) => Check::new(name, Status::Ok, path.display().to_string()).at(path),
        None => Check::new(name, Status::Missing, "not on your PATH").hint(hint),
    }
}
