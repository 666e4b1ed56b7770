use std::time::Duration;

use quipu_message::control::setup::{AgentDefinition, McpStdio};
use serde_json::json;

use super::*;
use crate::{Decision, Hook, mcp};
use quipu_message::values::{Effort, PermissionMode};

const ALWAYS: [&str; 4] =
    ["--output-format=stream-json", "--verbose", "--input-format=stream-json", "--system-prompt="];

fn check(options: Options, expect: &[&str]) {
    let flags = options.cli("agent").command().unwrap().args;
    let flags: Vec<&str> = flags.iter().map(|flag| flag.to_str().unwrap()).collect();
    assert_eq!(flags[..3], ALWAYS[..3]);
    assert_eq!(flags[3..], *expect);
}

fn more(options: Options, expect: &[&str]) {
    check(options, &[&ALWAYS[3..], expect].concat());
}

#[test]
fn options_become_flags() {
    let o = Options::new;
    more(o(), &[]);
    check(o().system_prompt(SystemPrompt::AgentDefault), &[]);
    check(o().system_prompt("You are a poet."), &["--system-prompt=You are a poet."]);
    check(o().system_prompt(SystemPrompt::Append("Be brief.".into())), &["--append-system-prompt=Be brief."]);
    check(o().system_prompt(SystemPrompt::File("p.md".into())), &["--system-prompt-file=p.md"]);
    more(o().tools(["Read", "Bash"]), &["--tools=Read,Bash"]);
    more(o().tools(Vec::<String>::new()), &["--tools="]);
    more(
        o().allow_tools(["Read", "Bash(ls:*)"]).disallow_tool("Write"),
        &["--allowedTools=Read,Bash(ls:*)", "--disallowedTools=Write"],
    );
    more(o().model("m").fallback_model("n").beta("b"), &["--model=m", "--fallback-model=n", "--betas=b"]);
    more(o().thinking(ThinkingMode::Adaptive), &["--thinking=adaptive"]);
    more(o().thinking(ThinkingMode::Disabled), &["--thinking=disabled"]);
    more(
        o().thinking(ThinkingMode::Budget(9)).thinking_display("omitted"),
        &["--max-thinking-tokens=9", "--thinking-display=omitted"],
    );
    more(o().effort(Effort::XHigh), &["--effort=xhigh"]);
    more(
        o().max_turns(3).max_budget_usd(1.5).task_budget(7),
        &["--max-turns=3", "--max-budget-usd=1.5", "--task-budget=7"],
    );
    more(o().output_schema(&json!({ "type": "object" })), &[r#"--json-schema={"type":"object"}"#]);
    more(o().permission_mode(PermissionMode::AcceptEdits), &["--permission-mode=acceptEdits"]);
    more(o().permission_mode("newer"), &["--permission-mode=newer"]);
    more(o().can_use_tool(|_, _| async { Decision::allow() }), &["--permission-prompt-tool=stdio"]);
    more(o().permission_prompt_tool("mcp__a__b"), &["--permission-prompt-tool=mcp__a__b"]);
    more(o().setting_sources([]), &["--setting-sources="]);
    more(o().setting_sources([SettingSource::User, SettingSource::Local]), &["--setting-sources=user,local"]);
    more(o().plugin("p").add_dir("d"), &["--plugin-dir=p", "--add-dir=d"]);
    more(o().strict_mcp_config().mcp_config("servers.json"), &["--mcp-config=servers.json", "--strict-mcp-config"]);
    more(o().continue_latest(), &["--continue"]);
    more(
        o().resume("-x").resume_at("u").resume_drops_turn("v"),
        &["--resume=-x", "--resume-session-at=u", "--resume-drops-turn=v"],
    );
    more(o().resume("s").fork_session().session_id("t"), &["--resume=s", "--fork-session", "--session-id=t"]);
    more(
        o().include_partial_messages().include_hook_events(),
        &["--include-partial-messages", "--include-hook-events"],
    );
    more(o().replay_prompts().session_mirror(), &["--session-mirror", "--replay-user-messages"]);
    more(o().extra_flag("new-thing").extra_arg("level", "-3"), &["--new-thing", "--level=-3"]);
}

#[test]
fn skills_bring_what_they_need() {
    more(Options::new().skills(Skills::All), &["--allowedTools=Skill", "--setting-sources=user,project"]);
    more(Options::new().skills(["pdf"]).setting_sources([]), &["--allowedTools=Skill(pdf)", "--setting-sources="]);
    let (hello, _) = Options::new().skills(["pdf"]).to_initialize();
    assert_eq!(hello.skills.get(), Some(&vec!["pdf".to_owned()]));
    for odd in ["", " pdf", "a,b", "a(b)", "*"] {
        assert_eq!(Options::new().skills([odd]).validate().unwrap_err().code(), "sdk.options", "{odd}");
    }
}

#[test]
fn servers_here_and_elsewhere_are_one_configuration() {
    let program = McpServerConfig::Stdio(Box::new(McpStdio { command: "srv".into(), ..McpStdio::default() }));
    let options = Options::new().mcp_server_config("away", program).mcp_server(mcp::Server::new("here"));
    let expect =
        r#"--mcp-config={"mcpServers":{"away":{"type":"stdio","command":"srv"},"here":{"type":"sdk","name":"here"}}}"#;
    more(options, &[expect]);
}

#[test]
fn a_sandbox_joins_the_settings() {
    let fence = json!({ "enabled": true });
    more(Options::new().settings("file.json"), &["--settings=file.json"]);
    more(Options::new().sandbox(&fence), &[r#"--settings={"sandbox":{"enabled":true}}"#]);
    let both = Options::new().settings(r#"{"model":"m"}"#).sandbox(&fence);
    more(both, &[r#"--settings={"model":"m","sandbox":{"enabled":true}}"#]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.json"), r#"{"a":1}"#).unwrap();
    more(
        Options::new().cwd(dir.path()).settings("s.json").sandbox(&fence),
        &[r#"--settings={"a":1,"sandbox":{"enabled":true}}"#],
    );
    let missing = Options::new().cli("agent").settings("none.json").sandbox(&fence);
    assert!(missing.command().unwrap_err().to_string().contains("none.json"));
}

#[test]
fn options_that_cannot_go_together_are_named() {
    let check = |options: Options, word: &str| {
        let error = options.validate().unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    };
    check(Options::new().resume("a").continue_latest(), "continue_latest");
    check(Options::new().resume("a").session_id("b"), "fork_session");
    check(Options::new().resume_at("a"), "resume");
    check(Options::new().resume("a").resume_drops_turn("b"), "resume_at");
    check(Options::new().permission_prompt_tool("t").can_use_tool(|_, _| async { Decision::allow() }), "can_use_tool");
    check(Options::new().mcp_config("f").mcp_server(mcp::Server::new("s")), "mcp_config");
}

#[test]
fn the_environment_has_the_variables_of_the_sdk() {
    let options = Options::new().cli("agent").cwd("/w").file_checkpointing().client_app("me/1").env("A", "b");
    let command = options.env("CLAUDE_CODE_ENTRYPOINT", "mine").command().unwrap();
    let get = |name: &str| command.env.get(&OsString::from(name)).and_then(|value| value.to_str());
    assert_eq!(get("CLAUDE_CODE_ENTRYPOINT"), Some("mine"));
    assert_eq!(get("CLAUDE_CODE_SDK_READS_SESSION_STATE"), Some("1"));
    assert_eq!(get("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"), Some("true"));
    assert_eq!((get("PWD"), get("A"), get("CLAUDE_AGENT_SDK_CLIENT_APP")), (Some("/w"), Some("b"), Some("me/1")));
    assert_eq!(command.env_remove, ["CLAUDECODE"]);
}

#[test]
fn initialize_has_hooks_and_subagents() {
    let nothing = |event: &str| Hook::on_event(event, |_, _| async { Ok(Json::default()) });
    let agent = AgentDefinition { description: "d".into(), prompt: "p".into(), ..AgentDefinition::default() };
    let options = Options::new()
        .hook(nothing("Stop"))
        .hook(nothing("PreToolUse").matching("Bash").timeout(Duration::from_secs(5)).blocking_on_failure())
        .hook(nothing("Stop"))
        .agent("helper", agent)
        .forward_subagent_text();
    let (hello, callbacks) = options.to_initialize();
    let hello = serde_json::to_value(&hello).unwrap();
    let expect = json!({
        "subtype": "initialize",
        "hooks": {
            "PreToolUse": [{ "matcher": "Bash", "hookCallbackIds": ["hook_1"], "timeout": 5.0, "onFailure": "block" }],
            "Stop": [
                { "matcher": null, "hookCallbackIds": ["hook_0"] },
                { "matcher": null, "hookCallbackIds": ["hook_2"] },
            ],
        },
        "agents": { "helper": { "description": "d", "prompt": "p" } },
        "forwardSubagentText": true,
    });
    assert_eq!(hello, expect);
    assert_eq!(callbacks.hooks.len(), 3);
    assert_eq!(
        serde_json::to_value(Options::new().to_initialize().0).unwrap(),
        json!({ "subtype": "initialize", "hooks": null })
    );
}
