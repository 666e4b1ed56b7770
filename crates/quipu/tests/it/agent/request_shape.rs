//! What is compared of an API request: what is asked of whom, with which tools and what
//! kinds of blocks, not the words.

use std::collections::BTreeSet;

use quipu_message::ToolName;
use serde_json::{Value, json};

use super::play_recording::Played;
use super::recording::Recording;

/// Tools that only the recorded program offers. It loads most on demand, through
/// `ToolSearch` and a placeholder.
const THEIR_TOOLS: [&str; 7] =
    ["DeferredToolPlaceholder", "ListAgents", "ReportFindings", "ScheduleWakeup", "Skill", "ToolSearch", "Workflow"];

/// Tools that we offer from the beginning; the recorded program loads them on demand, or
/// has none like them.
const OUR_TOOLS: [&str; 10] = [
    "AskUserQuestion",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "NotebookEdit",
    "TaskOutput",
    "TaskStop",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
];

/// Betas of features that we do not use.
const THEIR_BETAS: [&str; 8] = [
    // Names the recorded program.
    "claude-code-20250219",
    // Messages of the role `system` between the others, and tools that are loaded on demand.
    "per-turn-control-2026-07-01",
    "mid-conversation-tool-changes-2026-07-01",
    "advanced-tool-use-2025-11-20",
    // The API counts thinking tokens while streaming; we estimate them.
    "thinking-token-count-2026-05-13",
    "fallback-credit-2026-06-01",
    // Tool calls judged by the API in the modes `plan` and `auto`.
    "dangerous-tool-use-2026-09-03",
    "afk-mode-2026-01-31",
];

/// Parameters of a request that are compared as they are.
const PARAMETERS: [&str; 9] = [
    "model",
    "max_tokens",
    "stream",
    "temperature",
    "stop_sequences",
    "tool_choice",
    "thinking",
    "output_config",
    "context_management",
];

/// The header of requests that subagents make.
pub(super) const SUBAGENT: &str = "x-claude-code-agent-id";

/// One request as it was sent.
pub(super) struct Sent {
    pub(super) betas: String,
    pub(super) body: Value,
    pub(super) by_subagent: bool,
    /// The number of the recorded call that answered it, other calls than `/v1/messages` included.
    pub(super) call: Option<usize>,
}

/// Pairs of what they and we asked, call by call.
pub(super) fn compare(recording: &Recording, played: &Played) -> Vec<(String, Vec<String>, Vec<String>)> {
    let theirs = recorded(recording);
    let mut pairs = Vec::new();
    for (index, request) in theirs.iter().enumerate().filter(|(_, request)| !is_beside(&request.body)) {
        let ours = played.requests.iter().find(|ours| ours.call == request.call);
        let name = format!("request {}", index + 1);
        match ours {
            Some(ours) => pairs.push((name, shape(request), shape(ours))),
            None => pairs.push((name, vec!["is made".to_owned()], Vec::new())),
        }
    }
    let unanswered = played.requests.iter().filter(|ours| ours.call.is_none());
    unanswered.for_each(|ours| pairs.push(("another request".to_owned(), Vec::new(), shape(ours))));
    pairs
}

/// The lines of a difference that no earlier request had: a message that differs is
/// in all later requests.
pub(super) fn without_history(difference: &str, told: &mut BTreeSet<String>) -> String {
    let is_new = |line: &&str| {
        let says = line.trim_end_matches('*');
        !says.contains(": ") || told.insert(says.to_owned())
    };
    difference.lines().filter(is_new).collect::<Vec<_>>().join("\n")
}

/// The recorded calls of `/v1/messages`, in order.
fn recorded(recording: &Recording) -> Vec<Sent> {
    let lines = recording.api.as_deref().unwrap_or_default().lines();
    let calls = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let asks = |call: &Value| call["method"] == "POST" && call["path"].as_str().unwrap().starts_with("/v1/messages");
    let calls = calls.enumerate().filter(|(_, call)| asks(call));
    calls
        .map(|(index, call)| {
            let headers = call["headers"].as_array().unwrap();
            let header = |name: &str| {
                let found = headers.iter().find(|header| header[0].as_str().unwrap().eq_ignore_ascii_case(name));
                found.map(|header| header[1].as_str().unwrap().to_owned())
            };
            Sent {
                betas: header("anthropic-beta").unwrap_or_default(),
                body: call["body"].clone(),
                by_subagent: header(SUBAGENT).is_some(),
                call: Some(index + 1),
            }
        })
        .collect()
}

