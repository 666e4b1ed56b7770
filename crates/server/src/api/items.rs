//! `/api/sessions/{key}/items`: a window of a conversation.

use std::sync::Arc;

use axum::extract::{Path, State};
use quipu_conversation::{PositionedItem, ScreenItem, SkeletonView, UiOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, Params};
use crate::long_texts::encode_cut;

/// Positions of one response at most.
const MAX_COUNT: usize = 500;
/// Positions of one response unless `count` names another number.
const DEFAULT_COUNT: usize = 60;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ItemParams {
    /// First position; the last `count` positions without it.
    from: Option<usize>,
    count: Option<usize>,
    /// The window around this line of the session file.
    line: Option<u64>,
    /// The items of this branch instead of the active path.
    branch: Option<usize>,
    /// Id of a subagent, or of the tool call that started it.
    agent: Option<String>,
    /// 1 to include what only the model sees.
    hidden: u8,
    /// 1 to get long texts whole.
    full: u8,
}

/// A part of the active path.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Window {
    version: String,
    /// Number of entries on the active path.
    entries: usize,
    /// First position of the window.
    from: usize,
    /// Number of positions of the window.
    count: usize,
    /// Position that shows `line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    #[schemars(with = "Vec<PositionedItem>")]
    items: Vec<Box<RawValue>>,
}

/// A branch beside the active path.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BranchItems {
    version: String,
    branch: usize,
    #[schemars(with = "Vec<ScreenItem>")]
    items: Vec<Box<RawValue>>,
}

pub(crate) async fn items(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    Params(params): Params<ItemParams>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let path = app.list.resolve(&key)?;
        app.sessions.with(&path, |session| {
            let view = params.conversation(session.view())?;
            match params.branch {
                Some(branch) => params.branch_items(view, branch, session.version()),
                None => Ok(Json::new(&params.window(view, session.version()))),
            }
        })?
    })
    .await
}

impl ItemParams {
    fn options(&self) -> UiOptions {
        UiOptions { include_hidden: self.hidden == 1, leave_out_subagents: true, ..UiOptions::default() }
    }

    /// The session itself or one of its subagents.
    fn conversation<'a>(&self, view: SkeletonView<'a>) -> Result<SkeletonView<'a>, ApiError> {
        let Some(agent) = &self.agent else { return Ok(view) };
        view.subagent(agent).ok_or_else(|| ApiError::not_found("agent.not_found", format!("no subagent '{agent}'")))
    }

    fn encode<T: Serialize>(&self, items: &[T]) -> Vec<Box<RawValue>> {
        let encode = if self.full == 1 { |item: &T| to_raw_value(item).ok() } else { encode_cut };
        items.iter().filter_map(encode).collect()
    }

    fn branch_items(&self, view: SkeletonView<'_>, branch: usize, version: String) -> Result<Json, ApiError> {
        let items = view.branch_items(branch, self.options());
        let items = items.ok_or_else(|| ApiError::not_found("branch.none", format!("no branch {branch}")))?;
        Ok(Json::new(&BranchItems { version, branch, items: self.encode(&items) }))
    }

    fn window(&self, view: SkeletonView<'_>, version: String) -> Window {
        let entries = view.len();
        let count = self.count.unwrap_or(DEFAULT_COUNT).clamp(1, MAX_COUNT);
        let position = self.line.map(|line| view.position_of_line(line));
        let last_start = entries.saturating_sub(count);
        let from = match (self.from, position) {
            (_, Some(position)) => position.saturating_sub(count / 2).min(last_start),
            (Some(from), None) => from.min(entries),
            (None, None) => last_start,
        };
        let end = from.saturating_add(count).min(entries);
        let items = self.encode(&view.positioned_items(from..end, self.options()));
        Window { version, entries, from, count: end - from, position, items }
    }
}
