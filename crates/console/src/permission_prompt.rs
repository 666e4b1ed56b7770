//! Whether a tool call may run, and whether a plan is approved.

use std::fs;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use quipu_conversation::{ToolCard, ToolStatus};
use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::{PermissionRuleValue, SetMode};
use quipu_message::tool::{EditInput, ToolInput};
use quipu_message::values::{PermissionMode, SettingsLocation};
use quipu_message::{Json, ToolName, ToolUseId};
use quipu_render::{Cursor, Terminal};
use quipu_sdk::Decision;
use quipu_sdk::control::request::CanUseTool;

use crate::editor::{Editor, KeyEffect};
use crate::prompt::{INTERRUPT_REASON, PromptStep};

#[cfg(test)]
mod tests;

/// Larger files are not compared with what would be written.
const MAX_COMPARED_BYTES: u64 = 1 << 20;

const HEADING: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Whether a tool call may run.
#[derive(Debug)]
pub(crate) struct PermissionPrompt {
    call: CanUseTool,
    /// Changes that the user may accept with the call, the first of them with `a`.
    updates: Vec<PermissionUpdate>,
    /// Input that the user has edited.
    edited_input: Option<Json>,
    /// The call as it is shown: a file that would be replaced is shown as an edit.
    shown: (ToolName, Json),
    /// Reason for a denial, while it is typed.
    reason: Option<Editor>,
    /// Why the last key had no effect.
    notice: Option<String>,
}

impl PermissionPrompt {
    pub(crate) fn new(call: CanUseTool, folder: &Path) -> Self {
        let updates = if call.tool_name == ToolName::ExitPlanMode { plan_updates() } else { call.suggestions() };
        let shown = shown_call(&call.tool_name, &call.input, folder);
        Self { updates, edited_input: None, shown, reason: None, notice: None, call }
    }

    /// Input of the tool call, with the changes of the user.
    pub(crate) fn input(&self) -> &Json {
        self.edited_input.as_ref().unwrap_or(&self.call.input)
    }

    /// Replaces the input of the tool call by a JSON text of the user.
    pub(crate) fn set_input(&mut self, text: &str, folder: &Path) {
        match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) if value.is_object() => {
                let input = Json::from(value);
                self.shown = shown_call(&self.call.tool_name, &input, folder);
                (self.edited_input, self.notice) = (Some(input), None);
            }
            Ok(_) => self.show_notice("the input must be a JSON object; it is unchanged"),
            Err(error) => self.show_notice(&format!("the input is no JSON: {error}; it is unchanged")),
        }
    }

    /// Shows why the last key had no effect.
    pub(crate) fn show_notice(&mut self, text: &str) {
        self.notice = Some(text.to_owned());
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(reason) = &mut self.reason {
            reason.insert(text);
        }
    }

    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> PromptStep {
        if let Some(reason) = &mut self.reason {
            return match key.code {
                KeyCode::Esc => {
                    self.reason = None;
                    PromptStep::Open
                }
                _ if reason.handle_key(key) == KeyEffect::Submitted => {
                    PromptStep::Decided(Decision::deny(denial(reason.text())))
                }
                _ => PromptStep::Open,
            };
        }
        self.notice = None;
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return PromptStep::Open;
        }
        match key.code {
            KeyCode::Char('y') => PromptStep::Decided(self.allow(None)),
            KeyCode::Char('a') if !self.updates.is_empty() => PromptStep::Decided(self.allow(Some(0))),
            KeyCode::Char(digit @ '2'..='9') if self.update_at(digit).is_some() => {
                PromptStep::Decided(self.allow(self.update_at(digit)))
            }
            KeyCode::Char('n') => {
                self.reason = Some(Editor::default());
                PromptStep::Open
            }
            KeyCode::Char('e') => PromptStep::EditInput,
            KeyCode::Char('v') => PromptStep::ShowAll,
            KeyCode::Esc => PromptStep::Decided(Decision::interrupt(INTERRUPT_REASON)),
            _ => PromptStep::Open,
        }
    }

    /// Index of the update that a digit selects.
    fn update_at(&self, digit: char) -> Option<usize> {
        let index = digit.to_digit(10)? as usize - 1;
        (index < self.updates.len()).then_some(index)
    }

    fn allow(&self, update: Option<usize>) -> Decision {
        let updates = update.and_then(|index| self.updates.get(index)).cloned().into_iter().collect();
        Decision::Allow { input: self.edited_input.clone(), updates }
    }

    /// Rows of the whole tool call.
    pub(crate) fn all_rows(&self, style: &Terminal) -> Vec<String> {
        self.call_rows(&Terminal { show_full: true, ..style.clone() })
    }

    fn call_rows(&self, style: &Terminal) -> Vec<String> {
        style.tool_call_rows(&ToolCard {
            id: self.call.tool_use_id.get().cloned().unwrap_or_else(|| ToolUseId::from("")),
            name: self.shown.0.clone(),
            input: self.shown.1.clone(),
            status: ToolStatus::Pending,
            result: None,
            result_missing: false,
            output: None,
            finished_at: None,
            subagent: None,
        })
    }

    pub(crate) fn rows(&self, style: &Terminal) -> (Vec<String>, Option<Cursor>) {
        let is_plan = self.call.tool_name == ToolName::ExitPlanMode;
        let heading = match (is_plan, self.call.agent_id.get()) {
            (true, _) => "Approve this plan?".to_owned(),
            (false, None) => format!("Allow {}?", self.call.tool_name),
            (false, Some(_)) => format!("Allow {} of a subagent?", self.call.tool_name),
        };
        let edited = if self.edited_input.is_some() { " (input edited by you)" } else { "" };
        let mut rows = style.wrap(&format!("{heading}{edited}"), HEADING);
        if let Some(reason) = self.call.decision_reason.get() {
            rows.extend(style.wrap(&reason.extract_text(), DIM));
        }
        let shown = self.call_rows(style);
        let is_truncated = shown != self.all_rows(style);
        rows.extend(shown);
        if let Some(reason) = &self.reason {
            rows.extend(style.wrap("Why not? Enter denies, Esc goes back", DIM));
            let (text, cursor) = reason.layout(style.width.saturating_sub(2), 4);
            let cursor = Cursor { row: rows.len() + cursor.row, column: cursor.column + 2 };
            rows.extend(text.iter().map(|row| format!("› {row}")));
            return (rows, Some(cursor));
        }
        let mut keys = vec![format!("y  {}", if is_plan { "approve" } else { "allow once" })];
        for (index, update) in self.updates.iter().enumerate().take(9) {
            let key = if index == 0 { "a".to_owned() } else { (index + 1).to_string() };
            keys.push(format!("{key}  {}", describe_update(update)));
        }
        keys.push(format!("n  {}", if is_plan { "keep planning, with a message" } else { "deny, with a message" }));
        keys.push("e  edit the input in your editor".to_owned());
        if is_truncated {
            keys.push("v  show all of it".to_owned());
        }
        keys.push("Esc  interrupt the turn".to_owned());
        rows.extend(keys.iter().map(|key| style.truncate(key, DIM)));
        rows.extend(self.notice.iter().flat_map(|notice| style.wrap(notice, AnsiColor::Red.on_default())));
        (rows, None)
    }
}

