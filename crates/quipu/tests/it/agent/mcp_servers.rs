//! MCP servers that users and projects configure, and the commands that configure them.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;
use super::work_folder::MCP_SERVER;

/// An agent whose folder has the program of a server.
fn agent_with_server() -> ScriptedAgent {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.write("server.py", MCP_SERVER);
    agent
}

fn server() -> Value {
    json!({"type": "stdio", "command": "python3", "args": ["server.py"], "env": {}})
}

/// The servers of the `init` line, each with its status and source, and the warnings.
fn servers(agent: &ScriptedAgent, args: &[&str]) -> (Vec<String>, Vec<String>) {
    let lines = agent.lines(&[&["hello"], args].concat());
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    let row = |server: &Value| {
        let text = |key: &str| server[key].as_str().unwrap().to_owned();
        format!("{} {} {}", text("name"), text("status"), text("source"))
    };
    let warnings = lines.iter().filter_map(|line| line["content"].as_str()).map(str::to_owned).collect();
    (init["mcp_servers"].as_array().unwrap().iter().map(row).collect(), warnings)
}

fn output_text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

#[test]
fn servers_of_the_user_and_the_project_are_used() {
    let agent = agent_with_server();
    let cwd = agent.folder.path.canonicalize().unwrap();
    let project = json!({"mcpServers": {"near": server(), "both": server()}, "enabledMcpjsonServers": ["agreed"],
                         "disabledMcpjsonServers": ["refused"]});
    let state = json!({"mcpServers": {"mine": server(), "both": {"command": "false"}},
                       "projects": {cwd.to_str().unwrap(): project, "/elsewhere": {"mcpServers": 7}}});
    agent.write(".claude.json", &state.to_string());
    let listed = json!({"mcpServers": {"agreed": server(), "refused": server(), "waiting": server()}});
    agent.write(".mcp.json", &listed.to_string());
    let (used, warnings) = servers(&agent, &[]);
    assert_eq!(
        used,
        ["agreed connected project", "both connected local", "mine connected user", "near connected local"]
    );
    assert!(
        warnings.len() == 1 && warnings[0].contains(".mcp.json that you have not approved: waiting;"),
        "{warnings:?}"
    );
    assert_eq!(servers(&agent, &["--setting-sources", "user"]).0, ["both failed user", "mine connected user"]);
    for flag in ["--setting-sources=", "--strict-mcp-config", "--safe-mode", "--bare", "--restricted"] {
        assert_eq!(servers(&agent, &[flag]).0, Vec::<String>::new(), "{flag}");
    }
}

#[test]
fn variables_are_expanded_and_missing_ones_reported() {
    let agent = agent_with_server();
    let listed = json!({"mcpServers": {"a": {"command": "${PROGRAM:-python3}", "args": ["${SCRIPT}"]},
                                       "b": {"command": "${NO_SUCH_PROGRAM}"}}});
    agent.write(".mcp.json", &listed.to_string());
    let settings = r#"{"enableAllProjectMcpServers": true, "env": {"SCRIPT": "server.py"}}"#;
    let (used, warnings) = servers(&agent, &["--settings", settings]);
    assert_eq!(used, ["a connected project", "b failed project"]);
    assert_eq!(warnings, ["left out: the MCP server b: NO_SUCH_PROGRAM not set"]);
}

