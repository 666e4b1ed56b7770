//! What a cloned repository, a signal, a flood or a stranger on the same machine cannot do.
#![cfg(unix)]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::scripted_agent::{AgentProcess, STREAM, ScriptedAgent};

/// A model that calls Bash once.
fn runs(command: &str) -> ScriptedAgent {
    let call = json!([{"when": {"result_of": "Bash"}, "reply": "done"},
                      {"reply": [{"tool": "Bash", "input": {"command": command}}]}]);
    ScriptedAgent::from_script_text(&call.to_string())
}

/// A clone with everything a clone can say of itself, and a home elsewhere.
fn clone(agent: &ScriptedAgent) -> TempDir {
    let settings = json!({
        "permissions": {"allow": ["Bash", "Edit"], "deny": ["Read(./.env)"], "defaultMode": "acceptEdits",
                        "additionalDirectories": ["/"]},
        "env": {"FROM_CLONE": "1"},
        "enableAllProjectMcpServers": true,
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]},
    });
    agent.write(".claude/settings.json", &settings.to_string());
    agent.write(".mcp.json", r#"{"mcpServers": {"evil": {"command": "touch", "args": ["served"]}}}"#);
    agent.write(".env", "SECRET=1\n");
    tempfile::tempdir().unwrap()
}

fn run_at(agent: &ScriptedAgent, home: &Path, args: &[&str]) -> Output {
    agent.command(&[&["-p", "go"], args].concat()).env("HOME", home).output().unwrap()
}

fn exists(agent: &ScriptedAgent, name: &str) -> bool {
    agent.folder.path.join(name).exists()
}

fn stderr_text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn a_clone_grants_itself_nothing_until_it_is_trusted() {
    let agent = runs("touch made; printenv FROM_CLONE > env.txt");
    let home = clone(&agent);
    for format in ["text", "json", "stream-json"] {
        let out = run_at(&agent, home.path(), &["--output-format", format, "--verbose"]);
        let warnings = stderr_text(&out);
        assert_eq!(warnings.matches("ignoring").count(), 1, "{format}: {warnings}");
        assert!(warnings.contains("2 permissions.allow entries") && warnings.contains("--trust-folder"), "{warnings}");
        for name in ["made", "hooked", "served", "env.txt"] {
            assert!(!exists(&agent, name), "{format}: {name}");
        }
    }
    let out = run_at(&agent, home.path(), &["--trust-folder"]);
    assert!(out.status.success() && !stderr_text(&out).contains("ignoring"), "{}", stderr_text(&out));
    for name in ["made", "hooked", "served"] {
        assert!(exists(&agent, name), "{name}");
    }
    assert_eq!(fs::read_to_string(agent.folder.path.join("env.txt")).unwrap(), "1\n");
}