/// The reason for the model; a denial without one says so.
fn denial(reason: &str) -> String {
    match reason.trim() {
        "" => "The user denied this tool call.".to_owned(),
        reason => format!("The user denied this tool call: {reason}"),
    }
}

/// The tool call to show. Writing to a file that exists is shown as an edit of it.
fn shown_call(name: &ToolName, input: &Json, folder: &Path) -> (ToolName, Json) {
    if let ToolInput::Write(write) = ToolInput::from_name_and_json(name, input)
        && let Some(old_string) = read_text(&folder.join(&write.file_path))
    {
        let edit =
            EditInput { file_path: write.file_path, old_string, new_string: write.content, ..EditInput::default() };
        return (ToolName::Edit, Json::from_serialize(&edit));
    }
    (name.clone(), input.clone())
}

/// Text of a regular file; `None` if it cannot be read, is too large or is not text.
fn read_text(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_COMPARED_BYTES {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// What may be accepted together with a plan.
fn plan_updates() -> Vec<PermissionUpdate> {
    let mode =
        SetMode { mode: PermissionMode::AcceptEdits, destination: SettingsLocation::Session, ..SetMode::default() };
    vec![PermissionUpdate::SetMode(Box::new(mode))]
}

/// An update in words: `always allow Bash(git log:*) in this project`.
fn describe_update(update: &PermissionUpdate) -> String {
    let rules = |rules: &[PermissionRuleValue]| rules.iter().map(rule_text).collect::<Vec<_>>().join(", ");
    match update {
        PermissionUpdate::AddRules(add) => {
            format!("always {} {} {}", add.behavior.as_str(), rules(&add.rules), location_text(&add.destination))
        }
        PermissionUpdate::SetMode(set) if set.mode == PermissionMode::AcceptEdits => {
            format!("accept edits {}", location_text(&set.destination))
        }
        PermissionUpdate::SetMode(set) => {
            format!("change to mode {} {}", set.mode.as_str(), location_text(&set.destination))
        }
        PermissionUpdate::AddDirectories(add) => {
            format!("allow work in {} {}", add.directories.join(", "), location_text(&add.destination))
        }
        other => format!("allow, with {}", Json::from_serialize(other).text()),
    }
}

fn rule_text(rule: &PermissionRuleValue) -> String {
    match rule.rule_content.text() {
        Some(pattern) => format!("{}({pattern})", rule.tool_name),
        None => rule.tool_name.to_string(),
    }
}

fn location_text(location: &SettingsLocation) -> String {
    match location {
        SettingsLocation::Session => "in this session".to_owned(),
        SettingsLocation::LocalSettings => "in this project".to_owned(),
        SettingsLocation::ProjectSettings => "for all users of this project".to_owned(),
        SettingsLocation::UserSettings => "in all projects".to_owned(),
        other => format!("in {}", other.as_str()),
    }
}
