//! Items of entries that are neither prompts nor responses.

use quipu_message::attachment::Attachment;
use quipu_message::system::System;
use quipu_message::{Content, Entry, Json, Maybe};

use super::{ItemKind, ScreenItem, item_for_node};
use crate::node::Node;
use crate::user_text::{UserText, classify_user_text};

/// The item of a system entry, an attachment, a summary or an unknown entry; `None` if there
/// is nothing to show.
pub(super) fn notice_item(node: &Node) -> Option<ScreenItem> {
    match &node.entry {
        Entry::System(system) => {
            let item = self::system_item(node, system)?;
            Some(ScreenItem { hidden: item.hidden || system.is_meta(), ..item })
        }
        Entry::Attachment(line) => match hook_attachment_item(node, &line.attachment) {
            Some(item) => Some(item),
            None => {
                let (kind, text) = describe_attachment(&line.attachment)?;
                Some(ScreenItem { text: Some(text), ..item_for_node(node, kind) })
            }
        },
        Entry::Summary(line) => {
            Some(ScreenItem { text: Some(line.summary.clone()), ..item_for_node(node, ItemKind::Summary) })
        }
        Entry::ToolUseSummary(line) => {
            Some(ScreenItem { text: Some(line.summary.clone()), ..item_for_node(node, ItemKind::System) })
        }
        Entry::Error(line) => {
            let text = line.error.get().or(line.message.get()).map(Json::extract_text).unwrap_or_default();
            Some(ScreenItem { text: Some(text), is_error: true, ..item_for_node(node, ItemKind::System) })
        }
        Entry::ConversationReset(_) => {
            let text = Some("Conversation cleared".to_owned());
            Some(ScreenItem { text, ..item_for_node(node, ItemKind::System) })
        }
        Entry::Unknown(unknown) => {
            Some(ScreenItem { text: Some(unknown.json().text().to_owned()), ..item_for_node(node, ItemKind::Unknown) })
        }
        _ => None,
    }
}

fn system_item(node: &Node, system: &System) -> Option<ScreenItem> {
    let content = |text: &Maybe<String>| text.get().cloned();
    let mut is_error = false;
    let text = match system {
        System::CompactBoundary(line) => {
            let tokens = line.compact_metadata.get().and_then(|meta| meta.pre_tokens.get());
            let trigger = line.compact_metadata.get().and_then(|meta| meta.trigger.text()).unwrap_or("manual");
            Some(match tokens {
                Some(tokens) => format!("Conversation compacted ({trigger}, {tokens} tokens before)"),
                None => content(&line.content).unwrap_or_else(|| "Conversation compacted".to_owned()),
            })
        }
        System::MicrocompactBoundary(line) => Some(match line.cleared_tool_use_ids().len() {
            0 => content(&line.content).unwrap_or_else(|| "Context cleared of old results".to_owned()),
            1 => "Context cleared of 1 old tool result".to_owned(),
            n => format!("Context cleared of {n} old tool results"),
        }),
        System::LegacyNotice(line) => {
            is_error = line.level.text() == Some("error");
            content(&line.content)
        }
        System::TurnDuration(line) => {
            let elapsed = format_duration(line.duration_ms.get()?.as_f64()?);
            let text = Some(format!("The turn took {elapsed}"));
            return Some(ScreenItem { text, hidden: true, ..item_for_node(node, ItemKind::System) });
        }
        System::ApiMetrics(line) => {
            let first =
                line.ttft_ms.get().and_then(|n| Some(format!("first token after {}", format_duration(n.as_f64()?))));
            let speed = line.otps.get().map(|n| format!("{n} output tokens a second"));
            let parts: Vec<String> = [first, speed].into_iter().flatten().collect();
            let text = (!parts.is_empty()).then(|| format!("API call: {}", parts.join(", ")));
            return text.is_some().then(|| ScreenItem { text, hidden: true, ..item_for_node(node, ItemKind::System) });
        }
        System::LocalCommand(line) => return local_command_item(node, line.content.text()?),
        System::LocalCommandOutput(line) => return local_command_item(node, line.content.text()?),
        System::ApiError(line) => {
            is_error = true;
            let status = line.error.get().map(Json::extract_text).unwrap_or_default();
            let attempt = line.retry_attempt.get().copied().unwrap_or_default();
            let max = line.max_retries.get().copied().unwrap_or_default();
            Some(format!("API error, attempt {attempt} of {max}: {status}"))
        }
        System::ApiRetry(line) => {
            is_error = true;
            let attempt = line.attempt.get().copied().unwrap_or_default();
            let max = line.max_retries.get().copied().unwrap_or_default();
            let reason = match line.error_status.get() {
                Some(status) => format!("{status} {}", line.error.text().unwrap_or_default()),
                None => "no response from the API".to_owned(),
            };
            Some(format!("API error, attempt {attempt} of {max}: {reason}"))
        }
        System::Informational(line) => content(&line.content),
        System::MemorySaved(line) => content(&line.content).or_else(|| Some("Memory saved".to_owned())),
        System::AwaySummary(line) => content(&line.content),
        System::PermissionRetry(line) => content(&line.content),
        System::BridgeStatus(line) => content(&line.content),
        System::ScheduledTaskFire(line) => content(&line.content),
        System::AgentsKilled(_) => Some("Background agents stopped".to_owned()),
        System::ModelFallback(line) => content(&line.content),
        System::ModelRefusalFallback(line) => content(&line.content),
        System::ModelRefusal(line) => {
            is_error = true;
            content(&line.content)
        }
        System::Notification(line) => content(&line.text),
        System::SessionWritesLost(_) => Some("The program lost lines of its session file".to_owned()),
        System::StopHookSummary(line) => {
            let stopped = line.prevented_continuation.is_true();
            let errors = line.hook_errors.get().map(Json::to_value).unwrap_or_default();
            if !stopped && errors.as_array().is_none_or(Vec::is_empty) {
                return None;
            }
            let text = Some(format!("Stop hooks: {}", line.stop_reason.text().unwrap_or_default()));
            return Some(ScreenItem { text, is_error: true, ..item_for_node(node, ItemKind::Hook) });
        }
        System::Unknown(unknown) => {
            let text = Some(unknown.json().text().to_owned());
            return Some(ScreenItem { text, ..item_for_node(node, ItemKind::Unknown) });
        }
        _ => None,
    };
    let text = Some(text?).filter(|text| !text.trim().is_empty());
    text.is_some().then(|| ScreenItem { text, is_error, ..item_for_node(node, ItemKind::System) })
}

