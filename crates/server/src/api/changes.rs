//! `/api/sessions/{key}/changes` and `export`: documents of the whole conversation.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_conversation::{Conversation, UiOptions};
use quipu_render::{ExportFormat, ExportedSession, SessionDetails, file_changes, hidden_summary};
use quipu_transcript::{FileBackups, load_session, measure};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};

/// The files that a session changed, in the shape of `quipu diff --json`.
pub(crate) async fn changes(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        app.session_document(&key, "changes", |path| {
            let conversation = load_session(path)?;
            let cwd = details(&conversation, None).cwd;
            let backups = FileBackups::read(path);
            let backup = |file: &str| backups.original_content(file, cwd.as_deref().unwrap_or_default());
            Ok(file_changes(&conversation.for_ui(), cwd.as_deref(), &backup))
        })
    })
    .await
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ExportParams {
    to: Format,
    /// 1 to mask credentials, e-mail addresses and home folders.
    #[serde(default)]
    redact: u8,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    Html,
    Md,
    Json,
}

/// A session as a file to save.
pub(crate) async fn export(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Params(params): Params<ExportParams>,
) -> Result<Response, ApiError> {
    let (format, extension, content_type) = match params.to {
        Format::Html => (ExportFormat::Html, "html", "text/html; charset=utf-8"),
        Format::Md => (ExportFormat::Markdown, "md", "text/markdown; charset=utf-8"),
        Format::Json => (ExportFormat::Json, "json", "application/json"),
    };
    app.blocking(move |app| {
        let path = app.list.resolve(&key)?;
        let conversation = load_session(&path)?;
        let metrics = measure(&path)?.finish(&app.prices);
        let (items, left_out) = conversation.for_ui_and_left_out(UiOptions::default());
        let mut details = details(&conversation, Some(&metrics));
        details.not_shown = hidden_summary(left_out);
        let document = ExportedSession::new(items, details, format, params.redact == 1, local_time);
        let name = format!("attachment; filename=\"{}.{extension}\"", file_name(&path));
        let headers = [(CONTENT_TYPE, content_type.to_owned()), (CONTENT_DISPOSITION, name)];
        Ok((headers, document.text).into_response())
    })
    .await
}

fn details(conversation: &Conversation, metrics: Option<&quipu_conversation::Metrics>) -> SessionDetails {
    SessionDetails::new(conversation, metrics, local_time)
}

/// A timestamp in the local time zone; unchanged if it cannot be parsed.
fn local_time(timestamp: &str) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M %Z").to_string(),
        Err(_) => timestamp.to_owned(),
    }
}

/// The id of a session without characters that mean something in a header.
fn file_name(path: &FilePath) -> String {
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    id.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}
