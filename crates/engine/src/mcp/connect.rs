//! Connecting to a server, whatever it is reached by.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use quipu_message::Json;
use quipu_message::control::answer::McpServerInfo;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::service::{RunningService, serve_client};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, service::ClientInitializeError};

use super::inside::Inside;
use super::{Config, Standing};
use crate::session::Session;

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

/// Reaches a server; a program also has a process.
async fn reach(
    session: &Arc<Session>,
    name: &str,
    config: &Config,
    manifest: Option<Json>,
) -> Result<(Running, Option<u32>), String> {
    let failed = |error: ClientInitializeError| error.to_string();
    let running = match config {
        Config::Stdio { command, args, env } => {
            let mut program = CommandWrap::with_new(command, |program| {
                program.args(args).envs(env).current_dir(session.place.root());
            });
            program.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
            let (transport, _) = TokioChildProcess::builder(program)
                .stderr(std::process::Stdio::null())
                .spawn()
                .map_err(|error| format!("cannot start {command}: {error}"))?;
            let id = transport.id();
            return Ok((serve_client((), transport).await.map_err(failed)?, id));
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
