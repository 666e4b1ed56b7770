//! Changes to a session: title, tags, star, deletion.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use quipu_transcript::{DeleteError, LabelError, delete_idle_session, error_chain, set_tag, set_title};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::ApiError;
use crate::event::Event;
use crate::index_worker::open_catalogue;
use crate::json::{Json, JsonBody};
use crate::session_list::split_tags;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TitleBody {
    title: String,
}

pub(crate) async fn title(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    JsonBody(TitleBody { title }): JsonBody<TitleBody>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let path = app.list.resolve(&key)?;
        let title = set_title(&path, &title).map_err(label_error)?;
        app.list.change_row(&path, |session| session.title = Some(title.clone()));
        app.send(Event::Sessions);
        Ok(Json::new(&TitleBody { title }))
    })
    .await
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TagsBody {
    tags: Vec<String>,
}

/// A session file has one tag; several are joined by commas, which no tag has.
pub(crate) async fn tags(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    JsonBody(TagsBody { tags }): JsonBody<TagsBody>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let path = app.list.resolve(&key)?;
        let joined = split_tags(Some(&tags.join(","))).join(", ");
        let tag = set_tag(&path, Some(joined.as_str()).filter(|tag| !tag.is_empty())).map_err(label_error)?;
        app.list.change_row(&path, |session| session.tag.clone_from(&tag));
        app.send(Event::Sessions);
        Ok(Json::new(&TagsBody { tags: split_tags(tag.as_deref()) }))
    })
    .await
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StarBody {
    starred: bool,
}

pub(crate) async fn star(
    State(app): State<Arc<App>>,
    Path(key): Path<String>,
    JsonBody(StarBody { starred }): JsonBody<StarBody>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let path = app.list.resolve(&key)?;
        let name = |path: Option<&FilePath>| {
            path.and_then(FilePath::file_stem).unwrap_or_default().to_string_lossy().into_owned()
        };
        app.stars.set(&name(path.parent()), &name(Some(&path)), starred).map_err(|error| {
            ApiError::internal(format!("cannot keep the star: {error}")).with_hint("check the data folder of quipu")
        })?;
        app.send(Event::Sessions);
        Ok(Json::new(&StarBody { starred }))
    })
    .await
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeleteReply {
    deleted: bool,
}

/// Deletes a session with its subagents, as `quipu rm` does. Its usage stays in the reports.
pub(crate) async fn delete(State(app): State<Arc<App>>, Path(key): Path<String>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let path = app.list.resolve(&key)?;
        // First of all, so that reports keep its usage.
        open_catalogue(app)?.refresh(&|_, _| ())?;
        delete_idle_session(&path).map_err(delete_error)?;
        app.live.remove(&path);
        app.list.remove(&path);
        app.index.request_refresh();
        app.send(Event::Sessions);
        Ok(Json::new(&DeleteReply { deleted: true }))
    })
    .await
}

fn label_error(error: LabelError) -> ApiError {
    let status = match error {
        LabelError::Blank { .. } => StatusCode::BAD_REQUEST,
        LabelError::Append(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    ApiError::new(status, error.code(), error_chain(&error))
}

fn delete_error(error: DeleteError) -> ApiError {
    let (status, hint) = match error {
        DeleteError::Busy { .. } => (StatusCode::CONFLICT, "end the agent that works in this session, then try again"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "the session's file is still there"),
    };
    ApiError::new(status, error.code(), error_chain(&error)).with_hint(hint)
}