/// Milliseconds as `0.8 s`, `12 s` or `3 min 5 s`.
fn format_duration(ms: f64) -> String {
    let seconds = (ms / 1000.0).round() as u64;
    match seconds {
        _ if ms < 10_000.0 => format!("{:.1} s", ms / 1000.0),
        0..60 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The item of a local command: what was typed, or its output.
fn local_command_item(node: &Node, content: &str) -> Option<ScreenItem> {
    let (kind, text) = match classify_user_text(content) {
        UserText::Prompt { text, .. } => (ItemKind::User, text),
        UserText::Notice(text) => (ItemKind::System, text),
        UserText::Hidden => return None,
    };
    Some(ScreenItem { text: Some(text), ..item_for_node(node, kind) })
}

/// The item of a hook attachment; `None` for other attachments.
pub(super) fn hook_attachment_item(node: &Node, attachment: &Attachment) -> Option<ScreenItem> {
    let line = |event: &Maybe<String>, name: &Maybe<String>, what: String| {
        let name = name.text().or(event.text()).unwrap_or("hook");
        if what.is_empty() { name.to_owned() } else { format!("{name}: {what}") }
    };
    let text_of = |json: &Maybe<Json>| json.get().map(Json::extract_text).unwrap_or_default();
    let mut is_silent = false;
    let (text, is_error) = match attachment {
        Attachment::HookContext(a) => (line(&a.hook_event, &a.hook_name, text_of(&a.content)), false),
        Attachment::HookMessage(a) => (line(&a.hook_event, &a.hook_name, text_of(&a.content)), false),
        Attachment::HookSucceeded(a) => {
            let outputs =
                [a.stdout.text().map(str::to_owned), Some(text_of(&a.content)), a.stderr.text().map(str::to_owned)];
            let mut outputs = outputs.into_iter().flatten().map(|output| output.trim().to_owned());
            let output = outputs.find(|output| !output.is_empty());
            is_silent = output.is_none();
            (line(&a.hook_event, &a.hook_name, output.unwrap_or_default()), false)
        }
        Attachment::HookBlocked(a) => (line(&a.hook_event, &a.hook_name, text_of(&a.blocking_error)), true),
        Attachment::HookFailed(a) => {
            let output = a.stderr.text().map(str::trim).unwrap_or_default().to_owned();
            (line(&a.hook_event, &a.hook_name, output), true)
        }
        Attachment::HookStopped(a) => (line(&a.hook_event, &a.hook_name, text_of(&a.message)), true),
        Attachment::HookCancelled(a) => (line(&a.hook_event, &a.hook_name, "cancelled".to_owned()), true),
        _ => return None,
    };
    Some(ScreenItem { text: Some(text), is_error, is_silent, ..item_for_node(node, ItemKind::Hook) })
}

/// Kind and text of the item for an attachment; `None` for those that only the model needs.
pub(super) fn describe_attachment(attachment: &Attachment) -> Option<(ItemKind, String)> {
    let named =
        |what: &str, name: &Maybe<String>| name.text().map(|name| (ItemKind::Attachment, format!("{what} {name}")));
    match attachment {
        Attachment::File(a) => named("file", if a.display_path.is_value() { &a.display_path } else { &a.filename }),
        Attachment::Directory(a) => named("folder", &a.path),
        Attachment::CompactedFile(a) => named("file", &a.filename),
        Attachment::EditedFile(a) => named("changed meanwhile:", &a.filename),
        Attachment::NestedMemory(a) => named("instructions", &a.path),
        Attachment::McpResource(a) => named("resource", &a.uri),
        Attachment::QueuedCommand(a) => {
            match classify_user_text(&a.prompt.get().map(Content::to_text).unwrap_or_default()) {
                UserText::Prompt { text, .. } => Some((ItemKind::User, text)),
                UserText::Notice(text) => Some((ItemKind::System, text)),
                UserText::Hidden => None,
            }
        }
        Attachment::MaxTurnsReached(a) => {
            let max = a.max_turns.get().copied().unwrap_or_default();
            Some((ItemKind::System, format!("The limit of {max} turns was reached")))
        }
        Attachment::PlanMode(_) => Some((ItemKind::System, "Plan mode on".to_owned())),
        Attachment::PlanModeExit(_) => Some((ItemKind::System, "Plan mode off".to_owned())),
        Attachment::UnknownCommand(a) => {
            a.command_name.text().map(|name| (ItemKind::System, format!("Unknown command: {name}")))
        }
        Attachment::Unknown(unknown) => Some((ItemKind::Unknown, unknown.json().text().to_owned())),
        _ => None,
    }
}
