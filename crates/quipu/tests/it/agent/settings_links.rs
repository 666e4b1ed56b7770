//! Settings and definitions that are links to files of the session.

use std::fs;

use serde_json::{Value, json};

use super::scripted_agent::ScriptedAgent;

/// Settings and definitions may be links into a repository of such files.
#[test]
fn what_links_in_folders_of_settings_and_plugins_lead_to_is_guarded() {
    let names = ["state", "agent.md", "skill/SKILL.md", "hooks.json", "config.toml", "plain.md"];
    let writes: Vec<Value> =
        names.iter().map(|name| json!({"tool": "Write", "input": {"file_path": name, "content": "x"}})).collect();
    let script = json!([{"when": {"result_of": "Write"}, "reply": "done"}, {"reply": writes}]);
    let agent = ScriptedAgent::from_script_text(&script.to_string());
    let work = agent.folder.path.join("work");
    let outside = agent.folder.path.join("outside");
    for folder in
        ["work/skill", "outside/config/agents", "outside/config/skills", "outside/plugin/hooks", "outside/xdg/quipu"]
    {
        fs::create_dir_all(agent.folder.path.join(folder)).unwrap();
    }
    for (link, target) in [
        ("config/.claude.json", "state"),
        ("config/agents/a.md", "agent.md"),
        ("config/skills/s", "skill"),
        ("plugin/hooks/hooks.json", "hooks.json"),
        ("xdg/quipu/config.toml", "config.toml"),
    ] {
        std::os::unix::fs::symlink(work.join(target), outside.join(link)).unwrap();
    }
    let plugin = outside.join("plugin");
    let mut command =
        agent.command(&["-p", "go", "--permission-mode", "acceptEdits", "--plugin-dir", plugin.to_str().unwrap()]);
    let output = command
        .current_dir(&work)
        .env("CLAUDE_CONFIG_DIR", outside.join("config"))
        .env("XDG_CONFIG_HOME", outside.join("xdg"))
        .output()
        .unwrap();
    let written: Vec<&str> = names.into_iter().filter(|name| work.join(name).exists()).collect();
    assert_eq!(written, ["plain.md"], "{output:?}");
}

/// The folders above, up to the root of the repository, and folders deep in `.claude` have definitions too.
#[test]
fn what_links_of_the_repository_lead_to_is_guarded() {
    let names = ["mcp.json", "skill.md", "command.md", "hook.sh", "root.md", "plain.md"];
    let writes: Vec<Value> =
        names.iter().map(|name| json!({"tool": "Write", "input": {"file_path": name, "content": "x"}})).collect();
    let copies = names.map(|name| format!("echo y > {name}")).join("; ");
    let script = json!([
        {"when": {"result_of": "Bash"}, "reply": "done"},
        {"when": {"result_of": "Write"}, "reply": [{"tool": "Bash", "input": {"command": copies}}]},
        {"reply": writes},
    ]);
    let agent = ScriptedAgent::from_script_text(&script.to_string());
    let root = agent.folder.path.join("repo");
    for folder in [".git/hooks", ".claude/commands", "work/.claude/skills/s", "work/.claude/commands/n"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for name in names {
        fs::write(root.join("work").join(name), "old").unwrap();
    }
    for (link, target) in [
        (".mcp.json", "mcp.json"),
        (".git/hooks/pre-commit", "hook.sh"),
        (".claude/commands/c.md", "root.md"),
        ("work/.claude/skills/s/SKILL.md", "skill.md"),
        ("work/.claude/commands/n/c.md", "command.md"),
    ] {
        std::os::unix::fs::symlink(root.join("work").join(target), root.join(link)).unwrap();
    }
    let settings = json!({"sandbox": {"enabled": true}}).to_string();
    let mut command = agent.command(&["-p", "go", "--permission-mode", "acceptEdits", "--settings", &settings]);
    let output = command.current_dir(root.join("work")).output().unwrap();
    let is_old = |name: &&str| fs::read_to_string(root.join("work").join(name)).unwrap() == "old";
    let changed: Vec<&str> = names.into_iter().filter(|name| !is_old(name)).collect();
    assert_eq!(changed, ["plain.md"], "{output:?}");
}

#[test]
fn what_a_hook_makes_the_env_file_a_link_to_is_guarded() {
    let script = json!([
        {"when": {"result_of": "Write"}, "reply": "done"},
        {"reply": [{"tool": "Write", "input": {"file_path": "vars.txt", "content": "touch ran"}}]},
    ]);
    let agent = ScriptedAgent::from_script_text(&script.to_string());
    let hook = json!({"type": "command", "command": "ln -sf \"$PWD/vars.txt\" \"$CLAUDE_ENV_FILE\""});
    let settings = json!({"hooks": {"SessionStart": [{"hooks": [hook]}]}}).to_string();
    agent.write("vars.txt", "A=1");
    agent.run(&["-p", "go", "--permission-mode", "acceptEdits", "--settings", &settings]);
    assert_eq!(fs::read_to_string(agent.folder.path.join("vars.txt")).unwrap(), "A=1");
}
