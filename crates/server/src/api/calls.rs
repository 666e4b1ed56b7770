//! `/api/sessions/{key}/calls`, `cache` and `explain`: the API calls behind a session.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_trace::cache::{CacheAnalysis, CacheRow, Policy, PolicyRow, policy_rows};
use quipu_trace::capture::CaptureFolder;
use quipu_trace::explain::{ExplainBuilder, Report};
use quipu_trace::{Call, CallDiff, ImportError, Structure, Trace, TraceRows};
use quipu_transcript::error_chain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};

pub(crate) async fn calls(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        app.session_document(&key, "calls", |path| {
            let trace = open_trace(app, path)?;
            let structure = Structure::new(&trace);
            raw(&TraceRows::new(&trace, &structure, &app.prices))
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

pub(crate) async fn cache(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        app.session_document(&key, "cache", |path| {
            let trace = open_trace(app, path)?;
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
    app.blocking(move |app| {
        app.session_document(&key, "explain", |path| {
            let explanation = ExplainBuilder::read(path)?.finish(&app.prices);
            Ok(Report::new(&explanation, &open_trace(app, path)?, &app.prices))
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
}

pub(crate) async fn diff(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Params(params): Params<DiffParams>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let trace = open_trace(app, &app.list.resolve(&key)?)?;
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

/// The calls of the captures of a session, or else those that its file records.
fn open_trace(app: &App, path: &FilePath) -> Result<Trace, ApiError> {
    let captures = app.data_folder.as_deref().map(CaptureFolder::in_data_folder);
    Trace::open_session(path, captures.as_ref()).map_err(import_error)
}

fn import_error(error: ImportError) -> ApiError {
    ApiError::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.code(), error_chain(&error))
}

/// A document that borrows from what is dropped before it is sent.
fn raw<T: Serialize>(value: &T) -> Result<Box<RawValue>, ApiError> {
    to_raw_value(value).map_err(|error| ApiError::internal(error.to_string()))
}
