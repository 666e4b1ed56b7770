use super::*;

#[test]
fn instructions_come_from_the_outside_in_each_once_with_what_they_name() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let project = root.join("project");
    fs::create_dir_all(project.join(".claude/rules")).unwrap();
    fs::write(root.join("CLAUDE.md"), "outer").unwrap();
    fs::write(project.join("CLAUDE.md"), "inner, see @more.md and `@not.md`\n```\n@nor.md\n```").unwrap();
    fs::write(project.join("more.md"), "more @CLAUDE.md").unwrap();
    fs::write(project.join("not.md"), "no").unwrap();
    fs::write(project.join("nor.md"), "no").unwrap();
    fs::write(project.join(".claude/rules/style.md"), "a rule").unwrap();
    let files = find(Path::new("/nonexistent"), &project, &[], &[Source::Project]);
    let said: Vec<&str> = files.iter().map(|file| file.content.lines().next().unwrap()).collect();
    assert_eq!(said, ["outer", "inner, see @more.md and `@not.md`", "more @CLAUDE.md", "a rule"]);
    assert!(find(Path::new("/nonexistent"), &project, &[], &[Source::User]).is_empty());
}

#[test]
fn instructions_that_are_no_text_are_read_as_far_as_they_are() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("CLAUDE.md"), b"caf\xe9 @picture.png").unwrap();
    fs::write(root.path().join("picture.png"), b"\x89PNG").unwrap();
    let files = find(root.path(), Path::new("/nonexistent"), &[], &[Source::User]);
    let said: Vec<&str> = files.iter().map(|file| file.content.as_str()).collect();
    assert_eq!(said, ["caf\u{fffd} @picture.png"]);
}
