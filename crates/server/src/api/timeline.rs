//! `/api/sessions/{key}/timeline`: what happened in each turn, and for how long.

use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_trace::explain::{Activity, ExplainBuilder, Explanation, TimeSpan};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::error::ApiError;
use crate::json::Json;

/// The turns of a session, each with the parts of its time.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TurnTimelines {
    turns: Vec<TurnTimeline>,
}

/// One turn. The lengths of the spans add up to its duration.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TurnTimeline {
    /// Number of the turn, from 1.
    turn: u32,
    duration_ms: u64,
    spans: Vec<TurnSpan>,
}

/// A part of a turn.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TurnSpan {
    /// Milliseconds from the beginning of the turn, without idle time.
    start_ms: u64,
    duration_ms: u64,
    /// `model`, `tools`, `waiting`, `hooks`, `retries` or `compaction`.
    activity: &'static str,
    /// Name of the tool.
    tool: Option<String>,
    /// Line of the entry that ended the span.
    line: u64,
}

pub(crate) async fn timeline(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<Json, ApiError> {
    app.blocking_long(move |app| {
        app.session_document(&key, "timeline", |path| {
            Ok(TurnTimelines::new(&ExplainBuilder::read(path)?.finish(&app.prices)))
        })
    })
    .await
}

impl TurnTimelines {
    fn new(explanation: &Explanation) -> Self {
        let (turns, spans) = (&explanation.money.turns, &explanation.timeline.spans);
        let ends = turns.iter().skip(1).map(|next| next.line).chain([u64::MAX]);
        let timelines = turns.iter().zip(ends).map(|(turn, end)| {
            // Idle time is between two turns, or before a local command.
            let first = spans.partition_point(|span| span.line <= turn.line);
            let inside = spans[first..].iter().take_while(|span| span.line < end);
            let spans: Vec<&TimeSpan> = inside.filter(|span| span.activity != Activity::Idle).collect();
            TurnTimeline::new(turn.turn, &spans)
        });
        Self { turns: timelines.collect() }
    }
}

impl TurnTimeline {
    fn new(turn: u32, spans: &[&TimeSpan]) -> Self {
        let mut start_ms = 0;
        let spans: Vec<TurnSpan> = spans
            .iter()
            .map(|span| {
                let (activity, tool) = describe(&span.activity);
                let row = TurnSpan { start_ms, duration_ms: span.duration_ms, activity, tool, line: span.line };
                start_ms += span.duration_ms;
                row
            })
            .collect();
        Self { turn, duration_ms: start_ms, spans }
    }
}

fn describe(activity: &Activity) -> (&'static str, Option<String>) {
    let name = match activity {
        Activity::Tool(name) => return ("tools", Some(name.clone())),
        Activity::Waiting => "waiting",
        Activity::Hooks => "hooks",
        Activity::Retries => "retries",
        Activity::Compaction => "compaction",
        _ => "model",
    };
    (name, None)
}
