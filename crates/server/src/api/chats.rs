//! `/api/chat/setup` and `/api/chats`: which agents there are, and chats with them.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::chat::{ActiveChat, AgentInfo, ChatSettings, StartRequest, Started, is_trusted};
use crate::error::ApiError;
use crate::json::{Json, JsonBody, Params};

/// Folders that are offered.
const MAX_FOLDERS: usize = 20;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SetupParams {
    /// Folder to look at; the latest one of a session without it.
    cwd: Option<String>,
}

/// What a new chat can be started with.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChatSetup {
    agents: Vec<AgentInfo>,
    /// The agent of a chat that names none; `None` if none can be used.
    default_agent: Option<String>,
    /// `None` if the agent chooses.
    default_model: Option<String>,
    default_permission_mode: String,
    /// Folders of recent sessions that exist, the latest first.
    folders: Vec<String>,
    cwd: Option<String>,
    /// Whether `cwd` is trusted; if not, a chat in it needs `trust`.
    is_trusted: bool,
}

pub(crate) async fn setup(State(app): State<Arc<App>>, Params(params): Params<SetupParams>) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let settings = ChatSettings::load(app)?;
        let info = |agent| AgentInfo::new(agent, app.chats.agent_version(&agent.name));
        let agents: Vec<AgentInfo> = app.agents.iter().map(info).collect();
        let usable = agents.iter().find(|agent| agent.usable).map(|agent| agent.name.clone());
        let folders = recent_folders(app);
        let cwd = params.cwd.or_else(|| folders.first().cloned());
        let resolved = cwd.as_deref().and_then(|cwd| std::fs::canonicalize(cwd).ok()).filter(|cwd| cwd.is_dir());
        let is_trusted = resolved.as_deref().map(|cwd| is_trusted(app, cwd)).transpose()?.unwrap_or_default();
        Ok(Json::new(&ChatSetup {
            agents,
            default_agent: settings.agent.or(usable),
            default_model: settings.model,
            default_permission_mode: settings.permission_mode,
            folders,
            cwd,
            is_trusted,
        }))
    })
    .await
}

fn recent_folders(app: &App) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    for cwd in app.list.first_rows().iter().filter_map(|row| row.session.cwd.clone()) {
        if folders.len() < MAX_FOLDERS && !folders.contains(&cwd) && FilePath::new(&cwd).is_dir() {
            folders.push(cwd);
        }
    }
    folders
}

/// Starts a chat: 201, or 200 if the session has a chat already.
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    JsonBody(request): JsonBody<StartRequest>,
) -> Result<Response, ApiError> {
    let started = app.blocking(move |app| app.chats.start(app, &request)).await?;
    Ok(match started {
        Started::New(chat) => (StatusCode::CREATED, shown(&chat)).into_response(),
        Started::Existing(chat) => shown(&chat).into_response(),
    })
}

pub(crate) async fn list(State(app): State<Arc<App>>) -> Json {
    let chats = app.chats.list();
    let states: Vec<_> = chats.iter().map(|chat| chat.state()).collect();
    Json::new(&states.iter().map(|state| &state.chat).collect::<Vec<_>>())
}

pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json, ApiError> {
    Ok(shown(&*app.chats.find(&id)?))
}

/// Ends a chat, and returns it as it ended. One that has ended is removed from the list.
pub(crate) async fn end(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json, ApiError> {
    let chat = app.chats.find(&id)?;
    app.chats.end(&chat).await;
    Ok(shown(&chat))
}

pub(crate) fn shown(chat: &ActiveChat) -> Json {
    Json::new(&chat.state().chat)
}
