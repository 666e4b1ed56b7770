//! Grep: lines by pattern, on ripgrep's crates.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ignore::{Walk, WalkBuilder};
use quipu_message::tool::GrepInput;
use quipu_message::tool::output::GrepOutput;
use serde_json::{Value, json};

use super::glob::changed;
use super::{input, settle};
use crate::tool::{Call, Definition, Effect, Output, Place, Target, Tool};
use search::{Found, Search};

mod search;

/// How many results a call gives when it does not say.
const RESULTS: u64 = 250;

/// Finds lines by pattern.
#[derive(Debug, Clone, Copy)]
pub struct Grep;

impl Tool for Grep {
    fn definition(&self) -> Definition {
        Definition {
            name: "Grep".into(),
            description: "Finds lines by a regular expression (Rust syntax, as in ripgrep) in all files of a folder \
                          that are not ignored, or in one file. By default it names the files that match; \
                          `output_mode` `content` shows the lines, `count` counts them. Choose files with `glob` or \
                          `type`. Prefer it to grep in Bash."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "The regular expression"},
                    "path": {"type": "string", "description": "The file or folder (default: the current folder)"},
                    "glob": {"type": "string", "description": "Only in files whose names match, such as `*.{ts,tsx}`"},
                    "type": {"type": "string", "description": "Only in files of this type, such as `rust` or `py`"},
                    "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"], "description": "What to give (default: files_with_matches)"},
                    "-A": {"type": "integer", "minimum": 0, "description": "Lines after each match"},
                    "-B": {"type": "integer", "minimum": 0, "description": "Lines before each match"},
                    "-C": {"type": "integer", "minimum": 0, "description": "Lines on both sides of each match"},
                    "context": {"type": "integer", "minimum": 0, "description": "The same as -C"},
                    "-i": {"type": "boolean", "description": "Small and capital letters are the same"},
                    "-n": {"type": "boolean", "description": "Line numbers in `content` (default: true)"},
                    "-o": {"type": "boolean", "description": "Only what matched, not the whole line"},
                    "multiline": {"type": "boolean", "description": "A match may go over lines, and `.` matches line ends"},
                    "head_limit": {"type": "integer", "minimum": 0, "description": "How many results at most (default: 250; 0: all)"},
                    "offset": {"type": "integer", "minimum": 0, "description": "How many results to leave out first"},
                },
                "required": ["pattern"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call_input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move { settle(run(call_input, place, call).await) })
    }
}

async fn run(call_input: Value, place: &Place, call: &Call) -> Result<Output, Output> {
    let wanted: GrepInput = input(call_input)?;
    let target = call.target(wanted.path.text().unwrap_or("."), place);
    let path = target.real.clone().unwrap_or_default();
    if !path.exists() {
        return Err(Output::misuse(format!("Path does not exist: {}", target.given.display())));
    }
    let matcher = matcher(&wanted).map_err(|e| Output::misuse(format!("The pattern cannot be read: {e}")))?;
    let walk = walk(&path, &wanted).map_err(|e| Output::misuse(format!("The files cannot be chosen: {e}")))?;
    let shown = |file: &Path, cwd: &Path| file.strip_prefix(cwd).unwrap_or(file).to_string_lossy().into_owned();
    let (hidden, cancel, cwd) = (place.hidden(), call.cancel.clone(), place.cwd());
    let search = Search::new(matcher, &wanted, path.is_dir());
    let found = tokio::task::spawn_blocking(move || {
        let mut found: Vec<(PathBuf, Found)> = Vec::new();
        let mut search = search;
        for entry in walk.filter_map(Result::ok).take_while(|_| !cancel.is_cancelled()) {
            // The walk begins at a resolved path and follows no links.
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if is_file && !hidden(&Target::resolved(entry.path())) {
                let name = shown(entry.path(), &cwd);
                found.extend(search.file(entry.path(), &name).map(|lines| (PathBuf::from(name), lines)));
            }
        }
        if !search.shows_lines() {
            // The latest changed first, as with Glob.
            found.sort_by_cached_key(|(path, _)| std::cmp::Reverse(changed(&cwd.join(path))));
        }
        found
    });
    let found = found.await.map_err(|e| Output::failure(format!("The search broke off: {e}.")))?;
    Ok(match wanted.output_mode.text().unwrap_or("files_with_matches") {
        "content" => content(&wanted, found),
        "count" => count(&wanted, found),
        _ => files(&wanted, found),
    })
}

