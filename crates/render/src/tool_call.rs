//! Describes a tool call for display: a title line and the parts under it.
//!
//! Terminal, Markdown and HTML output all render the same [`ToolCallView`].

use quipu_conversation::{ToolCard, ToolStatus};
use quipu_message::tool::{CellType, EditInput, MultiEditInput, ReadInput, TodoStatus, ToolInput, key_argument};
use quipu_message::{Image, Maybe, ToolName};

use crate::diff::{self, DiffLine, DiffLineKind};
use crate::sanitize::{sanitize, sanitize_line};

mod question;
mod result;

#[cfg(test)]
mod tests;

pub(crate) use result::strip_line_numbers;

/// A tool call in a form to display. All text is sanitized.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallView<'a> {
    /// Name of the tool; `server:tool` for a tool of an MCP server.
    pub name: String,
    /// Most important argument, such as the path or the command, on one line; may be empty.
    pub subject: String,
    /// Short result, such as `12 lines` or `+4 −1`; may be empty.
    pub note: String,
    /// Parts to show under the title line, in order.
    pub parts: Vec<ToolCallPart<'a>>,
    /// Whether the parts are hidden unless the reader asks for more.
    pub is_collapsed: bool,
}

/// One part under the title line of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCallPart<'a> {
    /// A shell command that the tool ran.
    Command(String),
    /// Text of a file that was read or written.
    Code {
        /// Text of the file.
        text: String,
        /// Path of the file, from which the language is derived.
        path: String,
    },
    /// Changes to a file.
    Diff(Vec<DiffLine>),
    /// A task list: status and text of each task.
    Tasks(Vec<(TodoStatus, String)>),
    /// Markdown, such as a plan or the report of a subagent.
    Markdown(String),
    /// Output of the tool as plain text.
    Output(String),
    /// Error message of the tool.
    Failure(String),
    /// Any other value, as JSON.
    Json(String),
    /// An image in the result.
    Image(&'a Image),
    /// A question to the user.
    Question {
        /// Text of the question.
        text: String,
        /// Labels of the choices.
        options: Vec<String>,
        /// The user's answer; `None` if there is none yet.
        answer: Option<String>,
    },
}

impl<'a> ToolCallView<'a> {
    /// Describes a tool card; paths under `base` become relative to it.
    pub fn from_card(card: &'a ToolCard, base: &str) -> Self {
        let mut view = Self {
            name: display_tool_name(&card.name),
            subject: String::new(),
            note: String::new(),
            parts: Vec::new(),
            is_collapsed: false,
        };
        let short = |path: &str| relative_path(&sanitize_line(path), base);
        let failed = card.status == ToolStatus::Failed;
        match ToolInput::from_name_and_json(&card.name, &card.input) {
            ToolInput::Bash(input) => {
                let command = sanitize(input.command.trim()).into_owned();
                if command.contains('\n') {
                    let first = command.lines().next().unwrap_or_default();
                    view.subject = input.description.text().map_or_else(|| format!("$ {first} …"), sanitize_line);
                    view.parts.push(ToolCallPart::Command(command));
                } else {
                    view.subject = format!("$ {command}");
                }
                if input.run_in_background.is_true() {
                    view.note = "in background".to_owned();
                }
                view.add_result(card);
            }
            ToolInput::Read(input) => {
                view.subject = format!("{}{}", short(&input.file_path), format_line_range(&input));
                view.is_collapsed = !failed;
                view.add_file(card, &input.file_path);
            }
            ToolInput::Write(input) => {
                view.subject = short(&input.file_path);
                view.note = pluralize(input.content.lines().count(), "line", "lines");
                view.parts
                    .push(ToolCallPart::Code { text: sanitize(&input.content).into_owned(), path: input.file_path });
                view.add_failure(card);
            }
            ToolInput::Edit(EditInput { file_path, old_string, new_string, .. }) => {
                view.subject = short(&file_path);
                view.add_diffs(&[(&old_string, &new_string)]);
                view.add_failure(card);
            }
            ToolInput::MultiEdit(MultiEditInput { file_path, edits, .. }) => {
                view.subject = short(&file_path);
                let edits: Vec<_> = edits.iter().map(|e| (&*e.old_string, &*e.new_string)).collect();
                view.add_diffs(&edits);
                view.add_failure(card);
            }
            ToolInput::NotebookEdit(input) => {
                let cell = input.cell_id.text().map(|id| format!(" cell {}", sanitize_line(id))).unwrap_or_default();
                view.subject = format!("{}{cell}", short(&input.notebook_path));
                view.note = input.edit_mode.text().map(sanitize_line).unwrap_or_default();
                let is_prose = input.cell_type.get() == Some(&CellType::Markdown);
                let path = if is_prose { "cell.md" } else { "cell.py" }.to_owned();
                view.parts.push(ToolCallPart::Code { text: sanitize(&input.new_source).into_owned(), path });
                view.add_failure(card);
            }
            ToolInput::Glob(input) => {
                view.subject = format!("{}{}", sanitize_line(&input.pattern), format_search_path(&input.path, base));
                view.add_search_results(card);
            }
            ToolInput::Grep(input) => {
                let files = input.glob.text().map(|glob| format!(" ({})", sanitize_line(glob))).unwrap_or_default();
                view.subject =
                    format!("{}{}{files}", sanitize_line(&input.pattern), format_search_path(&input.path, base));
                view.add_search_results(card);
            }
            ToolInput::TodoWrite(input) => {
                let tasks: Vec<_> = input
                    .todos
                    .iter()
                    .map(|todo| {
                        (todo.status.get().cloned().unwrap_or(TodoStatus::Pending), sanitize_line(&todo.content))
                    })
                    .collect();
                let done = tasks.iter().filter(|(progress, _)| *progress == TodoStatus::Completed).count();
                view.note = format!("{done} of {} done", tasks.len());
                view.parts.push(ToolCallPart::Tasks(tasks));
                view.add_failure(card);
            }
            ToolInput::WebFetch(input) => {
                view.subject = sanitize_line(&input.url);
                let prompt = sanitize(input.prompt.text().unwrap_or_default().trim());
                if !prompt.is_empty() {
                    view.parts.push(ToolCallPart::Output(prompt.into_owned()));
                }
                view.add_result(card);
            }
            ToolInput::WebSearch(input) => {
                view.subject = sanitize_line(&input.query);
                view.add_result(card);
            }
            ToolInput::Agent(input) => {
                view.subject = input.description.text().map_or_else(|| sanitize_line(&input.prompt), sanitize_line);
                view.note = input.subagent_type.text().map(sanitize_line).unwrap_or_default();
                view.add_subagent_report(card, &input.prompt);
            }
            ToolInput::Skill(input) => {
                let args = input.args.text().map(|args| format!(" {}", sanitize_line(args))).unwrap_or_default();
                view.subject = format!("{}{args}", input.skill.text().map(sanitize_line).unwrap_or_default());
                view.add_result(card);
            }
            ToolInput::ExitPlanMode(input) => {
                view.note = match card.status {
                    ToolStatus::Pending => "waiting for approval",
                    ToolStatus::Success => "approved",
                    ToolStatus::Failed => "not approved",
                }
                .to_owned();
                view.parts.extend(input.plan.text().map(|plan| ToolCallPart::Markdown(sanitize(plan).into_owned())));
                view.add_failure(card);
            }
            ToolInput::AskUserQuestion(input) => view.add_questions(card, &input),
            ToolInput::Other(_) => view.add_unknown_tool(card, base),
        }
        view
    }

