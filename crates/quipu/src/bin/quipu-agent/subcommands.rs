//! The subcommands `auth status` and `mcp`. The names of claude's other subcommands are known, so that none
//! is used as a prompt.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use quipu_engine::{AuthStatus, McpFiles, McpScope, McpServerEntry};
use quipu_message::control::response::McpServerStatus;
use quipu_message::values::McpServerState;
use serde_json::{Map, Value, json};

use crate::read_environment;

/// Commands of `claude` that are not available here.
const UNSUPPORTED_COMMANDS: [&str; 24] = [
    "agents",
    "attach",
    "auto-mode",
    "config",
    "doctor",
    "gateway",
    "import",
    "install",
    "kill",
    "login",
    "logout",
    "logs",
    "migrate-installer",
    "plugin",
    "plugins",
    "project",
    "purge",
    "respawn",
    "rm",
    "setup-token",
    "stop",
    "ultrareview",
    "update",
    "upgrade",
];

#[derive(Debug, Parser)]
#[command(name = "quipu-agent", max_term_width = 100)]
enum AgentCommand {
    /// Show whether there is an API key
    Auth {
        #[command(subcommand)]
        command: AuthCommand,
    },
    /// Configure MCP servers
    Mcp {
        #[command(subcommand)]
        command: McpCommand,
    },
}

#[derive(Debug, Subcommand)]
enum AuthCommand {
    /// Print which key is used; exit 1 if there is none
    Status {
        /// Print JSON (the default)
        #[arg(long)]
        json: bool,
        /// Print a line of text
        #[arg(long, conflicts_with = "json")]
        text: bool,
    },
}

#[derive(Debug, Subcommand)]
#[command(args_override_self = true)]
enum McpCommand {
    /// Add a server
    Add {
        /// Name of the server
        name: String,
        /// The program, or the URL
        command_or_url: String,
        /// The program's arguments
        #[arg(trailing_var_arg = true)]
        args: Vec<String>,
        /// Scope: local (you, in this directory), project or user
        #[arg(short, long, default_value = "local", value_parser = parse_scope)]
        scope: McpScope,
        /// Transport: stdio, http or sse
        #[arg(short, long, default_value = "stdio", value_parser = ["stdio", "http", "sse"])]
        transport: String,
        /// Environment of the program: KEY=value
        #[arg(short, long, num_args = 1.., value_parser = parse_pair::<'='>)]
        env: Vec<(String, String)>,
        /// Headers for http and sse: "Name: value"
        #[arg(short = 'H', long, num_args = 1.., value_parser = parse_pair::<':'>)]
        header: Vec<(String, String)>,
    },
    /// Add a server from JSON
    AddJson {
        /// Name of the server
        name: String,
        /// The configuration, as in .mcp.json
        json: String,
        /// Scope: local (you, in this directory), project or user
        #[arg(short, long, default_value = "local", value_parser = parse_scope)]
        scope: McpScope,
    },
    /// List the servers, and whether they can be connected to
    List,
    /// Show one server, and whether it can be connected to
    Get {
        /// Name of the server
        name: String,
    },
    /// Remove a server
    Remove {
        /// Name of the server
        name: String,
        /// Scope to remove it from; required if several scopes have it
        #[arg(short, long, value_parser = parse_scope)]
        scope: Option<McpScope>,
    },
}

fn parse_scope(word: &str) -> Result<McpScope, String> {
    McpScope::parse(word).ok_or_else(|| "must be local, project or user".to_owned())
}

/// Parses a name and a value separated by a character.
fn parse_pair<const SIGN: char>(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(SIGN).ok_or_else(|| format!("must have a {SIGN} after the name"))?;
    let is_blank = name.trim().is_empty();
    if is_blank { Err("has no name".to_owned()) } else { Ok((name.trim().to_owned(), value.trim_start().to_owned())) }
}