/// Whether a request only counts tokens or looks whether a model is there. We make none.
fn is_beside(body: &Value) -> bool {
    body.get("max_tokens").is_none_or(|most| *most == 1)
}

/// A request, a line for each thing that can differ.
fn shape(request: &Sent) -> Vec<String> {
    let body = &request.body;
    let mut lines: Vec<String> = PARAMETERS
        .iter()
        .filter(|name| body.get(**name).is_some())
        .map(|name| format!("{name}={}", super::line_shape::sorted(&body[*name])))
        .collect();
    let betas: BTreeSet<&str> = request.betas.split(',').filter(|beta| !THEIR_BETAS.contains(beta)).collect();
    lines.push(format!("betas={}", joined(betas)));
    let tools = body["tools"].as_array().into_iter().flatten();
    lines.push(format!("tools={}", joined(tools.filter_map(|tool| tool_name(tool, request.by_subagent)).collect())));
    let system = body["system"].as_array().and_then(|blocks| blocks.last());
    let cached = system.is_some_and(|block| block.get("cache_control").is_some());
    lines.push(format!("system {}", if cached { "cached" } else { "not cached" }));
    lines.extend(messages(body));
    lines
}

/// The name of a tool, unless every run differs in it. Tools of MCP servers are offered
/// from the beginning here, and there only when they have been asked for. Subagents start
/// no others here.
fn tool_name(tool: &Value, by_subagent: bool) -> Option<&str> {
    let name = tool["name"].as_str()?;
    let only_ours = OUR_TOOLS.contains(&name) || ToolName::from(name).is_mcp() && tool["defer_loading"] != true;
    let only_theirs = THEIR_TOOLS.contains(&name) || name == "Agent" && by_subagent;
    (!only_ours && !only_theirs).then_some(name)
}

fn joined(words: BTreeSet<&str>) -> String {
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(",")
}

/// The messages: their roles, blocks and tool ids; `*` follows the block up to which the
/// conversation is cached. Context that the program adds, in messages of the
/// role `system` or in `<system-reminder>` tags, is left out, because its wording is each
/// program's own.
fn messages(body: &Value) -> Vec<String> {
    let mut shapes: Vec<(String, Vec<String>)> = Vec::new();
    let mut cached: Option<(usize, usize)> = None;
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap();
        let blocks = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            blocks => blocks.as_array().cloned().unwrap_or_default(),
        };
        shapes.push((role.to_owned(), Vec::new()));
        for block in blocks {
            let reminds = block["text"].as_str().is_some_and(|text| text.trim_start().starts_with("<system-reminder>"));
            if role != "system" && !reminds {
                shapes.last_mut().unwrap().1.push(kind(&block));
            }
            if block.get("cache_control").is_some() {
                let last = shapes.iter().rposition(|(_, kinds)| !kinds.is_empty());
                cached = last.map(|message| (message, shapes[message].1.len() - 1));
            }
        }
    }
    // Results of calls that ran beside each other come in any order.
    for (_, kinds) in &mut shapes {
        let results = kinds.iter().take_while(|kind| kind.starts_with("tool_result")).count();
        kinds[..results].sort();
    }
    if let Some((message, block)) = cached {
        shapes[message].1[block].push('*');
    }
    let not_empty = shapes.into_iter().filter(|(_, kinds)| !kinds.is_empty());
    not_empty.map(|(role, kinds)| format!("{role}: {}", kinds.join(", "))).collect()
}

/// The kind of a block, with the tool call it belongs to.
fn kind(block: &Value) -> String {
    let kind = block["type"].as_str().unwrap_or("?");
    match kind {
        "tool_use" => format!("tool_use {}", block["id"].as_str().unwrap()),
        "tool_result" => {
            let failed = if block["is_error"] == true { " failed" } else { "" };
            format!("tool_result {}{failed}", block["tool_use_id"].as_str().unwrap())
        }
        kind => kind.to_owned(),
    }
}
