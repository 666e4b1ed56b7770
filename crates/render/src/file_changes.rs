//! Reconstructs the files that a session changed, each as one diff from before its first change
//! to after its last.
//!
//! The results of `Write` and `Edit` usually contain the file before the change. Otherwise its
//! content comes from the change before, from a `Read` of the whole file, or from a backup. A
//! change whose file is not known in any of these ways is counted as missing.

use std::collections::{BTreeMap, HashMap};

use quipu_conversation::{ScreenItem, ToolCard, ToolStatus};
use quipu_message::tool::output::{EditOutput, Hunk, MultiEditOutput, NotebookEditOutput, ReadOutput, WriteOutput};
use quipu_message::tool::{BashInput, ReadInput, ReadKind, ToolInput, WriteKind};
use serde::Serialize;
use similar::TextDiff;

use crate::tool_call::strip_line_numbers;

#[cfg(test)]
mod tests;

/// All changes of a session to one file.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Path of the file, as the tool calls name it.
    pub path: String,
    /// What happened to the file, from the first change to the last.
    pub status: ChangeStatus,
    /// Unified diff. The text of the file is not sanitized and may have control characters.
    pub diff: String,
    /// Number of lines the diff adds.
    pub added: usize,
    /// Number of lines the diff removes.
    pub removed: usize,
    /// Number of changes that cannot be reconstructed and are not in the diff.
    #[serde(skip_serializing_if = "is_zero")]
    pub missing: usize,
    /// Whether the file was changed in between by something other than its tool calls,
    /// such as a formatter; the diff has these changes too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed_outside: bool,
}

/// What happened to a file.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum ChangeStatus {
    Created,
    Modified,
    Deleted,
}

/// Returns the files that successful tool calls changed, subagents included, in the order of
/// their first change.
///
/// `cwd` is the working directory of the session; paths in diffs are relative to it. `backup`
/// returns the content of a file before the session: `None` if not known, `Some(None)` if the
/// file did not exist. It is called only if the content is not known from the tool calls.
pub fn file_changes(
    items: &[ScreenItem],
    cwd: Option<&str>,
    backup: &dyn Fn(&str) -> Option<Option<String>>,
) -> Vec<FileChange> {
    let mut changes =
        ChangeCollector { cwd: cwd.unwrap_or_default(), backup, files: BTreeMap::new(), read_files: HashMap::new() };
    changes.collect_items(items);
    let mut files: Vec<(String, TrackedFile)> = changes.files.into_iter().collect();
    files.sort_by_key(|(_, file)| file.first_change_order);
    files.into_iter().filter_map(|(path, file)| file.into_change(path, changes.cwd)).collect()
}

/// The content of a file; `None` if it does not exist.
type FileContent = Option<String>;

struct ChangeCollector<'a> {
    cwd: &'a str,
    backup: &'a dyn Fn(&str) -> Option<FileContent>,
    files: BTreeMap<String, TrackedFile>,
    /// Whole files that the session read and has not changed since.
    read_files: HashMap<String, String>,
}

/// State of a file while the tool calls are applied in order.
#[derive(Default)]
struct TrackedFile {
    first_change_order: usize,
    /// Content before the first change; `None` if unknown.
    before: Option<FileContent>,
    /// Content after the last change; `None` if unknown.
    current: Option<FileContent>,
    /// Content after the last change whose result is known.
    last_known: Option<FileContent>,
    missing: usize,
    changed_outside: bool,
}

/// One change to a file by a tool call. `before` is the content that the tool result reports.
struct FileEdit {
    path: String,
    before: Option<FileContent>,
    after: NewContent,
}

enum NewContent {
    Whole(FileContent),
    /// Text replacements, and the same change as hunks if the tool result has them.
    Edits(Vec<(String, String, bool)>, Vec<Hunk>),
}

