//! Subagents that work in a git worktree of their own.

use std::sync::Arc;

use quipu_message::bookkeeping::WorktreeSession;
use quipu_message::tool::AgentInput;
use quipu_message::{AgentId, Maybe};

use super::{AgentTool, SubagentRun};
use crate::definitions::AgentDefinition;
use crate::permission::EffectiveMode;
use crate::worktree;

impl AgentTool {
    /// The git worktree that the call or the definition asks for; `None` if neither does. The error says
    /// why there can be none.
    pub(super) async fn create_worktree(
        &self,
        agent: &AgentDefinition,
        input: &AgentInput,
        id: &AgentId,
    ) -> Result<Option<WorktreeSession>, String> {
        match input.isolation.text().or(agent.isolation.as_deref()) {
            None | Some("") => return Ok(None),
            Some("worktree") => {}
            Some(other) => return Err(format!("the isolation `{other}` is not supported; there is only `worktree`")),
        }
        // git writes to the repository, and a worktree contains files of other folders.
        if self.session.permissions.mode() == EffectiveMode::Plan {
            return Err("no worktree is made in plan mode".to_owned());
        }
        if self.session.options.restricted {
            return Err("no worktree is made in a restricted session".to_owned());
        }
        let (session, name) = (Arc::clone(&self.session), format!("agent-{id}"));
        let create = move || {
            let root = session.workspace.root();
            worktree::find_or_create(name, root, &session.env, session.is_trusted)
        };
        let created = tokio::task::spawn_blocking(create).await.map_err(|error| error.to_string())?;
        created.map(Some).map_err(|reason| format!("it cannot have a worktree: {reason}"))
    }
}

impl SubagentRun {
    /// Removes the worktree if nothing was changed in it. Otherwise returns its path and branch for the
    /// model, in the form of Claude Code; empty if there is no worktree.
    pub(super) async fn leave_worktree(&self) -> String {
        let Some(worktree) = self.worktree.clone() else { return String::new() };
        let text = |field: &Maybe<String>| field.text().unwrap_or_default().to_owned();
        let (path, branch) = (text(&worktree.path), text(&worktree.branch));
        let session = Arc::clone(&self.session);
        let remove = move || worktree::remove_unchanged(&worktree, &session.env, session.is_trusted);
        if let Ok(Ok(true)) = tokio::task::spawn_blocking(remove).await {
            self.workspace.forget_worktree();
            return String::new();
        }
        format!("\n\n<worktree><worktreePath>{path}</worktreePath><worktreeBranch>{branch}</worktreeBranch></worktree>")
    }
}
