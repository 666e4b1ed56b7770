//! MCP servers: tools of others, over a pipe, over HTTP, or inside the host.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use process_wrap::tokio::ChildWrapper;
use quipu_message::control::answer::{McpServer, McpServerInfo, McpTool as Listed};
use quipu_message::control::setup::{McpConfig, McpServerConfig};
use quipu_message::turn::ToolUseMeta;
use quipu_message::{Block, Json, Maybe};
use rmcp::RoleClient;
use rmcp::model::{ReadResourceRequestParams, ReadResourceResult, Tool as Offered};
use rmcp::service::{Peer, RunningService};

use crate::error::EngineError;
use crate::options::{Format, Options};
use crate::session::Session;
use crate::settings::Settings;
use crate::text_file;
use crate::tool::Tool;

mod connect;
mod inside;
mod limit;
mod tool;

pub(crate) use tool::McpTool;

/// How long a server may take to say hello, unless `MCP_TIMEOUT` says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a server may take to go.
const PARTING: Duration = Duration::from_secs(1);

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Config {
    /// A program, over its stdin and stdout.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String> },
    /// An address.
    Http { url: String, headers: BTreeMap<String, String> },
    /// The host has it.
    Sdk,
}

/// A server and how it stands.
pub(crate) struct Server {
    name: String,
    config: Config,
    source: &'static str,
    /// What a host says its server would answer.
    manifest: Option<Json>,
    standing: Standing,
}

enum Standing {
    Pending,
    Connected {
        running: Box<RunningService<RoleClient, ()>>,
        tools: Vec<Offered>,
        info: Option<McpServerInfo>,
        /// The process of a program.
        program: Option<Box<dyn ChildWrapper>>,
    },
    Failed(String),
    Disabled,
}

/// All servers of a session.
#[derive(Default)]
pub(crate) struct Mcp {
    servers: Mutex<BTreeMap<String, Server>>,
}

impl Mcp {
    /// The servers of flags and, unless those are to be the only ones, of the project.
    /// A project's list that cannot be read is told of; a flag's is an error.
    pub(crate) fn configure(options: &Options, settings: &mut Settings, cwd: &Path) -> Result<Self, EngineError> {
        let mcp = Self::default();
        if !options.strict_mcp {
            let problems = mcp.add_project(settings, &cwd.join(".mcp.json"));
            settings.problems.extend(problems);
        }
        let bad = |reason: String| EngineError::Flag { flag: "--mcp-config", reason };
        for text in &options.mcp_config {
            let text = match text.trim_start().starts_with('{') {
                true => text.clone(),
                false => text_file::read(Path::new(text), None, text_file::MAX_BYTES)
                    .map_err(|error| bad(format!("{text}: {error}")))?,
            };
            let listing: McpConfig = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
            for (name, config) in listing.servers {
                mcp.add(&name, read_config(&name, &config).map_err(bad)?, "dynamic");
            }
        }
        Ok(mcp)
    }

    /// Adds the servers of a project. Its programs run only when the person has said so.
    fn add_project(&self, settings: &Settings, path: &Path) -> Vec<String> {
        let all = settings.last(|known| known.enable_all_project_mcp_servers) == Some(true);
        let named: Vec<&String> =
            settings.layers.iter().flat_map(|layer| &layer.known.enabled_mcpjson_servers).collect();
        if (!all && named.is_empty()) || path.symlink_metadata().is_err() {
            return Vec::new();
        }
        let text = match text_file::read(path, path.parent(), text_file::MAX_BYTES) {
            Ok(text) => text,
            Err(error) => return vec![format!("{}: {error}", path.display())],
        };
        let listing: McpConfig = match serde_json::from_str(&text) {
            Ok(listing) => listing,
            Err(error) => return vec![format!("{}: {error}", path.display())],
        };
        let mut problems = Vec::new();
        for (name, config) in listing.servers.iter().filter(|(name, _)| all || named.contains(name)) {
            match read_config(name, config) {
                Ok(config) => self.add(name, config, "project"),
                Err(error) => problems.push(format!("{}: {error}", path.display())),
            }
        }
        problems
    }

    /// Adds the servers that `initialize` names, with what they would answer.
    pub(crate) fn add_inside(&self, names: &[String], manifests: Option<&Json>) {
        let manifests: BTreeMap<String, Json> = manifests.and_then(|json| json.read().ok()).unwrap_or_default();
        for name in names {
            self.add(name, Config::Sdk, "sdk");
        }
        for server in self.lock().values_mut() {
            server.manifest = manifests.get(&server.name).cloned();
        }
    }

