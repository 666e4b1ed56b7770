//! The text that is sent to the model for an attachment.
//!
//! Files of version 2.1.3xx contain the text that was sent (`rendered`). For older files the text is made
//! here from the fields of the attachment.

use serde_json::Value;

use super::{Attachment, AttachmentEntry};
use crate::values::MediaSourceKind;
use crate::{Block, Content, Image, Json, Maybe, MediaSource};

impl AttachmentEntry {
    /// The blocks that are sent to the model for this line. Text that is not from the user is in
    /// `<system-reminder>` tags. Empty for facts about the whole session (tools, skills, environment, date),
    /// because an agent that resumes the session sends the current ones. Also empty for what only the user
    /// sees.
    pub fn for_model(&self) -> Vec<Block> {
        let rendered = self.rendered.get().map(Vec::as_slice).unwrap_or_default();
        let texts = || rendered.iter().filter_map(|piece| piece.content.get()).map(Content::to_text);
        if !rendered.is_empty() {
            let is_said_again = self.rendered_role.text() == Some("system") && self.attachment.is_session_wide();
            return if is_said_again { Vec::new() } else { texts().map(|text| reminder_block(&text)).collect() };
        }
        match &self.attachment {
            Attachment::QueuedCommand(queued) if queued.command_mode.text() == Some("task-notification") => {
                queued.prompt.get().map(|prompt| reminder_block(&prompt.to_text())).into_iter().collect()
            }
            Attachment::QueuedCommand(queued) => {
                queued.prompt.get().cloned().map(Content::into_blocks).unwrap_or_default()
            }
            Attachment::File(file) => {
                let name = file.filename.text().or(file.display_path.text()).unwrap_or("a file");
                file.content.get().map(|content| file_blocks(name, content)).unwrap_or_default()
            }
            other => other.legacy_text().map(|text| reminder_block(&text)).into_iter().collect(),
        }
    }
}

impl Attachment {
    /// Whether it describes the whole session rather than this point of the conversation.
    fn is_session_wide(&self) -> bool {
        matches!(
            self,
            Self::AgentListing(_)
                | Self::AutoMode(_)
                | Self::BudgetUsd(_)
                | Self::CommandPermissions(_)
                | Self::ContextSections(_)
                | Self::Date(_)
                | Self::DeferredTools(_)
                | Self::DeferredToolsRecord(_)
                | Self::Environment(_)
                | Self::Instructions(_)
                | Self::ModelIdentity(_)
                | Self::OutputStyle(_)
                | Self::OutputStyleInstructions(_)
                | Self::PlanMode(_)
                | Self::PlanModeExit(_)
                | Self::PromptSnapshot(_)
                | Self::RemoteSession(_)
                | Self::SessionContext(_)
                | Self::SkillListing(_)
                | Self::TotalTokensReminder(_)
                | Self::Unknown(_)
        )
    }

    /// The text for an attachment of an older file; `None` if nothing is sent to the model.
    fn legacy_text(&self) -> Option<String> {
        let hook = |name: &Maybe<String>, event: &Maybe<String>| name.text().or(event.text()).unwrap_or("A").to_owned();
        let words = |json: &Maybe<Json>| json.get().map(Json::extract_text).filter(|words| !words.trim().is_empty());
        let path = |path: &Maybe<String>| path.text().unwrap_or("a file").to_owned();
        match self {
            Self::Directory(a) => {
                Some(format!("The user mentioned the folder {}, which holds:\n{}", path(&a.path), a.content.text()?))
            }
            Self::CompactedFile(a) => {
                Some(format!("{} was read before the compaction; read it again if you need it.", path(&a.filename)))
            }
            Self::EditedFile(a) => {
                Some(format!("{} was changed outside of this conversation:\n{}", path(&a.filename), a.snippet.text()?))
            }
            Self::NestedMemory(a) => {
                Some(format!("Contents of {}:\n\n{}", path(&a.path), extract_text(a.content.get()?)))
            }
            Self::McpResource(a) => Some(format!(
                "The user mentioned the resource {} of the MCP server {}:\n{}",
                a.uri.text()?,
                a.server.text().unwrap_or_default(),
                extract_text(a.content.get()?)
            )),
            Self::HookContext(a) => {
                Some(format!("{} hook additional context: {}", hook(&a.hook_name, &a.hook_event), words(&a.content)?))
            }
            // The stdout of a hook is for the model only if the event has no tool call.
            Self::HookSucceeded(a) if matches!(a.hook_event.text(), Some("SessionStart" | "UserPromptSubmit")) => {
                let output = words(&a.content).or_else(|| a.stdout.text().map(|text| text.trim_end().to_owned()))?;
                let output = Some(output).filter(|output| !output.is_empty())?;
                Some(format!("{} hook success: {output}", hook(&a.hook_name, &a.hook_event)))
            }
            Self::HookBlocked(a) => Some(format!(
                "{} hook blocking error: {}",
                hook(&a.hook_name, &a.hook_event),
                words(&a.blocking_error)?
            )),
            Self::HookStopped(a) => {
                Some(format!("{} hook stopped the turn: {}", hook(&a.hook_name, &a.hook_event), words(&a.message)?))
            }
            Self::TodoReminder(a) => format_task_list("Task list", a.content.get()?),
            Self::TaskReminder(a) => format_task_list("Task list", a.content.get()?),
            Self::TaskStatus(a) => {
                let what = a.description.text().map(|text| format!(" ({text})")).unwrap_or_default();
                Some(format!("Background task {}{what}: {}", a.task_id.text()?, a.status.text()?))
            }
            Self::Diagnostics(a) => {
                Some(format!("Diagnostics of the editor:\n{}", format_diagnostics(a.files.get()?)?))
            }
            Self::InvokedSkills(a) => {
                Some(format!("Skills used in this session:\n\n{}", format_skills(a.skills.get()?)?))
            }
            Self::DateChange(a) => Some(format!("The date is now {}.", a.new_date.text()?)),
            Self::CriticalReminder(a) => a.content.get().cloned(),
            Self::SilentTurnReminder(a) => a.text.get().cloned(),
            _ => None,
        }
    }
}

