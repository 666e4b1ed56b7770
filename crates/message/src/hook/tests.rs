use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::control::RequestBody;
use crate::{Entry, Maybe, is_same_json};

macro_rules! check_by_name {
    ($($event:ident)+) => {
        const CHECKED: &[&str] = &[$(stringify!($event)),+];

        /// Reads an input as its event: no field may be unknown, and all come back.
        fn check(text: &str) {
            let input: HookInput = serde_json::from_str(text).unwrap();
            match input.tag() {
                $( stringify!($event) => {
                    let event: $event = serde_json::from_str(text).unwrap();
                    assert_eq!($event::NAME, stringify!($event));
                    assert_eq!(event.extra.iter().count(), 0, "{:?}", event.extra);
                    assert_eq!(is_same_json(text, &serde_json::to_string(&event).unwrap()), Some(true), "{text}");
                    assert_eq!(input, HookInput::$event(Box::new(event)));
                } )+
                other => panic!("{other} is no event"),
            }
        }
    };
}

check_by_name! {
    PreToolUse PostToolUse PostToolUseFailure PostToolBatch Notification UserPromptSubmit UserPromptExpansion
    SessionStart SessionEnd Stop StopFailure SubagentStart SubagentStop PreCompact PostCompact PreModelSwitch
    PostModelSwitch PermissionRequest PermissionDenied Setup TeammateIdle TaskCreated TaskCompleted Elicitation
    ElicitationResult ConfigChange WorktreeCreate WorktreeRemove InstructionsLoaded CwdChanged FileChanged
    DirectoryAdded MessageDisplay
}

/// An input of an event: its own fields, and the shared ones.
fn input(event: &str, own: Value) -> String {
    let mut input = json!({
        "session_id": "77e2", "transcript_path": "/home/ana/77e2.jsonl", "cwd": "/srv/shop", "prompt_id": "9c41",
        "permission_mode": "default", "effort": {"level": "medium"}, "agent_id": "a1", "agent_type": "Explore",
        "hook_event_name": event,
    });
    input.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    input.to_string()
}

