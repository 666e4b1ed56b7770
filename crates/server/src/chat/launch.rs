//! How the agent of a chat is started.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quipu_message::Json;
use quipu_message::control::RequestBody;
use quipu_message::control::request::CanUseTool;
use quipu_sdk::{Decision, Options, SystemPrompt};

use super::active_chat::{ActiveChat, new_id};
use super::agents::ChatAgent;
use super::capture::CaptureOptions;
use super::view::Prompt;

/// How long an agent may take to exit after its input is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// How an agent is started. A rewind starts it again with another `origin`.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) agent: ChatAgent,
    pub(super) program: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) model: Option<String>,
    pub(super) permission_mode: String,
    /// Config folder of the agent; its usual one if `None`.
    pub(super) config_dir: Option<PathBuf>,
    pub(super) origin: SessionOrigin,
    /// How calls are captured; `None` if they are not.
    pub(super) capture: Option<CaptureOptions>,
}

/// Where the conversation of a chat comes from.
#[derive(Debug, Clone)]
pub(super) enum SessionOrigin {
    New { session_id: String },
    Resume { session_id: String, at: Option<String> },
    Fork { from: String, session_id: String, at: Option<String> },
}

impl SessionOrigin {
    /// Id of the session that the chat writes to.
    pub(super) fn session_id(&self) -> &str {
        match self {
            Self::New { session_id } | Self::Resume { session_id, .. } | Self::Fork { session_id, .. } => session_id,
        }
    }
}

impl Launch {
    /// The options that start the agent; its prompts wait in the chat for the user.
    /// `api_url` replaces the address of the API.
    pub(super) fn options(&self, chat: &Arc<ActiveChat>, api_url: Option<String>) -> Options {
        let mut options = Options::new()
            .cli(&self.program)
            .cwd(&self.cwd)
            .system_prompt(SystemPrompt::AgentDefault)
            .permission_mode(self.permission_mode.as_str())
            .include_partial_messages()
            .include_hook_events()
            .replay_prompts()
            .file_checkpointing()
            .client_app(concat!("quipu/", env!("CARGO_PKG_VERSION")))
            .close_timeout(CLOSE_TIMEOUT);
        if let Some(model) = &self.model {
            options = options.model(model);
        }
        options = match &self.origin {
            SessionOrigin::New { session_id } => options.session_id(session_id),
            SessionOrigin::Resume { session_id, .. } => options.resume(session_id),
            SessionOrigin::Fork { from, session_id, .. } => options.resume(from).fork_session().session_id(session_id),
        };
        if let SessionOrigin::Resume { at: Some(at), .. } | SessionOrigin::Fork { at: Some(at), .. } = &self.origin {
            options = options.resume_at(at);
        }
        if let Some(dir) = &self.config_dir {
            options = options.env("CLAUDE_CONFIG_DIR", dir);
        }
        for (name, value) in &self.agent.env {
            options = options.env(name, value);
        }
        if let Some(url) = api_url {
            options = options.env("ANTHROPIC_BASE_URL", url);
        }
        let (asked, requested) = (Arc::clone(chat), Arc::clone(chat));
        options
            .can_use_tool(move |call, _| decide(Arc::clone(&asked), call))
            .on_request(move |request, _| answer(Arc::clone(&requested), request))
    }
}

/// The user's decision on a tool call.
async fn decide(chat: Arc<ActiveChat>, call: CanUseTool) -> Decision {
    let prompt = Prompt::for_tool_call(new_id(), &call, chat.now());
    // A reply that does not fit was refused when it arrived.
    chat.ask(prompt).await.into_decision(&call).unwrap_or_else(|_| Decision::deny("The reply could not be read."))
}

/// The user's input for an MCP server. Other requests are refused.
async fn answer(chat: Arc<ActiveChat>, request: RequestBody) -> Result<Json, String> {
    let RequestBody::Elicitation(request) = request else {
        return Err(format!("quipu has no `{}`", request.tag()));
    };
    let prompt = Prompt::for_elicitation(new_id(), &request, chat.now());
    Ok(chat.ask(prompt).await.into_elicitation_response())
}
