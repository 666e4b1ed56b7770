//! What is compared of a line: its kind and its key fields, not its ids and times.

use serde_json::{Value, json};

use super::play_recording::Played;
use super::recording::Recording;

/// Entries that the recorded program keeps for itself; `docs/compat.md` says which.
const SKIPPED_ENTRIES: [&str; 13] = [
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attachment:deferred_tools_delta",
    "attachment:agent_listing_delta",
    "attachment:skill_listing",
    "attachment:session_context",
    "attachment:remote_session_change",
    "attachment:prompt_snapshot",
    "attachment:total_tokens_reminder",
    "attachment:silent_turn_reminder",
    "attachment:auto_mode",
];

/// Bookkeeping whose place in the file means nothing.
const UNORDERED_ENTRIES: [&str; 8] = [
    "last-prompt",
    "cost-state",
    "tools-used",
    "mode",
    "custom-title",
    "agent-name",
    "file-history-snapshot",
    "file-history-delta",
];

/// What is compared of the answers to a host's requests.
const COMPARED_RESPONSE_FIELDS: [&str; 16] = [
    "still_queued",
    "cancelled",
    "mode",
    "model",
    "mcpServers",
    "added",
    "removed",
    "canRewind",
    "filesChanged",
    "insertions",
    "deletions",
    "skippedLinks",
    "contents",
    "title",
    "current_permission_mode",
    "hooks_applied",
];

/// Pairs of what they and we said, by what it is.
pub(super) fn compare(recording: &Recording, played: &Played) -> Vec<(String, Vec<String>, Vec<String>)> {
    let mut pairs = Vec::new();
    let (theirs, ours) = (recording.stdout(), with_recorded_folder(&played.stdout, played, recording));
    for (name, lane) in [("stdout", 0), ("control requests", 1), ("partial messages", 2), ("background", 3)] {
        pairs.push((name.to_owned(), stdout_shapes(&theirs, lane), stdout_shapes(&ours, lane)));
    }
    pairs.push(("mirrored".to_owned(), written(&mirrored(&theirs)), written(&mirrored(&ours))));
    let theirs: Vec<String> = recording.runs.iter().map(|run| format!("{:?}", run.exit)).collect();
    let known = recording.runs.iter().map(|run| run.exit.is_some());
    let ours = played.exits.iter().zip(known).map(|(exit, known)| format!("{:?}", exit.filter(|_| known)));
    pairs.push(("exit codes".to_owned(), theirs, ours.collect()));
    for (what, theirs, ours) in [
        ("session file", &recording.transcripts, &played.transcripts),
        ("subagent's file", &recording.subagents, &played.subagents),
    ] {
        for index in 0..theirs.len().max(ours.len()) {
            let name = if index == 0 { what.to_owned() } else { format!("{what} {}", index + 1) };
            let theirs = theirs.get(index).map(|lines| written(lines)).unwrap_or_default();
            let ours = ours
                .get(index)
                .map(|lines| written(&with_recorded_folder(lines, played, recording)))
                .unwrap_or_default();
            pairs.push((name, theirs, ours));
        }
    }
    pairs
}

/// Our lines with the recorded folder in place of ours.
fn with_recorded_folder(lines: &[Value], played: &Played, recording: &Recording) -> Vec<Value> {
    let text = Value::from(lines.to_vec()).to_string().replace(&played.cwd, recording.cwd());
    serde_json::from_str(&text).unwrap()
}

/// The shapes of the lines on stdout: 0 ordinary lines, 1 control requests, 2 partial messages, 3 lines
/// of background subagents, which come among the others at any time.
fn stdout_shapes(lines: &[Value], lane: usize) -> Vec<String> {
    let launched = lines.iter().filter(|line| line["is_backgrounded"] == true && line["task_type"] == "local_agent");
    let calls: Vec<&Value> = launched.map(|line| &line["tool_use_id"]).collect();
    let mut shapes: Vec<(Option<String>, String)> = Vec::new();
    for line in lines {
        let of = match line["type"].as_str() {
            _ if calls.contains(&&line["parent_tool_use_id"]) => 3,
            Some("system") if line["subtype"] == "task_progress" && calls.contains(&&line["tool_use_id"]) => 3,
            Some("control_request" | "control_cancel_request") => 1,
            Some("stream_event") => 2,
            Some("transcript_mirror") => continue,
            _ => 0,
        };
        if of == lane {
            shapes.push((result_id(line), shape(line)));
        }
    }
    tidy(shapes)
}

