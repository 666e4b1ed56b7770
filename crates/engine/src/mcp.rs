//! MCP servers of a session: programs, HTTP servers and servers inside the host.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use percent_encoding::percent_decode_str;
use quipu_message::control::response::{McpServerInfo, McpServerStatus, McpTool as Listed};
use quipu_message::control::setup::{McpConfig, McpServerConfig};
use quipu_message::user_assistant::ToolUseMeta;
use quipu_message::values::McpServerState;
use quipu_message::{Block, Json, Maybe, ToolName};
use rmcp::RoleClient;
use rmcp::model::{ReadResourceRequestParams, ReadResourceResult, Tool as Offered};
use rmcp::service::{Peer, RunningService};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::definitions::Plugin;
use crate::error::EngineError;
use crate::host::Host;
use crate::options::Options;
use crate::process_group::GroupProcess;
use crate::settings::{McpServerMatch, SettingSource, Settings, SettingsLayer};
use crate::text_file;
use crate::tool::Tool;

mod connect;
mod files;
mod line_limit;
mod sdk_transport;
mod stdio_transport;
mod tool;
mod variables;

pub use files::{McpFiles, McpScope, McpServerEntry};
pub(crate) use tool::McpTool;

/// Timeout for connecting to a server, unless `MCP_TIMEOUT` is set.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that a server has to end before it is killed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest name of a tool that the API accepts.
const MAX_TOOL_NAME_BYTES: usize = 128;

/// How to connect to a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum McpEndpoint {
    /// Start a program and use its stdin and stdout.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String> },
    /// Connect to a URL.
    Http { url: String, headers: BTreeMap<String, String> },
    /// The server runs inside the host.
    Sdk,
}

/// A configured server and the state of its connection.
pub(crate) struct McpConnection {
    name: String,
    endpoint: McpEndpoint,
    source: &'static str,
    /// Responses of a host's server that the host sent in advance.
    manifest: Option<Json>,
    state: ConnectionState,
}

enum ConnectionState {
    Pending,
    Connected {
        service: Box<RunningService<RoleClient, ()>>,
        tools: Vec<Offered>,
        info: Option<McpServerInfo>,
        /// Process of a stdio server.
        process: Option<GroupProcess>,
    },
    Failed(String),
    Disabled,
}

/// All MCP servers of a session.
#[derive(Default)]
pub(crate) struct McpClients {
    servers: Mutex<BTreeMap<String, McpConnection>>,
    /// Ends what is being connected.
    closing: CancellationToken,
    /// What is being connected.
    connecting: TaskTracker,
}

impl McpClients {
    /// Collects the servers of flags and, unless `--strict-mcp-config` is set, of files and
    /// plugins. Invalid servers are added to the problems of `settings`; in a flag they are an
    /// error.
    pub(crate) fn configure(given: &McpSources<'_>, settings: &mut Settings) -> Result<Self, EngineError> {
        let mcp = Self::default();
        let options = given.options;
        let mut problems = Vec::new();
        if !options.strict_mcp_config && !options.safe_mode && !options.bare {
            mcp.add_plugin_servers(given, &mut problems);
            mcp.add_configured_servers(given, settings, &mut problems);
        }
        let bad = |reason: String| EngineError::InvalidFlag { flag: "--mcp-config", reason };
        for text in &options.mcp_config {
            let text = match text.trim_start().starts_with('{') {
                true => text.clone(),
                false => text_file::read(Path::new(text), None, text_file::MAX_BYTES)
                    .map_err(|error| bad(format!("{text}: {error}")))?,
            };
            let listing: McpConfig = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
            for (name, config) in listing.servers {
                let config = given.parse_endpoint(&name, &config, &mut problems).map_err(bad)?;
                if !options.safe_mode || config == McpEndpoint::Sdk {
                    mcp.add_server(&name, config, "dynamic");
                }
            }
        }
        mcp.lock().retain(|name, server| {
            let allowed = is_allowed(settings, name, &server.endpoint);
            if !allowed {
                problems.push(not_allowed(name));
            }
            allowed
        });
        settings.problems.append(&mut problems);
        Ok(mcp)
    }

