//! The Grep tool: finds lines by regular expression, with ripgrep's crates.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::Walk;
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use quipu_files::{has_too_many_braces, walk_unignored};
use quipu_message::ToolName;
use quipu_message::tool::output::GrepOutput;
use quipu_message::tool::{GrepInput, GrepMode};
use serde_json::{Value, json};

use super::glob::modified_time;
use super::{into_output, parse_input};
use crate::path::TargetPath;
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};
use search::{FileMatches, FileSearcher};

mod search;

/// Maximum number of results if the call sets none.
const DEFAULT_HEAD_LIMIT: u64 = 250;
/// Maximum size of a compiled pattern; a search with a larger one may take hours.
const MAX_PATTERN_BYTES: usize = 4 << 20;
/// Maximum size of what is computed from a pattern during a search.
const MAX_PATTERN_CACHE_BYTES: usize = 64 << 20;

/// The Grep tool.
#[derive(Debug, Clone, Copy)]
pub struct Grep;

impl Tool for Grep {
    fn name(&self) -> ToolName {
        ToolName::Grep
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
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

    fn effect(&self, _: &Value) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn run<'a>(&'a self, input: Value, workspace: &'a Workspace, call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { into_output(run(input, workspace, call).await) })
    }
}

async fn run(input: Value, workspace: &Workspace, call: &CallContext) -> Result<ToolOutput, ToolOutput> {
    let request: GrepInput = parse_input(input)?;
    let target = call.resolve_target(request.path.text().unwrap_or("."), workspace);
    let path = target.real.clone().unwrap_or_default();
    if !path.exists() {
        return Err(ToolOutput::tool_use_error(format!("Path does not exist: {}", target.given.display())));
    }
    let matcher =
        build_matcher(&request).map_err(|e| ToolOutput::tool_use_error(format!("The pattern cannot be read: {e}")))?;
    let walk = build_walk(&path, &request)
        .map_err(|e| ToolOutput::tool_use_error(format!("The files cannot be chosen: {e}")))?;
    let shown = |file: &Path, cwd: &Path| file.strip_prefix(cwd).unwrap_or(file).to_string_lossy().into_owned();
    let (hidden, cancel, cwd) = (workspace.hidden_files(), call.cancel.clone(), workspace.cwd());
    let search = FileSearcher::new(matcher, &request, path.is_dir());
    let found = tokio::task::spawn_blocking(move || {
        let mut found: Vec<(PathBuf, FileMatches)> = Vec::new();
        let mut search = search;
        for entry in walk.filter_map(Result::ok).take_while(|_| !cancel.is_cancelled()) {
            // The walk starts at a resolved path and follows no links.
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if is_file && !hidden(&TargetPath::from_resolved(entry.path())) {
                let name = shown(entry.path(), &cwd);
                found.extend(search.search_file(entry.path(), &name).map(|lines| (PathBuf::from(name), lines)));
            }
        }
        if !search.shows_lines() {
            // Most recently modified first, as in Glob.
            found.sort_by_cached_key(|(path, _)| std::cmp::Reverse(modified_time(&cwd.join(path))));
        }
        found
    });
    let found = found.await.map_err(|e| ToolOutput::failure(format!("The search broke off: {e}.")))?;
    Ok(match request.output_mode.get() {
        Some(GrepMode::Content) => content_output(&request, found),
        Some(GrepMode::Count) => count_output(&request, found),
        _ => files_output(&request, found),
    })
}

fn build_matcher(request: &GrepInput) -> Result<RegexMatcher, grep_regex::Error> {
    let lines = request.multiline.is_true();
    let mut builder = RegexMatcherBuilder::new();
    builder.size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_CACHE_BYTES);
    builder.case_insensitive(request.ignore_case.is_true()).multi_line(true).dot_matches_new_line(lines);
    if !lines {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&request.pattern)
}

