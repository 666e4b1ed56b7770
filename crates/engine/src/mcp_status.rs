//! Whether the configured MCP servers can be connected to, for `mcp list` and `mcp get`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use quipu_message::control::response::McpServerStatus;
use tokio_util::sync::CancellationToken;

use crate::error::EngineError;
use crate::options::{Format, Options};
use crate::output::OutputStream;
use crate::resume::ResumePoint;
use crate::setup::Launch;

/// Connects to every MCP server that a session in `cwd` would use, and returns their states. Servers of a
/// project that the user has not approved are not among them. Fails if settings cannot be read.
pub async fn mcp_status(env: BTreeMap<String, String>, cwd: &Path) -> Result<Vec<McpServerStatus>, EngineError> {
    let options = Options { no_persistence: true, format: Format::StreamJson, ..Options::default() };
    let mut launch = Launch::new(options, env, cwd.to_owned());
    launch.remove_unsafe_programs(&[]);
    let new_session = ResumePoint::choose(&launch.options, &launch.config_folder(), &launch.cwd)?;
    let failed = |source| EngineError::Setup { what: "a thread for output", source };
    let (format, id) = (Format::StreamJson, new_session.id.clone());
    // Nothing that a session prints is of interest here.
    let (output, printer) =
        OutputStream::start(io::sink(), io::sink(), format, false, id, CancellationToken::new()).map_err(failed)?;
    let session = launch.set_up(new_session, output)?;
    session.connect_mcp().await;
    let servers = session.mcp.list_servers();
    session.mcp.close().await;
    session.output.close();
    printer.finish();
    Ok(servers)
}