    /// Returns the commands of the servers that are programs, word by word.
    pub(crate) fn command_lines(&self) -> Vec<String> {
        let line = |server: &McpConnection| match &server.endpoint {
            // Variables such as NODE_OPTIONS name files too.
            McpEndpoint::Stdio { command, args, env } => {
                let env = env.iter().map(|(name, value)| format!("{name}={value}"));
                let words: Vec<String> = env.chain(std::iter::once(command).chain(args).cloned()).collect();
                Some(words.join(" "))
            }
            McpEndpoint::Http { .. } | McpEndpoint::Sdk => None,
        };
        self.lock().values().filter_map(line).collect()
    }

    /// Adds the servers of plugins, each under its plugin's name.
    fn add_plugin_servers(&self, given: &McpSources<'_>, problems: &mut Vec<String>) {
        for plugin in given.plugins.iter().filter(|plugin| plugin.uses_mcp) {
            for (name, config) in plugin.mcp_servers(problems) {
                let name = format!("plugin:{}:{name}", plugin.name);
                match given.parse_endpoint(&name, &config, problems) {
                    Ok(config) => self.add_server(&name, config, "plugin"),
                    Err(error) => problems.push(format!("{}: {error}", plugin.path.display())),
                }
            }
        }
    }

    /// Adds the servers that the user and the project configured. Those of a project are used
    /// only if the user has approved them.
    fn add_configured_servers(&self, given: &McpSources<'_>, settings: &Settings, problems: &mut Vec<String>) {
        let approvals = given.files.approvals();
        let known = || settings.layers.iter().map(|layer| &layer.known);
        let approved = |name: &String, is_trusted: bool| {
            // The user's settings approve servers by name in every folder, and those of a trusted folder below
            // know nothing of this one, but an untrusted folder could use an approved name for another program.
            let counts = |layer: &&SettingsLayer| {
                is_trusted || matches!(layer.source, SettingSource::Flag | SettingSource::Managed)
            };
            let approving = || settings.layers.iter().filter(counts).map(|layer| &layer.known);
            let all = approving().filter_map(|known| known.enable_all_project_mcp_servers).next_back() == Some(true);
            let mut named = approving().flat_map(|known| &known.enabled_mcpjson_servers);
            all || named.any(|known| known == name) || approvals.enabled_mcpjson_servers.contains(name)
        };
        let rejected = |name: &String| {
            let mut named = known().flat_map(|known| &known.disabled_mcpjson_servers);
            named.any(|known| known == name) || approvals.disabled_mcpjson_servers.contains(name)
        };
        let (servers, unread) = given.files.list();
        problems.extend(unread);
        let mut waiting = Vec::new();
        // Highest precedence comes first and is added last.
        let mut all_trusted = true;
        for McpServerEntry { name, scope, config, folder } in servers.into_iter().rev() {
            let is_trusted = folder.as_deref().is_none_or(given.is_trusted);
            let source = match scope {
                McpScope::User => SettingSource::User,
                McpScope::Project => SettingSource::Project,
                McpScope::Local => SettingSource::Local,
            };
            if !given.setting_sources.contains(&source) || (scope == McpScope::Project && rejected(&name)) {
                continue;
            }
            if scope == McpScope::Project && !approved(&name, is_trusted) {
                all_trusted &= is_trusted;
                waiting.push(name);
                continue;
            }
            match given.parse_endpoint(&name, &config, problems) {
                Ok(config) => self.add_server(&name, config, scope.as_str()),
                Err(error) => problems.push(format!("{}: {error}", given.files.path(scope).display())),
            }
        }
        if !waiting.is_empty() {
            waiting.sort();
            let how = match all_trusted {
                true => "name them in enabledMcpjsonServers of your settings",
                false => "start with --trust-folder, and name them in enabledMcpjsonServers of your settings",
            };
            problems.push(format!(
                "MCP servers of {} that you have not approved: {}; {how}",
                given.files.path(McpScope::Project).display(),
                waiting.join(", ")
            ));
        }
    }