/// The entries that were mirrored to a host, file by file.
fn mirrored(said: &[Value]) -> Vec<Value> {
    let mut lines: Vec<&Value> = said.iter().filter(|line| line["type"] == "transcript_mirror").collect();
    // Each file has a writer of its own.
    lines.sort_by_key(|line| line["filePath"].as_str());
    lines.into_iter().flat_map(|line| line["entries"].as_array().cloned().unwrap_or_default()).collect()
}

/// The lines as if no block had been written before the end of its answer was known: on a
/// machine that has much to do, more of them are.
fn ended(lines: &[Value]) -> Vec<Value> {
    let mut ended: Vec<Value> = Vec::new();
    for line in lines {
        let id = &line["message"]["id"];
        if line["type"] == "assistant" && line["message"]["stop_reason"].is_string() {
            for early in ended.iter_mut().filter(|early| early["message"]["id"] == *id) {
                early["message"]["stop_reason"] = line["message"]["stop_reason"].clone();
            }
        }
        let is_again = |early: &Value| line["uuid"].is_string() && early["uuid"] == line["uuid"];
        if !ended.iter().any(is_again) {
            ended.push(line.clone());
        }
    }
    ended
}

/// The shapes of entries in a file: the conversation in order, bookkeeping by kind.
fn written(lines: &[Value]) -> Vec<String> {
    let mut shapes = Vec::new();
    let mut beside: Vec<String> = Vec::new();
    for line in &ended(lines) {
        let kind = kind(line);
        if SKIPPED_ENTRIES.contains(&kind.as_str()) {
            continue;
        }
        if UNORDERED_ENTRIES.contains(&kind.as_str()) {
            beside.push(format!("{kind} {}", line["trackingPath"].as_str().unwrap_or_default()).trim_end().to_owned());
        } else {
            shapes.push((result_id(line), shape(line)));
        }
    }
    beside.sort();
    beside.dedup();
    let mut shapes = tidy(shapes);
    shapes.extend(beside);
    shapes
}

/// Results of calls that ran beside each other come in any order; estimates come as
/// often as they like.
fn tidy(mut shapes: Vec<(Option<String>, String)>) -> Vec<String> {
    let mut start = 0;
    while start < shapes.len() {
        let len = shapes[start..].iter().take_while(|(id, _)| id.is_some()).count();
        shapes[start..start + len].sort();
        start += len.max(1);
    }
    let mut shapes: Vec<String> = shapes.into_iter().map(|(_, shape)| shape).collect();
    // A request that comes with the result is answered before or after the session is idle.
    for at in 1..shapes.len() {
        let races = shapes[at].starts_with("system/session_state_changed state=\"idle\"");
        if races && shapes[at - 1].starts_with("control_response/") {
            shapes.swap(at - 1, at);
        }
    }
    shapes.dedup_by(|a, b| a == b && a.starts_with("system/thinking_tokens"));
    shapes
}

/// What lines of one kind are put in order by: the call that a `user` line answers,
/// the hook that has ended.
fn result_id(line: &Value) -> Option<String> {
    if line["subtype"] == "hook_response" {
        return Some(format!("{} {}", line["hook_name"], line["exit_code"]));
    }
    let block = line["message"]["content"].get(0)?;
    Some(block["tool_use_id"].as_str()?.to_owned()).filter(|_| line["type"] == "user")
}

fn kind(line: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    match line["type"].as_str() {
        Some("attachment") => format!("attachment:{}", word(&line["attachment"]["type"])),
        Some(tag @ ("system" | "result")) => format!("{tag}/{}", word(&line["subtype"])),
        Some("control_request") => format!("control_request/{}", word(&line["request"]["subtype"])),
        Some("control_response") => format!("control_response/{}", word(&line["response"]["subtype"])),
        Some(tag) => tag.to_owned(),
        None => line.to_string(),
    }
}

