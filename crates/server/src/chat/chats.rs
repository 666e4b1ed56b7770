//! All chats of a server.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quipu_transcript::ResumeCommand;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;

use super::active_chat::{ActiveChat, ChatContext, new_id};
use super::agents::{ChatAgent, find_agent};
use super::capture::CaptureOptions;
use super::launch::{Launch, SessionOrigin};
use super::runner::{self, Control};
use super::settings::ChatSettings;
use super::state::ChatState;
use super::trust::is_trusted;
use super::view::{Chat, ChatPhase, EndReason};
use crate::app::App;
use crate::config_file::trust_folder;
use crate::error::ApiError;
use crate::event::Event;

/// Chats that may run at once.
const MAX_RUNNING: usize = 20;
/// Chats that have ended and are still listed, so that the page can show why.
const MAX_ENDED: usize = 20;
/// How long the agents may take to exit when the server stops.
const MAX_STOP_WAIT: Duration = Duration::from_secs(8);
/// Permission modes that the page offers.
const MODES: [&str; 6] = ["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"];

/// All chats, the latest first.
#[derive(Debug, Default)]
pub(crate) struct Chats {
    chats: Mutex<Vec<Arc<ActiveChat>>>,
}

/// What `POST /api/chats` takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct StartRequest {
    /// Name of the agent, or the absolute path of a program.
    agent: Option<String>,
    model: Option<String>,
    permission_mode: Option<String>,
    /// Folder to work in; that of the session if one is resumed.
    cwd: Option<String>,
    /// Key of the session to resume.
    resume: Option<String>,
    /// UUID of the last entry to keep of it.
    resume_at: Option<String>,
    /// Whether to continue in a copy of the session.
    fork: bool,
    /// Whether to capture the API calls.
    capture: bool,
    /// Records that the user trusts the folder.
    trust: bool,
    /// Resumes the session even if another program seems to write to it.
    ignore_live: bool,
}

/// A chat that was asked for.
#[derive(Debug)]
pub(crate) enum Started {
    New(Arc<ActiveChat>),
    /// The session has a chat already.
    Existing(Arc<ActiveChat>),
}

impl Chats {
    /// All chats, the latest first.
    pub(crate) fn list(&self) -> Vec<Arc<ActiveChat>> {
        self.chats.lock().clone()
    }

    pub(crate) fn find(&self, id: &str) -> Result<Arc<ActiveChat>, ApiError> {
        let found = self.chats.lock().iter().find(|chat| chat.id == id).cloned();
        found.ok_or_else(|| {
            ApiError::not_found("chat.not_found", format!("no chat has the id `{id}`"))
                .with_hint("/api/chats lists the chats")
        })
    }

    /// The version that an agent reported last.
    pub(crate) fn agent_version(&self, agent: &str) -> Option<String> {
        self.list().iter().find_map(|chat| {
            let state = chat.state();
            (state.chat.agent == agent).then(|| state.chat.agent_version.clone()).flatten()
        })
    }

    /// The chat that runs in a session; `None` if there is none.
    fn running_in(&self, session_id: &str) -> Option<Arc<ActiveChat>> {
        self.chats.lock().iter().find(|chat| runs_in(chat, session_id)).cloned()
    }

    /// Whether a chat of this server ended in a session.
    fn ended_in(&self, session_id: &str) -> bool {
        self.list().iter().any(|chat| chat.has_ended() && chat.state().chat.session_id == session_id)
    }