/// Puts a text into `<system-reminder>` tags, which mark text that is not from the user. A text that begins
/// with such a tag is returned unchanged.
pub fn system_reminder(text: &str) -> String {
    if text.trim_start().starts_with("<system-reminder>") {
        text.to_owned()
    } else {
        format!("<system-reminder>\n{text}\n</system-reminder>")
    }
}

fn reminder_block(text: &str) -> Block {
    Block::new_text(system_reminder(text))
}

/// A mentioned file: its text with line numbers, or its image.
fn file_blocks(name: &str, content: &Json) -> Vec<Block> {
    let value = content.to_value();
    let file = &value["file"];
    if let Some(data) = file["base64"].as_str() {
        let media_type = file["type"].as_str().unwrap_or("image/png");
        let source = MediaSource {
            kind: MediaSourceKind::Base64,
            media_type: Maybe::Value(media_type.to_owned()),
            data: Maybe::Value(data.to_owned()),
            ..MediaSource::default()
        };
        let intro = reminder_block(&format!("The user mentioned {name}."));
        return vec![intro, Block::Image(Box::new(Image { source, ..Image::default() }))];
    }
    let Some(text) = file["content"].as_str().or(value["content"].as_str()).or(value.as_str()) else {
        return vec![reminder_block(&format!("The user mentioned {name}, which holds:\n{}", content.text()))];
    };
    let first = file["startLine"].as_u64().unwrap_or(1);
    let lines: Vec<String> = (first..).zip(text.lines()).map(|(n, line)| format!("{n}\t{line}")).collect();
    vec![reminder_block(&format!("The user mentioned {name}, which holds:\n{}", lines.join("\n")))]
}

/// The text in content that is a string or objects that contain it.
fn extract_text(content: &Json) -> String {
    fn find(value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(items) => Some(items.iter().filter_map(find).collect::<Vec<_>>().join("\n")),
            Value::Object(fields) => ["content", "contents", "text"].iter().find_map(|key| find(fields.get(*key)?)),
            _ => None,
        }
    }
    find(&content.to_value()).unwrap_or_else(|| content.text().to_owned())
}

/// Tasks, one per line; `None` if there are none.
fn format_task_list(head: &str, tasks: &Json) -> Option<String> {
    let tasks = tasks.to_value();
    let line = |task: &Value| {
        let what = task["content"].as_str().or(task["subject"].as_str())?;
        Some(format!("- [{}] {what}", task["status"].as_str().unwrap_or("pending")))
    };
    let lines: Vec<String> = tasks.as_array()?.iter().filter_map(line).collect();
    (!lines.is_empty()).then(|| format!("{head}:\n{}", lines.join("\n")))
}

/// Diagnostics by file, one per line; `None` if there are none.
fn format_diagnostics(files: &Json) -> Option<String> {
    let mut lines = Vec::new();
    for file in files.to_value().as_array()? {
        let uri = file["uri"].as_str().unwrap_or_default();
        for found in file["diagnostics"].as_array().into_iter().flatten() {
            let line = found["range"]["start"]["line"].as_u64().map_or(0, |line| line + 1);
            let severity = found["severity"].as_str().unwrap_or("Problem");
            lines.push(format!("{uri}:{line} {severity}: {}", found["message"].as_str().unwrap_or_default()));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Names and contents of skills; `None` if there are none.
fn format_skills(skills: &Json) -> Option<String> {
    let skill = |skill: &Value| Some(format!("### {}\n{}", skill["name"].as_str()?, skill["content"].as_str()?));
    let texts: Vec<String> = skills.to_value().as_array()?.iter().filter_map(skill).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