impl ChangeCollector<'_> {
    fn collect_items(&mut self, items: &[ScreenItem]) {
        for card in items.iter().filter_map(|item| item.tool.as_ref()) {
            if let Some(subagent) = &card.subagent {
                self.collect_items(&subagent.items);
            }
            if card.status == ToolStatus::Success {
                self.collect_card(card);
            }
        }
    }

    fn collect_card(&mut self, card: &ToolCard) {
        match ToolInput::from_name_and_json(&card.name, &card.input) {
            ToolInput::Read(input) => {
                if let Some(text) = read_whole_file(card, &input) {
                    self.read_files.insert(input.file_path, text);
                }
            }
            ToolInput::Bash(input) => self.collect_removed(&input),
            input => {
                if let Some(step) = edit_from_card(card, input) {
                    self.apply(step);
                }
            }
        }
    }

    fn apply(&mut self, step: FileEdit) {
        let order = self.files.len();
        let is_first = !self.files.contains_key(&step.path);
        let file = self
            .files
            .entry(step.path.clone())
            .or_insert_with(|| TrackedFile { first_change_order: order, ..TrackedFile::default() });
        let seen = self.read_files.remove(&step.path).map(Some);
        let backup = || (self.backup)(&step.path).filter(|_| is_first);
        if let (Some(now), Some(said)) = (&file.current, &step.before) {
            file.changed_outside |= now != said;
        }
        let before = step.before.or_else(|| file.current.take()).or(seen).or_else(backup);
        let after = match (&step.after, &before) {
            (NewContent::Whole(content), _) => Some(content.clone()),
            (NewContent::Edits(edits, hunks), Some(before)) => {
                let before = before.as_deref().unwrap_or_default();
                apply_edits(before, edits).or_else(|| apply_hunks(before, hunks)).map(Some)
            }
            (NewContent::Edits(..), None) => None,
        };
        file.missing += usize::from(before.is_none() || after.is_none());
        if file.before.is_none() {
            // If the content before this change is unknown, the diff starts after it.
            file.before = if after.is_some() { before.or_else(|| after.clone()) } else { None };
        }
        file.last_known = after.clone().or(file.last_known.take());
        file.current = after;
    }

    /// Marks files as deleted that the session changed and then removed with `rm FILE`.
    fn collect_removed(&mut self, input: &BashInput) {
        for path in removed_paths(&input.command) {
            let absolute = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.cwd) };
            if let Some(file) = self.files.get_mut(&absolute) {
                (file.current, file.last_known) = (Some(None), Some(None));
            }
        }
    }
}

impl TrackedFile {
    fn into_change(self, path: String, cwd: &str) -> Option<FileChange> {
        let before = self.before.unwrap_or_default();
        let now = self.last_known.unwrap_or_else(|| before.clone());
        if before == now && self.missing == 0 {
            return None;
        }
        let status = match (&before, &now) {
            (None, Some(_)) => ChangeStatus::Created,
            (Some(_), None) => ChangeStatus::Deleted,
            _ => ChangeStatus::Modified,
        };
        let name = path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/')).filter(|_| !cwd.is_empty());
        let label = |content: &FileContent, side: &str| match (content, name) {
            (None, _) => "/dev/null".to_owned(),
            (Some(_), Some(name)) => format!("{side}/{name}"),
            (Some(_), None) => path.clone(),
        };
        let (old, new) = (before.as_deref().unwrap_or_default(), now.as_deref().unwrap_or_default());
        let diff = unified_diff(old, new, &label(&before, "a"), &label(&now, "b"));
        let body = || diff.lines().skip(2);
        let (added, removed) =
            (body().filter(|line| line.starts_with('+')).count(), body().filter(|line| line.starts_with('-')).count());
        let (missing, changed_outside) = (self.missing, self.changed_outside);
        Some(FileChange { path, status, diff, added, removed, missing, changed_outside })
    }
}

/// Texts longer than this together are not compared line by line.
const MAX_COMPARED_BYTES: usize = 4 << 20;

fn unified_diff(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        let count = |text: &str| text.lines().count();
        let side = |text: &str, sign: char| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
        let range = |text: &str| format!("{},{}", usize::from(!text.is_empty()), count(text));
        let head = format!("--- {old_name}\n+++ {new_name}\n@@ -{} +{} @@\n", range(old), range(new));
        return head + &side(old, '-') + &side(new, '+');
    }
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(old_name, new_name).to_string()
}

/// The change that a successful tool call made; `None` for tools that change no file.
fn edit_from_card(card: &ToolCard, input: ToolInput) -> Option<FileEdit> {
    let edit = |old: String, new: String, all: bool| (old, new, all);
    match input {
        ToolInput::Write(input) => {
            let output = parse_output::<WriteOutput>(card);
            let is_reported_created =
                || card.result.as_ref().is_some_and(|result| result.to_text().starts_with(CREATED_PREFIX));
            let before = match &output {
                Some(output) => match output.original_file.text() {
                    Some(text) => Some(Some(text.to_owned())),
                    None => (output.kind == WriteKind::Create).then_some(None),
                },
                None => is_reported_created().then_some(None),
            };
            let content = output.map_or(input.content, |output| output.content);
            Some(FileEdit { path: input.file_path, before, after: NewContent::Whole(Some(content)) })
        }
        ToolInput::Edit(input) => {
            let all = input.replace_all.is_true();
            let (before, edits, hunks) = match parse_output::<EditOutput>(card) {
                Some(output) => {
                    let before = output.original_file.text().map(|text| Some(text.to_owned()));
                    (before, edit(output.old_string, output.new_string, all), output.structured_patch)
                }
                None => (None, edit(input.old_string, input.new_string, all), Vec::new()),
            };
            Some(FileEdit { path: input.file_path, before, after: NewContent::Edits(vec![edits], hunks) })
        }
        ToolInput::MultiEdit(input) => {
            let output = parse_output::<MultiEditOutput>(card);
            let before = output.as_ref().and_then(|output| Some(Some(output.original_file.text()?.to_owned())));
            let edits = input.edits.into_iter();
            let edits = edits.map(|one| edit(one.old_string, one.new_string, one.replace_all.is_true())).collect();
            let hunks = output.and_then(|output| output.structured_patch.into_option()).unwrap_or_default();
            Some(FileEdit { path: input.file_path, before, after: NewContent::Edits(edits, hunks) })
        }
        ToolInput::NotebookEdit(input) => {
            let output = parse_output::<NotebookEditOutput>(card).filter(|output| output.error.is_empty())?;
            let (before, after) = (Some(Some(output.original_file)), NewContent::Whole(Some(output.updated_file)));
            Some(FileEdit { path: input.notebook_path, before, after })
        }
        _ => None,
    }
}