    /// Name, subject and note in one line: `Bash $ cargo test (in background)`.
    pub fn to_line(&self) -> String {
        let note = if self.note.is_empty() { String::new() } else { format!("({})", self.note) };
        let parts = [&*self.name, &*self.subject, &*note];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn add_unknown_tool(&mut self, card: &'a ToolCard, base: &str) {
        let bare = card.input.is_null() || card.input.text() == "{}";
        self.subject = key_argument(&card.name, &card.input)
            .map(|text| relative_path(&sanitize_line(&text), base))
            .unwrap_or_else(|| if bare { String::new() } else { sanitize_line(card.input.text()) });
        self.add_result(card);
    }

    fn add_diffs(&mut self, edits: &[(&str, &str)]) {
        let mut lines = Vec::new();
        for (before, after) in edits {
            if !lines.is_empty() {
                lines.push(DiffLine { kind: DiffLineKind::Gap, parts: Vec::new() });
            }
            lines.extend(diff::diff_lines(&sanitize(before), &sanitize(after)));
        }
        let (new, gone) = diff::count_changes(&lines);
        self.note = format!("+{new} −{gone}");
        self.parts.push(ToolCallPart::Diff(lines));
    }
}

fn display_tool_name(name: &ToolName) -> String {
    let name = ToolName::from(sanitize_line(name.as_str()));
    match name.mcp() {
        Some((server, tool)) => format!("{server}:{tool}"),
        None if name == "" => "result without a call".to_owned(),
        None => name.to_string(),
    }
}

fn relative_path(path: &str, base: &str) -> String {
    let base = base.trim_end_matches(['/', '\\']);
    match path.strip_prefix(base).and_then(|rest| rest.strip_prefix(['/', '\\'])) {
        Some(rest) if !base.is_empty() && !rest.is_empty() => rest.to_owned(),
        _ => path.to_owned(),
    }
}

fn format_search_path(path: &Maybe<String>, base: &str) -> String {
    path.text().map(|path| format!(" in {}", relative_path(&sanitize_line(path), base))).unwrap_or_default()
}

fn format_line_range(input: &ReadInput) -> String {
    match (input.offset.get(), input.limit.get()) {
        (None, None) => String::new(),
        (Some(first), None) => format!(":{first}-"),
        (first, Some(limit)) => {
            let first = first.copied().unwrap_or(1);
            format!(":{first}-{}", first.saturating_add(*limit).saturating_sub(1))
        }
    }
}

/// A number with its noun: `1 line`, `2 lines`.
pub(crate) fn pluralize(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