/// Runs the subcommand in the first argument; `None` if it is not a subcommand.
pub(crate) fn run(args: &[OsString]) -> Option<ExitCode> {
    let name = args.get(1)?.to_str()?;
    if UNSUPPORTED_COMMANDS.contains(&name) {
        let text = format!("error: quipu-agent has no command `{name}`; to send it as a prompt, use `-p {name}`\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
        return Some(ExitCode::FAILURE);
    }
    if !matches!(name, "auth" | "mcp") {
        return None;
    }
    let done = match AgentCommand::try_parse_from(args) {
        Ok(AgentCommand::Auth { command: AuthCommand::Status { text, .. } }) => auth_status(text),
        Ok(AgentCommand::Mcp { command }) => run_mcp(command).map(|text| (text, true)),
        Err(error) => error.exit(),
    };
    let (out, code) = match done {
        Ok((text, ok)) => (std::io::stdout().write_all(text.as_bytes()), ok),
        Err(text) => (std::io::stderr().write_all(format!("error: {text}\n").as_bytes()), false),
    };
    Some(if code && out.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Information about the key, and whether there is one.
fn auth_status(text: bool) -> Result<(String, bool), String> {
    let status = quipu_engine::auth_status(read_environment(), &cwd()?).map_err(|error| crate::in_full(&error))?;
    let AuthStatus { source, config } = status;
    let method = match source {
        Some("ANTHROPIC_AUTH_TOKEN") => "oauth_token",
        Some("apiKeyHelper") => "api_key_helper",
        Some(_) => "api_key",
        None => "none",
    };
    if text {
        let line = source.map_or("no key".to_owned(), |name| format!("key: {name}"));
        return Ok((format!("{line}\n"), source.is_some()));
    }
    let mut status = json!({
        "loggedIn": source.is_some(),
        "authMethod": method,
        "apiProvider": "firstParty",
        "analyticsDisabled": true,
        "projectsDirectory": config.join("projects"),
        "configDirectory": config,
        "loginExpiresAt": null,
    });
    if method == "api_key" {
        status["apiKeySource"] = json!(source);
    }
    Ok((format!("{status:#}\n"), source.is_some()))
}

fn cwd() -> Result<PathBuf, String> {
    std::env::current_dir()
        .and_then(|cwd| cwd.canonicalize())
        .map_err(|error| format!("the working directory: {error}"))
}

fn run_mcp(command: McpCommand) -> Result<String, String> {
    let files = McpFiles::new(&read_environment(), &cwd()?);
    match command {
        McpCommand::Add { name, command_or_url, args, scope, transport, env, header } => {
            if transport == "stdio" && !header.is_empty() {
                return Err("--header is for servers with an address; add --transport http or sse".to_owned());
            }
            if transport != "stdio" && !env.is_empty() {
                return Err(format!("--env is for servers that are programs, not for {transport}"));
            }
            if transport != "stdio" && !args.is_empty() {
                return Err(format!("a server over {transport} takes no arguments: {}", args.join(" ")));
            }
            let config = if transport == "stdio" {
                let env: BTreeMap<String, String> = env.into_iter().collect();
                json!({"type": "stdio", "command": command_or_url, "args": args, "env": env})
            } else {
                let mut config = json!({"type": transport, "url": command_or_url});
                if !header.is_empty() {
                    let headers = header.into_iter().map(|(name, value)| (name, Value::from(value)));
                    config["headers"] = Value::Object(headers.collect::<Map<_, _>>());
                }
                config
            };
            add_server(&files, &name, scope, &config)
        }
        McpCommand::AddJson { name, json, scope } => {
            let config = serde_json::from_str(&json).map_err(|error| format!("not a server: {error}"))?;
            add_server(&files, &name, scope, &config)
        }
        McpCommand::List => {
            let (servers, problems) = files.list();
            problems.iter().for_each(|problem| crate::print_warning(problem));
            if servers.is_empty() {
                return Ok("No MCP servers are configured; `quipu-agent mcp add` adds one.\n".to_owned());
            }
            let states = connection_states()?;
            let line = |server: &McpServerEntry| format!("{} - {}\n", server_line(server), state_text(server, &states));
            let lines: String = servers.iter().map(line).collect();
            Ok(format!("Checking MCP server health\u{2026}\n\n{lines}"))
        }
        McpCommand::Get { name } => {
            let mut text = String::new();
            let servers = named(&files, &name, None)?;
            let states = connection_states()?;
            for server in servers {
                let config: Value = serde_json::from_str(server.config.text()).unwrap_or_default();
                let (scope, file) = (server.scope, files.path(server.scope));
                let state = state_text(&server, &states);
                text.push_str(&format!(
                    "{name}:\n  scope: {scope}\n  file: {}\n  status: {state}\n{config:#}\n",
                    file.display()
                ));
            }
            Ok(text)
        }
        McpCommand::Remove { name, scope } => {
            let server = find_server(&files, &name, scope)?;
            let failed = |error| format!("cannot write {}: {error}", files.path(server.scope).display());
            if !files.remove(&name, server.scope).map_err(failed)? {
                return Err(format!("{name} is configured in a directory above; remove it there"));
            }
            Ok(format!("Removed MCP server {name} from {}\n", config_location(&files, server.scope)))
        }
    }
}

fn add_server(files: &McpFiles, name: &str, scope: McpScope, config: &Value) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("the name `{name}` may only have letters, digits, - and _"));
    }
    quipu_engine::check_mcp_server(name, config)?;
    if files.list().0.iter().any(|server| server.name == name && server.scope == scope) {
        return Err(format!(
            "the MCP server {name} exists already in {}; remove it first",
            config_location(files, scope)
        ));
    }
    files.add(name, scope, config).map_err(|error| format!("cannot write {}: {error}", files.path(scope).display()))?;
    Ok(format!("Added MCP server {name} to {}\n", config_location(files, scope)))
}

