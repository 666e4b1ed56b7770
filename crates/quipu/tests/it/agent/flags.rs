//! The flags that SDKs pass.

use serde_json::{Value, json};

use super::stage::Stage;

/// Every flag that the Python SDK puts on the command line for a new session.
const NEW: &[&str] = &[
    "--output-format",
    "stream-json",
    "--verbose",
    "--system-prompt",
    "- Be kind.",
    "--tools",
    "Bash,Read",
    "--allowedTools",
    "Bash(ls:*),Read",
    "--max-turns",
    "5",
    "--max-budget-usd",
    "2.5",
    "--disallowedTools",
    "Write",
    "--task-budget",
    "50000",
    "--model",
    "claude-opus-5-5",
    "--fallback-model",
    "haiku",
    "--betas",
    "one-beta,two-beta",
    "--permission-prompt-tool",
    "stdio",
    "--permission-mode",
    "default",
    "--session-id=11111111-2222-4333-8444-777777777777",
    "--settings",
    "{}",
    "--add-dir",
    "/tmp",
    "--mcp-config",
    r#"{"mcpServers":{}}"#,
    "--include-partial-messages",
    "--include-hook-events",
    "--strict-mcp-config",
    "--session-mirror",
    "--setting-sources=project",
    "--plugin-dir",
    "kit",
    "--thinking",
    "adaptive",
    "--thinking-display",
    "summarized",
    "--effort",
    "low",
    "--input-format",
    "stream-json",
];

#[test]
fn every_flag_of_the_python_sdk_is_taken_and_reaches_the_request() {
    let stage = Stage::new("hello.yaml");
    let mut talk = stage.started(NEW);
    talk.say("hello");
    assert_eq!(talk.until_result()["result"], "Good day.");
    assert_eq!(talk.end().0, 0);
    let seen = stage.answerer.seen();
    let sent = seen.last().unwrap();
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(body["system"][0]["text"], "- Be kind.");
    assert_eq!(body["output_config"], json!({"effort": "low", "task_budget": {"type": "tokens", "total": 50000}}));
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    let tools: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["Bash", "Read"]);
}

#[test]
fn how_thinking_is_shown_changes_with_a_request_of_the_host() {
    let stage = Stage::new("hello.yaml");
    let model = ["--model", "claude-sonnet-4-5"];
    let flags = ["--thinking-display", "omitted", "--max-thinking-tokens", "3000"];
    let mut talk = stage.talk(&[&model[..], &flags].concat());
    let mut shown = |request: Option<Value>| {
        if let Some(request) = request {
            talk.ask("1", request);
            talk.until(|line| line["type"] == "control_response");
        }
        talk.say("hello");
        talk.until_result();
        let body: Value = serde_json::from_str(&stage.answerer.seen().last().unwrap().body).unwrap();
        body["thinking"].clone()
    };
    let set = |fields: Value| {
        let mut request = json!({"subtype": "set_max_thinking_tokens"});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Some(request)
    };
    let enabled = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens, "display": "omitted"});
    assert_eq!(shown(None), enabled(3000));
    assert_eq!(shown(set(json!({"max_thinking_tokens": 2000}))), enabled(2000));
    assert_eq!(shown(set(json!({"max_thinking_tokens": null}))), enabled(3000));
    let cleared = json!({"type": "enabled", "budget_tokens": 3000, "display": "updates"});
    assert_eq!(shown(set(json!({"thinking_display": null}))), cleared);
}

#[test]
fn a_resume_that_would_drop_more_than_the_named_turn_is_refused() {
    let stage = Stage::new("hello.yaml");
    let id = |n: u32| format!("00000000-0000-4000-8000-{n:012}");
    let mut talk = stage.talk(&["--session-id", &id(0)]);
    let mut ends = Vec::new();
    for n in 1..=3 {
        let message = json!({"role": "user", "content": "hello"});
        talk.send(json!({"type": "user", "uuid": id(n), "message": message}));
        ends.push(talk.until(|line| line["type"] == "assistant")["uuid"].as_str().unwrap().to_owned());
        talk.until_result();
    }
    talk.end();
    let resume = |turn: u32, prompt: u32| {
        let at = format!("--resume-session-at={}", ends[turn as usize - 1]);
        let drops = format!("--resume-drops-turn={}", id(prompt));
        stage.run(&["-p", "hello", "--resume", &id(0), &at, &drops, "--fork-session"])
    };
    let refused = resume(1, 2);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Resume rejected by --resume-drops-turn:"));
    assert_eq!(stage.folder.transcripts().len(), 1);
    assert!(resume(2, 3).status.success());
    assert_eq!(stage.folder.transcripts().len(), 2);
}