    /// Adds the servers of the `initialize` request, with their manifests. Returns a sentence for each that
    /// settings deny.
    pub(crate) fn add_sdk_servers(
        &self,
        names: &[String],
        manifests: Option<&Json>,
        settings: &Settings,
    ) -> Vec<String> {
        let manifests: BTreeMap<String, Json> = manifests.and_then(|json| json.read().ok()).unwrap_or_default();
        let (allowed, denied): (Vec<_>, Vec<_>) =
            names.iter().partition(|name| is_allowed(settings, name, &McpEndpoint::Sdk));
        for name in allowed {
            self.add_server(name, McpEndpoint::Sdk, "sdk");
        }
        for server in self.lock().values_mut() {
            server.manifest = manifests.get(&server.name).cloned();
        }
        denied.into_iter().map(|name| not_allowed(name)).collect()
    }

    fn add_server(&self, name: &str, config: McpEndpoint, source: &'static str) {
        let source = if config == McpEndpoint::Sdk { "sdk" } else { source };
        let mut servers = self.lock();
        if servers.get(name).is_some_and(|known| known.endpoint == config) {
            return;
        }
        let server = McpConnection {
            name: name.to_owned(),
            endpoint: config,
            source,
            manifest: None,
            state: ConnectionState::Pending,
        };
        servers.insert(name.to_owned(), server);
    }

    /// Connects every server that is not connected yet, all at once. Returns a sentence for each
    /// server that could not be connected.
    pub(crate) async fn connect_all(&self, environment: &McpEnvironment<'_>) -> Vec<String> {
        let pending: Vec<(String, McpEndpoint, Option<Json>)> = {
            let servers = self.lock();
            let waiting = servers.values().filter(|server| matches!(server.state, ConnectionState::Pending));
            let facts =
                |server: &McpConnection| (server.name.clone(), server.endpoint.clone(), server.manifest.clone());
            waiting.map(facts).collect()
        };
        let set = environment.env.get("MCP_TIMEOUT").and_then(|millis| millis.parse().ok());
        let patience = set.map_or(CONNECT_TIMEOUT, Duration::from_millis);
        let connecting = pending.into_iter().map(|(name, endpoint, manifest)| async move {
            let server = connect::ServerToConnect { name: &name, endpoint: &endpoint, manifest };
            let connect = self.connecting.track_future(connect::connect(environment, server, patience));
            let standing = self.closing.run_until_cancelled(connect).await;
            (name, standing.unwrap_or_else(|| ConnectionState::Failed("the session ended".to_owned())))
        });
        let mut failures = Vec::new();
        for (name, standing) in join_all(connecting).await {
            match &standing {
                ConnectionState::Failed(error) => tracing::debug!(target: "quipu::mcp", %name, %error, "failed"),
                ConnectionState::Connected { tools, .. } => {
                    tracing::debug!(target: "quipu::mcp", %name, tools = tools.len(), "connected");
                }
                ConnectionState::Pending | ConnectionState::Disabled => {}
            }
            if let ConnectionState::Failed(why) = &standing {
                failures.push(format!("the MCP server {name} is not used: {why}"));
            }
            if let Some(server) = self.lock().get_mut(&name) {
                server.state = standing;
            }
        }
        failures
    }

    /// Replaces the servers that the host set by those that are allowed. An invalid server is an
    /// error, and then nothing changes.
    pub(crate) fn set_servers(
        &self,
        given: &Json,
        env: &BTreeMap<String, String>,
        safe_mode: bool,
        settings: &Settings,
    ) -> Result<ServersSet, EngineError> {
        let bad = |reason: String| EngineError::InvalidFlag { flag: "mcp_set_servers", reason };
        let given: BTreeMap<String, Json> = given.read().map_err(|error| bad(error.to_string()))?;
        let (mut wanted, mut set) = (BTreeMap::new(), ServersSet::default());
        for (name, json) in &given {
            let config = read_filled(name, json, env, &mut set.problems).map_err(bad)?;
            if safe_mode && config != McpEndpoint::Sdk {
                set.refused.insert(name.clone(), "not used with --safe-mode".to_owned());
            } else if !is_allowed(settings, name, &config) {
                set.refused.insert(name.clone(), "settings do not allow it".to_owned());
            } else {
                wanted.insert(name.clone(), config);
            }
        }
        for (name, config) in &wanted {
            if !self.has_server(name) {
                set.added.push(name.clone());
            }
            self.add_server(name, config.clone(), "dynamic");
        }
        let mut servers = self.lock();
        let gone = servers.values().filter(|s| s.source == "dynamic" && !wanted.contains_key(&s.name));
        set.removed = gone.map(|s| s.name.clone()).collect();
        servers.retain(|name, _| !set.removed.contains(name));
        drop(servers);
        Ok(set)
    }

