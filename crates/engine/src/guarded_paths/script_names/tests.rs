use super::*;

/// Checks which files a command runs, by its names. They are in the folder of a session, and need not exist.
#[track_caller]
fn check(command: &str, guarded: &[&str], free: &[&str]) {
    let root = Path::new("/home/u/My Project");
    let variable = |name: &str| (name == "TOOLS").then(|| "tools/bin".to_owned());
    let mut names = ScriptNames::default();
    names.add(command, &variable);
    let may_run = |file: &&str| names.may_run(&root.join(file), &[root.to_owned()]);
    let missed: Vec<_> = guarded.iter().filter(|file| !may_run(file)).collect();
    let excess: Vec<_> = free.iter().filter(|file| may_run(file)).collect();
    assert!(missed.is_empty() && excess.is_empty(), "{command}: missed {missed:?}, excess {excess:?}");
}

#[test]
fn a_file_is_guarded_if_its_name_and_folders_occur_in_the_text() {
    for command in [
        "scripts/h.sh",
        "./scripts/h.sh 2>&1 | tee",
        "\"$CLAUDE_PROJECT_DIR\"/scripts/h.sh",
        "\"${CLAUDE_PROJECT_DIR:-.}/scripts/h.sh\" --fix",
        "bash \"${HOOK_DIR:-scripts}/h.sh\"",
        "~/'My Project'/scripts/h.sh",
        "$(git rev-parse --show-toplevel)/scripts/h.sh",
        "bash $'scripts/h.sh'",
        "sh -c 'exec scripts/h.sh'",
        "node --require=scripts/h.sh",
        "cd scripts && ./h.sh",
        "cd \"$CLAUDE_PROJECT_DIR/scripts\"; sh h.sh",
        "x=`bash scripts/h.sh`",
        "cat scripts/h.sh | bash",
        "[ -f scripts/h.sh ] && sh \"$_\"",
        "BASH_ENV=scripts/h.sh bash",
        "PATH=$PWD/scripts:$PATH; h.sh",
        "for f in h.sh; do sh scripts/$f; done",
    ] {
        check(command, &["scripts/h.sh"], &["scripts/other.sh", "other/h.sh"]);
    }
    check("bash 'my hooks/x y.sh'", &["my hooks/x y.sh"], &["my hooks/z.sh"]);
    check("sh 'my-s(1)/x.sh'; sh packages/@acme/x.sh", &["my-s(1)/x.sh", "packages/@acme/x.sh"], &[]);
    check("$TOOLS/check", &["tools/bin/check"], &["check-all"]);
    check("cat notes.txt | sh", &["notes.txt"], &["other.txt"]);
    check("SCRIPTS/H.sh", &["scripts/h.sh"], &[]);
    // A folder on the way could be made as a link.
    check("sh scripts/lib/h.sh", &["scripts", "scripts/lib"], &["libs"]);
}

#[test]
fn modules_are_named_without_their_endings() {
    check("node x", &["x.js", "x.ts"], &["sub/x.js", "x.json"]);
    check("node scripts/x", &["scripts/x.mjs"], &["scripts/y.mjs"]);
    check("node -e 'require(\"./srv\")'", &["srv.js"], &["srv/other.js"]);
    for command in ["python3 -m pkg.check", "python3 -mpkg.check", "python3 -c 'from pkg import check'"] {
        check(command, &["pkg/check.py"], &["check/pkg.rs", "pkg/other.py"]);
    }
    check("ruby -r./lib/foo x.rb", &["lib/foo.rb", "x.rb"], &["lib/bar.rb"]);
    check("fastmcp run srv.py:mcp", &["srv.py"], &[]);
}

#[test]
fn what_the_text_does_not_name_is_free() {
    let sources = ["src/a.ts", "src/b.rs", "README.md", "src/x.py", "a.sh", "Cargo.toml"];
    for command in [
        "npx prettier --write \"src/**/*.md\" src",
        "[[ $f == src/*.rs ]] && cargo fmt",
        "jq -r .tool_input.file_path",
        "f=$(jq -r .file_path); case $f in *.rs) rustfmt $f;; esac",
        "cd src && npm run lint",
        "find . -name '*.py' | xargs ruff check",
        "for f in *.sh; do sh $f; done",
    ] {
        check(command, &[], &sources);
    }
}

#[test]
fn links_to_scripts_are_followed() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::fs::write(root.join("real/h"), "").unwrap();
    std::fs::write(root.join("c.sh"), "").unwrap();
    for (target, link) in [("real", "scripts"), ("c.sh", "x.sh"), (".", "p")] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    let check = |command: &str, expected: &[&str]| {
        let mut names = ScriptNames::default();
        names.add(command, &|_| None);
        let mut found = names.linked_paths(&[&root]);
        found.sort();
        found.dedup();
        assert_eq!(found, expected.iter().map(|name| root.join(name)).collect::<Vec<_>>(), "{command}");
    };
    check("bash scripts/h", &["scripts/h"]);
    check("cd scripts && sh h", &["scripts"]);
    check("sh ./x.sh; sh p/c.sh", &["p/c.sh", "./x.sh"]);
    check("sh c.sh", &[]);
}

#[test]
fn what_a_start_up_file_loads_is_found() {
    let text = "alias build='make x.sh'\n[ -f env.sh ] && . env.sh\nif true; then source ~/work/other/e; fi";
    let root = Path::new("/home/u/work");
    let mut names = ScriptNames::default();
    names.add_loaded(text, &|_| None);
    let may_run = |file: &str| names.may_run(&root.join(file), &[root.to_owned()]);
    assert!(may_run("env.sh") && may_run("other/e") && !may_run("x.sh") && !may_run("make"));
}

#[test]
fn a_worktree_has_the_same_scripts() {
    check("bash scripts/a.sh", &["scripts/a.sh", ".claude/worktrees/w/scripts/a.sh"], &[".claude/worktrees/w/b.sh"]);
}