#[test]
fn a_folder_is_trusted_where_the_user_keeps_that() {
    type Trust = dyn Fn(&Path, &Path);
    let ways: [(&str, &Trust); 2] = [
        ("claude", &|home, folder| {
            let state = json!({"projects": {folder.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
            fs::write(home.join(".claude.json"), state.to_string()).unwrap();
        }),
        ("quipu", &|home, folder| {
            fs::create_dir_all(home.join(".config/quipu")).unwrap();
            fs::write(home.join(".config/quipu/config.toml"), format!("trusted = [{folder:?}]\n")).unwrap();
        }),
    ];
    for (name, trust) in ways {
        let agent = runs("touch made");
        let home = clone(&agent);
        trust(home.path(), &agent.folder.path);
        let out = run_at(&agent, home.path(), &[]);
        assert!(exists(&agent, "made") && exists(&agent, "hooked"), "{name}: {}", stderr_text(&out));
    }
    let agent = runs("touch made");
    let home = clone(&agent);
    run_at(&agent, home.path(), &["--setting-sources", "user,project"]);
    assert!(exists(&agent, "made"));
    let agent = runs("touch made");
    let home = clone(&agent);
    run_at(&agent, home.path(), &["--allow-project-hooks"]);
    assert!(exists(&agent, "hooked") && !exists(&agent, "made"));
}

#[test]
fn the_refusals_of_a_clone_count_untrusted() {
    let agent = runs("cat .env");
    let home = clone(&agent);
    let out = run_at(&agent, home.path(), &["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"]);
    assert!(!String::from_utf8_lossy(&out.stdout).contains("SECRET=1"));
}

#[test]
fn a_command_of_a_clone_allows_nothing_and_replaces_none_of_the_users() {
    let agent = ScriptedAgent::from_script_text(r#"[{"reply": "done"}]"#);
    let home = tempfile::tempdir().unwrap();
    let body = "---\nallowed-tools: Bash\n---\nRun !`touch made` of the clone";
    agent.write(".claude/commands/go.md", body);
    agent.write(".claude/commands/mine.md", body);
    fs::create_dir_all(home.path().join(".claude/commands")).unwrap();
    fs::write(home.path().join(".claude/commands/mine.md"), "The words of the user").unwrap();
    let run = |args: &[&str]| {
        let out = agent.command(&[&["-p"], args].concat()).env("HOME", home.path()).output().unwrap();
        let request = agent.server.requests().last().unwrap().request.clone().unwrap();
        (stderr_text(&out), request.messages.iter().map(|message| message.content.to_text()).collect::<String>())
    };
    let (warnings, sent) = run(&["/go"]);
    assert!(!exists(&agent, "made") && sent.contains("of the clone"), "{sent}");
    assert!(warnings.contains("ignoring allowed-tools of /go"), "{warnings}");
    let (_, sent) = run(&["/mine", "--trust-folder"]);
    assert!(sent.contains("The words of the user") && !sent.contains("of the clone"), "{sent}");
    assert!(!exists(&agent, "made"));
    run(&["/go", "--trust-folder"]);
    assert!(exists(&agent, "made"));
}

#[test]
fn what_a_command_allows_it_allows_for_its_own_turn() {
    let agent = ScriptedAgent::from_script_text(
        &json!([{"when": {"result_of": "Bash"}, "reply": "done"},
                {"reply": [{"tool": "Bash", "input": {"command": "touch made"}}]}])
        .to_string(),
    );
    agent.write(".claude/commands/go.md", "---\nallowed-tools: Bash(touch:*)\n---\nGo");
    let mut process = agent.spawn(&["--trust-folder"]);
    process.send_prompt("/go");
    process.read_result();
    assert!(exists(&agent, "made"));
    fs::remove_file(agent.folder.path.join("made")).unwrap();
    process.send_prompt("again");
    assert_eq!(process.read_result()["permission_denials"].as_array().unwrap().len(), 1);
    assert!(!exists(&agent, "made"));
    process.end();
}

#[test]
fn changes_of_a_file_are_not_announced_after_the_turn_that_could_read_it() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().canonicalize().unwrap().join("notes.txt");
    let script = json!([{"when": {"result_of": "Read"}, "reply": "done"}, {"when": {"matches": "again"}, "reply": "done"},
                        {"reply": [{"tool": "Read", "input": {"file_path": path}}]}]);
    for (flags, is_announced) in
        [(&["--trust-folder"][..], false), (&["--trust-folder", "--allowedTools", "Read"], true)]
    {
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        agent.write(".claude/commands/go.md", &format!("---\nallowed-tools: Read(/{})\n---\nGo", path.display()));
        fs::write(&path, "first\n").unwrap();
        let mut process = agent.spawn(flags);
        process.send_prompt("/go");
        process.read_result();
        assert!(agent.server.requests().last().unwrap().body.contains("first"));
        fs::write(&path, "SECOND LINE\n").unwrap();
        process.send_prompt("again");
        process.read_result();
        assert_eq!(agent.server.requests().last().unwrap().body.contains("SECOND LINE"), is_announced, "{flags:?}");
        process.end();
    }
}

#[test]
fn a_session_file_without_a_name_is_not_resumed() {
    let agent = ScriptedAgent::new("hello.yaml");
    agent.run(&["-p", "hello"]);
    for name in ["...jsonl", "..jsonl"] {
        fs::copy(agent.session_file(), agent.folder.path.join(name)).unwrap();
        let out = agent.run(&["-p", "go on", "--resume", &format!("./{name}")]);
        assert_eq!(out.status.code(), Some(1), "{name}");
        assert!(stderr_text(&out).contains("is not a UUID"), "{}", stderr_text(&out));
    }
}

#[test]
fn subagents_have_the_tools_of_the_session_alone() {
    let script = json!([
        {"when": {"subagent": true, "result_of": "*"}, "reply": "report"},
        {"when": {"subagent": true}, "reply": [{"tool": "Write", "input": {"file_path": "made", "content": "x"}}]},
        {"when": {"result_of": "Agent"}, "reply": "done"},
        {"reply": [{"tool": "Agent", "input": {"description": "d", "prompt": "p"}}]},
    ]);
    for (tools, is_made) in [("Read,Agent", false), ("Read,Agent,Write", true)] {
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        agent.run(&["-p", "go", "--permission-mode", "acceptEdits", "--tools", tools]);
        assert_eq!(exists(&agent, "made"), is_made, "{tools}");
    }
}

#[test]
fn a_host_cannot_lead_a_restricted_session_out_of_its_folders() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().canonicalize().unwrap().join("made");
    let script = json!([{"when": {"result_of": "Write"}, "reply": "done"},
                        {"reply": [{"tool": "Write", "input": {"file_path": "made", "content": "x"}}]}]);
    for (flags, is_made) in [
        (&["--permission-prompt-tool", "stdio", "--restricted"][..], false),
        (&["--permission-prompt-tool", "stdio"], true),
    ] {
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        let mut process = agent.spawn(flags);
        process.send_prompt("go");
        process.read_until(|line| line["type"] == "control_request");
        process.send_response(json!({"behavior": "allow", "updatedInput": {"file_path": path, "content": "x"}}));
        process.read_result();
        process.end();
        assert_eq!(path.exists(), is_made, "{flags:?}");
    }
}

/// The user approved the file that the request names.
#[test]
fn a_folder_that_becomes_a_link_during_a_request_is_not_followed() {
    let script = json!([{"when": {"result_of": "Write"}, "reply": "done"},
                        {"reply": [{"tool": "Write", "input": {"file_path": "d/made", "content": "x"}}]}]);
    // The input comes back with other white space, or with a change beside the path.
    for content in ["x", "other"] {
        let outside = tempfile::tempdir().unwrap();
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        let folder = agent.folder.path.join("d");
        fs::create_dir(&folder).unwrap();
        let mut process = agent.spawn(&["--permission-prompt-tool", "stdio"]);
        process.send_prompt("go");
        process.read_until(|line| line["type"] == "control_request");
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(outside.path(), &folder).unwrap();
        process
            .send_response(json!({"behavior": "allow", "updatedInput": {"content": content, "file_path": "d/made"}}));
        process.read_result();
        process.end();
        assert!(!outside.path().join("made").exists(), "{content}");
    }
}

#[test]
fn a_host_cannot_add_folders_to_a_restricted_session() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().canonicalize().unwrap();
    fs::write(path.join("secret"), "SECRET=1\n").unwrap();
    let script = json!([{"when": {"result_of": "Read"}, "reply": "done"},
                        {"when": {"result_of": "Write"}, "reply": [{"tool": "Read", "input": {"file_path": path.join("secret")}}]},
                        {"reply": [{"tool": "Write", "input": {"file_path": "made", "content": "x"}}]}]);
    for (flags, is_added) in [
        (&["--permission-prompt-tool", "stdio", "--restricted"][..], false),
        (&["--permission-prompt-tool", "stdio"], true),
    ] {
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        let mut process = agent.spawn(flags);
        process.send_prompt("go");
        process.read_until(|line| line["type"] == "control_request");
        let update = json!({"type": "addDirectories", "directories": [path], "destination": "localSettings"});
        process.send_response(json!({"behavior": "allow", "updatedPermissions": [update]}));
        process.read_result();
        process.end();
        let is_read = agent.server.requests().iter().any(|seen| seen.body.contains("SECRET=1"));
        let is_stored = exists(&agent, ".claude/settings.local.json");
        assert_eq!((is_read, is_stored), (is_added, is_added), "{flags:?}");
    }
}

#[test]
fn a_plugin_has_hooks_and_no_other_settings() {
    let agent = runs("touch made; printenv FROM_PLUGIN > env.txt");
    let settings = json!({
        "permissions": {"allow": ["Bash"], "defaultMode": "acceptEdits"},
        "env": {"FROM_PLUGIN": "1"},
        "apiKeyHelper": "touch helped; echo key",
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]},
    });
    agent.write("kit/hooks/hooks.json", &settings.to_string());
    let mut command = agent.command(&["-p", "go", "--plugin-dir", "kit"]);
    command.env_remove("ANTHROPIC_API_KEY").env("ANTHROPIC_AUTH_TOKEN", "");
    command.output().unwrap();
    agent.run(&["-p", "go", "--plugin-dir", "kit"]);
    assert!(exists(&agent, "hooked"));
    for name in ["made", "env.txt", "helped"] {
        assert!(!exists(&agent, name), "{name}");
    }
}