fn matcher(wanted: &GrepInput) -> Result<RegexMatcher, grep_regex::Error> {
    let lines = wanted.multiline.is_true();
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(wanted.ignore_case.is_true()).multi_line(true).dot_matches_new_line(lines);
    if !lines {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&wanted.pattern)
}

fn walk(path: &Path, wanted: &GrepInput) -> Result<Walk, ignore::Error> {
    let mut walk = WalkBuilder::new(path);
    walk.hidden(false)
        .require_git(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git" || entry.depth() == 0);
    if let Some(globs) = wanted.glob.text() {
        let mut names = OverrideBuilder::new(path);
        // Several patterns may be given, separated by spaces, or by commas outside braces.
        let split = |c: char| c.is_whitespace() || (c == ',' && !globs.contains('{'));
        for glob in globs.split(split).filter(|glob| !glob.is_empty()) {
            names.add(glob)?;
        }
        walk.overrides(names.build()?);
    }
    if let Some(kind) = wanted.file_type.text() {
        walk.types(TypesBuilder::new().add_defaults().select(kind).build()?);
    }
    Ok(walk.build())
}

/// Results from the offset on, at most as many as asked for; and whether that left some out.
fn part<T>(wanted: &GrepInput, all: Vec<T>) -> (Vec<T>, bool) {
    let most = wanted.head_limit.get().copied().unwrap_or(RESULTS);
    let most = if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) };
    let skip = usize::try_from(wanted.offset.get().copied().unwrap_or(0)).unwrap_or(usize::MAX);
    let more = all.len().saturating_sub(skip) > most;
    (all.into_iter().skip(skip).take(most).collect(), more)
}

fn files(wanted: &GrepInput, found: Vec<(PathBuf, Found)>) -> Output {
    let total = found.len();
    let names: Vec<String> = found.into_iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    let (names, more) = part(wanted, names);
    let words = match total {
        0 => "No files found".to_owned(),
        1 => format!("Found 1 file\n{}", names.join("\n")),
        total => format!("Found {total} files\n{}", names.join("\n")),
    };
    let raw = GrepOutput {
        mode: "files_with_matches".into(),
        num_files: (names.len() as u64).into(),
        filenames: names,
        ..GrepOutput::default()
    };
    finish(wanted, words, raw, more)
}

fn content(wanted: &GrepInput, found: Vec<(PathBuf, Found)>) -> Output {
    let lines: Vec<String> = found.into_iter().flat_map(|(_, found)| found.lines).collect();
    // A mark between stretches stands only between them.
    let lines: Vec<String> = lines.into_iter().skip_while(|line| line == "--").collect();
    let (lines, more) = part(wanted, lines);
    let content = lines.join("\n");
    let words = if content.is_empty() { "No matches found".to_owned() } else { content.clone() };
    let raw = GrepOutput {
        mode: "content".into(),
        num_files: 0.into(),
        content: content.into(),
        num_lines: (lines.len() as u64).into(),
        ..GrepOutput::default()
    };
    finish(wanted, words, raw, more)
}

fn count(wanted: &GrepInput, found: Vec<(PathBuf, Found)>) -> Output {
    let matches: u64 = found.iter().map(|(_, found)| found.matches).sum();
    let files = found.len();
    let lines = found.into_iter().map(|(path, found)| format!("{}:{}", path.display(), found.matches)).collect();
    let (lines, more) = part(wanted, lines);
    let content = lines.join("\n");
    let shown = if content.is_empty() { "No matches found" } else { &content };
    let words = format!("{shown}\n\nFound {matches} total occurrences across {files} files.");
    let raw = GrepOutput {
        mode: "count".into(),
        num_files: (files as u64).into(),
        content: content.into(),
        num_matches: matches.into(),
        ..GrepOutput::default()
    };
    finish(wanted, words, raw, more)
}

/// Adds what was left out.
fn finish(wanted: &GrepInput, mut words: String, mut raw: GrepOutput, more: bool) -> Output {
    let offset = wanted.offset.get().copied().unwrap_or(0);
    if more || offset > 0 {
        let limit = wanted.head_limit.get().copied().unwrap_or(RESULTS);
        words.push_str(&format!("\n\n[Showing results with pagination = limit: {limit}, offset: {offset}]"));
        raw.applied_limit = limit.into();
        raw.applied_offset = Some(offset).filter(|offset| *offset > 0).into();
    }
    Output::new(words, &raw)
}
