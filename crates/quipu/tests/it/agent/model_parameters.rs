//! Which model is asked, and with which parameters.

use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

const HELLO: &str = "- reply: Hello.";

/// The bodies and betas of the requests made so far.
fn requests(agent: &ScriptedAgent) -> Vec<(Value, String)> {
    let seen = agent.server.requests().into_iter();
    seen.map(|seen| {
        let betas = seen.header("anthropic-beta").unwrap_or_default().to_owned();
        (serde_json::from_str(&seen.body).unwrap(), betas)
    })
    .collect()
}

/// The request of one run with these flags and variables.
fn request(args: &[&str], env: &[(&str, &str)]) -> (Value, String) {
    let agent = ScriptedAgent::from_script_text(HELLO);
    let out = agent.command(&[&["-p", "hi"], args].concat()).envs(env.iter().copied()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    requests(&agent).pop().unwrap()
}

#[test]
fn a_resumed_session_keeps_its_model() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    let id = agent.lines(&["hi", "--model", "claude-haiku-4-5"])[0]["session_id"].as_str().unwrap().to_owned();
    agent.write(".claude/settings.json", r#"{"model": "opus"}"#);
    agent.lines(&["again", "--resume", &id]);
    agent.lines(&["again", "--continue"]);
    agent.lines(&["again", "--resume", &id, "--fork-session"]);
    agent.lines(&["again", "--resume", &id, "--model", "sonnet"]);
    agent.lines(&["again", "--resume", &id]);
    agent.lines(&["something else"]);
    let models: Vec<Value> = requests(&agent).into_iter().map(|(body, _)| body["model"].clone()).collect();
    let haiku = "claude-haiku-4-5";
    assert_eq!(models, [haiku, haiku, haiku, haiku, "claude-sonnet-5-5", "claude-sonnet-5-5", "claude-opus-5-5"]);
}

#[test]
fn a_model_that_was_chosen_in_the_session_is_kept() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    let mut process = agent.spawn(&[]);
    process.send_request("1", json!({"subtype": "set_model", "model": "haiku"}));
    process.send_prompt("hi");
    let id = process.read_result()["session_id"].as_str().unwrap().to_owned();
    process.end();
    agent.lines(&["again", "--resume", &id]);
    let models: Vec<Value> = requests(&agent).into_iter().map(|(body, _)| body["model"].clone()).collect();
    assert_eq!(models, ["claude-haiku-5-5", "claude-haiku-5-5"]);
}

#[test]
fn a_resumed_session_keeps_its_requested_model() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    let id = agent.lines(&["hi", "--model", "sonnet[1m]"])[0]["session_id"].as_str().unwrap().to_owned();
    agent.lines(&["again", "--resume", &id]);
    assert!(requests(&agent)[1].1.contains("context-1m"));

    let agent = ScriptedAgent::from_script_text(HELLO);
    let plan = ["--permission-mode", "plan"];
    let first = agent.lines(&[&["plan it", "--model", "opusplan"], &plan[..]].concat());
    let id = first[0]["session_id"].as_str().unwrap().to_owned();
    agent.lines(&["do it", "--resume", &id]);
    agent.lines(&[&["plan more", "--resume", &id], &plan[..]].concat());
    let models: Vec<Value> = requests(&agent).into_iter().map(|(body, _)| body["model"].clone()).collect();
    assert_eq!(models, ["claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-5-5"]);
}

/// The first model is overloaded, also the next.
const OVERLOADED: &str =
    "- {when: {model: opus}, error: 529}\n- {when: {model: sonnet-5}, error: 529}\n- reply: Hello.";

#[test]
fn fallback_models_are_asked_in_their_order_each_with_its_own_parameters() {
    let agent = ScriptedAgent::from_script_text(OVERLOADED);
    let lines = agent.lines(&["hi", "--fallback-model", "opus, sonnet,claude-3-5-haiku-20241022"]);
    assert_eq!(lines.last().unwrap()["result"], "Hello.");
    let fallbacks = lines.iter().filter(|line| line["subtype"] == "model_fallback");
    let to: Vec<&Value> = fallbacks.map(|line| &line["fallback_model"]).collect();
    assert_eq!(to, ["claude-sonnet-5-5", "claude-3-5-haiku-20241022"]);
    let (body, betas) = requests(&agent).pop().unwrap();
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("claude-3-5-haiku-20241022"), &json!(8192)));
    let left = ["thinking", "output_config", "context_management"].map(|name| body.get(name));
    assert_eq!((left, betas.as_str()), ([None; 3], ""));
    // The file records which model got each message; the session uses the first model again.
    let text = std::fs::read_to_string(agent.session_file()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<&Value> = lines.iter().filter(|line| line["type"] == "api-request").collect();
    let models: Vec<&Value> = calls.iter().map(|line| &line["params"]["model"]).collect();
    assert_eq!(models, ["claude-opus-5-5", "claude-sonnet-5-5", "claude-3-5-haiku-20241022"]);
    assert_eq!(calls[2]["params"].get("context_management"), None);
    let answer = lines.iter().find(|line| line["type"] == "assistant").unwrap();
    assert_eq!((&answer["requestRef"], &answer["requestedModel"]), (&calls[2]["id"], &json!("claude-opus-5-5")));
    let before = requests(&agent).len();
    agent.lines(&["again", "--continue", "--fallback-model", "haiku"]);
    assert_eq!(requests(&agent)[before].0["model"], "claude-opus-5-5");
}

