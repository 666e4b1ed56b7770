//! The routes of the server.

use std::sync::Arc;

use axum::Router;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use axum::routing::get;

use crate::access::guard;
use crate::api::{events, items, raw, session, sessions, status};
use crate::app::App;
use crate::assets::serve_file;
use crate::error::ApiError;

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/status", get(status::status))
        .route("/api/events", get(events::events))
        .route("/api/sessions", get(sessions::list))
        .route("/api/sessions/{key}", get(session::session))
        .route("/api/sessions/{key}/items", get(items::items))
        .route("/api/sessions/{key}/raw", get(raw::raw))
        .route("/api/{*rest}", get(no_such_path))
        .fallback(get(serve_file))
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

async fn no_such_path(uri: Uri) -> ApiError {
    ApiError::not_found("path.not_found", format!("no such path: {}", uri.path()))
        .with_hint("/api/openapi.json lists the paths")
}