    /// Whether there is a server of this name.
    pub(crate) fn has_server(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    /// Whether a server is connected.
    pub(crate) fn is_connected(&self, name: &str) -> bool {
        self.lock().get(name).is_some_and(|server| matches!(server.state, ConnectionState::Connected { .. }))
    }

    /// Enables or disables a server; an enabled one is connected again by the next `connect_all`.
    pub(crate) fn set_enabled(&self, name: &str, enabled: bool) {
        if let Some(server) = self.lock().get_mut(name) {
            server.state = if enabled { ConnectionState::Pending } else { ConnectionState::Disabled };
        }
    }

    /// Returns the status of all servers for hosts.
    pub(crate) fn list_servers(&self) -> Vec<McpServerStatus> {
        self.lock().values().map(McpConnection::to_listing).collect()
    }

    /// Returns the tools of all connected servers.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for server in self.lock().values() {
            if let ConnectionState::Connected { service: running, tools: offered, .. } = &server.state {
                let peer: Peer<RoleClient> = running.peer().clone();
                tools.extend(offered.iter().map(|tool| McpTool::new_shared(&server.name, tool.clone(), peer.clone())));
            }
        }
        // The API refuses a request with a name that is too long or occurs twice.
        let mut names = HashSet::new();
        tools.retain(|tool| tool.name().as_str().len() <= MAX_TOOL_NAME_BYTES && names.insert(tool.name()));
        tools
    }

    /// Reads a resource of a server that is not the host's own.
    pub(crate) async fn read_resource(&self, name: &str, uri: &str) -> Result<ReadResourceResult, String> {
        let peer = {
            let servers = self.lock();
            let server = servers.get(name).ok_or_else(|| format!("Server not found: {name}"))?;
            match &server.state {
                _ if server.endpoint == McpEndpoint::Sdk => {
                    return Err(format!("mcp_read_resource: {name} is the host's own server"));
                }
                ConnectionState::Connected { service: running, .. } => running.peer().clone(),
                _ => return Err(format!("MCP server not connected: {name}")),
            }
        };
        let read = peer.read_resource(ReadResourceRequestParams::new(uri));
        match tokio::time::timeout(CONNECT_TIMEOUT, read).await {
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(_) => Err(format!("MCP server did not answer in time: {name}")),
        }
    }

    /// Handles a notification of a server inside the host. If its tools changed, the next
    /// `connect_all` lists them again. Returns `false` if there is no such server.
    pub(crate) fn handle_notification(&self, name: &str, message: &Json) -> bool {
        let mut servers = self.lock();
        let Some(server) = servers.get_mut(name).filter(|server| server.endpoint == McpEndpoint::Sdk) else {
            return false;
        };
        if message.to_value()["method"] == "notifications/tools/list_changed" {
            (server.manifest, server.state) = (None, ConnectionState::Pending);
        }
        true
    }

    /// Returns the name of a tool for permission requests.
    pub(crate) fn display_name(&self, name: &ToolName) -> String {
        match name.mcp() {
            Some((_, tool)) => humanise_name(tool),
            None => name.to_string(),
        }
    }

    /// Returns how to display a call of an MCP tool; `None` for other tools.
    pub(crate) fn tool_use_meta(&self, block: &Block) -> Option<Vec<ToolUseMeta>> {
        let call = block.tool_use()?;
        let (server, tool) = call.name.mcp()?;
        Some(vec![ToolUseMeta {
            id: call.id.clone(),
            display_name: Maybe::Value(humanise_name(tool)),
            server_display_name: Maybe::Value(server.to_owned()),
            tool_name: Maybe::Value(tool.to_owned()),
            ..ToolUseMeta::default()
        }])
    }

    /// Disconnects all servers; programs that do not end in time are killed with their children.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.connecting.close();
        // Otherwise a program that was just started would outlive the agent.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.connecting.wait()).await;
        let servers = std::mem::take(&mut *self.lock());
        let parting = servers.into_values().filter_map(|server| match server.state {
            ConnectionState::Connected { service: running, process: program, .. } => Some((running, program)),
            _ => None,
        });
        join_all(parting.map(|(mut running, program)| async move {
            let _ = running.close_with_timeout(SHUTDOWN_TIMEOUT).await;
            if let Some(mut program) = program {
                let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, program.wait()).await;
                // Its children may still be running.
                program.kill();
            }
        }))
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, McpConnection>> {
        self.servers.lock()
    }
}