#[test]
fn servers_of_a_project_are_searched_up_to_the_root_of_its_repository() {
    let agent = agent_with_server();
    fs::create_dir_all(agent.folder.path.join("repo/.git")).unwrap();
    fs::create_dir_all(agent.folder.path.join("repo/sub")).unwrap();
    let program = agent.folder.path.join("server.py");
    let listed = |name: &str, command: &str| json!({"mcpServers": {name: {"command": command, "args": [program]}}});
    agent.write(".mcp.json", &listed("outside", "python3").to_string());
    agent.write("repo/.mcp.json", &listed("both", "false").to_string());
    agent.write("repo/sub/.mcp.json", &listed("both", "python3").to_string());
    let args =
        ["-p", "hello", "--output-format", "stream-json", "--settings", r#"{"enableAllProjectMcpServers": true}"#];
    let used = |folder: &str| {
        let out = agent.command(&args).current_dir(agent.folder.path.join(folder)).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let init: Value =
            serde_json::from_str(text.lines().find(|line| line.contains("mcp_servers")).unwrap()).unwrap();
        let row =
            |server: &Value| format!("{} {}", server["name"].as_str().unwrap(), server["status"].as_str().unwrap());
        init["mcp_servers"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!((used("repo/sub"), used("repo")), (vec!["both connected".to_owned()], vec!["both failed".to_owned()]));
}

#[test]
fn a_plugin_brings_its_servers_unless_they_are_skipped() {
    let agent = agent_with_server();
    agent.write("kit/server.py", MCP_SERVER);
    let listed = r#"{"mcpServers": {"s": {"command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/server.py"]}}}"#;
    agent.write("kit/.mcp.json", listed);
    assert_eq!(servers(&agent, &["--plugin-dir", "kit"]).0, ["plugin:kit:s connected plugin"]);
    assert_eq!(servers(&agent, &["--plugin-dir-no-mcp", "kit"]).0, Vec::<String>::new());
    assert_eq!(servers(&agent, &["--plugin-dir", "kit", "--bare"]).0, Vec::<String>::new());
}

#[test]
fn lists_in_settings_restrict_servers() {
    let agent = agent_with_server();
    let config = json!({"mcpServers": {"a": server(), "b": server(), "c": server()}}).to_string();
    let used = |settings: &str| servers(&agent, &["--mcp-config", &config, "--managed-settings", settings]).0;
    assert_eq!(used(r#"{"deniedMcpServers": [{"serverName": "a"}]}"#), ["b connected dynamic", "c connected dynamic"]);
    assert_eq!(used(r#"{"allowedMcpServers": [{"serverName": "c"}]}"#), ["c connected dynamic"]);
    let denied = r#"{"deniedMcpServers": [{"serverCommand": ["python3", "server.py"]}]}"#;
    assert_eq!(used(denied), Vec::<String>::new());
}

#[test]
fn commands_add_show_and_remove_servers_in_the_same_files() {
    let agent = agent_with_server();
    agent.write(".claude.json", r#"{"kept": 1, "projects": {"/elsewhere": {"hasTrustDialogAccepted": true}}}"#);
    let run = |args: &[&str]| {
        let out = agent.run(&[&["mcp"], args].concat());
        (out.status.code().unwrap(), output_text(&out))
    };
    let ok = |args: &[&str]| {
        let (code, text) = run(args);
        assert_eq!(code, 0, "{text}");
        text
    };
    ok(&["add", "near", "-e", "K=v", "--", "python3", "server.py"]);
    ok(&["add", "-s", "user", "web", "--transport", "http", "http://127.0.0.1:9/mcp", "-H", "X-A: b"]);
    ok(&["add", "--scope", "project", "shared", "python3", "server.py", "--flag"]);
    ok(&["add-json", "whole", r#"{"command": "x"}"#]);
    let cwd = agent.folder.path.canonicalize().unwrap();
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(agent.folder.path.join(name)).unwrap()).unwrap()
    };
    let state = read(".claude.json");
    let near = json!({"type": "stdio", "command": "python3", "args": ["server.py"], "env": {"K": "v"}});
    let here = &state["projects"][cwd.to_str().unwrap()]["mcpServers"];
    assert_eq!((&here["near"], &here["whole"]), (&near, &json!({"command": "x"})));
    let web = json!({"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"X-A": "b"}});
    assert_eq!(state["mcpServers"], json!({"web": web}));
    assert_eq!((&state["kept"], &state["projects"]["/elsewhere"]["hasTrustDialogAccepted"]), (&json!(1), &json!(true)));
    assert_eq!(read(".mcp.json")["mcpServers"]["shared"]["args"], json!(["server.py", "--flag"]));
    let list = ok(&["list"]);
    let rows: Vec<&str> = list.lines().map(|line| line.split(" \u{2014} ").next().unwrap()).collect();
    assert_eq!(
        rows,
        [
            "Checking MCP server health\u{2026}",
            "",
            "near: python3 server.py - \u{2714} Connected",
            "whole: x - \u{2718} Failed to connect",
            "shared: python3 server.py --flag - \u{23f8} Pending approval (name it in enabledMcpjsonServers of this \
             folder in ~/.claude.json)",
            "web: http://127.0.0.1:9/mcp (HTTP) - \u{2718} Failed to connect",
        ]
    );
    assert!(list.contains("cannot start x: "), "{list}");
    let shown = ok(&["get", "web"]);
    assert!(shown.contains("scope: user") && shown.contains("status: \u{2718} Failed to connect"), "{shown}");
    assert!(ok(&["remove", "web"]).starts_with("Removed MCP server web from user config: "));
    assert_eq!(read(".claude.json")["mcpServers"], json!({}));
    for (args, why) in [
        (&["remove", "web"][..], "no MCP server named web; there are: near, whole, shared"),
        (&["get", "none"], "no MCP server named none"),
        (&["add", "near", "x"], "exists already in local config"),
        (&["add", "q", "x", "-H", "A: b"], "--header is for servers with an address"),
        (&["add", "q", "-t", "http", "http://127.0.0.1:9", "-e", "K=v"], "--env is for servers that are programs"),
        (&["add", "bad name", "x"], "may only have letters"),
        (&["add-json", "q", r#"{"type": "http"}"#], "missing field `url`"),
    ] {
        let (code, text) = run(args);
        assert!(code == 1 && text.contains(why), "{args:?}: {text}");
    }
    assert_eq!(agent.server.requests().len(), 0);
}

#[test]
fn a_server_in_two_scopes_is_shown_twice_and_the_others_keep_their_order() {
    let agent = agent_with_server();
    let run = |args: &[&str]| output_text(&agent.run(&[&["mcp"], args].concat()));
    for name in ["one", "two", "three", "four"] {
        run(&["add", "-s", "user", name, "x"]);
    }
    run(&["add", "-s", "local", "two", "y"]);
    let shown = run(&["get", "two"]);
    assert!(shown.find("scope: local") < shown.find("scope: user") && shown.contains("scope: user"), "{shown}");
    assert!(shown.contains("status: not used: another server has the same name"), "{shown}");
    assert!(run(&["remove", "two"]).contains("choose one with --scope"));
    run(&["remove", "one", "-s", "user"]);
    let text = fs::read_to_string(agent.folder.path.join(".claude.json")).unwrap();
    let state: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    let left: Vec<&String> = state["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["two", "three", "four"]);
    agent.write(".mcp.json", "{broken");
    assert!(run(&["get", "four"]).contains("warning: "));
}

#[test]
fn auth_status_prints_which_key_is_used() {
    let agent = ScriptedAgent::new("hello.yaml");
    let out = agent.run(&["auth", "status", "--json"]);
    let status: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(out.status.success() && status["loggedIn"] == true);
    assert_eq!((&status["authMethod"], &status["apiKeySource"]), (&json!("api_key"), &json!("ANTHROPIC_API_KEY")));
    assert_eq!(status["configDirectory"], agent.folder.path.join(".claude").to_str().unwrap());
    let out = agent.command(&["auth", "status"]).env_remove("ANTHROPIC_API_KEY").output().unwrap();
    let status: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(out.status.code() == Some(1) && status["loggedIn"] == false && status["authMethod"] == "none");
    assert_eq!(String::from_utf8_lossy(&agent.run(&["auth", "status", "--text"]).stdout), "key: ANTHROPIC_API_KEY\n");
    // The settings of the user may hold it, those of a project may not.
    let text = || {
        let out = agent.command(&["auth", "status", "--text"]).env_remove("ANTHROPIC_API_KEY").output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let settings = r#"{"env": {"ANTHROPIC_AUTH_TOKEN": "t"}}"#;
    agent.write(".claude/settings.local.json", settings);
    assert_eq!(text(), "no key\n");
    agent.write(".claude/settings.json", settings);
    assert_eq!(text(), "key: ANTHROPIC_AUTH_TOKEN\n");
}

#[test]
fn commands_that_are_not_here_ask_no_model() {
    let agent = ScriptedAgent::new("hello.yaml");
    let page = fs::read_to_string(quipu_testkit::repository_root().join("docs/compat.md")).unwrap();
    let row = page.lines().find(|line| line.contains("not available: an error")).unwrap();
    let names: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
    assert!(names.len() > 20 && names.contains(&"doctor"));
    for name in names {
        let out = agent.run(&[name]);
        assert!(out.status.code() == Some(1) && output_text(&out).contains(&format!("no command `{name}`")), "{name}");
    }
    assert_eq!(agent.server.requests().len(), 0);
    // With a flag before it, it is a prompt.
    assert_eq!(String::from_utf8_lossy(&agent.run(&["-p", "doctor"]).stdout), "Yes.\n");
}

#[test]
fn names_of_tools_are_offered_once_and_only_if_the_api_accepts_them() {
    let agent = ScriptedAgent::new("hello.yaml");
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let tools = [tool("a b"), tool("a.b"), tool("c"), tool("c"), tool(&"x".repeat(200))];
    let listed = r#"[{"name": "echo", "description": "Echoes", "inputSchema": schema}]"#;
    agent.write("server.py", &MCP_SERVER.replace(listed, &json!(tools).to_string()));
    agent.lines(&["hello", "--mcp-config", &json!({"mcpServers": {"s": server()}}).to_string()]);
    let body: Value = serde_json::from_str(&agent.server.requests().last().unwrap().body).unwrap();
    let names = body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str());
    let offered: Vec<&str> = names.filter(|name| name.contains("__s__")).collect();
    assert_eq!(offered, ["mcp__s__a_b", "mcp__s__c"]);
}
