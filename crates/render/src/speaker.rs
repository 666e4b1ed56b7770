//! Speakers of items, and the short labels that all outputs share.

use quipu_conversation::{ItemKind, ScreenItem};
use quipu_message::MediaSource;
use quipu_message::context_ref;

use crate::sanitize::sanitize_line;

/// Who wrote an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Model(String),
}

impl Speaker {
    /// Speaker of the first of `items`; `None` for items without a speaker, such as notices. An item
    /// without a model belongs to the current model or, if there is none, to the next one named.
    pub(crate) fn from_items(items: &[ScreenItem], current: Option<&Self>) -> Option<Self> {
        let item = items.first()?;
        match item.kind {
            ItemKind::User => Some(Self::User),
            // Images and files are part of the user's message.
            ItemKind::Image | ItemKind::Attachment => current.is_none().then_some(Self::User),
            ItemKind::Assistant | ItemKind::Thinking | ItemKind::Tool => match (named_model(item), current) {
                (None, Some(Self::Model(name))) => Some(Self::Model(name.clone())),
                (named, _) => {
                    let name = named.or_else(|| next_model(items)).unwrap_or("assistant");
                    Some(Self::Model(sanitize_line(name)))
                }
            },
            ItemKind::Hook
            | ItemKind::System
            | ItemKind::Summary
            | ItemKind::Branch
            | ItemKind::Unknown
            | ItemKind::Problem => None,
        }
    }
}

/// Model of an item; `None` if the agent itself wrote it in the model's name.
fn named_model(item: &ScreenItem) -> Option<&str> {
    item.model.as_deref().filter(|name| !name.starts_with('<') && !name.trim().is_empty())
}

/// Model of the first item that names one, before the next user prompt.
fn next_model(items: &[ScreenItem]) -> Option<&str> {
    items.iter().take_while(|item| item.kind != ItemKind::User).find_map(named_model)
}

/// Short label of a context reference, such as `📄 src/main.rs`; sanitized, on one line.
pub fn context_label(kind: &context_ref::ContextKind) -> String {
    use context_ref::ContextKind as Context;
    match kind {
        Context::File { path } => format!("📄 {}", sanitize_line(path)),
        Context::Web { url, title } => match title.as_deref() {
            Some(title) => format!("🌐 {} ({})", sanitize_line(title), sanitize_line(url)),
            None => format!("🌐 {}", sanitize_line(url)),
        },
        Context::Folder { path, file_count } => format!("📁 {} ({file_count})", sanitize_line(path)),
        Context::Symbol { name, symbol_type, file, line } => {
            format!("🔗 {} ({}) {}:{line}", sanitize_line(name), sanitize_line(symbol_type), sanitize_line(file))
        }
        Context::Terminal { lines, is_error } => {
            format!("💻 terminal, {lines} lines{}", if *is_error { ", error" } else { "" })
        }
        Context::Problems { count, severity } => {
            let severity = severity.as_deref().map(|level| format!(" {}", sanitize_line(level))).unwrap_or_default();
            let word = if *count == 1 { "problem" } else { "problems" };
            format!("⚠ {count} {word}{severity}")
        }
        Context::Git { git_type } => format!("🔀 git {}", sanitize_line(git_type)),
        Context::Selection => "✏ selection".to_owned(),
        Context::Workspace => "🏠 workspace".to_owned(),
        Context::Other { text } => sanitize_line(text),
    }
}

/// Label of an image item: `image png, 120 bytes of base64`.
pub(crate) fn image_item_label(text: &str) -> String {
    let text = sanitize_line(text);
    format!("image {}", text.strip_prefix("image/").unwrap_or(&text))
}

/// Label of an image source: `image png, 3 KB`.
pub(crate) fn image_source_label(source: &MediaSource) -> String {
    let kind = sanitize_line(source.media_type.text().unwrap_or(source.kind.as_str()));
    let kind = kind.strip_prefix("image/").unwrap_or(&kind);
    let size = source.data.text().map(|data| data.len() / 4 * 3);
    match (size, source.url.text()) {
        (Some(bytes), _) if bytes < 1024 => format!("image {kind}, {bytes} bytes"),
        (Some(bytes), _) => format!("image {kind}, {} KB", bytes / 1024),
        (None, Some(url)) => format!("image {}", sanitize_line(url)),
        (None, None) => format!("image {kind}"),
    }
}

/// A timestamp to the minute without conversion: `2026-11-15 09:14`.
pub(crate) fn format_time_as_written(timestamp: &str) -> String {
    let minute = timestamp.get(..16).filter(|text| text.is_ascii() && text.as_bytes()[10] == b'T');
    minute.map_or_else(|| sanitize_line(timestamp), |text| text.replacen('T', " ", 1))
}