    /// Starts a chat. Blocks on files. Returns before the agent has started.
    pub(crate) fn start(&self, app: &App, request: &StartRequest) -> Result<Started, ApiError> {
        if app.is_stopping() {
            return Err(ApiError::conflict("server.stopping", "the server is being stopped"));
        }
        let settings = ChatSettings::load(app)?;
        let (agent, program) = choose_agent(app, &settings, request.agent.as_deref())?;
        let resumed = request.resume.as_deref().map(|key| self.resumed(app, key, request)).transpose()?;
        if let Some((command, _)) = &resumed
            && !request.fork
            && let Some(chat) = self.running_in(&command.session_id)
        {
            return Ok(Started::Existing(chat));
        }
        let (cwd, origin, key, config_dir) = match resumed {
            Some((command, key)) => {
                let cwd = find_folder(request.cwd.as_deref().unwrap_or(&command.cwd))?;
                let at = request.resume_at.clone();
                let origin = match request.fork {
                    true => SessionOrigin::Fork { from: command.session_id, session_id: new_id(), at },
                    false => SessionOrigin::Resume { session_id: command.session_id, at },
                };
                let key = if request.fork { origin.session_id().to_owned() } else { key };
                (cwd, origin, key, command.config_dir.map(PathBuf::from))
            }
            None => {
                let Some(cwd) = agent.cwd.as_deref().and_then(Path::to_str).or(request.cwd.as_deref()) else {
                    return Err(ApiError::bad_request("folder.missing", "a new chat needs a folder")
                        .with_hint("name the folder as `cwd`"));
                };
                let session_id = new_id();
                let key = session_id.clone();
                (find_folder(cwd)?, SessionOrigin::New { session_id }, key, new_config_dir(app))
            }
        };
        if agent.cwd.is_none() && !is_trusted(app, &cwd)? {
            if !request.trust {
                return Err(ApiError::conflict("folder.not_trusted", format!("{} is not trusted yet", cwd.display()))
                    .with_hint("its settings and hooks are used if you trust it; send `trust`"));
            }
            let Some(config) = &app.config_file else {
                return Err(ApiError::internal("there is no home folder for settings"));
            };
            trust_folder(config, &cwd)?;
        }
        let launch = Launch {
            program,
            model: request.model.clone().or_else(|| settings.model.clone()),
            permission_mode: request.permission_mode.clone().unwrap_or_else(|| settings.permission_mode.clone()),
            config_dir,
            capture: request.capture.then(|| capture_options(app, &agent)).transpose()?,
            agent,
            cwd,
            origin,
        };
        self.add(app, settings, launch, key)
    }

    /// The session to resume and its key. Fails if another program seems to write to it.
    fn resumed(&self, app: &App, key: &str, request: &StartRequest) -> Result<(ResumeCommand, String), ApiError> {
        let path = app.list.resolve(key)?;
        let command = ResumeCommand::from_file(&path, app.usual_config_dir.as_deref())
            .map_err(|error| ApiError::bad_request(error.code(), error.to_string()))?;
        let is_own = self.running_in(&command.session_id).is_some() || self.ended_in(&command.session_id);
        if !request.fork && !request.ignore_live && !is_own && app.live.is_being_written(&path) {
            return Err(ApiError::conflict("session.live", "another program works in this session")
                .with_hint("wait until it is done, fork the session, or send `ignore_live`"));
        }
        Ok((command, app.list.key_of(&path)))
    }

    fn add(&self, app: &App, settings: ChatSettings, launch: Launch, key: String) -> Result<Started, ApiError> {
        let context = ChatContext {
            now: app.now,
            prices: Arc::clone(&app.prices),
            events: app.events.clone(),
            pages: app.pages.clone(),
            settings,
        };
        let view = Chat {
            id: new_id(),
            key,
            session_id: launch.origin.session_id().to_owned(),
            cwd: launch.cwd.display().to_string(),
            agent: launch.agent.name.clone(),
            model: launch.model.clone(),
            permission_mode: launch.permission_mode.clone(),
            started_at: (app.now)().timestamp().to_string(),
            modes: MODES.map(str::to_owned).to_vec(),
            ..Chat::default()
        };
        let state = ChatState { chat: view, ..ChatState::default() };
        let (chat, inputs) = ActiveChat::new(state, context);
        let mut chats = self.chats.lock();
        // Another request may have been quicker.
        if let Some(chat) = chats.iter().find(|chat| runs_in(chat, launch.origin.session_id())) {
            return Ok(Started::Existing(Arc::clone(chat)));
        }
        if chats.iter().filter(|chat| !chat.has_ended()).count() >= MAX_RUNNING {
            return Err(ApiError::conflict("chats.full", format!("{MAX_RUNNING} chats run already"))
                .with_hint("end one of them"));
        }
        // The new chat takes the place of one that ended in the same session.
        let session_id = launch.origin.session_id();
        let mut ended = 0;
        chats.retain(|chat| {
            let is_ended = chat.has_ended();
            ended += usize::from(is_ended);
            !is_ended || ended <= MAX_ENDED && chat.state().chat.session_id != session_id
        });
        chats.insert(0, Arc::clone(&chat));
        drop(chats);
        tokio::spawn(runner::run(Arc::clone(&chat), launch, inputs));
        app.send(Event::Chats);
        Ok(Started::New(chat))
    }

