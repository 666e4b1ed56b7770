//! Which tools an agent has.

use std::sync::Arc;

use quipu_message::ToolName;

use crate::definitions::AgentDefinition;
use crate::permission::{Behavior, is_edit_tool};
use crate::session::Session;
use crate::structured_output::StructuredOutputTool;
use crate::subagent::AgentTool;
use crate::tool::Tool;
use crate::web_search::WebSearch;
use crate::{tool_search, tools, user_tools};

/// The most levels of subagents: they have no subagents of their own.
const MAX_SUBAGENT_DEPTH: u64 = 1;

/// The tools of `--bare`.
const BARE_TOOLS: [ToolName; 3] = [ToolName::Bash, ToolName::Edit, ToolName::Read];

/// The tools that `--restricted` leaves out unless `--tools` names them.
const NOT_RESTRICTED: [ToolName; 2] = [ToolName::Bash, ToolName::WebFetch];

/// The tools of the main agent.
pub(crate) fn main_tools(session: &Arc<Session>, structured: Option<&Arc<StructuredOutputTool>>) -> Vec<Arc<dyn Tool>> {
    let mut all = common_tools(session, 0);
    if session.options.permission_prompt_tool.as_deref() == Some("stdio") {
        all.push(Arc::new(user_tools::AskUserQuestionTool));
        all.push(Arc::new(user_tools::ExitPlanModeTool { session: Arc::clone(session) }));
    }
    // Tools read the session to describe themselves, so nothing may be locked meanwhile.
    let agent = session.agent_config().agent.clone();
    if let Some(agent) = &agent {
        retain_agent_tools(agent, &mut all);
    }
    retain_session_tools(session, &mut all);
    remove_denied_tools(session, &mut all);
    tool_search::defer_mcp_tools(session, &mut all);
    all.extend(structured.map(|form| Arc::clone(form) as Arc<dyn Tool>));
    all
}

/// Whether the main agent has a tool that changes files.
pub(crate) fn can_edit_files(session: &Arc<Session>) -> bool {
    main_tools(session, None).iter().any(|tool| is_edit_tool(&tool.name()))
}

/// The tools of a subagent at this nesting depth.
fn subagent_tools(session: &Arc<Session>, agent: &AgentDefinition, depth: u64) -> Vec<Arc<dyn Tool>> {
    let mut all = common_tools(session, depth);
    retain_agent_tools(agent, &mut all);
    retain_session_tools(session, &mut all);
    remove_denied_tools(session, &mut all);
    tool_search::defer_mcp_tools(session, &mut all);
    all
}

/// Removes the tools that `--tools` and `--bare` leave out, for subagents too.
fn retain_session_tools(session: &Session, all: &mut Vec<Arc<dyn Tool>>) {
    if session.options.bare && session.options.tools.is_none() {
        all.retain(|tool| {
            let name = tool.name();
            BARE_TOOLS.contains(&name) || name.is_mcp()
        });
    }
    if let Some(chosen) = &session.options.tools {
        let takes_all = chosen.iter().any(|name| name == "default");
        let chosen: Vec<ToolName> = chosen.iter().map(|name| name.as_str().into()).collect();
        all.retain(|tool| {
            let name = tool.name();
            takes_all || name.is_mcp() || chosen.iter().any(|chosen| chosen.is_same_tool(&name))
        });
    }
}

/// Removes the tools that the definition of an agent excludes.
fn retain_agent_tools(agent: &AgentDefinition, all: &mut Vec<Arc<dyn Tool>>) {
    all.retain(|tool| {
        let name = tool.name();
        let wanted = agent.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| names_tool(tool, &name)));
        wanted && !agent.disallowed_tools.iter().any(|tool| names_tool(tool, &name))
    });
}

fn common_tools(session: &Arc<Session>, depth: u64) -> Vec<Arc<dyn Tool>> {
    let mut all = tools::builtin_tools();
    all.push(Arc::new(WebSearch::new(session)));
    if session.options.restricted {
        let named = |name: &ToolName| session.options.tools.iter().flatten().any(|tool| name == tool.as_str());
        all.retain(|tool| {
            let name = tool.name();
            !NOT_RESTRICTED.contains(&name) || named(&name)
        });
    }
    if depth < MAX_SUBAGENT_DEPTH {
        all.push(Arc::new(AgentTool::new(session, depth, subagent_tools)));
    }
    if session.definitions().skills().next().is_some() {
        all.push(Arc::new(user_tools::SkillTool { session: Arc::clone(session) }));
    }
    all.extend(session.mcp.tools());
    all
}

/// Removes the tools that rules deny for every input.
fn remove_denied_tools(session: &Session, all: &mut Vec<Arc<dyn Tool>>) {
    let refused: Vec<ToolName> = session.permissions.read(|_, rules| {
        let refusals = rules.with_behavior(Behavior::Deny).filter(|rule| rule.rule.content.is_none());
        refusals.map(|rule| rule.rule.tool.clone()).collect()
    });
    all.retain(|tool| !refused.iter().any(|name| names_tool(name, &tool.name())));
}

/// Whether `word` names a tool, or the MCP server of the tool.
fn names_tool(word: &ToolName, name: &ToolName) -> bool {
    word.is_same_tool(name) || name.may_belong_to(word)
}