/// Every event with all its own fields.
fn inputs() -> Vec<(&'static str, Value)> {
    let crons = json!([{"id": "c1", "schedule": "0 9 * * 1-5", "recurring": true, "prompt": "look"}]);
    let tasks = json!([
        {"id": "b1", "type": "shell", "status": "running", "description": "tests", "command": "make test"},
        {"id": "b2", "type": "subagent", "status": "running", "description": "looks", "agent_type": "Explore"},
        {"id": "b3", "type": "monitor", "status": "pending", "description": "waits", "server": "ci", "tool": "watch"},
        {"id": "b4", "type": "workflow", "status": "running", "description": "ships", "name": "release"},
    ]);
    let switch = json!({
        "from_model": "claude-a", "to_model": "claude-b", "requested_model": null, "source": "sdk",
        "context_tokens": 1200, "prompt_cache_warm": true, "cache_ttl": "5m", "estimated_cache_write_usd": 0.0125,
        "pricing": "catalog",
    });
    let task = json!({
        "task_id": "1", "task_subject": "mend", "task_description": "the loader", "teammate_name": "bo",
        "team_name": "shop",
    });
    let server = json!({"name": "calc", "source": "sdk"});
    let suggestions = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
    vec![
        (
            "PreToolUse",
            json!({
                "tool_name": "mcp__calc__add", "tool_input": {"a": 1}, "tool_use_id": "t1", "mcp_server": server,
            }),
        ),
        (
            "PostToolUse",
            json!({
                "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1", "tool_response": {"stdout": "a"},
                "duration_ms": 31, "mcp_server": server,
            }),
        ),
        (
            "PostToolUseFailure",
            json!({
                "tool_name": "Bash", "tool_input": {"command": "exit 5"}, "tool_use_id": "t1", "error": "Exit code 5",
                "is_interrupt": false, "duration_ms": 12.5, "mcp_server": server,
            }),
        ),
        (
            "PostToolBatch",
            json!({"tool_calls": [
                {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1", "tool_response": "a"},
            ]}),
        ),
        ("Notification", json!({"message": "waiting", "title": "shop", "notification_type": "idle_prompt"})),
        ("UserPromptSubmit", json!({"prompt": "hello", "source": "sdk", "session_title": "greeting"})),
        (
            "UserPromptExpansion",
            json!({
                "expansion_type": "slash_command", "command_name": "review", "command_args": "12",
                "command_source": "project", "prompt": "/review 12",
            }),
        ),
        (
            "SessionStart",
            json!({
                "source": "resume", "model": "claude-a", "session_title": "greeting", "seconds_since_last_response": 610.5,
                "context_tokens": 1200, "prompt_cache_likely_expired": true, "estimated_cache_write_usd": 0.0125,
            }),
        ),
        ("SessionEnd", json!({"reason": "other"})),
        (
            "Stop",
            json!({
                "stop_hook_active": false, "last_assistant_message": "done", "background_tasks": tasks,
                "session_crons": crons,
            }),
        ),
        (
            "StopFailure",
            json!({
                "error": "rate_limit", "error_details": "try at five", "last_assistant_message": "so far",
            }),
        ),
        ("SubagentStart", json!({})),
        (
            "SubagentStop",
            json!({
                "stop_hook_active": true, "agent_transcript_path": "/home/ana/agent-a1.jsonl",
                "last_assistant_message": "found", "background_tasks": [], "session_crons": [],
            }),
        ),
        ("PreCompact", json!({"trigger": "auto", "custom_instructions": null})),
        ("PostCompact", json!({"trigger": "manual", "compact_summary": "we mended the loader"})),
        ("PreModelSwitch", switch.clone()),
        ("PostModelSwitch", switch),
        (
            "PermissionRequest",
            json!({
                "tool_name": "Write", "tool_input": {"file_path": "/srv/shop/a"}, "permission_suggestions": suggestions,
                "mcp_server": server,
            }),
        ),
        (
            "PermissionDenied",
            json!({
                "tool_name": "Bash", "tool_input": {"command": "rm -r /"}, "tool_use_id": "t1", "reason": "a rule",
                "mcp_server": server,
            }),
        ),
        ("Setup", json!({"trigger": "init"})),
        ("TeammateIdle", json!({"teammate_name": "bo", "team_name": "shop"})),
        ("TaskCreated", task.clone()),
        ("TaskCompleted", task),
        (
            "Elicitation",
            json!({
                "mcp_server_name": "bank", "message": "which account?", "mode": "form", "url": "https://bank.example",
                "elicitation_id": "e1", "requested_schema": {"type": "object"},
            }),
        ),
        (
            "ElicitationResult",
            json!({
                "mcp_server_name": "bank", "elicitation_id": "e1", "mode": "form", "action": "accept",
                "content": {"account": "savings"},
            }),
        ),
        ("ConfigChange", json!({"source": "user_settings", "file_path": "/home/ana/.claude/settings.json"})),
        ("WorktreeCreate", json!({"name": "loader"})),
        ("WorktreeRemove", json!({"worktree_path": "/srv/loader"})),
        (
            "InstructionsLoaded",
            json!({
                "file_path": "/srv/shop/CLAUDE.md", "memory_type": "Project", "load_reason": "include", "globs": ["*.rs"],
                "trigger_file_path": "/srv/shop/a.rs", "parent_file_path": "/srv/CLAUDE.md",
            }),
        ),
        ("CwdChanged", json!({"old_cwd": "/srv", "new_cwd": "/srv/shop"})),
        ("FileChanged", json!({"file_path": "/srv/shop/a.rs", "event": "unlink"})),
        ("DirectoryAdded", json!({"directory": "/srv/docs", "source": "slash_command"})),
        ("MessageDisplay", json!({"turn_id": "u1", "message_id": "m1", "index": 0, "final": true, "delta": "done\n"})),
    ]
}

#[test]
fn every_event_reads_as_its_type_and_comes_back() {
    assert_eq!(CHECKED, HOOK_EVENT_NAMES);
    assert_eq!(inputs().iter().map(|(event, _)| *event).collect::<Vec<_>>(), HOOK_EVENT_NAMES);
    for (event, own) in inputs() {
        check(&input(event, own));
    }
}

#[test]
fn fields_missing_in_older_versions_are_optional() {
    let text =
        r#"{"session_id":"77e2","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    check(text);
    let call: PreToolUse = serde_json::from_str(text).unwrap();
    assert_eq!((call.tool_name.as_str(), call.base().session_id.text()), ("Bash", Some("77e2")));
    assert_eq!(call.tool_use_id, Maybe::Absent);
    check(r#"{"hook_event_name":"Stop"}"#);
}

#[test]
fn fields_of_newer_versions_are_kept() {
    let text = input("Stop", json!({"stop_hook_active": true, "mood": {"calm": 1}}));
    let stop: Stop = serde_json::from_str(&text).unwrap();
    assert_eq!(stop.extra.get("mood").unwrap().text(), r#"{"calm":1}"#);
    assert_eq!(is_same_json(&text, &serde_json::to_string(&stop).unwrap()), Some(true));

    let text = input("MoonRise", json!({"phase": "full"}));
    let unheard: HookInput = serde_json::from_str(&text).unwrap();
    assert_eq!((unheard.tag(), unheard.is_known()), ("MoonRise", false));
    assert_eq!(serde_json::to_string(&unheard).unwrap(), text);
}

#[test]
fn an_event_without_what_it_is_about_is_an_error_that_names_it() {
    let read = |text| serde_json::from_str::<HookInput>(text).unwrap_err().to_string();
    let error = read(r#"{"hook_event_name":"PreToolUse","tool_input":{}}"#);
    assert!(error.starts_with("PreToolUse: missing field `tool_name`"), "{error}");
    let error = read(r#"{"hook_event_name":"UserPromptSubmit","prompt":7}"#);
    assert!(error.starts_with("UserPromptSubmit: prompt: invalid type"), "{error}");
}

#[test]
fn every_recorded_input_reads_as_its_type_and_comes_back() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let recordings = shared.join("recordings");
    let mut seen = Vec::new();
    let commands = fs::read_to_string(recordings.join("27_settings_hooks/hook_inputs.log")).unwrap();
    seen.extend(commands.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
    for folder in ["40_sdk_hooks", "57_ts_sdk"] {
        let stdout = fs::read_to_string(recordings.join(folder).join("stdout.jsonl")).unwrap();
        for line in stdout.lines() {
            if let Ok(Entry::ControlRequest(asked)) = Entry::read(line)
                && let RequestBody::HookCallback(due) = asked.request
            {
                seen.push(due.input.text().to_owned());
            }
        }
    }
    assert_eq!(seen.len(), 21 + 11 + 2);
    seen.iter().for_each(|text| check(text));
}

#[test]
fn recorded_answers_are_what_the_builders_write() {
    let says = |answer: Json, text: &str| assert_eq!(is_same_json(answer.text(), text), Some(true), "{answer:?}");
    says(
        HookOutputFor::<UserPromptSubmit>::empty().with_additional_context("ctx from prompt hook").to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"ctx from prompt hook"}}"#,
    );
    says(
        PreToolUseOutput::allow()
            .with_updated_input(json!({"command": "echo rewritten"}))
            .with_additional_context("ctx from pre hook")
            .to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow",
            "updatedInput":{"command":"echo rewritten"},"additionalContext":"ctx from pre hook"}}"#,
    );
    says(
        HookOutputFor::<PostToolUse>::empty()
            .with_system_message("sys msg")
            .with_additional_context("ctx from post hook")
            .to_json(),
        r#"{"systemMessage":"sys msg",
            "hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"ctx from post hook"}}"#,
    );
    says(
        PreToolUseOutput::deny("policy says no").to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",
            "permissionDecisionReason":"policy says no"}}"#,
    );
    says(
        HookOutputFor::<Stop>::empty().block("keep going once").to_json(),
        r#"{"decision":"block","reason":"keep going once"}"#,
    );
}