    fn add(&self, name: &str, config: Config, source: &'static str) {
        let source = if config == Config::Sdk { "sdk" } else { source };
        let mut servers = self.lock();
        if servers.get(name).is_some_and(|known| known.config == config) {
            return;
        }
        let server = Server { name: name.to_owned(), config, source, manifest: None, standing: Standing::Pending };
        servers.insert(name.to_owned(), server);
    }

    /// Connects every server that is not connected yet, all at once.
    pub(crate) async fn connect_all(&self, session: &Arc<Session>) {
        let pending: Vec<(String, Config, Option<Json>)> = {
            let servers = self.lock();
            let waiting = servers.values().filter(|server| matches!(server.standing, Standing::Pending));
            waiting.map(|server| (server.name.clone(), server.config.clone(), server.manifest.clone())).collect()
        };
        let set = session.var("MCP_TIMEOUT").and_then(|millis| millis.parse().ok());
        let patience = set.map_or(PATIENCE, Duration::from_millis);
        let connecting = pending.into_iter().map(|(name, config, manifest)| async move {
            let standing = connect::connect(session, &name, &config, manifest, patience).await;
            (name, standing)
        });
        for (name, standing) in join_all(connecting).await {
            // Hosts find it in the list of servers.
            if let Standing::Failed(why) = &standing
                && session.options.format != Format::StreamJson
            {
                session.warn(format!("the MCP server {name} is not used: {why}"));
            }
            if let Some(server) = self.lock().get_mut(&name) {
                server.standing = standing;
            }
        }
    }

    /// Replaces the servers that hosts set; returns those that came and went.
    pub(crate) fn set(&self, given: &Json) -> Result<(Vec<String>, Vec<String>), EngineError> {
        let bad = |reason: String| EngineError::Flag { flag: "mcp_set_servers", reason };
        let given: BTreeMap<String, Json> = given.read().map_err(|error| bad(error.to_string()))?;
        let mut added = Vec::new();
        for (name, config) in &given {
            if !self.lock().contains_key(name) {
                added.push(name.clone());
            }
            self.add(name, read_config(name, config).map_err(bad)?, "dynamic");
        }
        let mut servers = self.lock();
        let gone: Vec<String> = servers
            .values()
            .filter(|s| s.source == "dynamic" && !given.contains_key(&s.name))
            .map(|s| s.name.clone())
            .collect();
        servers.retain(|name, _| !gone.contains(name));
        Ok((added, gone))
    }

    /// Whether there is a server of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    /// Whether a server is connected.
    pub(crate) fn is_connected(&self, name: &str) -> bool {
        self.lock().get(name).is_some_and(|server| matches!(server.standing, Standing::Connected { .. }))
    }

    /// Turns a server on or off, or connects it anew with the next `connect_all`.
    pub(crate) fn toggle(&self, name: &str, enabled: bool) {
        if let Some(server) = self.lock().get_mut(name) {
            server.standing = if enabled { Standing::Pending } else { Standing::Disabled };
        }
    }

    /// The servers, as hosts list them.
    pub(crate) fn list(&self) -> Vec<McpServer> {
        self.lock().values().map(Server::listed).collect()
    }