fn build_walk(path: &Path, request: &GrepInput) -> Result<Walk, ignore::Error> {
    let mut walk = walk_unignored(path, |entry| entry.file_name() != ".git" || entry.depth() == 0);
    walk.hidden(false).require_git(false).sort_by_file_name(Ord::cmp);
    if let Some(globs) = request.glob.text() {
        let mut names = OverrideBuilder::new(path);
        // Globs are separated by spaces, or by commas outside braces.
        let split = |c: char| c.is_whitespace() || (c == ',' && !globs.contains('{'));
        for glob in globs.split(split).filter(|glob| !glob.is_empty()) {
            if has_too_many_braces(glob) {
                let err = "too many braces".to_owned();
                return Err(ignore::Error::Glob { glob: None, err });
            }
            names.add(glob)?;
        }
        walk.overrides(names.build()?);
    }
    if let Some(kind) = request.file_type.text() {
        walk.types(TypesBuilder::new().add_defaults().select(kind).build()?);
    }
    Ok(walk.build())
}

/// Applies offset and limit; also returns whether results were left out.
fn paginate<T>(request: &GrepInput, all: Vec<T>) -> (Vec<T>, bool) {
    let most = request.head_limit.get().copied().unwrap_or(DEFAULT_HEAD_LIMIT);
    let most = if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) };
    let skip = usize::try_from(request.offset.get().copied().unwrap_or(0)).unwrap_or(usize::MAX);
    let more = all.len().saturating_sub(skip) > most;
    (all.into_iter().skip(skip).take(most).collect(), more)
}

fn files_output(request: &GrepInput, found: Vec<(PathBuf, FileMatches)>) -> ToolOutput {
    let total = found.len();
    let names: Vec<String> = found.into_iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    let (names, more) = paginate(request, names);
    let words = match total {
        0 => "No files found".to_owned(),
        1 => format!("Found 1 file\n{}", names.join("\n")),
        total => format!("Found {total} files\n{}", names.join("\n")),
    };
    let raw = GrepOutput {
        mode: GrepMode::FilesWithMatches,
        num_files: (names.len() as u64).into(),
        filenames: names,
        ..GrepOutput::default()
    };
    finish_output(request, words, raw, more)
}

fn content_output(request: &GrepInput, found: Vec<(PathBuf, FileMatches)>) -> ToolOutput {
    let lines: Vec<String> = found.into_iter().flat_map(|(_, found)| found.lines).collect();
    // Separators are only between groups of lines, not before the first.
    let lines: Vec<String> = lines.into_iter().skip_while(|line| line == "--").collect();
    let (lines, more) = paginate(request, lines);
    let content = lines.join("\n");
    let words = if content.is_empty() { "No matches found".to_owned() } else { content.clone() };
    let raw = GrepOutput {
        mode: GrepMode::Content,
        num_files: 0.into(),
        content: content.into(),
        num_lines: (lines.len() as u64).into(),
        ..GrepOutput::default()
    };
    finish_output(request, words, raw, more)
}

fn count_output(request: &GrepInput, found: Vec<(PathBuf, FileMatches)>) -> ToolOutput {
    let matches: u64 = found.iter().map(|(_, found)| found.match_count).sum();
    let files = found.len();
    let lines = found.into_iter().map(|(path, found)| format!("{}:{}", path.display(), found.match_count)).collect();
    let (lines, more) = paginate(request, lines);
    let content = lines.join("\n");
    let shown = if content.is_empty() { "No matches found" } else { &content };
    let words = format!("{shown}\n\nFound {matches} total occurrences across {files} files.");
    let raw = GrepOutput {
        mode: GrepMode::Count,
        num_files: (files as u64).into(),
        content: content.into(),
        num_matches: matches.into(),
        ..GrepOutput::default()
    };
    finish_output(request, words, raw, more)
}

/// Adds a note about results that were left out.
fn finish_output(request: &GrepInput, mut words: String, mut raw: GrepOutput, more: bool) -> ToolOutput {
    let offset = request.offset.get().copied().unwrap_or(0);
    if more || offset > 0 {
        let limit = request.head_limit.get().copied().unwrap_or(DEFAULT_HEAD_LIMIT);
        words.push_str(&format!("\n\n[Showing results with pagination = limit: {limit}, offset: {offset}]"));
        raw.applied_limit = limit.into();
        raw.applied_offset = Some(offset).filter(|offset| *offset > 0).into();
    }
    ToolOutput::new(words, &raw)
}
