//! The `init` line, which lists for a host what a session offers.

use quipu_message::system::{Init, System};
use quipu_message::{Envelope, Json, Maybe, ToolName};
use serde::Serialize;

use crate::agent_context::AgentContext;
use crate::command_list::command_names;

/// An MCP server in the `init` line.
#[derive(Serialize)]
struct InitMcpServer {
    name: String,
    status: String,
    source: String,
}

/// Emits the `init` line, once per turn.
pub(crate) fn emit_init(ctx: &AgentContext<'_>) {
    let session = ctx.session;
    let servers: Vec<InitMcpServer> = session
        .mcp
        .list_servers()
        .into_iter()
        .map(|server| InitMcpServer {
            name: server.name,
            status: server.status.to_string(),
            source: server.source.into_option().unwrap_or_default(),
        })
        .collect();
    let shown = |name: ToolName| if name == ToolName::Agent { ToolName::Task } else { name };
    let tools = ctx.tools.iter().map(|tool| shown(tool.name())).collect();
    let root = session.workspace.root().to_owned();
    let more: Vec<String> =
        session.workspace.folders().iter().filter(|folder| **folder != root).map(|f| f.display().to_string()).collect();
    let definitions = session.definitions().clone();
    let skills: Vec<&str> = definitions.skills().map(|skill| skill.name.as_str()).collect();
    let agents: Vec<&String> = definitions.agents.keys().collect();
    let commands = command_names(&definitions);
    let init = Init {
        model: Maybe::Value(ctx.model.clone()),
        tools: Maybe::Value(tools),
        mcp_servers: Maybe::Value(Json::from_serialize(&servers)),
        permission_mode: Maybe::Value(session.permissions.mode().into()),
        api_key_source: Maybe::Value(session.api_key_source().to_owned()),
        claude_code_version: Maybe::Value(crate::VERSION.to_owned()),
        slash_commands: Maybe::Value(commands),
        output_style: Maybe::Value(session.settings().output_style()),
        agents: Maybe::Value(Json::from_serialize(&agents)),
        skills: Maybe::Value(Json::from_serialize(&skills)),
        plugins: Maybe::Value(Json::from_serialize(&definitions.plugins)),
        capabilities: Maybe::Value(crate::CAPABILITIES.iter().map(|word| (*word).to_owned()).collect()),
        additional_directories: Maybe::Value(more),
        user_message_uuids: ctx.prompt_uuid.clone().map(|uuid| vec![uuid]).into(),
        envelope: Envelope {
            cwd: Maybe::Value(session.workspace.cwd().display().to_string()),
            ..session.output.envelope()
        },
        ..Init::default()
    };
    session.emit_system(System::Init(Box::new(init)));
}