/// The fields of a line that are compared, by their paths.
fn fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "system/init" => &["model", "permissionMode", "mcp_servers"],
        "system/status" => &["status", "permissionMode", "compact_result"],
        "system/api_retry" => &["attempt", "max_retries", "error", "error_status"],
        "system/api_error" => &["retryAttempt", "maxRetries", "source"],
        "system/session_state_changed" => &["state"],
        "system/session_title_changed" => &["title"],
        "system/permission_denied" => &["tool_name", "tool_use_id", "decision_reason_type"],
        "system/hook_started" => &["hook_name", "hook_event"],
        "system/hook_response" => &["hook_name", "stdout", "stderr", "exit_code", "outcome"],
        "system/task_started" => &["tool_use_id", "description", "subagent_type", "task_type", "prompt"],
        "system/task_notification" => &["tool_use_id", "status", "summary"],
        "system/compact_boundary" => &["compact_metadata/trigger", "compactMetadata/trigger"],
        "system/local_command" => &["commandRun"],
        "system/stop_hook_summary" => &["hookCount", "hookErrors", "preventedContinuation", "hasOutput"],
        "result/success"
        | "result/error_during_execution"
        | "result/error_max_turns"
        | "result/error_max_budget_usd" => &[
            "is_error",
            "num_turns",
            "stop_reason",
            "terminal_reason",
            "api_error_status",
            "api_error_type",
            "structured_output",
            "local_command",
            "usage/input_tokens",
            "usage/output_tokens",
        ],
        "stream_event" => &["event/index", "event/delta", "event/content_block/type", "api_message_id"],
        "control_request/can_use_tool" => &[
            "request/tool_name",
            "request/input",
            "request/tool_use_id",
            "request/permission_suggestions",
            "request/blocked_path",
        ],
        "control_request/hook_callback" => &[
            "request/callback_id",
            "request/input/hook_event_name",
            "request/input/tool_name",
            "request/input/tool_input",
        ],
        "control_request/mcp_message" => {
            &["request/server_name", "request/message/method", "request/message/params/name"]
        }
        "control_response/error" => &["response/error_code"],
        "command_lifecycle" => &["state"],
        "conversation_reset" => &["trigger"],
        "prompt_suggestion" => &["suggestion"],
        "queue-operation" => &["operation", "content", "reason"],
        "attachment:structured_output" => &["attachment/data"],
        "attachment:max_turns_reached" => &["attachment/maxTurns", "attachment/turnCount"],
        "attachment:hook_additional_context" => &["attachment/content", "attachment/hookName"],
        "attachment:file" => &["attachment/displayPath"],
        _ => &[],
    }
}

/// The kind of a line and its key fields.
fn shape(line: &Value) -> String {
    let kind = kind(line);
    let mut shape = kind.clone();
    let mut add = |name: &str, value: &Value| {
        if !matches!(value, Value::Null) && *value != json!([]) {
            shape.push_str(&format!(" {name}={value}"));
        }
    };
    for path in fields(&kind) {
        let value = path.split('/').fold(line, |value, key| &value[key]);
        let value = value.as_str().map(plain).map_or_else(|| sorted(value), Value::from);
        add(path.rsplit('/').next().unwrap(), &value);
    }
    if kind == "stream_event" {
        add("type", &line["event"]["type"]);
    }
    if kind.starts_with("result/") {
        add("origin", &line["origin"]["kind"]);
        add("denied", &names(&line["permission_denials"], "tool_use_id"));
        let own = line["is_error"] == true || line.get("local_command").is_some();
        add("result", if own { &Value::Null } else { &line["result"] });
        let cost = line["total_cost_usd"].as_f64().unwrap_or_default();
        add("cost", &Value::from(format!("{cost:.7}")));
    }
    if kind == "control_response/success" {
        for key in COMPARED_RESPONSE_FIELDS {
            add(key, &line["response"]["response"][key]);
        }
    }
    if matches!(kind.as_str(), "user" | "assistant") {
        message(line, &mut add);
    }
    shape
}

