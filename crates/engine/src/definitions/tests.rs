use std::sync::Arc;

use super::*;

#[test]
fn a_files_first_bytes_give_its_type() {
    let (front, body) =
        parse_front_matter("---\nname: rev\ndescription: Reviews\ntools: Read, Grep\n---\n\nYou review.\n");
    let front = front.unwrap();
    assert_eq!(
        (front.name.as_deref(), front.description.as_deref(), body),
        (Some("rev"), Some("Reviews"), "You review.\n")
    );
    assert_eq!(front.tools.unwrap().0, ["Read", "Grep"]);
    let (front, _) = parse_front_matter("---\nallowed-tools: [Read, 'Bash(ls:*)']\n---\n");
    assert_eq!(front.unwrap().allowed_tools.unwrap().0, ["Read", "Bash(ls:*)"]);
    assert_eq!(parse_front_matter("no head").1, "no head");
}

#[test]
fn a_host_may_add_subagents() {
    let mut definitions = Definitions::default();
    definitions.add_agents_json(r#"{"rev":{"description":"Reviews","prompt":"You review","tools":["Read"]}}"#).unwrap();
    assert_eq!(definitions.agents["rev"].tools.as_deref(), Some(&[ToolName::Read][..]));
}

#[test]
fn files_that_cannot_be_used_are_reported() {
    let temp = tempfile::tempdir().unwrap();
    let config = temp.path();
    let write = |name: &str, bytes: &[u8]| {
        let path = config.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    write("commands/good.md", b"Do it.");
    write("commands/binary.md", b"\xff\xfe");
    write("agents/loose.md", b"---\ntools: [Read\n---\nYou look.");
    fs::create_dir_all(config.join("skills/empty")).unwrap();
    write("agents.md", b"not in a folder");
    let rules = ProjectRules { is_trusted: &|_| false, hidden_files: Arc::new(|_| false) };
    let definitions = Definitions::load(config, Path::new("/nonexistent"), &[SettingSource::User], &rules);
    let place = |name: &str| format!("{}: ", config.join(name).display());
    assert_eq!(definitions.problems.len(), 2, "{:?}", definitions.problems);
    assert_eq!(definitions.problems[0], format!("{}it is not text in UTF-8", place("commands/binary.md")));
    let head = format!("{}the lines between --- cannot be read: ", place("agents/loose.md"));
    assert!(definitions.problems[1].starts_with(&head), "{:?}", definitions.problems);
    assert!(definitions.saved_prompts.contains_key("good") && definitions.agents["loose"].prompt == "You look.");
}

#[test]
fn subagents_replace_those_of_others_only_in_a_trusted_project() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    let write = |folder: &str, name: &str| {
        let path = root.join(folder).join("agents").join(format!("{name}.md"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("---\nname: {name}\ndescription: d\n---\n{folder}")).unwrap();
    };
    for name in ["rev", "own"] {
        write("config", name);
    }
    fs::create_dir_all(root.join("top/.git")).unwrap();
    for name in ["rev", "Explore", "kit:rev", "both", "top"] {
        write("top/.claude", name);
    }
    for name in ["Plan", "both", "sub"] {
        write("top/sub/.claude", name);
    }
    write("kit", "rev");
    write("added/.claude", "own");
    let plugin = Plugin { name: "kit".to_owned(), path: root.join("kit"), uses_mcp: false };
    let check = |trusted: &[&str], expected: [&str; 8]| {
        let is_trusted = |folder: &Path| trusted.iter().any(|name| folder == root.join(name));
        let rules = ProjectRules { is_trusted: &is_trusted, hidden_files: Arc::new(|_| false) };
        let sources = [SettingSource::User, SettingSource::Project];
        let mut definitions = Definitions::load(&root.join("config"), &root.join("top/sub"), &sources, &rules);
        definitions.add_root(&root.join("added"), &rules);
        definitions.add_plugin(&plugin, &rules);
        let names = ["rev", "own", "Explore", "Plan", "both", "top", "sub", "kit:rev"];
        let prompts = names.map(|name| definitions.agents[name].prompt.clone());
        let shown = prompts.map(|prompt| if prompt.starts_with("You ") { "builtin".to_owned() } else { prompt });
        assert_eq!(shown, expected, "{trusted:?}");
    };
    let (top, sub, added) = ("top/.claude", "top/sub/.claude", "added/.claude");
    check(&[], ["config", "config", "builtin", "builtin", sub, top, sub, "kit"]);
    check(&["top"], [top, "config", top, "builtin", top, top, sub, "kit"]);
    check(&["top/sub"], ["config", "config", "builtin", sub, sub, top, sub, "kit"]);
    check(&["top", "top/sub", "added"], [top, added, top, sub, sub, top, sub, "kit"]);
}