#[test]
fn an_answer_has_only_the_keys_that_were_set() {
    let says = |answer: Json, text: &str| assert_eq!(answer.text(), text);
    says(HookOutputFor::<SessionEnd>::empty().to_json(), "{}");
    says(
        HookOutputFor::<SessionEnd>::default().with_system_message("bye").suppress_output().to_json(),
        r#"{"suppressOutput":true,"systemMessage":"bye"}"#,
    );
    says(HookOutputFor::<Setup>::empty().stop("enough").to_json(), r#"{"continue":false,"stopReason":"enough"}"#);
    says(HookOutputFor::<PreCompact>::asynchronous().to_json(), r#"{"async":true}"#);
    says(
        HookOutputFor::<PreCompact>::asynchronous().with_async_timeout(Duration::from_secs(5)).to_json(),
        r#"{"async":true,"asyncTimeout":5000}"#,
    );
    says(
        PreToolUseOutput::ask("sure?").to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"sure?"}}"#,
    );
    // A new input alone decides nothing.
    says(
        PreToolUseOutput::empty().with_updated_input(json!({"a": 1})).to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":1}}}"#,
    );
    says(
        HookOutputFor::<PostToolUse>::empty().with_updated_tool_output(json!("***")).to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"***"}}"#,
    );
    says(
        HookOutputFor::<PreModelSwitch>::deny("too dear").to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"deny","permissionDecisionReason":"too dear"}}"#,
    );
    says(
        HookOutputFor::<PermissionRequest>::allow().to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#,
    );
    says(
        HookOutputFor::<PermissionRequest>::allow_with_input(json!({"a": 1})).to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"a":1}}}}"#,
    );
    says(
        HookOutputFor::<PermissionRequest>::deny("no").to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no"}}}"#,
    );
    says(
        HookOutputFor::<Elicitation>::from(ElicitationSpecific::accept(json!({"account": "savings"}))).to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{"account":"savings"}}}"#,
    );
    says(
        HookOutputFor::<ElicitationResult>::from(ElicitationResultSpecific::decline()).to_json(),
        r#"{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"decline"}}"#,
    );
}