    /// Ends a chat, or removes it from the list if it has ended.
    pub(crate) async fn end(&self, chat: &Arc<ActiveChat>) {
        if chat.control(Control::End(EndReason::Stopped)).await && !chat.has_ended() {
            chat.done().await;
        } else {
            self.chats.lock().retain(|other| other.id != chat.id);
            // Fails if there are no clients.
            let _ = chat.context.events.send(Event::Chats);
        }
    }

    /// Ends all chats when the server stops, and waits for their agents.
    pub(crate) async fn stop_all(&self, mut stopping: watch::Receiver<bool>) {
        // Fails only if the server is gone.
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        let chats = self.list();
        let end = async |chat: &Arc<ActiveChat>| {
            if chat.control(Control::End(EndReason::ServerStopped)).await {
                chat.done().await;
            }
        };
        let all = futures_util::future::join_all(chats.iter().map(end));
        if tokio::time::timeout(MAX_STOP_WAIT, all).await.is_err() {
            tracing::warn!(target: super::LOG_TARGET, "not all agents exited in time");
        }
    }
}

/// Whether a chat has not ended and works in a session.
fn runs_in(chat: &ActiveChat, session_id: &str) -> bool {
    let state = chat.state();
    state.chat.session_id == session_id && state.chat.state != ChatPhase::Ended
}

/// The agent with a name, that of the settings, or the first usable one.
fn choose_agent(app: &App, settings: &ChatSettings, name: Option<&str>) -> Result<(ChatAgent, PathBuf), ApiError> {
    match name.or(settings.agent.as_deref()) {
        Some(name) => find_agent(&app.agents, name),
        None => {
            let usable = app.agents.iter().find_map(|agent| Some((agent.clone(), agent.find_program()?)));
            usable.ok_or_else(|| {
                ApiError::bad_request("agent.not_found", "no agent was found on this machine")
                    .with_hint("install `claude` or `quipu-agent`, or set `agent` under [chat] in config.toml")
            })
        }
    }
}

/// How the calls of an agent are captured. Fails without a folder for captures.
fn capture_options(app: &App, agent: &ChatAgent) -> Result<CaptureOptions, ApiError> {
    let Some(folder) = app.captures() else {
        return Err(ApiError::bad_request("capture.no_folder", "there is no home folder for captures"));
    };
    let own_url = agent.env.get(OsStr::new("ANTHROPIC_BASE_URL")).and_then(|url| url.to_str());
    let api_url = own_url.map(str::to_owned).or_else(|| app.api_url.clone());
    Ok(CaptureOptions { folder, api_url, secrets: app.secrets.clone() })
}

/// An existing folder by its absolute path, resolved.
pub(crate) fn find_folder(path: &str) -> Result<PathBuf, ApiError> {
    let path = Path::new(path);
    let folder = std::fs::canonicalize(path).ok().filter(|folder| path.is_absolute() && folder.is_dir());
    folder.ok_or_else(|| {
        ApiError::bad_request("folder.not_found", format!("{} is not a folder", path.display()))
            .with_hint("name the absolute path of a folder that exists")
    })
}

/// The config folder for new sessions: one whose sessions are shown; `None` if that is the usual one.
fn new_config_dir(app: &App) -> Option<PathBuf> {
    let is_shown = |dir: &PathBuf| app.claude_dirs.contains(dir);
    if app.usual_config_dir.as_ref().is_some_and(is_shown) { None } else { app.claude_dirs.first().cloned() }
}
