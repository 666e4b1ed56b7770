//! The agent programs that a chat can be started with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;

/// An agent program that chats can be started with.
#[derive(Debug, Clone, Default)]
pub struct ChatAgent {
    /// Name by which it is chosen, such as `claude`.
    pub name: String,
    /// Path of the program; the program with that name is looked for if `None`.
    pub program: Option<PathBuf>,
    /// Variables to add to its environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Folder that it always works in, which needs no trust; the user chooses one if `None`.
    pub cwd: Option<PathBuf>,
}

impl ChatAgent {
    /// An agent that is looked for on the PATH and beside this program.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Path of the program; `None` if it is not found.
    pub(crate) fn find_program(&self) -> Option<PathBuf> {
        match &self.program {
            Some(program) => Some(program.clone()).filter(|program| program.is_file()),
            None => quipu_sdk::find_agent(&self.name),
        }
    }
}

/// An agent as clients see it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentInfo {
    pub(crate) name: String,
    /// Path of the program; `None` if it was not found.
    path: Option<String>,
    /// Its version; `None` until a chat was started with it.
    version: Option<String>,
    pub(crate) usable: bool,
    /// Why it cannot be used.
    reason: Option<String>,
    /// Folder that it always works in; `None` if the user chooses one.
    cwd: Option<String>,
}

impl AgentInfo {
    pub(crate) fn new(agent: &ChatAgent, version: Option<String>) -> Self {
        let path = agent.find_program();
        Self {
            name: agent.name.clone(),
            version,
            usable: path.is_some(),
            reason: path.is_none().then(|| format!("no program `{}` was found on the PATH", agent.name)),
            path: path.map(|path| path.display().to_string()),
            cwd: agent.cwd.as_ref().map(|cwd| cwd.display().to_string()),
        }
    }
}

/// The agent with a name, or the program at an absolute path. Fails if there is none.
pub(super) fn find_agent(agents: &[ChatAgent], name: &str) -> Result<(ChatAgent, PathBuf), ApiError> {
    let listed = agents.iter().find(|agent| agent.name == name).cloned();
    let by_path = || {
        let path = Path::new(name);
        path.is_absolute().then(|| ChatAgent { program: Some(path.to_owned()), ..ChatAgent::named(name) })
    };
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let Some(agent) = listed.or_else(by_path) else {
        return Err(ApiError::bad_request("agent.not_found", format!("there is no agent `{name}`"))
            .with_hint(format!("use {}, or an absolute path", names.join(", "))));
    };
    let program = agent.find_program().ok_or_else(|| {
        ApiError::bad_request("agent.not_found", format!("the program of agent `{name}` was not found"))
            .with_hint("install it, put it on the PATH, or name its absolute path")
    })?;
    Ok((agent, program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_name_or_absolute_path() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("agent");
        std::fs::write(&program, "").unwrap();
        let demo = ChatAgent { program: Some(program.clone()), ..ChatAgent::named("demo") };
        let agents = [ChatAgent::named("quipu-none"), demo];
        assert_eq!(find_agent(&agents, "demo").unwrap().1, program);
        assert_eq!(find_agent(&agents, program.to_str().unwrap()).unwrap().1, program);
        for missing in ["quipu-none", "other", "./agent", "", "/nowhere/agent"] {
            assert_eq!(find_agent(&agents, missing).unwrap_err().code(), "agent.not_found", "{missing}");
        }
        assert!(!AgentInfo::new(&agents[0], None).usable && AgentInfo::new(&agents[1], None).usable);
    }
}
