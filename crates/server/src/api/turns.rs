//! `/api/sessions/{key}/turns`: what each turn cost and how long it took.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_conversation::{Tokens, parse_timestamp};
use quipu_message::view::ContentView;
use quipu_message::{Block, View};
use quipu_trace::explain::Money;
use quipu_transcript::OpenSession;
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
    app.blocking_long(move |app| {
        app.session_document(&key, "turns", |path| {
            let (version, mut turns) = app.sessions.with(path, |session| (session.version(), timed_turns(session)))?;
            let turn_by_line: HashMap<u64, usize> =
                turns.iter().enumerate().flat_map(|(i, turn)| turn.lines.iter().map(move |&line| (line, i))).collect();
            let money = Money::read(path, &app.prices, |line, view| {
                if let Some(turn) = turn_by_line.get(&line).and_then(|&i| turns.get_mut(i)) {
                    turn.count_tool_calls(view);
                }
            })?;
            for money in money.turns {
                if let Some(figure) = (money.turn as usize).checked_sub(1).and_then(|i| turns.get_mut(i)) {
                    (figure.cost_usd, figure.tokens) = (money.cost.as_f64(), money.tokens);
                }
            }
            Ok(TurnFigures { version, turns })
        })
    })
    .await
}

impl TurnFigure {
    fn count_tool_calls(&mut self, view: &View<'_>) {
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        for block in content.map(ContentView::blocks).unwrap_or_default() {
            self.tool_calls += usize::from(block.id.is_some() && block.name.is_some());
            self.failed_tool_calls += usize::from(block.tool_use_id.is_some() && block.is_error == Some(true));
        }
    }
}

/// The turns of the active path with their times.
fn timed_turns(session: &OpenSession) -> Vec<TurnFigure> {
    let view = session.view();
    let figure = |(index, turn): (usize, quipu_conversation::SkeletonTurn)| {
        let started_at = view.entry(turn.prompt).and_then(|node| node.timestamp().map(str::to_owned));
        // Local commands and notices after the answer are not part of the work.
        let end_of_work = |position: usize| {
            let node = view.entry(position)?;
            let is_result = |block: &Block| block.result_tool_use_id().is_some();
            let is_work = node.assistant().is_some() || node.blocks().iter().any(is_result);
            node.timestamp().filter(|_| is_work).map(str::to_owned)
        };
        let mut later = turn.positions.clone().rev().take_while(|position| *position > turn.prompt);
        let ended_at = later.find_map(end_of_work);
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
