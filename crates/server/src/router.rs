//! The routes of the server.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, delete, get, post};

use crate::access::guard;
use crate::api::{
    calls, changes, chat_control, chat_events, chat_rewind, chats, events, files, find, items, labels, overview, raw,
    search, session, sessions, settings, status, timeline, turns, usage,
};
use crate::app::App;
use crate::assets::serve_file;
use crate::error::ApiError;
use crate::openapi;

/// Largest message of a chat, with its images; other bodies are limited to 2 MB.
const MAX_MESSAGE_BYTES: usize = 32 << 20;

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/status", get(status::status))
        .route("/api/chat/setup", get(chats::setup))
        .route("/api/chats", get(chats::list).post(chats::start))
        .route("/api/chats/{id}", get(chats::one).delete(chats::end))
        .route("/api/chats/{id}/events", get(chat_events::events))
        .route("/api/chats/{id}/interrupt", post(chat_control::interrupt))
        .route("/api/chats/{id}/messages", post(chat_control::send).layer(DefaultBodyLimit::max(MAX_MESSAGE_BYTES)))
        .route("/api/chats/{id}/model", post(chat_control::model))
        .route("/api/chats/{id}/permission_mode", post(chat_control::permission_mode))
        .route("/api/chats/{id}/prompts/{prompt}", post(chat_control::reply))
        .route("/api/chats/{id}/queue/{uuid}", delete(chat_control::cancel))
        .route("/api/chats/{id}/rewind", post(chat_rewind::rewind))
        .route("/api/context", get(files::context))
        .route("/api/events", get(events::events))
        .route("/api/files", get(files::files))
        .route("/api/openapi.json", get(openapi::serve_document))
        .route("/api/overview", get(overview::overview))
        .route("/api/search", get(search::search))
        .route("/api/sessions", get(sessions::list))
        .route("/api/sessions/{key}", get(session::session).delete(labels::delete))
        .route("/api/sessions/{key}/cache", get(calls::cache))
        .route("/api/sessions/{key}/calls", get(calls::calls))
        .route("/api/sessions/{key}/calls/diff", get(calls::diff))
        .route("/api/sessions/{key}/changes", get(changes::changes))
        .route("/api/sessions/{key}/explain", get(calls::explain))
        .route("/api/sessions/{key}/export", get(changes::export))
        .route("/api/sessions/{key}/find", get(find::find))
        .route("/api/sessions/{key}/items", get(items::items))
        .route("/api/sessions/{key}/raw", get(raw::raw))
        .route("/api/sessions/{key}/star", post(labels::star))
        .route("/api/sessions/{key}/tags", post(labels::tags))
        .route("/api/sessions/{key}/timeline", get(timeline::timeline))
        .route("/api/sessions/{key}/title", post(labels::title))
        .route("/api/sessions/{key}/turns", get(turns::turns))
        .route("/api/settings", get(settings::read).put(settings::write))
        .route("/api/usage", get(usage::usage))
        .route("/api/usage.csv", get(usage::csv))
        .route("/api/usage/compare", get(usage::compare))
        .route("/api/usage/heatmap", get(usage::heatmap))
        .route("/api/usage/hours", get(usage::hours))
        .route("/api/{*rest}", any(no_such_path))
        .fallback(get(serve_file))
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::not_found("path.not_found", format!("no such path: {}", uri.path()))
        .with_hint("/api/openapi.json lists the paths")
}