impl McpConnection {
    fn to_listing(&self) -> McpServerStatus {
        let transport = match self.endpoint {
            McpEndpoint::Stdio { .. } => "stdio",
            McpEndpoint::Http { .. } => "http",
            McpEndpoint::Sdk => "sdk",
        };
        let mut listed = McpServerStatus {
            name: self.name.clone(),
            status: McpServerState::Pending,
            transport: transport.into(),
            scope: Maybe::Value(if self.source == "sdk" { "dynamic" } else { self.source }.to_owned()),
            source: Maybe::Value(self.source.to_owned()),
            ..McpServerStatus::default()
        };
        match &self.state {
            ConnectionState::Pending => {}
            ConnectionState::Disabled => listed.status = McpServerState::Disabled,
            ConnectionState::Failed(why) => {
                listed.status = McpServerState::Failed;
                listed.error = Maybe::Value(why.clone());
            }
            ConnectionState::Connected { tools, info, .. } => {
                listed.status = McpServerState::Connected;
                listed.server_info = info.clone().into();
                listed.tools = Maybe::Value(tools.iter().map(tool::tool_listing).collect::<Vec<Listed>>());
            }
        }
        listed
    }
}

/// Values that connecting to servers needs.
pub(crate) struct McpEnvironment<'a> {
    /// Host that forwards messages to the servers inside it.
    pub(crate) host: &'a Arc<Host>,
    /// The environment of the agent.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// The folder that server programs start in.
    pub(crate) root: &'a Path,
    /// Whether server programs start without the variables that hold credentials.
    pub(crate) scrubs_secrets: bool,
}

/// Sources of server configuration.
pub(crate) struct McpSources<'a> {
    pub(crate) options: &'a Options,
    /// Enabled setting sources; server files of the same sources are used.
    pub(crate) setting_sources: &'a [SettingSource],
    pub(crate) files: &'a McpFiles,
    pub(crate) plugins: &'a [Plugin],
    /// Whether the user trusts a folder; otherwise only the host, the administrator and the user's state of
    /// this project approve its servers.
    pub(crate) is_trusted: &'a dyn Fn(&Path) -> bool,
    /// Environment for `${VAR}` in the configuration.
    pub(crate) env: &'a BTreeMap<String, String>,
}

/// Result of [`McpServers::set_servers`].
#[derive(Debug, Default)]
pub(crate) struct ServersSet {
    /// Names of new servers.
    pub(crate) added: Vec<String>,
    /// Names of removed servers.
    pub(crate) removed: Vec<String>,
    /// Names of servers that are not allowed, with the reason.
    pub(crate) refused: BTreeMap<String, String>,
    /// Warnings about variables that are not set.
    pub(crate) problems: Vec<String>,
}

impl McpSources<'_> {
    fn parse_endpoint(&self, name: &str, json: &Json, problems: &mut Vec<String>) -> Result<McpEndpoint, String> {
        read_filled(name, json, self.env, problems)
    }
}

/// Parses the configuration of a server and expands its variables.
fn read_filled(
    name: &str,
    json: &Json,
    env: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) -> Result<McpEndpoint, String> {
    let mut config = parse_endpoint(name, json)?;
    let missing = variables::expand_endpoint(&mut config, env);
    if !missing.is_empty() {
        problems.push(format!("the MCP server {name}: {} not set", missing.join(", ")));
    }
    Ok(config)
}