#[test]
fn thinking_is_turned_on_and_off_by_flag() {
    let thinking =
        |args: &[&str], tokens: &str| request(args, &[("MAX_THINKING_TOKENS", tokens)]).0["thinking"].clone();
    let old = ["--model", "claude-sonnet-4-5"];
    assert_eq!(thinking(&old, "0"), json!({"type": "disabled"}));
    assert_eq!(thinking(&[&old[..], &["--thinking", "enabled"]].concat(), "0")["budget_tokens"], 31_999);
    assert_eq!(thinking(&[&old[..], &["--max-thinking-tokens", "2000"]].concat(), "0")["budget_tokens"], 2000);
    assert_eq!(thinking(&["--thinking", "disabled"], "9000"), json!({"type": "disabled"}));
    // Newer models take no budget.
    let adaptive = json!({"type": "adaptive", "display": "omitted"});
    assert_eq!(thinking(&["--max-thinking-tokens", "2000"], "9000"), adaptive);
    assert_eq!(thinking(&["--thinking", "enabled"], "9000"), adaptive);
}

#[test]
fn a_long_context_is_asked_for_by_a_beta_not_by_the_name() {
    let (body, betas) = request(&["--model", "sonnet[1m]"], &[]);
    assert_eq!(body["model"], "claude-sonnet-5-5");
    assert!(betas.contains("context-1m-2025-08-07"), "{betas}");
    assert!(!request(&["--model", "sonnet"], &[]).1.contains("context-1m"));
}

#[test]
fn opusplan_plans_with_one_model_and_works_with_another() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    let mut process = agent.spawn(&["--model", "opusplan", "--permission-mode", "plan"]);
    process.send_prompt("plan it");
    process.read_result();
    process.send_request("1", json!({"subtype": "set_permission_mode", "mode": "default"}));
    process.send_prompt("do it");
    process.read_result();
    process.end();
    let models: Vec<Value> = requests(&agent).into_iter().map(|(body, _)| body["model"].clone()).collect();
    assert_eq!(models, ["claude-opus-5-5", "claude-sonnet-5-5"]);
}

