//! Git counts as read-only, and a rule allows it, only in the repository of the session.

use std::fs;

use quipu_engine::testing::permission::PermissionMode;

use crate::TestWorkspace;

#[test]
fn git_only_reads_in_the_repository_the_session_began_in() {
    let workspace = TestWorkspace::new();
    for folder in [".git", "docs/objects", "docs/refs", "src", "nested/.git"] {
        fs::create_dir_all(workspace.path(folder)).unwrap();
    }
    workspace.write("docs/HEAD", "ref: refs/heads/main");
    workspace.write("docs/config", "[core]\n\tfsmonitor = touch /tmp/x\n");
    for command in ["cd docs && git status", "cd src && git status", "git status; cd docs && git log"] {
        for mode in [PermissionMode::Default, PermissionMode::AcceptEdits] {
            assert_eq!(workspace.bash_decision(mode, &[], command), "ask", "{command}");
        }
    }
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], "git status"), "allow");
    for (folder, expected) in [("src", "allow"), ("docs", "ask"), ("nested", "ask")] {
        workspace.inner.set_cwd(workspace.path(folder));
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], "git status"), expected, "in {folder}");
    }
    let bare = TestWorkspace::new();
    for folder in ["objects", "refs"] {
        fs::create_dir_all(bare.path(folder)).unwrap();
    }
    bare.write("HEAD", "ref: refs/heads/main");
    assert_eq!(bare.bash_decision(PermissionMode::Default, &[], "git status"), "ask");
}

#[test]
fn a_literal_rule_for_git_covers_the_repository_of_the_session() {
    let workspace = TestWorkspace::new();
    let rules = ["allow Bash(git status)", "allow Bash(make && git status)"];
    for name in [".git/config", "sub/a", "nested/HEAD", "nested/objects/x", "nested/refs/x"] {
        workspace.write(name, "");
    }
    // A folder that names where its objects are is a repository too.
    for name in ["other/HEAD", "other/commondir"] {
        workspace.write(name, "");
    }
    workspace.inner.set_cwd(workspace.path("other"));
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, "git status"), "ask");
    // Git is not always the first word, and options tell it where to run.
    workspace.inner.set_cwd(workspace.path("nested"));
    for command in ["time git status", "env git status", "sh -c 'git status'", "command git status"] {
        let rule = format!("allow Bash({command})");
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[&rule], command), "ask", "{command}");
    }
    let rules_for_wrappers =
        ["env:*", "stdbuf:*", "timeout:*", "git:*", "find:*", "xargs:*"].map(|rule| format!("allow Bash({rule})"));
    let rules_for_wrappers: Vec<&str> = rules_for_wrappers.iter().map(String::as_str).collect();
    for command in ["env LANG=C git status", "stdbuf -oL git status", "timeout -k 5 10 git status"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules_for_wrappers, command), "ask", "{command}");
    }
    workspace.inner.set_cwd(workspace.inner.root());
    for command in [
        "git -C nested status",
        "git --git-dir=nested status",
        "git --work-tree=. status",
        "git --shallow-file x -C nested status",
        "git --unknown x -C nested status",
        "env -C nested git status",
        "env --chdir=nested git status",
        "env git -C nested status",
        "find nested -execdir git status ';'",
        "xargs -I{} git -C {} status",
        "xargs -IX git -C X status",
    ] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules_for_wrappers, command), "ask", "{command}");
    }
    for command in ["git -C sub status", "env git -C sub status", "git -C . log", "env LANG=C git status"] {
        assert_eq!(
            workspace.bash_decision(PermissionMode::Default, &rules_for_wrappers, command),
            "allow",
            "{command}"
        );
    }
    for (folder, expected) in [("", "allow"), ("sub", "allow"), ("nested", "ask")] {
        workspace.inner.set_cwd(workspace.path(folder));
        for command in ["git status", "make && git status"] {
            assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), expected, "{command}");
        }
    }
}
