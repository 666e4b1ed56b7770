//! The files that MCP servers are configured in: `.claude.json` of the user, for all folders
//! or for one, and `.mcp.json` of the project.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use quipu_message::Json;
use quipu_message::control::setup::McpConfig;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::json_file::{edit, object};
use crate::prompt::git_root;
use crate::state_file;
use crate::text_file;

/// The key of servers in all these files.
const SERVERS: &str = "mcpServers";

/// Whom a server is configured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum McpScope {
    /// The user, in this folder.
    Local,
    /// Everybody who works on the project: `.mcp.json`.
    Project,
    /// The user, in all folders.
    User,
}

impl McpScope {
    /// Reads the word of `--scope`.
    pub fn read(word: &str) -> Option<Self> {
        [Self::Local, Self::Project, Self::User].into_iter().find(|scope| scope.as_str() == word)
    }

    /// The word of `--scope`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

impl fmt::Display for McpScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A server as a file has it.
#[derive(Debug, Clone)]
pub struct McpEntry {
    /// Its name.
    pub name: String,
    /// Whom it is for.
    pub scope: McpScope,
    /// How it is reached, as the file says.
    pub config: Json,
}

/// The files for one project.
#[derive(Debug, Clone)]
pub struct McpFiles {
    state: PathBuf,
    project: PathBuf,
}

/// The user's servers, and which of the project's servers the user approved.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    mcp_servers: BTreeMap<String, Json>,
    /// Each is a [`ProjectState`], read by itself so that only ours must be right.
    projects: BTreeMap<String, Json>,
}

/// What `.claude.json` holds for one folder.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProjectState {
    mcp_servers: BTreeMap<String, Json>,
    /// Servers of `.mcp.json` that the user approved.
    pub(super) enabled_mcpjson_servers: Vec<String>,
    /// Servers of `.mcp.json` that the user rejected.
    pub(super) disabled_mcpjson_servers: Vec<String>,
}

impl McpFiles {
    /// The files for a project; `.claude.json` is in `CLAUDE_CONFIG_DIR`, or else in `HOME`.
    pub fn new(env: &BTreeMap<String, String>, project: &Path) -> Self {
        Self { state: state_file::path(env), project: project.to_owned() }
    }

    /// The file of a scope.
    pub fn path(&self, scope: McpScope) -> PathBuf {
        match scope {
            McpScope::Local | McpScope::User => self.state.clone(),
            McpScope::Project => self.project.join(".mcp.json"),
        }
    }

    /// All servers, strongest scope first, and what could not be read.
    pub fn list(&self) -> (Vec<McpEntry>, Vec<String>) {
        let (state, project, mut problems) = self.state();
        let mut all = Vec::new();
        let mut take = |scope: McpScope, servers: BTreeMap<String, Json>| {
            all.extend(servers.into_iter().map(|(name, config)| McpEntry { name, scope, config }));
        };
        take(McpScope::Local, project.mcp_servers);
        match self.of_project() {
            Ok(servers) => take(McpScope::Project, servers),
            Err(problem) => problems.push(problem),
        }
        take(McpScope::User, state.mcp_servers);
        (all, problems)
    }

    /// The servers of `.mcp.json` in the project's folder and in those above it, up to the
    /// root of its repository; a nearer one replaces those of the same name.
    fn of_project(&self) -> Result<BTreeMap<String, Json>, String> {
        let top = git_root(&self.project).unwrap_or(&self.project);
        let folders: Vec<&Path> = self.project.ancestors().take_while(|folder| folder.starts_with(top)).collect();
        let mut servers = BTreeMap::new();
        for folder in folders.into_iter().rev() {
            let path = folder.join(".mcp.json");
            if path.symlink_metadata().is_err() {
                continue;
            }
            let text = text_file::read(&path, Some(folder), text_file::MAX_BYTES);
            let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
            let listing: McpConfig =
                serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            servers.extend(listing.servers);
        }
        Ok(servers)
    }

    /// What the user approved and rejected of the project's servers.
    pub(super) fn approvals(&self) -> ProjectState {
        self.state().1
    }

    fn state(&self) -> (State, ProjectState, Vec<String>) {
        let text = match state_file::read(&self.state) {
            Ok(text) => text,
            Err(error) => {
                let problem = format!("{}: {error}", self.state.display());
                return (State::default(), ProjectState::default(), vec![problem]);
            }
        };
        let text = if text.trim().is_empty() { "{}" } else { text.as_str() };
        let read = serde_json::from_str::<State>(text).and_then(|state| {
            let project = state.projects.get(&self.key()).map(Json::read).transpose()?;
            Ok((state, project.unwrap_or_default()))
        });
        match read {
            Ok((state, project)) => (state, project, Vec::new()),
            Err(error) => {
                let problem = format!("{}: {error}", self.state.display());
                (State::default(), ProjectState::default(), vec![problem])
            }
        }
    }

    /// The key of the project in `.claude.json`: the root of its repository, if it has one.
    fn key(&self) -> String {
        git_root(&self.project).unwrap_or(&self.project).to_string_lossy().into_owned()
    }

    /// Adds a server, or replaces the one of that name in the scope.
    pub fn add(&self, name: &str, scope: McpScope, config: &Value) -> io::Result<()> {
        self.change(scope, |servers| drop(servers.insert(name.to_owned(), config.clone())))
    }

    /// Removes a server from a scope; false if it was not there.
    pub fn remove(&self, name: &str, scope: McpScope) -> io::Result<bool> {
        let mut was_there = false;
        if !self.path(scope).exists() {
            return Ok(false);
        }
        self.change(scope, |servers| was_there = servers.shift_remove(name).is_some())?;
        Ok(was_there)
    }

    fn change(&self, scope: McpScope, change: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
        let mut change = Some(change);
        let mut apply = |holder: &mut Map<String, Value>| {
            if let (Some(servers), Some(change)) = (object(holder, SERVERS), change.take()) {
                change(servers);
            }
        };
        let within = (scope == McpScope::Project).then_some(self.project.as_path());
        edit(&self.path(scope), within, |file| match scope {
            McpScope::User | McpScope::Project => apply(file),
            McpScope::Local => {
                if let Some(project) = object(file, "projects").and_then(|all| object(all, &self.key())) {
                    apply(project);
                }
            }
        })?;
        match change {
            None => Ok(()),
            Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, format!("`{SERVERS}` is not an object"))),
        }
    }
}
