//! Connecting to a server.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::CommandWrap;
use quipu_message::Json;
use quipu_message::control::response::McpServerInfo;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::{RunningService, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceError, service::ClientInitializeError};

use super::sdk_transport::SdkTransport;
use super::stdio_transport::StdioTransport;
use super::{ConnectionState, McpEndpoint, McpEnvironment};
use crate::guarded_paths::python_code;
use crate::process_group::GroupProcess;
use crate::tool::SECRET_VARIABLES;

type McpService = RunningService<RoleClient, ()>;

/// Most tools of a server that are used, and most pages of its list that are read.
const MAX_TOOLS: usize = 2000;
const MAX_TOOL_PAGES: usize = 100;

/// A server to connect.
pub(super) struct ServerToConnect<'a> {
    pub(super) name: &'a str,
    pub(super) endpoint: &'a McpEndpoint,
    /// What a host says of a server of its own.
    pub(super) manifest: Option<Json>,
}

/// Connects, initializes the server and lists its tools.
pub(super) async fn connect(
    environment: &McpEnvironment<'_>,
    server: ServerToConnect<'_>,
    patience: Duration,
) -> ConnectionState {
    let hello = async {
        let (running, program) = open_connection(environment, server).await?;
        let tools = list_tools(&running).await.map_err(|error| error.to_string())?;
        let info = running.peer_info().and_then(|info| info.server_info.clone()).map(|info| McpServerInfo {
            name: info.name,
            version: info.version,
            ..McpServerInfo::default()
        });
        Ok::<_, String>(ConnectionState::Connected { service: Box::new(running), tools, info, process: program })
    };
    match tokio::time::timeout(patience, hello).await {
        Ok(Ok(standing)) => standing,
        Ok(Err(why)) => ConnectionState::Failed(why),
        Err(_) => ConnectionState::Failed("no answer in time".to_owned()),
    }
}

/// Lists the tools of a server, which may list them without end.
async fn list_tools(service: &McpService) -> Result<Vec<Tool>, ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_TOOL_PAGES {
        let page = service.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= MAX_TOOLS {
            break;
        }
    }
    tools.truncate(MAX_TOOLS);
    Ok(tools)
}

/// Opens the transport; for a program also returns its process, which is killed on drop with its children.
async fn open_connection(
    environment: &McpEnvironment<'_>,
    ServerToConnect { name, endpoint, manifest }: ServerToConnect<'_>,
) -> Result<(McpService, Option<GroupProcess>), String> {
    let failed = |error: ClientInitializeError| error.to_string();
    let running = match endpoint {
        McpEndpoint::Stdio { command, args, env } => {
            let program = CommandWrap::with_new(command, |program| {
                program.args(args).envs(env).current_dir(environment.root);
                program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
                // The program is searched there, and not in folders of the session.
                if let Some(path) = environment.env.get("PATH").filter(|_| !env.contains_key("PATH")) {
                    program.env("PATH", path);
                }
                let line = [std::slice::from_ref(command), args].concat().join(" ");
                let is_set = |name: &str| env.contains_key(name) || environment.env.contains_key(name);
                program.envs(python_code::safe_path(&line, environment.root, is_set));
                if environment.scrubs_secrets {
                    SECRET_VARIABLES.iter().filter(|name| !env.contains_key(**name)).for_each(|name| {
                        program.env_remove(name);
                    });
                }
            });
            let cannot_start = |error: std::io::Error| format!("cannot start {command}: {error}");
            let mut child = GroupProcess::spawn(program).map_err(cannot_start)?;
            let (Some(output), Some(input)) = (child.take_stdout(), child.take_stdin()) else {
                return Err(format!("cannot start {command}: it has no input or output"));
            };
            let running = serve_client((), StdioTransport::new(output, input)).await.map_err(failed)?;
            return Ok((running, Some(child)));
        }
        McpEndpoint::Http { url, headers } => {
            let mut named = HashMap::new();
            for (name, value) in headers {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
                named.insert(name, HeaderValue::from_str(value).map_err(|error| error.to_string())?);
            }
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(named);
            serve_client((), StreamableHttpClientTransport::from_config(config)).await
        }
        McpEndpoint::Sdk => serve_client((), SdkTransport::new(environment.host, name, manifest)).await,
    };
    Ok((running.map_err(failed)?, None))
}