#[test]
fn variables_change_what_a_request_holds() {
    let (body, betas) = request(&[], &[]);
    assert_eq!((&body["max_tokens"], &body["output_config"]), (&json!(128_000), &json!({"effort": "medium"})));
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "omitted"}));
    assert!(betas.contains("effort-2025-11-24"), "{betas}");

    let (body, _) = request(&[], &[("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "4000"), ("CLAUDE_CODE_EFFORT_LEVEL", "low")]);
    assert_eq!((&body["max_tokens"], &body["output_config"]), (&json!(4000), &json!({"effort": "low"})));

    let (body, _) = request(&[], &[("CLAUDE_CODE_EXTRA_BODY", r#"{"service_tier": "flex", "max_tokens": 7}"#)]);
    assert_eq!((&body["service_tier"], &body["max_tokens"]), (&json!("flex"), &json!(7)));

    let (body, betas) = request(&[], &[("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1")]);
    assert_eq!((body.get("output_config"), body.get("context_management")), (None, None));
    assert_eq!(body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(betas, "");

    let marks = |env: &[(&str, &str)]| request(&[], env).0.to_string().matches("cache_control").count();
    assert!(marks(&[]) > 0);
    assert_eq!(marks(&[("DISABLE_PROMPT_CACHING", "1")]), 0);
}

#[test]
fn older_models_get_the_budget_of_the_variable() {
    let old = ["--model", "claude-sonnet-4-5"];
    let (body, _) = request(&old, &[("MAX_THINKING_TOKENS", "8000")]);
    assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 8000, "display": "omitted"}));
    assert_eq!((&body["max_tokens"], body.get("output_config")), (&json!(32_000), None));
    assert_eq!(request(&old, &[]).0["thinking"]["budget_tokens"], 31_999);
    assert_eq!(request(&["--model", "someone-elses"], &[]).0.get("thinking"), None);
}

#[test]
fn subagents_get_the_model_of_the_variable() {
    let agent = ScriptedAgent::from_script_text(
        "- when: {subagent: true}\n  reply: Done.\n- when: {result_of: Agent}\n  reply: Good.\n- reply:\n    - tool: Agent\n      \
         input: {description: d, prompt: p, subagent_type: general-purpose, model: opus}",
    );
    agent.command(&["-p", "go"]).env("CLAUDE_CODE_SUBAGENT_MODEL", "sonnet").output().unwrap();
    let models: Vec<Value> = requests(&agent).into_iter().map(|(body, _)| body["model"].clone()).collect();
    assert_eq!(models, ["claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-5-5"]);
}

#[test]
fn a_cloud_that_is_not_supported_is_refused_before_anything_is_sent() {
    for name in ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"] {
        let agent = ScriptedAgent::from_script_text(HELLO);
        let out = agent.command(&["-p", "hi"]).env(name, "1").output().unwrap();
        assert_eq!(out.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&out.stderr).contains(name));
        assert!(agent.server.requests().is_empty());
    }
}

#[test]
fn a_command_of_the_settings_gives_the_key() {
    let script = "- {times: 1, when: {says: refused}, error: {status: 401, type: authentication_error, message: old}}\n\
                  - reply: Hello.";
    let agent = ScriptedAgent::from_script_text(script);
    let helper = r#"{"apiKeyHelper": "echo x >> runs; echo \"key-number-$(grep -c x runs)\""}"#;
    let keys = || -> Vec<(String, String)> {
        let header =
            |seen: &quipu_api::mock::ReceivedRequest, name: &str| seen.header(name).unwrap_or_default().to_owned();
        agent.server.requests().iter().map(|seen| (header(seen, "x-api-key"), header(seen, "authorization"))).collect()
    };
    let run = |args: &[&str], ttl: &str| {
        let mut command = agent.command(&[&["-p", "--output-format", "json"], args].concat());
        command.env_remove("ANTHROPIC_API_KEY").env("CLAUDE_CODE_API_KEY_HELPER_TTL_MS", ttl).output().unwrap()
    };
    // A project may name one where it is trusted.
    agent.write(".claude/settings.local.json", helper);
    let out = run(&["hi"], "");
    assert!(String::from_utf8_lossy(&out.stderr).contains("ignoring 1 apiKeyHelper entry"));
    assert_eq!(keys(), [(String::new(), String::new())]);
    std::fs::rename(
        agent.folder.path.join(".claude/settings.local.json"),
        agent.folder.path.join(".claude/settings.json"),
    )
    .unwrap();
    // It is asked once, and again when the API refuses its key.
    run(&["refused"], "");
    let key = |n: u32| (format!("key-number-{n}"), format!("Bearer key-number-{n}"));
    assert_eq!(keys()[1..], [key(1), key(2)]);
    let status = agent.command(&["auth", "status", "--text"]).env_remove("ANTHROPIC_API_KEY").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "key: apiKeyHelper\n");
    let text = std::fs::read_to_string(agent.session_file()).unwrap();
    assert!(!text.contains("key-number"));
    agent.write(".claude/settings.json", r#"{"apiKeyHelper": "echo key-number-9; exit 3"}"#);
    let out = run(&["hi"], "");
    let stdout = String::from_utf8_lossy(&out.stdout);
    assert!(stdout.contains("apiKeyHelper failed with exit code 3") && !stdout.contains("key-number"), "{stdout}");
    agent.write(".claude/settings.json", r#"{"apiKeyHelper": "head -c 1G /dev/zero | tr '\\0' x"}"#);
    let out = run(&["hi"], "");
    let stdout = String::from_utf8_lossy(&out.stdout);
    assert!(stdout.contains("apiKeyHelper printed more than 64 kB"), "{stdout}");
}

#[test]
fn an_unused_token_is_reported() {
    let agent = ScriptedAgent::from_script_text(HELLO);
    let mut command = agent.command(&["-p", "hi"]);
    let out = command.env_remove("ANTHROPIC_API_KEY").env("CLAUDE_CODE_OAUTH_TOKEN", "secret-1").output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(stderr.contains("CLAUDE_CODE_OAUTH_TOKEN is not used") && !stderr.contains("secret-1"), "{stderr}");
    assert_eq!(agent.server.requests()[0].header("authorization"), None);
}

#[test]
fn errors_of_the_api_are_distinguished() {
    for (status, kind, message, error, says, reason) in [
        (404, "not_found_error", "model: nope", "model_not_found", "claude-opus-5-5", "api_error"),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 9 > 8",
            "invalid_request",
            "Prompt is too long",
            "prompt_too_long",
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low",
            "billing_error",
            "Credit balance",
            "api_error",
        ),
        (400, "invalid_request_error", "no such thing", "unknown", "no such thing", "api_error"),
        (403, "permission_error", "forbidden thing", "authentication_failed", "forbidden thing", "api_error"),
    ] {
        let agent = ScriptedAgent::from_script_text(&format!(
            "- error: {{status: {status}, type: {kind}, message: {message:?}}}"
        ));
        let lines = agent.lines(&["hi"]);
        let shown = lines.iter().find(|line| line["type"] == "assistant").unwrap();
        assert_eq!(shown["error"], error, "{message}");
        let text = shown["message"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(says), "{text}");
        assert_eq!(lines.last().unwrap()["terminal_reason"], reason, "{message}");
    }
}
