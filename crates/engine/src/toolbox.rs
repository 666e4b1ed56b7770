//! Which tools a talk has.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::Agent;
use crate::permission::Behavior;
use crate::session::Session;
use crate::structured::Structured;
use crate::subagent::AgentTool;
use crate::tool::Tool;
use crate::web_search::WebSearch;
use crate::{questions, tool_search, tools};

/// How deep subagents may be nested: they have no subagents of their own.
const MAX_SUBAGENT_DEPTH: u64 = 1;

/// The tools of `--bare`.
const BARE: [&str; 3] = ["Bash", "Edit", "Read"];

/// The tools that `--restricted` leaves out unless `--tools` names them.
const NOT_RESTRICTED: [&str; 2] = ["Bash", "WebFetch"];

/// The tools of the session's own talk.
pub(crate) fn for_main(session: &Arc<Session>, structured: Option<&Arc<Structured>>) -> Vec<Arc<dyn Tool>> {
    let mut all = common(session, 0);
    if session.options.permission_prompt.as_deref() == Some("stdio") {
        all.push(Arc::new(questions::AskUser));
        all.push(Arc::new(questions::ExitPlan { session: Arc::clone(session) }));
    }
    // Tools look at the state to describe themselves, so it is not held meanwhile.
    let agent = session.state().agent.clone();
    if let Some(agent) = &agent {
        keep_agents(agent, &mut all);
    }
    if session.options.bare && session.options.tools.is_none() {
        all.retain(|tool| {
            let name = tool.definition().name;
            BARE.contains(&name.as_str()) || name.starts_with("mcp__")
        });
    }
    if let Some(chosen) = &session.options.tools {
        let chosen: BTreeSet<&str> = chosen.iter().map(String::as_str).collect();
        let has = |name: &str| chosen.contains(name) || chosen.contains("default");
        all.retain(|tool| {
            let name = tool.definition().name;
            has(&name) || name == "Agent" && has("Task") || name.starts_with("mcp__")
        });
    }
    without_refused(session, &mut all);
    tool_search::defer(session, &mut all);
    all.extend(structured.map(|form| Arc::clone(form) as Arc<dyn Tool>));
    all
}

/// The tools of a subagent's talk.
pub(crate) fn for_sub(session: &Arc<Session>, agent: &Agent, depth: u64) -> Vec<Arc<dyn Tool>> {
    let mut all = common(session, depth);
    keep_agents(agent, &mut all);
    without_refused(session, &mut all);
    tool_search::defer(session, &mut all);
    all
}

/// Keeps the tools that an agent has.
fn keep_agents(agent: &Agent, all: &mut Vec<Arc<dyn Tool>>) {
    all.retain(|tool| {
        let name = tool.definition().name;
        let wanted = agent.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| same(tool, &name)));
        wanted && !agent.without.iter().any(|tool| same(tool, &name))
    });
}

fn common(session: &Arc<Session>, depth: u64) -> Vec<Arc<dyn Tool>> {
    let mut all = tools::builtin();
    all.push(Arc::new(WebSearch::new(session)));
    if session.options.restricted {
        let named = |name: &str| session.options.tools.iter().flatten().any(|tool| tool == name);
        all.retain(|tool| {
            let name = tool.definition().name;
            !NOT_RESTRICTED.contains(&name.as_str()) || named(&name)
        });
    }
    if depth < MAX_SUBAGENT_DEPTH {
        all.push(Arc::new(AgentTool::new(session, depth)));
    }
    if session.state().catalog.skills().next().is_some() {
        all.push(Arc::new(questions::Skill { session: Arc::clone(session) }));
    }
    all.extend(session.mcp.tools());
    all
}

/// A tool that is refused whatever it is called with is not offered.
fn without_refused(session: &Session, all: &mut Vec<Arc<dyn Tool>>) {
    let refused: Vec<String> = {
        let state = session.state();
        let refusals = state.rules.saying(Behavior::Deny).filter(|rule| rule.rule.content.is_none());
        refusals.map(|rule| rule.rule.tool.clone()).collect()
    };
    all.retain(|tool| !refused.iter().any(|name| same(name, &tool.definition().name)));
}

/// Whether a word names a tool; a server's name stands for all its tools.
fn same(word: &str, name: &str) -> bool {
    let server = || name.strip_prefix(word).is_some_and(|rest| word.starts_with("mcp__") && rest.starts_with("__"));
    word == name || word == "Task" && name == "Agent" || server()
}
