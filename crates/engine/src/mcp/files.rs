//! The configuration files of MCP servers: the user's `.claude.json`, for all folders or for one, and the
//! project's `.mcp.json`.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use quipu_message::Json;
use quipu_message::control::setup::McpConfig;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::git::git_root;
use crate::json_file::{edit_object, object_entry};
use crate::state_file;
use crate::text_file;

/// The key of the servers in all these files.
const SERVERS_KEY: &str = "mcpServers";

/// The scope of a server's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum McpScope {
    /// The user, in one folder.
    Local,
    /// All users of the project: `.mcp.json`.
    Project,
    /// The user, in all folders.
    User,
}

impl McpScope {
    /// Parses the value of `--scope`; `None` if it is not a scope.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Local, Self::Project, Self::User].into_iter().find(|scope| scope.as_str() == word)
    }

    /// The value of `--scope`.
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

/// A server in a configuration file.
#[derive(Debug, Clone)]
pub struct McpServerEntry {
    /// Name of the server.
    pub name: String,
    /// Scope of the configuration.
    pub scope: McpScope,
    /// The configuration as in the file.
    pub config: Json,
    /// The folder of a project's file; `None` for the user's.
    pub folder: Option<PathBuf>,
}

/// The configuration files for one project.
#[derive(Debug, Clone)]
pub struct McpFiles {
    state_path: PathBuf,
    project_folder: PathBuf,
}

/// The user's servers, and which of the project's servers the user approved.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UserState {
    mcp_servers: BTreeMap<String, Json>,
    /// Each is a [`ProjectState`], parsed separately, so that invalid state of other projects does no harm.
    projects: BTreeMap<String, Json>,
}

/// The part of `.claude.json` for one folder.
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
        Self { state_path: state_file::path(env), project_folder: project.to_owned() }
    }

    /// The file of a scope.
    pub fn path(&self, scope: McpScope) -> PathBuf {
        match scope {
            McpScope::Local | McpScope::User => self.state_path.clone(),
            McpScope::Project => self.project_folder.join(".mcp.json"),
        }
    }

    /// All servers, the effective scope first, and errors of files that cannot be read.
    pub fn list(&self) -> (Vec<McpServerEntry>, Vec<String>) {
        let (state, project, mut problems) = self.read_state();
        let mut all = Vec::new();
        let of_user = |scope: McpScope, servers: BTreeMap<String, Json>| {
            servers.into_iter().map(move |(name, config)| McpServerEntry { name, scope, config, folder: None })
        };
        all.extend(of_user(McpScope::Local, project.mcp_servers));
        match self.project_servers() {
            Ok(servers) => all.extend(servers),
            Err(problem) => problems.push(problem),
        }
        all.extend(of_user(McpScope::User, state.mcp_servers));
        (all, problems)
    }

    /// The servers of `.mcp.json` in the project's folder and its parents, up to the root of the repository;
    /// a nearer file takes precedence.
    fn project_servers(&self) -> Result<Vec<McpServerEntry>, String> {
        let top = git_root(&self.project_folder).unwrap_or(&self.project_folder);
        let folders: Vec<&Path> =
            self.project_folder.ancestors().take_while(|folder| folder.starts_with(top)).collect();
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
            for (name, config) in listing.servers {
                let folder = Some(folder.to_owned());
                servers.insert(name.clone(), McpServerEntry { name, scope: McpScope::Project, config, folder });
            }
        }
        Ok(servers.into_values().collect())
    }

    /// Which of the project's servers the user approved and rejected.
    pub(super) fn approvals(&self) -> ProjectState {
        self.read_state().1
    }

    fn read_state(&self) -> (UserState, ProjectState, Vec<String>) {
        let text = match state_file::read(&self.state_path) {
            Ok(text) => text,
            Err(error) => {
                let problem = format!("{}: {error}", self.state_path.display());
                return (UserState::default(), ProjectState::default(), vec![problem]);
            }
        };
        let text = if text.trim().is_empty() { "{}" } else { text.as_str() };
        let read = serde_json::from_str::<UserState>(text).and_then(|state| {
            // Several names that are not UTF-8 would have the same key.
            let key = Some(self.project_key()).filter(|_| self.project_folder.to_str().is_some());
            let project = key.and_then(|key| state.projects.get(&key)).map(Json::read).transpose()?;
            Ok((state, project.unwrap_or_default()))
        });
        match read {
            Ok((state, project)) => (state, project, Vec::new()),
            Err(error) => {
                let problem = format!("{}: {error}", self.state_path.display());
                (UserState::default(), ProjectState::default(), vec![problem])
            }
        }
    }

    /// The key of the project in `.claude.json`: the root of its repository, if it has one.
    fn project_key(&self) -> String {
        git_root(&self.project_folder).unwrap_or(&self.project_folder).to_string_lossy().into_owned()
    }

    /// Adds a server, or replaces the one of that name in the scope.
    pub fn add(&self, name: &str, scope: McpScope, config: &Value) -> io::Result<()> {
        self.edit_servers(scope, |servers| drop(servers.insert(name.to_owned(), config.clone())))
    }

    /// Removes a server from a scope; returns `false` if it was not there.
    pub fn remove(&self, name: &str, scope: McpScope) -> io::Result<bool> {
        let mut was_there = false;
        if !self.path(scope).exists() {
            return Ok(false);
        }
        self.edit_servers(scope, |servers| was_there = servers.shift_remove(name).is_some())?;
        Ok(was_there)
    }

    fn edit_servers(&self, scope: McpScope, change: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
        let mut change = Some(change);
        let mut apply = |holder: &mut Map<String, Value>| {
            if let (Some(servers), Some(change)) = (object_entry(holder, SERVERS_KEY), change.take()) {
                change(servers);
            }
        };
        let within = (scope == McpScope::Project).then_some(self.project_folder.as_path());
        edit_object(&self.path(scope), within, |file| match scope {
            McpScope::User | McpScope::Project => apply(file),
            McpScope::Local => {
                if let Some(project) =
                    object_entry(file, "projects").and_then(|all| object_entry(all, &self.project_key()))
                {
                    apply(project);
                }
            }
        })?;
        match change {
            None => Ok(()),
            Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, format!("`{SERVERS_KEY}` is not an object"))),
        }
    }
}
