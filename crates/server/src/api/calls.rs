//! `/api/sessions/{key}/calls`, `cache` and `explain`: the API calls behind a session.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_trace::cache::{CacheAnalysis, CacheRow, Policy, PolicyRow, policy_rows};
use quipu_trace::capture::CaptureFolder;
use quipu_trace::explain::{ExplainBuilder, Report};
use quipu_trace::{Call, CallDiff, CallSource, ImportError, Structure, Trace, TraceRows};
use quipu_transcript::error_chain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};

/// Which calls of a session to show.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct CallParams {
    source: Source,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Source {
    /// Captures if they have all calls of the session file, or else the file.
    #[default]
    Complete,
    Captures,
    SessionFile,
}

/// Name of a document, and of the same document from each source.
type DocumentNames = [&'static str; 3];
const CALLS: DocumentNames = ["calls", "calls of captures", "calls of the session file"];
const CACHE: DocumentNames = ["cache", "cache of captures", "cache of the session file"];

impl CallParams {
    fn document(self, names: DocumentNames) -> &'static str {
        names[self.source as usize]
    }

    fn source(self) -> CallSource {
        match self.source {
            Source::Complete => CallSource::Complete,
            Source::Captures => CallSource::Captures,
            Source::SessionFile => CallSource::SessionFile,
        }
    }
}

/// The calls of a session, and where they come from.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallsDocument<'a> {
    #[serde(flatten)]
    rows: TraceRows<'a>,
    /// Whether the calls are those of captures.
    is_captured: bool,
    /// Whether the session has captures.
    has_captures: bool,
}

pub(crate) async fn calls(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Params(params): Params<CallParams>,
) -> Result<Json, ApiError> {
    app.blocking_long(move |app| {
        app.session_document(&key, params.document(CALLS), |path| {
            let trace = open_trace(app, path, params.source())?;
            let structure = Structure::new(&trace);
            let id = path.file_stem().unwrap_or_default().to_string_lossy();
            raw(&CallsDocument {
                rows: TraceRows::new(&trace, &structure, &app.prices),
                is_captured: trace.sources.iter().all(|source| source.path != path),
                has_captures: app.captures().is_some_and(|folder| !folder.captures_of_session(&id).is_empty()),
            })
        })
    })
    .await
}

/// What the prompt cache did for each call, and what it would have done under other policies.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CacheDocument<'a> {
    calls: Vec<CacheRow<'a>>,
    what_if: Vec<PolicyRow>,
}

pub(crate) async fn cache(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Params(params): Params<CallParams>,
) -> Result<Json, ApiError> {
    app.blocking_long(move |app| {
        app.session_document(&key, params.document(CACHE), |path| {
            let trace = open_trace(app, path, params.source())?;
            let structure = Structure::new(&trace);
            let analysis = CacheAnalysis::new(&trace, &structure);
            let verdicts = analysis.verdicts(&app.prices);
            let calls = verdicts.iter().map(|verdict| CacheRow::new(&trace, &structure, verdict)).collect();
            let policies: Vec<Policy> = Policy::ALL.into_iter().filter(|policy| *policy != Policy::Recorded).collect();
            raw(&CacheDocument { calls, what_if: policy_rows(&analysis, &policies, &app.prices) })
        })
    })
    .await
}

pub(crate) async fn explain(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<Json, ApiError> {
    app.blocking_long(move |app| {
        app.session_document(&key, "explain", |path| {
            let explanation = ExplainBuilder::read(path)?.finish(&app.prices);
            Ok(Report::new(&explanation, &open_trace(app, path, CallSource::Complete)?, &app.prices))
        })
    })
    .await
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiffParams {
    /// Id of the earlier call; the one before `b` in its branch without it.
    a: Option<String>,
    /// Id of the later call.
    b: String,
    #[serde(flatten)]
    calls: CallParams,
}

pub(crate) async fn diff(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Params(params): Params<DiffParams>,
) -> Result<Json, ApiError> {
    app.blocking_long(move |app| {
        let trace = open_trace(app, &app.list.resolve(&key)?, params.calls.source())?;
        let structure = Structure::new(&trace);
        let later = find_call(&trace, &params.b)?;
        let earlier = match params.a.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => Some(find_call(&trace, id)?),
            None => structure.previous_call(later).map(|index| &trace.calls[index]),
        };
        let diffs: Vec<CallDiff<'_>> =
            earlier.map(|earlier| CallDiff::new(&trace, earlier, later, true)).into_iter().collect();
        Ok(Json::new(&diffs))
    })
    .await
}

fn find_call<'a>(trace: &'a Trace, id: &str) -> Result<&'a Call, ApiError> {
    let found = trace.calls.iter().find(|call| call.id == id);
    found.ok_or_else(|| ApiError::not_found("call.not_found", format!("no call {id}")))
}

impl App {
    pub(crate) fn captures(&self) -> Option<CaptureFolder> {
        self.data_folder.as_deref().map(CaptureFolder::in_data_folder)
    }
}

fn open_trace(app: &App, path: &FilePath, source: CallSource) -> Result<Trace, ApiError> {
    Trace::open_session(path, app.captures().as_ref(), source).map_err(import_error)
}

fn import_error(error: ImportError) -> ApiError {
    ApiError::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.code(), error_chain(&error))
}

/// A document that borrows from what is dropped before it is sent.
fn raw<T: Serialize>(value: &T) -> Result<Box<RawValue>, ApiError> {
    to_raw_value(value).map_err(|error| ApiError::internal(error.to_string()))
}
