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
    for folder in ["work/skill", "outside/config/agents", "outside/config/skills", "outside/plugin/hooks", "outside/xdg/quipu"] {
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
    let output = command.current_dir(&work).env("CLAUDE_CONFIG_DIR", outside.join("config")).env("XDG_CONFIG_HOME", outside.join("xdg")).output().unwrap();
    let written: Vec<&str> = names.into_iter().filter(|name| work.join(name).exists()).collect();
    assert_eq!(written, ["plain.md"], "{output:?}");
}