fn parse_output<T: serde::de::DeserializeOwned>(card: &ToolCard) -> Option<T> {
    card.output.as_ref()?.read().ok()
}

/// Content of a file if the tool call read it from the first line to the last.
fn read_whole_file(card: &ToolCard, input: &ReadInput) -> Option<String> {
    if card.output.is_none() {
        return whole_file_from_result(card, input);
    }
    let file = parse_output::<ReadOutput>(card).filter(|output| output.kind == ReadKind::Text)?.file;
    let is_whole = file.start_line.get() == Some(&1) && file.num_lines.get()? >= file.total_lines.get()?;
    file.content.into_option().filter(|_| is_whole)
}

/// `Read` truncates files with more lines than this, and lines longer than this.
const READ_TOOL_LIMIT: usize = 2_000;

/// Content of a file from the numbered lines of the tool result, for sessions that record
/// nothing else. Assumes that the last line ends in a line break.
fn whole_file_from_result(card: &ToolCard, input: &ReadInput) -> Option<String> {
    let text = card.result.as_ref()?.to_text();
    let is_numbered = text.trim_start().starts_with("1→") || text.trim_start().starts_with("1\t");
    let is_whole = input.offset.get().is_none() && input.limit.get().is_none() && is_numbered;
    let text = strip_line_numbers(&text);
    let is_cut = text.lines().count() >= READ_TOOL_LIMIT || text.lines().any(|line| line.len() >= READ_TOOL_LIMIT);
    (is_whole && !is_cut).then(|| text.trim_end_matches('\n').to_owned() + "\n")
}

/// Start of the tool result when `Write` created a new file.
const CREATED_PREFIX: &str = "File created successfully";

/// Applies edits one after another; `None` if a text to replace is not found.
fn apply_edits(text: &str, edits: &[(String, String, bool)]) -> Option<String> {
    let mut text = text.to_owned();
    for (old, new, all) in edits {
        text = match (old.is_empty(), *all) {
            (true, _) if text.is_empty() => new.clone(),
            (true, _) => return None,
            (false, _) if !text.contains(old) => return None,
            (false, true) => text.replace(old, new),
            (false, false) => text.replacen(old, new, 1),
        };
    }
    Some(text)
}

/// Applies hunks; `None` if a line differs from what a hunk expects.
fn apply_hunks(text: &str, hunks: &[Hunk]) -> Option<String> {
    if hunks.is_empty() {
        return None;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for hunk in hunks {
        let start = usize::try_from(hunk.old_start).ok()?.saturating_sub(1);
        out.extend(lines.get(at..start)?.iter().copied());
        at = start;
        for line in &hunk.lines {
            let (sign, rest) = line.split_at_checked(1)?;
            if sign != "+" && sign != "\\" {
                let old = lines.get(at)?;
                at += 1;
                if old.trim_end_matches(['\n', '\r']) != rest.trim_end_matches('\r') {
                    return None;
                }
                if sign == " " {
                    out.push_str(old);
                }
            } else if sign == "+" {
                out.push_str(rest);
                out.push('\n');
            }
        }
    }
    out.extend(lines.get(at..)?.iter().copied());
    Some(out)
}

/// Paths in plain `rm` commands. Commands with shell syntax are ignored.
fn removed_paths(command: &str) -> Vec<&str> {
    let simple = command.split(['\n', ';']).flat_map(|part| part.split("&&"));
    let mut paths = Vec::new();
    for part in simple.filter(|part| !part.contains(['|', '$', '*', '?', '`', '(', '<', '>', '\\', '{'])) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let files = match words.as_slice() {
            ["rm", files @ ..] | ["git", "rm", files @ ..] => files,
            _ => continue,
        };
        paths.extend(files.iter().filter(|file| !file.starts_with('-')).map(|file| file.trim_matches(['"', '\''])));
    }
    paths
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}