    /// The tools of all connected servers.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for server in self.lock().values() {
            if let Standing::Connected { running, tools: offered, .. } = &server.standing {
                let peer: Peer<RoleClient> = running.peer().clone();
                tools.extend(offered.iter().map(|tool| McpTool::shared(&server.name, tool.clone(), peer.clone())));
            }
        }
        tools
    }

    /// Reads a resource of a server that is not the host's own.
    pub(crate) async fn read_resource(&self, name: &str, uri: &str) -> Result<ReadResourceResult, String> {
        let peer = {
            let servers = self.lock();
            let server = servers.get(name).ok_or_else(|| format!("Server not found: {name}"))?;
            match &server.standing {
                _ if server.config == Config::Sdk => {
                    return Err(format!("mcp_read_resource: {name} is the host's own server"));
                }
                Standing::Connected { running, .. } => running.peer().clone(),
                _ => return Err(format!("MCP server not connected: {name}")),
            }
        };
        let read = peer.read_resource(ReadResourceRequestParams::new(uri));
        match tokio::time::timeout(PATIENCE, read).await {
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(_) => Err(format!("MCP server did not answer in time: {name}")),
        }
    }

    /// A server inside the host says something by itself. One whose tools changed is asked
    /// for them anew by the next `connect_all`; false when there is no such server.
    pub(crate) fn heard(&self, name: &str, message: &Json) -> bool {
        let mut servers = self.lock();
        let Some(server) = servers.get_mut(name).filter(|server| server.config == Config::Sdk) else {
            return false;
        };
        if message.value()["method"] == "notifications/tools/list_changed" {
            (server.manifest, server.standing) = (None, Standing::Pending);
        }
        true
    }

    /// How a tool is called in questions to the person.
    pub(crate) fn display_name(&self, name: &str) -> String {
        match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((_, tool)) => capitalised(tool),
            None => name.to_owned(),
        }
    }

    /// How a call of an MCP tool is shown.
    pub(crate) fn shown(&self, block: &Block) -> Option<Vec<ToolUseMeta>> {
        let call = block.tool_use()?;
        let (server, tool) = call.name.strip_prefix("mcp__")?.split_once("__")?;
        Some(vec![ToolUseMeta {
            id: call.id.clone(),
            display_name: Maybe::Value(capitalised(tool)),
            server_display_name: Maybe::Value(server.to_owned()),
            tool_name: Maybe::Value(tool.to_owned()),
            ..ToolUseMeta::default()
        }])
    }

    /// Lets all servers go; a program that does not go by itself is killed with its children.
    pub(crate) async fn close(&self) {
        let servers = std::mem::take(&mut *self.lock());
        let parting = servers.into_values().filter_map(|server| match server.standing {
            Standing::Connected { running, program, .. } => Some((running, program)),
            _ => None,
        });
        join_all(parting.map(|(mut running, program)| async move {
            let _ = running.close_with_timeout(PARTING).await;
            if let Some(mut program) = program {
                let _ = tokio::time::timeout(PARTING, program.wait()).await;
                // What it started may be there still.
                let _ = program.start_kill();
            }
        }))
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    fn listed(&self) -> McpServer {
        let transport = match self.config {
            Config::Stdio { .. } => "stdio",
            Config::Http { .. } => "http",
            Config::Sdk => "sdk",
        };
        let mut listed = McpServer {
            name: self.name.clone(),
            status: "pending".to_owned(),
            transport: Maybe::Value(transport.to_owned()),
            scope: Maybe::Value("dynamic".to_owned()),
            source: Maybe::Value(self.source.to_owned()),
            ..McpServer::default()
        };
        match &self.standing {
            Standing::Pending => {}
            Standing::Disabled => listed.status = "disabled".to_owned(),
            Standing::Failed(why) => {
                listed.status = "failed".to_owned();
                listed.error = Maybe::Value(why.clone());
            }
            Standing::Connected { tools, info, .. } => {
                listed.status = "connected".to_owned();
                listed.server_info = info.clone().into();
                listed.tools = Maybe::Value(tools.iter().map(tool::listed).collect::<Vec<Listed>>());
            }
        }
        listed
    }
}

/// Reads how a server is reached.
fn read_config(name: &str, json: &Json) -> Result<Config, String> {
    // The place is one within the server's own text, and would mislead.
    let plain = |error: serde_json::Error| error.to_string().split(" at line ").next().map(str::to_owned);
    let bad = |error| format!("server {name}: {}", plain(error).unwrap_or_default());
    let config = McpServerConfig::read(json).map_err(bad)?;
    Ok(match config {
        McpServerConfig::Stdio(program) => Config::Stdio {
            command: program.command,
            args: program.args.into_option().unwrap_or_default(),
            env: program.env.into_option().unwrap_or_default(),
        },
        McpServerConfig::Http(place) => {
            Config::Http { url: place.url, headers: place.headers.into_option().unwrap_or_default() }
        }
        // The same address answers in both ways.
        McpServerConfig::Sse(place) => {
            Config::Http { url: place.url, headers: place.headers.into_option().unwrap_or_default() }
        }
        McpServerConfig::Sdk(_) => Config::Sdk,
        McpServerConfig::Unknown(other) => return Err(format!("server {name}: unknown type {:?}", other.tag())),
    })
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
