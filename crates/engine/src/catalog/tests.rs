use super::*;

fn saved(body: &str) -> Saved {
    Saved {
        name: "x".into(),
        description: String::new(),
        argument_hint: String::new(),
        allowed_tools: Vec::new(),
        body: body.into(),
        is_skill: false,
        folder: PathBuf::new(),
        of_project: false,
    }
}

#[test]
fn arguments_go_where_the_prompt_asks_for_them() {
    assert_eq!(saved("Say hello to $ARGUMENTS").expand("Bob Ross"), "Say hello to Bob Ross");
    assert_eq!(saved("$2 before $1, not $3").expand("a b"), "b before a, not ");
    assert_eq!(saved("$ARGUMENTS, $1").expand("$1 $ARGUMENTS"), "$1 $ARGUMENTS, $1");
    assert_eq!(saved("It costs $100 or $ 5").expand("a"), "It costs $100 or $ 5\n\nArguments: a\n");
    assert_eq!(saved("Fix it").expand("now"), "Fix it\n\nArguments: now\n");
    assert_eq!(saved("Fix it").expand(""), "Fix it");
}

#[test]
fn a_files_head_says_what_it_is() {
    let (front, body) = front_matter("---\nname: rev\ndescription: Reviews\ntools: Read, Grep\n---\n\nYou review.\n");
    assert_eq!(
        (front.name.as_deref(), front.description.as_deref(), body),
        (Some("rev"), Some("Reviews"), "You review.\n")
    );
    assert_eq!(front.tools.unwrap().0, ["Read", "Grep"]);
    let (front, _) = front_matter("---\nallowed-tools: [Read, 'Bash(ls:*)']\n---\n");
    assert_eq!(front.allowed_tools.unwrap().0, ["Read", "Bash(ls:*)"]);
    assert_eq!(front_matter("no head").1, "no head");
}

#[test]
fn a_host_may_add_subagents() {
    let mut catalog = Catalog::default();
    catalog.add_agents(r#"{"rev":{"description":"Reviews","prompt":"You review","tools":["Read"]}}"#).unwrap();
    assert_eq!(catalog.agents["rev"].tools.as_deref(), Some(&["Read".to_owned()][..]));
}