/// Warning about a server that settings do not allow.
fn not_allowed(name: &str) -> String {
    format!("the MCP server {name}: settings do not allow it")
}

/// Whether settings allow a server: no list denies it, and every list of allowed servers
/// contains it. Lists of allowed servers do not apply to servers inside the host.
fn is_allowed(settings: &Settings, name: &str, config: &McpEndpoint) -> bool {
    let matches = |entry: &McpServerMatch| match (entry, config) {
        (McpServerMatch { server_command: Some(given), .. }, McpEndpoint::Stdio { command, args, .. }) => {
            given.iter().eq(std::iter::once(command).chain(args))
        }
        (McpServerMatch { server_url: Some(pattern), .. }, McpEndpoint::Http { url, .. }) => matches_url(pattern, url),
        (McpServerMatch { server_name: Some(given), .. }, _) => given == name,
        _ => false,
    };
    // A denied URL may be written in other ways that lead to the same server.
    let is_denied = |entry: &McpServerMatch| match (&entry.server_url, config) {
        (Some(pattern), McpEndpoint::Http { url, .. }) => {
            let (patterns, urls) = (url_forms(pattern), url_forms(url));
            let mut pairs = patterns.iter().flat_map(|pattern| urls.iter().map(move |url| (pattern, url)));
            pairs.any(|(pattern, url)| matches_url(pattern, url))
        }
        _ => matches(entry),
    };
    let mut known = settings.layers.iter().map(|layer| &layer.known);
    known.all(|known| {
        let allowed = known.allowed_mcp_servers.as_ref().is_none_or(|list| list.iter().any(matches));
        (allowed || *config == McpEndpoint::Sdk) && !known.denied_mcp_servers.iter().any(is_denied)
    })
}

/// Whether a URL is one of those that a pattern with `*` matches.
fn matches_url(pattern: &str, url: &str) -> bool {
    let pieces: Vec<String> = pattern.split('*').map(regex::escape).collect();
    regex::Regex::new(&format!("(?s)^{}$", pieces.join(".*"))).is_ok_and(|pattern| pattern.is_match(url))
}

/// Returns a URL as written, in the usual form of what a connection uses of it, and this without its query; only
/// as written if it is not a URL. The usual form has no user, no fragment, and no slash at the end of its path.
fn url_forms(url: &str) -> Vec<String> {
    let mut forms = vec![url.to_owned()];
    let usual = || {
        let mut url = url::Url::parse(url).ok()?;
        let host = url.host_str()?.trim_end_matches('.').to_owned();
        url.set_host(Some(&host)).ok()?;
        if let Some(url::Host::Ipv6(address)) = url.host()
            && let Some(mapped) = address.to_ipv4_mapped()
        {
            url.set_ip_host(mapped.into()).ok()?;
        }
        url.set_username("").and_then(|()| url.set_password(None)).ok()?;
        let path = percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        url.set_path("");
        let query = url.query().filter(|query| !query.is_empty()).map(|query| format!("?{query}"));
        url.set_query(None);
        url.set_fragment(None);
        Some((format!("{url}{}", names.join("/")), query))
    };
    if let Some((usual, query)) = usual() {
        forms.extend(query.map(|query| format!("{usual}{query}")));
        forms.push(usual);
    }
    forms
}

/// Checks the configuration of a server; the error says what is wrong.
pub fn check_mcp_server(name: &str, config: &serde_json::Value) -> Result<(), String> {
    parse_endpoint(name, &Json::from(config.clone())).map(drop)
}

/// Parses the configuration of a server.
fn parse_endpoint(name: &str, json: &Json) -> Result<McpEndpoint, String> {
    // The line number is relative to the server's own JSON and would mislead.
    let plain = |error: serde_json::Error| error.to_string().split(" at line ").next().map(str::to_owned);
    let bad = |error| format!("server {name}: {}", plain(error).unwrap_or_default());
    let config = McpServerConfig::from_json(json).map_err(bad)?;
    Ok(match config {
        McpServerConfig::Stdio(program) => McpEndpoint::Stdio {
            command: program.command,
            args: program.args.into_option().unwrap_or_default(),
            env: program.env.into_option().unwrap_or_default(),
        },
        McpServerConfig::Http(place) => {
            McpEndpoint::Http { url: place.url, headers: place.headers.into_option().unwrap_or_default() }
        }
        // The HTTP transport also handles SSE servers.
        McpServerConfig::Sse(place) => {
            McpEndpoint::Http { url: place.url, headers: place.headers.into_option().unwrap_or_default() }
        }
        McpServerConfig::Sdk(_) => McpEndpoint::Sdk,
        other => return Err(format!("server {name}: unknown type {:?}", other.tag())),
    })
}

