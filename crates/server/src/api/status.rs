//! `/api/status`: what the server shows.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::settings::PageSettings;
use crate::app::App;
use crate::json::Json;

/// Version, folders and the state of the index.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Status {
    version: &'static str,
    claude_dirs: Vec<String>,
    /// Whether the sessions are the bundled ones.
    demo: bool,
    #[serde(flatten)]
    page: PageSettings,
    /// Name of the time zone that days are counted in, such as `Europe/Berlin`.
    time_zone: String,
    index: IndexStatus,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IndexStatus {
    /// `updating` until all sessions that existed at the start are in the index.
    state: &'static str,
    /// Number of sessions.
    sessions: usize,
}

pub(crate) async fn status(State(app): State<Arc<App>>) -> Json {
    let zone = (app.now)().time_zone().iana_name().map_or_else(|| (app.now)().offset().to_string(), str::to_owned);
    Json::new(&Status {
        version: env!("CARGO_PKG_VERSION"),
        claude_dirs: app.claude_dirs.iter().map(|dir| dir.display().to_string()).collect(),
        demo: app.is_demo,
        page: PageSettings::load(&app).unwrap_or_default(),
        time_zone: zone,
        index: IndexStatus {
            state: if app.index.is_ready() { "ready" } else { "updating" },
            sessions: app.list.rows().len(),
        },
    })
}
