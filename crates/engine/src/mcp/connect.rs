//! Connecting to a server, whatever it is reached by.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use quipu_message::Json;
use quipu_message::control::answer::McpServerInfo;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::service::{RunningService, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, service::ClientInitializeError};

use super::inside::Inside;
use super::limit::LineLimit;
use super::{Config, Standing};
use crate::session::Session;
use crate::setup::scrubs;
use crate::tool::SECRETS;

type Running = RunningService<RoleClient, ()>;

/// Says hello and asks for the tools.
pub(super) async fn connect(
    session: &Arc<Session>,
    name: &str,
    config: &Config,
    manifest: Option<Json>,
    patience: Duration,
) -> Standing {
    let hello = async {
        let (running, program) = reach(session, name, config, manifest).await?;
        let tools = running.list_all_tools().await.map_err(|error| error.to_string())?;
        let info = running.peer_info().and_then(|info| info.server_info.clone()).map(|info| McpServerInfo {
            name: info.name,
            version: info.version,
            ..McpServerInfo::default()
        });
        Ok::<_, String>(Standing::Connected { running: Box::new(running), tools, info, program })
    };
    match tokio::time::timeout(patience, hello).await {
        Ok(Ok(standing)) => standing,
        Ok(Err(why)) => Standing::Failed(why),
        Err(_) => Standing::Failed("no answer in time".to_owned()),
    }
}

/// Reaches a server; a program is also a process, which ends when it is dropped.
async fn reach(
    session: &Arc<Session>,
    name: &str,
    config: &Config,
    manifest: Option<Json>,
) -> Result<(Running, Option<Box<dyn ChildWrapper>>), String> {
    let failed = |error: ClientInitializeError| error.to_string();
    let running = match config {
        Config::Stdio { command, args, env } => {
            let mut program = CommandWrap::with_new(command, |program| {
                program.args(args).envs(env).current_dir(session.place.root());
                program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
                if scrubs(&session.env) {
                    SECRETS.iter().filter(|name| !env.contains_key(**name)).for_each(|name| {
                        program.env_remove(name);
                    });
                }
            });
            let cannot_start = |error: std::io::Error| format!("cannot start {command}: {error}");
            let mut child = program.wrap(ProcessGroup::leader()).wrap(KillOnDrop).spawn().map_err(cannot_start)?;
            let (Some(output), Some(input)) = (child.stdout().take(), child.stdin().take()) else {
                return Err(format!("cannot start {command}: it has no input or output"));
            };
            let transport = AsyncRwTransport::new(LineLimit::new(output), input).with_max_line_length(usize::MAX);
            return Ok((serve_client((), transport).await.map_err(failed)?, Some(child)));
        }
        Config::Http { url, headers } => {
            let mut named = HashMap::new();
            for (name, value) in headers {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
                named.insert(name, HeaderValue::from_str(value).map_err(|error| error.to_string())?);
            }
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(named);
            serve_client((), StreamableHttpClientTransport::from_config(config)).await
        }
        Config::Sdk => serve_client((), Inside::new(session, name, manifest)).await,
    };
    Ok((running.map_err(failed)?, None))
}