/// Converts the name of a tool for display: `read_file` to `Read file`.
fn humanise_name(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_denied_url_is_denied_in_every_form() {
        let is_used = |list: &str, pattern: &str, url: &str| {
            let known = serde_json::from_value(json!({list: [{"serverUrl": pattern}]})).unwrap();
            let layer = SettingsLayer { source: SettingSource::Managed, folder: None, raw: json!({}), known };
            let settings = Settings { layers: vec![layer], ..Settings::default() };
            is_allowed(&settings, "x", &McpEndpoint::Http { url: url.to_owned(), headers: BTreeMap::new() })
        };
        for url in [
            "https://evil.org/mcp",
            "HTTPS://evil.org/mcp",
            "https://EVIL.org/mcp",
            "https://evil.org./mcp",
            "https://evil.org:443/mcp",
            "https://me:key@evil.org/mcp",
            "https://evil.org",
            "https://evil.org?x",
            "https:\\\\evil.org/mcp",
            " https://evil.org/mcp",
            "https://ev\til.org/mcp",
            "https://evil.org/\n",
            "https://evil.org//mcp",
        ] {
            for pattern in ["https://evil.org/*", "https://evil.org:443/*", "*://evil.org/*", "https://Evil.org/*"] {
                assert!(!is_used("deniedMcpServers", pattern, url), "{pattern} {url:?}");
            }
        }
        assert!(!is_used("deniedMcpServers", "http://127.0.0.1:81/x", "http://127.0.0.1:81/x#y"));
        assert!(!is_used("deniedMcpServers", "http://127.0.0.1:81/x", "http://127.0.0.1:81/x?"));
        assert!(!is_used("deniedMcpServers", "http://127.0.0.1:81/*", "http://127.1:81/x"));
        for url in ["https://a.org/%6dcp", "https://a.org/mcp/", "https://a.org/mcp?x=1", "https://a.org/x/..//mc%70/"]
        {
            assert!(!is_used("deniedMcpServers", "https://a.org/mcp", url), "{url}");
            assert!(!is_used("deniedMcpServers", "https://a.org/*cp", url), "{url}");
        }
        assert!(is_used("deniedMcpServers", "https://a.org/mcp", "https://a.org/mcp2"));
        assert!(is_used("deniedMcpServers", "https://evil.org/*", "https://good.org/mcp"));
        assert!(is_used("allowedMcpServers", "https://good.org/*", "https://good.org/mcp"));
        assert!(!is_used("allowedMcpServers", "https://good.org/*", "https://good.org@evil.org/"));
        for url in ["http://[::ffff:127.0.0.1]:8/x", "http://[::ffff:7f00:1]:8/x", "http://127.1:8/x"] {
            assert!(!is_used("deniedMcpServers", "http://127.0.0.1:8/x", url), "{url}");
        }
    }

    #[test]
    fn a_server_of_the_host_is_denied_by_its_name_only() {
        let is_used = |known: serde_json::Value, name: &str| {
            let known = serde_json::from_value(known).unwrap();
            let layer = SettingsLayer { source: SettingSource::Managed, folder: None, raw: json!({}), known };
            is_allowed(&Settings { layers: vec![layer], ..Settings::default() }, name, &McpEndpoint::Sdk)
        };
        let denied = json!({"deniedMcpServers": [{"serverName": "x"}]});
        assert!(!is_used(denied.clone(), "x") && is_used(denied, "y"));
        assert!(is_used(json!({"deniedMcpServers": [{"serverUrl": "*"}, {"serverCommand": ["x"]}]}), "x"));
        assert!(is_used(json!({"allowedMcpServers": []}), "x"));
    }
}
