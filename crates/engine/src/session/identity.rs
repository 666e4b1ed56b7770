//! The id and title of a session, and what its transcript says about it.

use parking_lot::Mutex;
use quipu_message::{SessionId, ToolName};

/// The id and title of a session, and what its transcript says about it.
#[derive(Debug)]
pub(crate) struct Identity {
    state: Mutex<IdentityState>,
}

#[derive(Debug)]
struct IdentityState {
    id: SessionId,
    title: Option<String>,
    /// Names of the tools that the transcript lists as used.
    tools_used: Vec<ToolName>,
    /// Whether the transcript names the agent and the worktree of the session.
    agent_recorded: bool,
}

impl Identity {
    /// The identity of a session whose transcript says nothing about it yet.
    pub(crate) fn new(id: SessionId, title: Option<String>) -> Self {
        Self { state: Mutex::new(IdentityState { id, title, tools_used: Vec::new(), agent_recorded: false }) }
    }

    /// The session id. `/clear` changes it.
    pub(crate) fn id(&self) -> SessionId {
        self.state.lock().id.clone()
    }

    /// The title; `None` if the session has none.
    pub(crate) fn title(&self) -> Option<String> {
        self.state.lock().title.clone()
    }

    /// Sets the title.
    pub(crate) fn set_title(&self, title: &str) {
        self.state.lock().title = Some(title.to_owned());
    }

    /// Continues the session with another id, in its own transcript. It keeps its title.
    pub(crate) fn replace_id(&self, id: SessionId) {
        let mut state = self.state.lock();
        state.id = id;
        state.tools_used.clear();
    }

    /// Adds a tool to those used. Returns all their names; `None` if it was used before.
    pub(crate) fn add_tool_used(&self, name: &ToolName) -> Option<Vec<ToolName>> {
        let mut state = self.state.lock();
        if state.tools_used.iter().any(|used| used == name) {
            return None;
        }
        state.tools_used.push(name.clone());
        Some(state.tools_used.clone())
    }

    /// Whether the agent and the worktree are still to be recorded; they count as recorded from then on.
    pub(crate) fn take_agent_unrecorded(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().agent_recorded, true)
    }
}
