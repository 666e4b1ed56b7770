use std::os::unix::fs::symlink;

use super::*;
use crate::permission::RuleSource;
use crate::permission::{Behavior, Rule, RuleSet, hidden_file_filter};
use crate::tool::WorkspaceOptions;

fn test_workspace(root: &Path) -> Workspace {
    Workspace::new(root, WorkspaceOptions::default())
}

fn contents_of(found: &[InstructionFile]) -> Vec<&str> {
    found.iter().map(|file| file.content.lines().next().unwrap_or_default()).collect()
}

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
    let (files, left_out) =
        find_instructions(Path::new("/nonexistent"), &test_workspace(&project), &[], &[SettingSource::Project]);
    assert_eq!(left_out, Vec::<String>::new());
    assert_eq!(contents_of(&files), ["outer", "inner, see @more.md and `@not.md`", "more @CLAUDE.md", "a rule"]);
    assert!(
        find_instructions(Path::new("/nonexistent"), &test_workspace(&project), &[], &[SettingSource::User])
            .0
            .is_empty()
    );
}

#[test]
fn instructions_that_are_no_text_are_read_as_far_as_they_are() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("CLAUDE.md"), b"caf\xe9 @picture.png").unwrap();
    fs::write(root.path().join("picture.png"), b"\x89PNG").unwrap();
    let (files, _) =
        find_instructions(root.path(), &test_workspace(Path::new("/nonexistent")), &[], &[SettingSource::User]);
    assert_eq!(contents_of(&files), ["caf\u{fffd} @picture.png"]);
}

#[test]
fn a_project_names_no_files_of_others() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let project = root.join("project");
    fs::create_dir_all(project.join(".claude/rules")).unwrap();
    fs::write(root.join("secret"), "SECRET").unwrap();
    fs::write(project.join(".env"), "SECRET").unwrap();
    fs::write(project.join("own.md"), "own").unwrap();
    let text = format!("top @{0}/secret @../secret @link @.env @/proc/self/environ @/dev/zero @own.md", root.display());
    fs::write(project.join("CLAUDE.md"), text).unwrap();
    symlink("../secret", project.join("link")).unwrap();
    symlink("../../../secret", project.join(".claude/rules/x.md")).unwrap();
    symlink("/dev/stdin", project.join(".claude/rules/stdin.md")).unwrap();
    let place = test_workspace(&project);
    let mut rules = RuleSet::default();
    rules.add(Behavior::Deny, RuleSource::Flags, Rule::parse("Read(./.env)").unwrap());
    place.set_hidden_files(hidden_file_filter(&rules, &place));
    let (files, left_out) = find_instructions(Path::new("/nonexistent"), &place, &[], &[SettingSource::Project]);
    assert_eq!(contents_of(&files).len(), 2, "{files:?}");
    assert_eq!(contents_of(&files)[1], "own");
    assert!(left_out.len() >= 5, "{left_out:?}");
    // The user's own file may name any regular file that no rule refuses.
    let config = root.join("config");
    fs::create_dir(&config).unwrap();
    fs::write(config.join("CLAUDE.md"), "mine @../secret @/proc/self/environ @../project/.env").unwrap();
    let (files, _) = find_instructions(&config, &place, &[], &[SettingSource::User]);
    assert_eq!(contents_of(&files), ["mine @../secret @/proc/self/environ @../project/.env", "SECRET"]);
    // But the files of the session that it names may not, nor lead out of it.
    fs::write(project.join("docs.md"), "docs @../secret @own.md").unwrap();
    fs::write(config.join("CLAUDE.md"), "mine @../project/docs.md @../project/link").unwrap();
    let (files, left_out) = find_instructions(&config, &place, &[], &[SettingSource::User]);
    let expected = ["mine @../project/docs.md @../project/link", "docs @../secret @own.md", "own"];
    assert_eq!(contents_of(&files), expected);
    assert_eq!(left_out.len(), 1, "{left_out:?}");
}

#[test]
fn rings_and_floods_of_rules_come_to_an_end() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    fs::create_dir_all(root.join(".claude/rules")).unwrap();
    for name in ["l1", "l2", "l3"] {
        symlink(".", root.join(".claude/rules").join(name)).unwrap();
    }
    fs::write(root.join(".claude/rules/a.md"), "a").unwrap();
    fs::write(root.join("big"), vec![b'x'; 2 << 20]).unwrap();
    fs::write(root.join("CLAUDE.md"), "@big").unwrap();
    let (files, left_out) =
        find_instructions(Path::new("/nonexistent"), &test_workspace(&root), &[], &[SettingSource::Project]);
    assert_eq!(contents_of(&files), ["@big", "a"]);
    assert_eq!(left_out.len(), 1, "{left_out:?}");
}
