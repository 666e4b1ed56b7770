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
