//! The Glob tool: finds files by name.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use futures_util::future::BoxFuture;
use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use quipu_files::has_too_many_braces;
use quipu_message::ToolName;
use quipu_message::tool::GlobInput;
use quipu_message::tool::output::GlobOutput;
use serde_json::{Value, json};

use super::{into_output, parse_input};
use crate::path::{TargetPath, resolve};
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

/// Maximum number of files in the output.
const MAX_FILES: usize = 100;

/// The Glob tool.
#[derive(Debug, Clone, Copy)]
pub struct Glob;

impl Tool for Glob {
    fn name(&self) -> ToolName {
        ToolName::Glob
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Finds files by a pattern of their names, such as `**/*.rs` or `src/**/test_*.py`. The \
                          latest changed come first, at most 100. To look inside files, use Grep."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "The pattern; one without a slash matches at any depth"},
                    "path": {"type": "string", "description": "The folder to look in (default: the current one)"},
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
    let started = Instant::now();
    let request: GlobInput = parse_input(input)?;
    let target = call.resolve_target(request.path.text().unwrap_or("."), workspace);
    let (folder, pattern) = split_pattern(&target, workspace, &request.pattern);
    let shown = folder.as_ref().unwrap_or(&target.given).display().to_string();
    // The folder that was permitted; a link in it was made since.
    let Some(folder) = folder.filter(|folder| folder.is_dir() && resolve(folder).as_ref() == Some(folder)) else {
        return Err(ToolOutput::tool_use_error(format!("Directory does not exist: {shown}")));
    };
    if has_too_many_braces(&pattern) {
        return Err(ToolOutput::tool_use_error("The pattern cannot be read: it has too many braces."));
    }
    let mut names = OverrideBuilder::new(&folder);
    let names = names.add(&pattern).and_then(|names| names.build());
    let names = names.map_err(|e| ToolOutput::tool_use_error(format!("The pattern cannot be read: {e}")))?;
    let mut walk = WalkBuilder::new(&folder);
    walk.standard_filters(false).filter_entry(|entry| entry.file_name() != ".git").overrides(names);
    let (hidden, cancel) = (workspace.hidden_files(), call.cancel.clone());
    let found = tokio::task::spawn_blocking(move || {
        let files = walk.build().filter_map(Result::ok).take_while(|_| !cancel.is_cancelled());
        let files = files.filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
        let mut files: Vec<(SystemTime, PathBuf)> = files
            .filter(|entry| !hidden(&entry_target(entry)))
            .map(|e| (modified_time(e.path()), e.into_path()))
            .collect();
        files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        files
    });
    let found = found.await.map_err(|e| ToolOutput::failure(format!("The search broke off: {e}.")))?;
    let truncated = found.len() > MAX_FILES;
    let filenames: Vec<String> =
        found.iter().take(MAX_FILES).map(|(_, path)| path.to_string_lossy().into_owned()).collect();
    let mut words = if filenames.is_empty() { "No files found".to_owned() } else { filenames.join("\n") };
    if truncated {
        words.push_str("\n(Results are truncated. Consider using a more specific path or pattern.)");
    }
    let raw = GlobOutput {
        num_files: filenames.len() as u64,
        filenames,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        truncated,
        ..GlobOutput::default()
    };
    Ok(ToolOutput::new(words, &raw))
}

/// Target of an entry from a walk of a resolved folder; only the entry itself may be a link.
fn entry_target(entry: &ignore::DirEntry) -> TargetPath {
    match entry.path_is_symlink() {
        true => TargetPath::new(entry.path()),
        false => TargetPath::from_resolved(entry.path()),
    }
}

/// Splits an absolute pattern into the folder without wildcards, resolved, and the rest. Other patterns are
/// relative to `target`.
fn split_pattern(target: &TargetPath, workspace: &Workspace, pattern: &str) -> (Option<PathBuf>, String) {
    if !pattern.starts_with(['/', '~']) {
        return (target.real.clone(), pattern.trim_start_matches("./").to_owned());
    }
    let names: Vec<&str> = pattern.split('/').collect();
    let plain = names.iter().take_while(|name| !name.contains(['*', '?', '[', '{'])).count().min(names.len() - 1);
    let folder = names[..plain].join("/");
    let folder = workspace.absolute(if folder.is_empty() { "/" } else { &folder });
    (resolve(&folder), format!("/{}", names[plain..].join("/")))
}

/// Returns the modification time of a file; the epoch if it cannot be read.
pub(super) fn modified_time(path: &Path) -> SystemTime {
    let about = std::fs::symlink_metadata(path).and_then(|about| about.modified());
    about.unwrap_or(SystemTime::UNIX_EPOCH)
}