/// What a message says. Words of the program itself are not compared.
fn message(line: &Value, add: &mut impl FnMut(&str, &Value)) {
    let message = &line["message"];
    let synthetic = message["model"] == "<synthetic>";
    if line["type"] == "assistant" {
        add("id", if synthetic { &Value::Null } else { &message["id"] });
        add("stop", &message["stop_reason"]);
    }
    for flag in [
        "isMeta",
        "isSynthetic",
        "isReplay",
        "isCompactSummary",
        "aborted",
        "isAbortedMidStream",
        "error",
        "is_api_error_message",
        "isApiErrorMessage",
        "api_error_status",
        "apiErrorStatus",
        "parent_tool_use_id",
        "toolDenialKind",
        "apiBlockIndex",
    ] {
        add(flag, &line[flag]);
    }
    add("origin", &line["origin"]["kind"]);
    let raw = line.get("toolUseResult").or_else(|| line.get("tool_use_result"));
    // How a subagent's report is wrapped is each program's own.
    let report = raw.is_some_and(|raw| raw.get("agentId").is_some());
    let ours =
        report || synthetic || ["isMeta", "isSynthetic", "isCompactSummary"].iter().any(|flag| line[*flag] == true);
    match &message["content"] {
        Value::String(text) => add("says", &Value::from(if ours { "…" } else { plain(text) })),
        blocks => blocks.as_array().into_iter().flatten().for_each(|block| self::block(block, ours, add)),
    }
    if let Some(raw) = raw {
        let form = match raw {
            Value::Object(map) => {
                let known = ["stdout", "stderr", "interrupted", "type", "filePath", "file", "status", "agentId"];
                json!(map.keys().filter(|key| known.contains(&key.as_str())).collect::<std::collections::BTreeSet<_>>())
            }
            Value::Array(_) => Value::from("list"),
            _ => Value::from("text"),
        };
        add("raw", &form);
    }
    let meta = &line["tool_result_meta"][0];
    add("kept_from_running", &meta["non_execution_kind"]);
    for decision in [&meta["permission_decision"], &line["permissionDecision"]] {
        add("decision", &decision["decision"]);
        add("source", &decision["source"]);
        add("reason", decision.get("reason_type").or_else(|| decision.get("reasonType")).unwrap_or(&Value::Null));
    }
    add("shown", &line["tool_use_meta"]);
}

fn block(block: &Value, ours: bool, add: &mut impl FnMut(&str, &Value)) {
    match block["type"].as_str() {
        Some("text") => {
            add("says", &Value::from(if ours { "…" } else { plain(block["text"].as_str().unwrap_or_default()) }))
        }
        Some("thinking") => add("thinks", &block["thinking"]),
        Some("tool_use") => {
            add("calls", &block["name"]);
            add("call", &block["id"]);
            add("with", &sorted(&block["input"]));
        }
        Some("tool_result") => {
            add("answers", &block["tool_use_id"]);
            let failed = block["is_error"] == true;
            add("failed", &if failed { Value::Bool(true) } else { Value::Null });
            // The words of a failure are each program's own.
            let text = match &block["content"] {
                Value::String(text) => text.clone(),
                list => list[0]["text"].as_str().unwrap_or_default().to_owned(),
            };
            let text = if ours
                || failed
                || text.contains("<elided")
                || text.starts_with("File created")
                || text.starts_with("The file ")
            {
                "…".to_owned()
            } else {
                plain(&text).to_owned()
            };
            add("result", &Value::from(text));
        }
        other => add("holds", &Value::from(other.unwrap_or("?"))),
    }
}

/// Words, unless the recording does not say them.
fn plain(text: &str) -> &str {
    let own = ["<task-notification>", "[Image: source", "Command running in background"];
    if text.contains("<elided")
        || text.contains("<local-command-stdout>")
        || own.iter().any(|start| text.starts_with(start))
    {
        "…"
    } else if text.contains("<command-name>") {
        "(command)"
    } else {
        text
    }
}

/// The same value with its keys in order.
pub(super) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: std::collections::BTreeMap<_, _> = map.iter().collect();
            Value::Object(map.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

fn names(list: &Value, key: &str) -> Value {
    let names: Vec<&Value> = list.as_array().into_iter().flatten().map(|item| &item[key]).collect();
    if names.is_empty() { Value::Null } else { json!(names) }
}