/// The servers of this name, the effective one first; an error if there is none.
fn named(files: &McpFiles, name: &str, scope: Option<McpScope>) -> Result<Vec<McpServerEntry>, String> {
    let (servers, problems) = files.list();
    problems.iter().for_each(|problem| crate::print_warning(problem));
    let matches = |server: &McpServerEntry| server.name == name && scope.is_none_or(|scope| server.scope == scope);
    let (found, others): (Vec<McpServerEntry>, Vec<McpServerEntry>) = servers.into_iter().partition(matches);
    if found.is_empty() {
        let names: Vec<&str> = others.iter().map(|server| server.name.as_str()).collect();
        let there =
            if names.is_empty() { "none is configured".to_owned() } else { format!("there are: {}", names.join(", ")) };
        return Err(format!("no MCP server named {name}; {there}"));
    }
    Ok(found)
}

/// The server of this name; an error if there is none, or if several scopes have it.
fn find_server(files: &McpFiles, name: &str, scope: Option<McpScope>) -> Result<McpServerEntry, String> {
    match named(files, name, scope)?.as_slice() {
        [one] => Ok(one.clone()),
        several => {
            let scopes: Vec<&str> = several.iter().map(|server| server.scope.as_str()).collect();
            Err(format!("{name} is configured in {}; choose one with --scope", scopes.join(" and ")))
        }
    }
}

/// Connects to the servers that a session would use.
fn connection_states() -> Result<Vec<McpServerStatus>, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("the runtime: {error}"))?;
    let states = runtime.block_on(quipu_engine::mcp_status(read_environment(), &cwd()?));
    states.map_err(|error| crate::in_full(&error))
}

/// Whether a server can be connected to. Of servers with the same name only the strongest is used.
fn state_text(server: &McpServerEntry, states: &[McpServerStatus]) -> String {
    let matches =
        |state: &&McpServerStatus| state.name == server.name && state.scope.text() == Some(server.scope.as_str());
    match states.iter().find(matches) {
        Some(state) if state.status == McpServerState::Connected => "\u{2714} Connected".to_owned(),
        Some(state) => {
            let reason = state.error.text().map(|error| format!(" \u{2014} {error}"));
            format!("\u{2718} Failed to connect{}", reason.unwrap_or_default())
        }
        None if states.iter().any(|state| state.name == server.name) => {
            "not used: another server has the same name".to_owned()
        }
        None if server.scope == McpScope::Project => {
            "\u{23f8} Pending approval (name it in enabledMcpjsonServers of this folder in ~/.claude.json)".to_owned()
        }
        None => "not used: settings do not allow it".to_owned(),
    }
}

/// A server as one line: name and transport.
fn server_line(server: &McpServerEntry) -> String {
    let config: Value = serde_json::from_str(server.config.text()).unwrap_or_default();
    let text = |key: &str| config[key].as_str().unwrap_or_default();
    let args = config["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let how = match text("url") {
        "" => std::iter::once(text("command")).chain(args).collect::<Vec<_>>().join(" "),
        url => format!("{url} ({})", text("type").to_uppercase()),
    };
    format!("{}: {how}", server.name)
}

fn config_location(files: &McpFiles, scope: McpScope) -> String {
    format!("{scope} config: {}", files.path(scope).display())
}