/// What hooks of an event may answer comes back when it is read by its type.
fn check_specific<E>(fields: Value)
where
    E: HookEvent<Specific: serde::de::DeserializeOwned>,
{
    let mut wire = json!({"hookEventName": E::NAME});
    wire.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let specific: E::Specific = Json::from_serialize(&wire).read().unwrap();
    let answer = HookOutputFor::<E>::from(specific).to_json();
    assert_eq!(answer.to_value(), json!({"hookSpecificOutput": wire}));
}

#[test]
fn event_specific_output_has_its_event_name() {
    let decided = json!({"permissionDecision": "ask", "permissionDecisionReason": "sure?"});
    check_specific::<PreToolUse>(json!({
        "permissionDecision": "defer", "permissionDecisionReason": "not now", "updatedInput": {"a": 1},
        "additionalContext": "c", "mood": "calm",
    }));
    check_specific::<PostToolUse>(json!({
        "additionalContext": "c", "classifierContext": "d", "updatedToolOutput": "x", "updatedMCPToolOutput": [1],
    }));
    check_specific::<UserPromptSubmit>(json!({
        "additionalContext": "c", "sessionTitle": "t", "suppressOriginalPrompt": true,
    }));
    check_specific::<UserPromptExpansion>(json!({"additionalContext": "c", "suppressOriginalPrompt": true}));
    check_specific::<SessionStart>(json!({
        "additionalContext": "c", "initialUserMessage": "hello", "sessionTitle": "t", "watchPaths": ["/srv/a"],
        "reloadSkills": true,
    }));
    check_specific::<PreModelSwitch>(decided);
    let rules = json!([{"type": "setMode", "mode": "plan", "destination": "session"}]);
    check_specific::<PermissionRequest>(json!({"decision": {"behavior": "allow", "updatedPermissions": rules}}));
    check_specific::<PermissionRequest>(json!({"decision": {"behavior": "deny", "interrupt": true}}));
    check_specific::<PermissionDenied>(json!({"retry": true}));
    check_specific::<Elicitation>(json!({"action": "cancel"}));
    check_specific::<ElicitationResult>(json!({"action": "accept", "content": {}}));
    check_specific::<CwdChanged>(json!({"watchPaths": ["/srv/a"]}));
    check_specific::<FileChanged>(json!({"watchPaths": []}));
    check_specific::<WorktreeCreate>(json!({"worktreePath": "/srv/loader"}));
    check_specific::<MessageDisplay>(json!({"displayContent": "***"}));
    let context = || json!({"additionalContext": "c"});
    check_specific::<PostToolUseFailure>(context());
    check_specific::<PostToolBatch>(context());
    check_specific::<Notification>(context());
    check_specific::<Stop>(context());
    check_specific::<SubagentStart>(context());
    check_specific::<SubagentStop>(context());
    check_specific::<PostModelSwitch>(context());
    check_specific::<Setup>(context());
}

#[test]
fn one_who_knows_no_event_reads_what_every_hook_writes() {
    let output: AnyHookOutput =
        PreToolUseOutput::deny("no").stop("enough").with_system_message("refused").to_json().read().unwrap();
    let specific = output.specific.get().unwrap();
    assert_eq!(specific.permission_decision, Maybe::Value(PermissionDecision::Deny));
    assert_eq!(specific.permission_decision_reason.text(), Some("no"));
    assert_eq!(
        (output.common.should_continue, output.common.stop_reason.text()),
        (Maybe::Value(false), Some("enough"))
    );
}
