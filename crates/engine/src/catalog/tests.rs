use super::*;

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
