//! Subagents that work in a git worktree of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_message::bookkeeping::WorktreeSession;
use quipu_message::tool::AgentInput;
use quipu_message::{AgentId, Maybe};

use super::{AgentTool, SubagentRun};
use crate::definitions::AgentDefinition;
use crate::git;
use crate::path::resolve;
use crate::permission::EffectiveMode;
use crate::worktree;

impl AgentTool {
    /// The git worktree that the call or the definition asks for, and the folder in it that the subagent works
    /// in; `None` if neither asks for one. The error says why there can be none.
    pub(super) async fn create_worktree(
        &self,
        agent: &AgentDefinition,
        input: &AgentInput,
        id: &AgentId,
    ) -> Result<Option<(WorktreeSession, PathBuf)>, String> {
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
            let (root, is_trusted) = (session.workspace.root(), session.trusts_repository());
            let _run = session.workspace.sandbox().start_git().ok_or("a command is running that can change files")?;
            let (worktree, _) = worktree::find_or_create(name, root, &session.env, is_trusted)?;
            match folder_in_worktree(Path::new(worktree.path.text().unwrap_or_default()), root) {
                Ok(folder) => Ok((worktree, folder)),
                Err(reason) => {
                    let _ = worktree::remove_unchanged(&worktree, &session.env, is_trusted);
                    Err(reason)
                }
            }
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
        let remove = move || match session.workspace.sandbox().start_git() {
            Some(_run) => worktree::remove_unchanged(&worktree, &session.env, session.trusts_repository()),
            // A command may still work in it.
            None => Ok(false),
        };
        if let Ok(Ok(true)) = tokio::task::spawn_blocking(remove).await {
            self.workspace.forget_worktree();
            return String::new();
        }
        format!("\n\n<worktree><worktreePath>{path}</worktreePath><worktreeBranch>{branch}</worktreeBranch></worktree>")
    }
}

/// The folder of a worktree, resolved, that is there what `root` is in its repository. The error says why it
/// cannot be used.
fn folder_in_worktree(worktree: &Path, root: &Path) -> Result<PathBuf, String> {
    let below = git::git_root(root).and_then(|repository| root.strip_prefix(repository).ok());
    let folder = worktree.join(below.unwrap_or(Path::new("")));
    let worktree = resolve(worktree).unwrap_or_else(|| worktree.to_owned());
    // A commit may have a link where the session has a folder.
    let real = resolve(&folder).filter(|real| real.starts_with(&worktree));
    let real = real.ok_or_else(|| format!("{} leads out of the worktree", folder.display()))?;
    fs::create_dir_all(&real).map_err(|error| format!("{}: {error}", real.display()))?;
    Ok(real)
}
