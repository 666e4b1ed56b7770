//! `/api/sessions/{key}/turns`: what each turn cost and how long it took.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_conversation::{Tokens, parse_timestamp};
use quipu_message::view::ContentView;
use quipu_trace::explain::ExplainBuilder;
use quipu_transcript::{OpenSession, for_each_view};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::error::ApiError;
use crate::json::Json;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TurnFigures {
    version: String,
    turns: Vec<TurnFigure>,
}

/// One turn, with the API calls of its subagents.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct TurnFigure {
    /// Number of the turn, from 1.
    turn: usize,
    /// Timestamp of the prompt, as written.
    started_at: Option<String>,
    /// From the prompt to the last response or tool result.
    duration_ms: Option<i64>,
    /// Cost in US dollars, without unpriced models.
    cost_usd: f64,
    tokens: Tokens,
    tool_calls: usize,
    failed_tool_calls: usize,
    /// Lines of all its entries.
    #[serde(skip)]
    lines: Vec<u64>,
}

pub(crate) async fn turns(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        app.session_document(&key, "turns", |path| {
            let (version, mut turns) = app.sessions.with(path, |session| (session.version(), timed_turns(session)))?;
            let mut turn_by_line = HashMap::new();
            for (index, turn) in turns.iter().enumerate() {
                turn_by_line.extend(turn.lines.iter().map(|line| (*line, index)));
            }
            for_each_view(path, |line, _, view| {
                let Some(turn) = turn_by_line.get(&line).and_then(|&index| turns.get_mut(index)) else { return };
                let Some(ContentView::Blocks(blocks)) =
                    view.message.as_ref().and_then(|message| message.content.as_ref())
                else {
                    return;
                };
                for block in blocks {
                    turn.tool_calls += usize::from(block.id.is_some() && block.name.is_some());
                    turn.failed_tool_calls += usize::from(block.tool_use_id.is_some() && block.is_error == Some(true));
                }
            })?;
            let money = ExplainBuilder::read(path)?.finish(&app.prices).money;
            for figure in &mut turns {
                if let Some(money) = money.turns.iter().find(|money| money.turn as usize == figure.turn) {
                    (figure.cost_usd, figure.tokens) = (money.cost.as_f64(), money.tokens);
                }
            }
            Ok(TurnFigures { version, turns })
        })
    })
    .await
}

/// The turns of the active path with their times.
fn timed_turns(session: &OpenSession) -> Vec<TurnFigure> {
    let view = session.view();
    let timestamp = |position: usize| view.entry(position).and_then(|node| node.timestamp().map(str::to_owned));
    let figure = |(index, turn): (usize, quipu_conversation::SkeletonTurn)| {
        let started_at = timestamp(turn.prompt);
        // Local commands and notices after the answer are not part of the work.
        let is_work = |position: &usize| {
            let node = view.entry(*position);
            node.is_some_and(|node| {
                node.assistant().is_some() || node.blocks().iter().any(|block| block.result_tool_use_id().is_some())
            })
        };
        let later = turn.positions.clone().rev().take_while(|position| *position > turn.prompt);
        let ended_at = later.filter(is_work).find_map(timestamp);
        let time = |text: &Option<String>| text.as_deref().and_then(parse_timestamp);
        let duration = time(&started_at).zip(time(&ended_at)).map(|(start, end)| end.duration_since(start).as_millis());
        TurnFigure {
            turn: index + 1,
            duration_ms: duration.and_then(|milliseconds| i64::try_from(milliseconds.max(0)).ok()),
            started_at,
            lines: view.lines(turn.positions),
            ..TurnFigure::default()
        }
    };
    view.turns().into_iter().enumerate().map(figure).collect()
}