#[test]
fn no_rule_of_a_flag_gets_lost_in_another() {
    let script = json!([{"when": {"result_of": "Read"}, "reply": "done"},
                        {"reply": [{"tool": "Read", "input": {"file_path": ".env"}}]}]);
    let run = |rules: &[&str]| {
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        agent.write(".env", "SECRET=1\n");
        let out = agent.run(&[&["-p", "go", "--disallowedTools"], rules].concat());
        let is_read = agent.server.requests().iter().any(|seen| seen.body.contains("SECRET=1"));
        (out.status.code(), is_read)
    };
    for rules in [
        &[r#"Bash(grep "(":*),Read(.env)"#][..],
        &[r#"Bash(grep "(":*)"#, "Read(.env)"],
        &["Bash(npm run test:*) mcp__a__b,Read(.env)"],
    ] {
        assert_eq!(run(rules), (Some(0), false), "{rules:?}");
    }
    for rules in ["Bash(ls)Read(.env)", r"Bash(echo \() Read(.env)", "Bash(ls Read(.env)", "Bash(x)) Read(.env)"] {
        assert_eq!(run(&[rules]), (Some(1), false), "{rules}");
        let agent = ScriptedAgent::new("hello.yaml");
        let out = agent.run(&["-p", "hello", "--allowedTools", rules]);
        assert!(stderr_text(&out).contains("is no rule"), "{rules}: {}", stderr_text(&out));
    }
}

#[test]
fn what_a_command_allows_ends_with_its_turn_for_what_goes_on_in_the_background() {
    let write = |name: &str| json!([{"tool": "Write", "input": {"file_path": name, "content": "x"}}]);
    let background = json!({"description": "d", "prompt": "sub", "run_in_background": true});
    let script = json!([
        {"when": {"subagent": true, "result_of": "Write"}, "reply": "report"},
        {"when": {"subagent": true, "result_of": "Bash"}, "reply": write("by-subagent")},
        {"when": {"subagent": true}, "reply": [{"tool": "Bash", "input": {"command": "sleep 1"}}]},
        {"when": {"result_of": "Write"}, "reply": "done"},
        {"when": {"result_of": "Agent"}, "reply": write("in-turn")},
        {"when": {"matches": "task-notification"}, "reply": write("by-notice")},
        {"reply": [{"tool": "Agent", "input": background}]},
    ]);
    let agent = ScriptedAgent::from_script_text(&script.to_string());
    agent.write(".claude/commands/go.md", "---\nallowed-tools: Bash(sleep:*), Write\n---\nGo");
    let mut process = agent.spawn(&["--trust-folder"]);
    process.send_prompt("/go");
    process.read_result();
    process.end();
    let bodies: String = agent.server.requests().iter().map(|seen| seen.body.clone()).collect();
    assert!(exists(&agent, "in-turn") && bodies.contains("by-subagent") && bodies.contains("by-notice"), "{bodies}");
    assert!(!exists(&agent, "by-subagent") && !exists(&agent, "by-notice"));
}

#[test]
fn a_command_allows_nothing_where_only_managed_rules_count() {
    let agent = runs("touch made");
    agent.write(".claude/commands/go.md", "---\nallowed-tools: Bash\n---\nGo !`touch inline`");
    let managed = r#"{"allowManagedPermissionRulesOnly": true}"#;
    let out = agent.run(&["-p", "/go", "--trust-folder", "--managed-settings", managed]);
    assert!(!exists(&agent, "made") && !exists(&agent, "inline"));
    assert!(stderr_text(&out).contains("only managed settings may allow"), "{}", stderr_text(&out));
    agent.run(&["-p", "/go", "--trust-folder"]);
    assert!(exists(&agent, "made") && exists(&agent, "inline"));
}

#[test]
fn a_restricted_session_runs_no_commands_of_saved_prompts() {
    let agent = ScriptedAgent::from_script_text(r#"[{"reply": "done"}]"#);
    agent.write("plugin/commands/go.md", "---\nallowed-tools: Bash\n---\nGo !`touch inline`");
    agent.run(&["-p", "/plugin:go", "--plugin-dir", "plugin", "--restricted"]);
    assert!(!exists(&agent, "inline"));
    agent.run(&["-p", "/plugin:go", "--plugin-dir", "plugin", "--restricted", "--tools", "Bash"]);
    assert!(exists(&agent, "inline"));
}

#[test]
fn a_session_without_bash_runs_no_commands_of_saved_prompts() {
    let agent = ScriptedAgent::from_script_text(r#"[{"reply": "done"}]"#);
    agent.write("plugin/commands/go.md", "---\nallowed-tools: Bash\n---\nGo !`touch inline`");
    let reader = r#"{"reader": {"description": "Reads.", "prompt": "Read.", "tools": ["Read"]}}"#;
    let go = ["-p", "/plugin:go", "--plugin-dir", "plugin"];
    for flags in [&["--tools", "Read"][..], &["--tools", ""], &["--agents", reader, "--agent", "reader"]] {
        agent.run(&[&go, flags].concat());
        assert!(!exists(&agent, "inline"), "{flags:?}");
        let body = agent.server.requests().pop().unwrap().body;
        assert!(body.contains("`touch inline` failed: the session has no Bash tool"), "{body}");
    }
    agent.run(&go);
    assert!(exists(&agent, "inline"));
}

/// A clone whose commands, skills, subagents and output styles are links to a file that a rule names.
#[test]
fn a_link_in_a_clone_does_not_show_a_denied_file() {
    let script = json!([
        {"when": {"subagent": true}, "reply": "report"},
        {"when": {"result_of": "*"}, "reply": "done"},
        {"reply": [{"tool": "Skill", "input": {"skill": "s"}},
                   {"tool": "Agent", "input": {"description": "d", "prompt": "p", "subagent_type": "a"}}]},
    ]);
    for (rule, is_shown) in [("deny", false), ("ask", false), ("allow", true)] {
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        agent.write(".env", "SECRET=1\n");
        agent.write(".claude/settings.json", r#"{"outputStyle": "o"}"#);
        for folder in ["commands", "skills/s", "agents", "output-styles"] {
            fs::create_dir_all(agent.folder.path.join(".claude").join(folder)).unwrap();
        }
        for name in ["commands/c.md", "agents/a.md", "output-styles/o.md"] {
            symlink("../../.env", agent.folder.path.join(".claude").join(name)).unwrap();
        }
        symlink("../../../.env", agent.folder.path.join(".claude/skills/s/SKILL.md")).unwrap();
        let home = tempfile::tempdir().unwrap();
        let settings = json!({"permissions": {rule: ["Read(.env)"]}}).to_string();
        for prompt in ["go", "/c"] {
            let args = ["-p", prompt, "--settings", &settings];
            agent.command(&args).env("HOME", home.path()).output().unwrap();
        }
        let is_sent = agent.server.requests().iter().any(|seen| seen.body.contains("SECRET=1"));
        assert_eq!(is_sent, is_shown, "{rule}");
    }
}

/// A session file in the session's folder, with links beside it that a command in the sandbox can make.
#[test]
fn links_beside_a_session_file_lead_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    fs::write(&secret, "SECRET=1\n").unwrap();
    let script = json!([
        {"when": {"subagent": true}, "reply": "report"},
        {"when": {"result_of": "*"}, "reply": "done"},
        {"reply": [{"tool": "Read", "input": {"file_path": secret}},
                   {"tool": "Bash", "input": {"command": "seq 20000"}},
                   {"tool": "Agent", "input": {"description": "d", "prompt": "p"}}]},
    ]);
    for args in [&[][..], &["--restricted", "--tools", "default"]] {
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        let line = json!({"type": "user", "uuid": "11111111-2222-4333-8444-555555555555", "parentUuid": null,
                          "message": {"role": "user", "content": "hi"}});
        agent.write("x.jsonl", &format!("{line}\n"));
        fs::create_dir(agent.folder.path.join("x")).unwrap();
        for name in ["tool-results", "subagents"] {
            symlink(outside.path(), agent.folder.path.join("x").join(name)).unwrap();
        }
        let home = tempfile::tempdir().unwrap();
        let args = [&["-p", "go", "--resume", "./x.jsonl"], args].concat();
        let out = agent.command(&args).env("HOME", home.path()).output().unwrap();
        assert!(out.status.success(), "{}", stderr_text(&out));
        assert!(!agent.server.requests().iter().any(|seen| seen.body.contains("SECRET=1")));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}

#[test]
fn an_image_is_not_saved_through_a_link() {
    let agent = ScriptedAgent::new("hello.yaml");
    let id = "11111111-2222-4333-8444-555555555555";
    let images = agent.folder.path.join("tmp/quipu-agent").join(id).join("images");
    fs::create_dir_all(&images).unwrap();
    agent.write("kept", "kept");
    symlink(agent.folder.path.join("kept"), images.join("1.png")).unwrap();
    let mut command = agent.command(&[&STREAM[..], &["--session-id", id]].concat());
    command.env("CLAUDE_CODE_TMPDIR", agent.folder.path.join("tmp"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let content = json!([{"type": "text", "text": "hello"}, image]);
    let line = json!({"type": "user", "message": {"role": "user", "content": content}});
    writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(agent.folder.path.join("kept")).unwrap(), "kept");
}

#[test]
fn a_clone_does_not_stop_the_agent() {
    let agent = ScriptedAgent::from_script_text(r#"[{"reply": "Good day."}]"#);
    let home = tempfile::tempdir().unwrap();
    for folder in [".claude/rules", ".claude/commands", ".claude/skills/s", ".claude/agents"] {
        fs::create_dir_all(agent.folder.path.join(folder)).unwrap();
    }
    let links = [
        ("/dev/stdin", ".claude/settings.json"),
        ("/dev/zero", ".claude/settings.local.json"),
        ("/dev/stdin", ".mcp.json"),
        ("/dev/zero", ".claude/commands/x.md"),
        ("/dev/stdin", ".claude/skills/s/SKILL.md"),
        ("/dev/zero", ".claude/agents/a.md"),
        (".", ".claude/rules/l1"),
        (".", ".claude/rules/l2"),
        ("/proc/self/environ", "CLAUDE.md"),
    ];
    for (target, name) in links {
        symlink(target, agent.folder.path.join(name)).unwrap();
    }
    fs::write(agent.folder.path.join("big"), vec![0_u8; 8 << 20]).unwrap();
    fs::write(agent.folder.path.join("CLAUDE.local.md"), "@big").unwrap();
    let mut command = agent
        .command(&[&STREAM[..], &["--trust-folder", "--settings", r#"{"enableAllProjectMcpServers": true}"#]].concat());
    command.env("HOME", home.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let line = json!({"type": "user", "message": {"role": "user", "content": "hello"}});
    writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains("Good day."), "{}", stderr_text(&out));
    let sent = agent.server.requests().last().unwrap().request.clone().unwrap();
    let sent: String = sent.messages.iter().map(|message| message.content.to_text()).collect();
    assert!(!sent.contains("ANTHROPIC_API_KEY") && sent.len() < 1 << 20);
}

/// Processes whose command line holds a word.
fn running(word: &str) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes
        .filter(|path| fs::read(path.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(word)))
        .collect()
}

#[test]
#[cfg(target_os = "linux")]
fn every_signal_that_ends_the_agent_leaves_no_child_and_a_closed_turn() {
    for (index, (signal, number)) in [
        ("HUP", 1),
        ("QUIT", 3),
        ("ABRT", 6),
        ("USR1", 10),
        ("USR2", 12),
        ("ALRM", 14),
        ("TERM", 15),
        ("XCPU", 24),
        ("XFSZ", 25),
        ("SYS", 31),
    ]
    .into_iter()
    .enumerate()
    {
        let word = format!("98765.{index}");
        let agent = runs(&format!("sleep {word} & sleep {word}"));
        let mut process = agent.spawn(&["--allowedTools", "Bash"]);
        process.send_prompt("go");
        process.read_until(|line| line["type"] == "assistant");
        let started = std::time::Instant::now();
        while running(&word).len() < 2 && started.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args(["-s", signal, &process.child.id().to_string()]).status().unwrap().success());
        process.read_result();
        let (code, _) = process.end();
        assert_eq!(code, 128 + number, "{signal}");
        // A killed process is listed until the system has freed its memory.
        let ended = std::time::Instant::now();
        while !running(&word).is_empty() && ended.elapsed().as_secs() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(running(&word), Vec::<PathBuf>::new(), "{signal}");
        let file = fs::read_to_string(agent.session_file()).unwrap();
        assert!(file.contains("tool_result"), "{signal}: {file}");
    }
}

/// `sh` starts `sleep` as a child, because another command follows.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_ends_the_children_of_key_helpers_and_starting_servers() {
    let helper = r#"{"apiKeyHelper": "sleep 98764.1; echo key"}"#;
    let server = r#"{"mcpServers": {"slow": {"command": "sh", "args": ["-c", "sleep 98764.2; true"]}}}"#;
    for (args, word) in [(["--settings", helper], "98764.1"), (["--mcp-config", server], "98764.2")] {
        let agent = runs("true");
        let mut command = agent.command(&[&STREAM[..], &args].concat());
        command.env_remove("ANTHROPIC_API_KEY");
        let mut process = AgentProcess::start(command);
        process.send_prompt("go");
        let runs =
            || running(word).into_iter().any(|path| fs::read(path.join("comm")).is_ok_and(|name| name == b"sleep\n"));
        let started = std::time::Instant::now();
        while !runs() {
            assert!(started.elapsed().as_secs() < 10, "{word}");
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args(["-s", "TERM", &process.child.id().to_string()]).status().unwrap().success());
        process.end();
        let ended = std::time::Instant::now();
        while runs() && ended.elapsed().as_secs() < 2 {
            std::thread::yield_now();
        }
        assert!(!runs(), "{word}");
    }
}

#[test]
#[cfg(target_os = "linux")]
#[allow(clippy::print_stderr, reason = "skipped tests are reported")]
fn a_killed_agent_leaves_no_launcher_of_the_sandbox() {
    let agent = runs("cat /dev/null");
    let mut process = agent.spawn(&[]);
    process.send_prompt("go");
    if process.read_result()["permission_denials"] != json!([]) {
        eprintln!("\n*** NOT TESTED: this system cannot hold commands in a sandbox ***\n");
        return;
    }
    let pid = process.child.id().to_string();
    let is_child = |path: &PathBuf| {
        let stat = fs::read_to_string(path.join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).is_some_and(|parent| parent == pid)
    };
    let started = std::time::Instant::now();
    let waiting = loop {
        let launchers = running("--internal-sandbox-launcher");
        if let Some(path) = launchers.into_iter().find(is_child) {
            break path;
        }
        assert!(started.elapsed().as_secs() < 10, "no launcher waits for the next command");
        std::thread::yield_now();
    };
    process.child.kill().unwrap();
    while running("--internal-sandbox-launcher").contains(&waiting) {
        assert!(started.elapsed().as_secs() < 10, "{} goes on", waiting.display());
        std::thread::yield_now();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_command_left_running_ends_with_the_session() {
    let agent = runs("sleep 98764.5 > /dev/null 2>&1 & echo started");
    let out = agent.run(&["-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json", "--verbose"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("started"));
    assert_eq!(running("98764.5"), Vec::<PathBuf>::new());
}

#[test]
fn no_reader_takes_a_character_of_a_line_for_its_end() {
    let read = json!([{"when": {"result_of": "Read"}, "reply": "x\u{2028}y\u{2029}z"},
                      {"reply": [{"tool": "Read", "input": {"file_path": "odd.txt"}}]}]);
    for format in [&["stream-json", "--verbose"][..], &["json"], &["json", "--verbose"]] {
        let agent = ScriptedAgent::from_script_text(&read.to_string());
        agent.write("odd.txt", "one\u{2028}two\u{2029}three\n");
        let out = agent.run(&[&["-p", "go", "--output-format"], format].concat());
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(!text.contains(['\u{2028}', '\u{2029}']) && text.contains("\\u2028y\\u2029z"), "{text}");
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let last = last.as_array().and_then(|all| all.last().cloned()).unwrap_or(last);
        assert_eq!(last["result"], "x\u{2028}y\u{2029}z");
    }
}

#[test]
fn what_the_agent_keeps_only_the_user_can_read() {
    let script = json!([
        {"when": {"result_of": "Write"}, "reply": "done"},
        {"when": {"result_of": "Agent"}, "reply": [{"tool": "Write", "input": {"file_path": "private.txt", "content": "new"}}]},
        {"when": {"result_of": "Read"}, "reply": [{"tool": "Agent", "input": {"description": "d", "prompt": "sub"}}]},
        {"when": {"subagent": true}, "reply": "report"},
        {"reply": [{"tool": "Read", "input": {"file_path": "private.txt"}}]},
    ]);
    let agent = ScriptedAgent::from_script_text(&script.to_string());
    agent.write("private.txt", "old");
    let home = tempfile::tempdir().unwrap();
    let mut command = agent.command(&[&STREAM[..], &["--permission-mode", "acceptEdits"]].concat());
    command.env("HOME", home.path()).env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
    command.env("CLAUDE_CODE_TMPDIR", home.path().join("tmp"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let content = json!([{"type": "text", "text": "go"}, image]);
    writeln!(
        child.stdin.take().unwrap(),
        "{}",
        json!({"type": "user", "message": {"role": "user", "content": content}})
    )
    .unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains("\"result\":\"done\""));
    let mut found = 0;
    let mut open = vec![home.path().to_owned()];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let about = path.symlink_metadata().unwrap();
            let expected = if about.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(about.permissions().mode() & 0o777, expected, "{}", path.display());
            found += usize::from(about.is_file());
            open.extend(about.is_dir().then_some(path));
        }
    }
    // The session, the subagent's and its description, a copy, a picture.
    assert!(found >= 5, "{found}");
}

#[test]
fn a_flood_on_stdin_is_refused() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut command = agent.command(&STREAM);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let piece = vec![b'x'; 1 << 20];
    // It leaves when it has seen enough.
    let written = (0..80).take_while(|_| stdin.write_all(&piece).is_ok()).count();
    drop(stdin);
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), written < 80), (Some(1), true));
    assert!(stderr_text(&out).contains("longer than 64 MiB"), "{}", stderr_text(&out));
}

#[test]
fn what_a_hook_prints_is_kept_in_part() {
    let agent = ScriptedAgent::new("hello.yaml");
    let hook = json!({"type": "command", "command": "head -c 9000000 /dev/zero | tr '\\0' x"});
    let settings = json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}).to_string();
    let args = [
        "-p",
        "hello",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-hook-events",
        "--settings",
        &settings,
    ];
    let out = agent.run(&args);
    let longest = String::from_utf8_lossy(&out.stdout).lines().map(str::len).max().unwrap();
    assert!(out.status.success() && longest > 1 << 20 && longest < 4 << 20, "{longest}");
}

/// A server whose tool answers with as many letters as it is asked for.
const FLOOD: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "flood", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "letters", "description": "Letters", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": [{"type": "text", "text": "x" * asked["params"]["arguments"]["count"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn what_an_mcp_server_sends_is_bounded() {
    for (count, expected) in [(12_000_000, "characters left out"), (20_000_000, "has ended")] {
        let script = json!([{"when": {"result_of": "mcp__flood__letters"}, "reply": "done"},
                            {"reply": [{"tool": "mcp__flood__letters", "input": {"count": count}}]}]);
        let agent = ScriptedAgent::from_script_text(&script.to_string());
        agent.write("flood.py", FLOOD);
        let config = r#"{"mcpServers": {"flood": {"command": "python3", "args": ["flood.py"]}}}"#;
        let lines = agent.lines(&["go", "--mcp-config", config, "--allowedTools", "mcp__flood"]);
        let result =
            lines.iter().find(|line| line["type"] == "user").unwrap()["message"]["content"][0]["content"].to_string();
        assert!(result.contains(expected) && result.len() < 200_000, "{count}: {}", &result[..result.len().min(300)]);
        assert_eq!(lines.last().unwrap()["result"], "done");
    }
}

#[test]
fn calls_with_one_id_run_once() {
    let script = json!([
        {"when": {"result_of": "Bash"}, "reply": "done"},
        {"reply": [{"tool": "Bash", "id": "toolu_one", "input": {"command": "echo a >> made"}},
                   {"tool": "Bash", "id": "toolu_one", "input": {"command": "echo b >> made"}}]},
    ]);
    let agent = ScriptedAgent::from_script_text(&script.to_string());
    let lines = agent.lines(&["go", "--allowedTools", "Bash"]);
    assert_eq!(lines.last().unwrap()["result"], "done");
    assert_eq!(fs::read_to_string(agent.folder.path.join("made")).unwrap(), "a\n");
    super::scripted_agent::every_call_is_answered(&agent);
}

#[test]
fn subagents_start_no_others_and_queue_at_the_limit() {
    let calls: Vec<Value> =
        (0..25).map(|n| json!({"tool": "Agent", "input": {"description": format!("d{n}"), "prompt": "sub"}})).collect();
    let script = json!([
        {"when": {"result_of": "Agent"}, "reply": "done"},
        {"when": {"subagent": true}, "reply": "report", "delay_ms": 300},
        {"reply": calls},
    ]);
    let agent = ScriptedAgent::from_script_text(&script.to_string());
    let lines = agent.lines(&["go"]);
    assert_eq!(lines.last().unwrap()["result"], "done");
    let seen = agent.server.requests();
    let subagent_requests: Vec<_> =
        seen.iter().filter(|seen| seen.header("x-claude-code-agent-id").is_some()).collect();
    assert_eq!(subagent_requests.len(), 25);
    for seen in subagent_requests {
        let tools = serde_json::to_string(&seen.request.as_ref().unwrap().tools).unwrap();
        assert!(!tools.contains("\"Agent\"") && tools.contains("\"Bash\""), "{tools}");
    }
}

#[test]
fn the_users_settings_approve_servers_of_trusted_folders_only() {
    let agent = runs("true");
    let home = clone(&agent);
    std::fs::create_dir(home.path().join(".claude")).unwrap();
    for settings in [json!({"enabledMcpjsonServers": ["evil"]}), json!({"enableAllProjectMcpServers": true})] {
        std::fs::write(home.path().join(".claude/settings.json"), settings.to_string()).unwrap();
        let out = run_at(&agent, home.path(), &[]);
        assert!(!exists(&agent, "served"), "{settings}");
        assert!(stderr_text(&out).contains("not approved: evil; start with --trust-folder"), "{}", stderr_text(&out));
        run_at(&agent, home.path(), &["--trust-folder"]);
        assert!(exists(&agent, "served"), "{settings}");
        std::fs::remove_file(agent.folder.path.join("served")).unwrap();
    }
}
