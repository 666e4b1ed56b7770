//! A session as one document to share.

use quipu_conversation::ScreenItem;

use crate::html::Html;
use crate::markdown::Markdown;
use crate::redact::Redactor;
use crate::session_details::SessionDetails;

/// Format of an exported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One self-contained page.
    Html,
    /// Markdown with whole results.
    Markdown,
    /// The items in the shape of `quipu show --json`.
    Json,
}

/// A rendered conversation.
#[derive(Debug)]
pub struct ExportedSession {
    /// The rendered document.
    pub text: String,
    /// Number of items in it.
    pub item_count: usize,
    /// Facts about the session, masked if the document is.
    pub details: SessionDetails,
    /// What was masked.
    pub redactor: Redactor,
}

impl ExportedSession {
    /// Renders items. With `redact`, credentials, e-mail addresses and home folders are masked.
    pub fn new(
        mut items: Vec<ScreenItem>,
        mut details: SessionDetails,
        format: ExportFormat,
        redact: bool,
        format_time: fn(&str) -> String,
    ) -> Self {
        let mut redactor = Redactor::new(&details);
        if redact {
            items.iter_mut().for_each(|item| redactor.redact_item(item));
            redactor.redact_details(&mut details);
        }
        let text = match format {
            ExportFormat::Html => Html { details: details.clone(), format_time, ..Html::default() }.render(&items),
            ExportFormat::Markdown => {
                Markdown { details: details.clone(), show_full: true, format_time, ..Markdown::default() }
                    .render(&items)
            }
            // Fails only for maps whose keys are not text; there are none.
            ExportFormat::Json => serde_json::to_string(&items).unwrap_or_default() + "\n",
        };
        Self { text, item_count: items.len(), details, redactor }
    }
}
