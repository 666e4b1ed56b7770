//! The context of the session's own agent.

use std::sync::Arc;

use parking_lot::Mutex;
use quipu_message::Uuid;
use tokio_util::sync::CancellationToken;

use crate::agent_context::{AgentContext, AgentKind};
use crate::session::Session;
use crate::structured_output::StructuredOutputTool;
use crate::system_prompt;
use crate::tool_selection;

/// The context of the main agent. `prompt` is the UUID that the host gave the prompt.
pub(crate) fn main_context(
    session: &Arc<Session>,
    prompt: Option<Uuid>,
    cancel: CancellationToken,
) -> AgentContext<'_> {
    // An invalid schema was rejected when the session was set up.
    let structured = session.output_schema().and_then(|schema| StructuredOutputTool::new(&schema).ok()).map(Arc::new);
    AgentContext {
        tools: tool_selection::main_tools(session, structured.as_ref()),
        system_prompt: system_prompt::session_system_prompt(session),
        model: session.active_model(),
        max_turns: session.options.max_turns,
        kind: AgentKind::Main,
        log: &session.log,
        workspace: &session.workspace,
        awaiting_permission: Mutex::default(),
        span: session.telemetry.turn(),
        session,
        structured_output: structured,
        cancel,
        prompt_uuid: prompt,
    }
}
