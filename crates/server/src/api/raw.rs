//! `/api/sessions/{key}/raw`: lines of a session file as they are.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use quipu_message::Head;
use quipu_message::line::replace_lone_surrogates;
use quipu_transcript::{FileError, LineReader, OpenSession, RawLine};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::error::ApiError;
use crate::json::Params;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RawParams {
    /// Number of a line, counted from 1.
    line: Option<u64>,
    /// All lines with this UUID.
    uuid: Option<String>,
    /// Id of a subagent, whose file is read instead.
    agent: Option<String>,
}

pub(crate) async fn raw(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Params(params): Params<RawParams>,
) -> Result<Response, ApiError> {
    app.blocking(move |app| {
        let mut path = app.list.resolve(&key)?;
        if let Some(agent) = &params.agent {
            let file = |session: &OpenSession| {
                let mut subagents = session.subagents();
                subagents.find(|subagent| subagent.agent_id.as_str() == agent).map(|subagent| subagent.path.clone())
            };
            let not_found = || ApiError::not_found("agent.not_found", format!("no subagent '{agent}' has a file"));
            path = app.sessions.with(&path, file)?.ok_or_else(not_found)?;
        }
        let file = File::open(&path).map_err(|source| FileError::Open { path: path.clone(), source })?;
        let read_error = |offset, source| FileError::Read { path: path.clone(), offset, source };
        let text = match (&params.line, &params.uuid) {
            (Some(line), _) => selected_lines(file, |number, _| number == *line, Some(*line)),
            (None, Some(uuid)) => selected_lines(file, |_, bytes| has_uuid(bytes, uuid), None),
            (None, None) => {
                return Err(
                    ApiError::bad_request("raw.which", "name a line or a UUID").with_hint("such as ?line=3 or ?uuid=…")
                );
            }
        };
        let text = text.map_err(|source| read_error(0, source))?;
        if text.is_empty() {
            return Err(ApiError::not_found("line.none", "no such line"));
        }
        Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
    })
    .await
}

/// The lines that `is_wanted` accepts, up to line `last`, with their line endings.
fn selected_lines(
    file: impl Read,
    is_wanted: impl Fn(u64, &[u8]) -> bool,
    last: Option<u64>,
) -> std::io::Result<Vec<u8>> {
    let mut lines = LineReader::new(file);
    let mut text = Vec::new();
    while let Some(line) = lines.next()? {
        let (RawLine::Line { number, .. } | RawLine::TooLong { number, .. }) = &line;
        let number = *number;
        if let RawLine::Line { bytes, ending, .. } = line
            && is_wanted(number, bytes)
        {
            text.extend_from_slice(bytes);
            text.extend_from_slice(ending.bytes());
        }
        if last.is_some_and(|last| number >= last) {
            break;
        }
    }
    Ok(text)
}

fn has_uuid(line: &[u8], uuid: &str) -> bool {
    let text = String::from_utf8_lossy(line);
    // Most lines do not contain the text and need not be parsed.
    text.contains(uuid)
        && Head::read(&replace_lone_surrogates(&text)).is_ok_and(|head| head.uuid.as_deref() == Some(uuid))
}
