//! Modes, rules, updates and suggestions.

use quipu_engine::testing::permission::{
    Behavior, Decision, DecisionReason, PermissionMode, Rule, RuleSet, RuleSource, evaluate,
};
use quipu_engine::testing::sandbox::{NameUse, SandboxProfile};
use quipu_engine::testing::tool::WorkspaceOptions;
use quipu_message::Json;
use quipu_message::control::PermissionUpdate;
use serde_json::{Value, json};

use crate::{TestWorkspace, decision_word, parse_rules};

fn update(value: Value) -> PermissionUpdate {
    Json::from(value).read().unwrap()
}

#[test]
fn each_mode_allows_what_is_documented() {
    let workspace = TestWorkspace::new();
    let inside = json!({"file_path": workspace.path_text("a")});
    let outside = json!({"file_path": "/srv/elsewhere/a"});
    let shell = |command: &str| json!({"command": command});
    let modes = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::BypassPermissions,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
    ];
    let table: [(&str, Value, [&str; 5]); 17] = [
        ("Read", inside.clone(), ["allow", "allow", "allow", "allow", "allow"]),
        ("Read", outside.clone(), ["ask", "ask", "allow", "ask", "deny"]),
        ("Grep", json!({"pattern": "x"}), ["allow", "allow", "allow", "allow", "allow"]),
        ("Glob", json!({"pattern": "**/*.rs"}), ["allow", "allow", "allow", "allow", "allow"]),
        ("Write", inside.clone(), ["ask", "allow", "allow", "deny", "deny"]),
        ("Edit", inside, ["ask", "allow", "allow", "deny", "deny"]),
        ("NotebookEdit", json!({"notebook_path": "/srv/n.ipynb"}), ["ask", "ask", "allow", "deny", "deny"]),
        ("Write", outside, ["ask", "ask", "allow", "deny", "deny"]),
        ("Bash", shell("echo hi && git status"), ["allow", "allow", "allow", "allow", "allow"]),
        ("Bash", shell("touch a"), ["ask", "allow", "allow", "deny", "deny"]),
        ("Bash", shell("npm test"), ["ask", "ask", "allow", "deny", "deny"]),
        ("WebFetch", json!({"url": "https://example.com/"}), ["ask", "ask", "allow", "ask", "deny"]),
        ("TodoWrite", json!({"todos": []}), ["allow", "allow", "allow", "allow", "allow"]),
        ("mcp__fs__read", json!({}), ["ask", "ask", "allow", "ask", "deny"]),
        ("WebSearch", json!({"query": "q"}), ["ask", "ask", "allow", "ask", "deny"]),
        ("SomethingNew", json!({}), ["ask", "ask", "allow", "ask", "deny"]),
        ("AskUserQuestion", json!({}), ["ask", "ask", "ask", "ask", "deny"]),
    ];
    for (tool, input, expected) in table {
        let found = modes.map(|mode| decision_word(&workspace.evaluate(mode, &[], tool, &input)));
        assert_eq!(found, expected, "{tool} {input}");
    }
}

#[test]
fn rules_allow_refuse_and_ask() {
    let workspace = TestWorkspace::with_options(WorkspaceOptions {
        env: [("HOME".into(), "/home/me".into())].into(),
        ..WorkspaceOptions::default()
    });
    let path = |path: &str| json!({"file_path": path});
    let here = |name: &str| json!({"file_path": workspace.path_text(name)});
    let url = |url: &str| json!({"url": url});
    let table: [(&[&str], &str, Value, &str); 82] = [
        (&["allow Read(~/x/**)"], "Read", path("/home/me/x/y/z"), "allow"),
        (&["allow Read(~/x/**)"], "Read", path("~/x/y"), "allow"),
        (&["allow Read(~/x/**)"], "Read", path("/home/me/y"), "ask"),
        (&["allow Read(~/x/**)"], "Read", path("/home/me/x/../y"), "ask"),
        (&["allow Read(//var/log/*.log)"], "Read", path("/var/log/a.log"), "allow"),
        (&["allow Read(//var/log/*.log)"], "Write", path("/var/log/a.log"), "ask"),
        (&["allow Edit(src/**)"], "Write", here("src/a/b.rs"), "allow"),
        (
            &["allow Edit(src/**)"],
            "NotebookEdit",
            json!({"notebook_path": workspace.path_text("src/n.ipynb")}),
            "allow",
        ),
        (&["allow Edit(src/**)"], "Edit", here("other/src/x"), "ask"),
        // Only folders match, and not the one that the pattern is relative to.
        (&["allow Edit(*/)"], "Write", here("top.txt"), "ask"),
        (&["allow Edit(**/)"], "Write", here("top.txt"), "ask"),
        (&["allow Edit(*/)"], "Write", here("src/a/b.rs"), "allow"),
        (&["allow Edit(src/a[!_]*.py)"], "Write", here("src/ab.py"), "allow"),
        (&["allow Edit(src/a[!_]*.py)"], "Write", here("src/a/evil.py"), "ask"),
        (&["allow Edit(docs[^.]*)"], "Write", here("docs/evil"), "ask"),
        (&["allow Edit(docs[a\\-z])"], "Write", here("docs^"), "ask"),
        (&["allow Edit(/docs/**)"], "Edit", here("docs/x"), "allow"),
        (&["allow Write"], "Edit", here("docs/x"), "ask"),
        (&["deny Read(~)"], "Read", path("/home/me/x"), "deny"),
        (&["allow Read(~)"], "Read", path("/home/me/x"), "ask"),
        (&["deny Read(.env)"], "Read", here(".env"), "deny"),
        (&["deny Read(.env)"], "Read", here("deep/.env"), "deny"),
        (&["deny Read(./.env)"], "Read", here("deep/.env"), "allow"),
        (&["deny Read(secrets/**)"], "Grep", json!({"pattern": "x", "path": workspace.path_text("secrets/a")}), "deny"),
        (&["allow Read", "deny Read(.env)"], "Read", here(".env"), "deny"),
        (&["deny Read(.env)"], "Bash", json!({"command": "cat ./.env"}), "deny"),
        (&["ask Read(*.pem)"], "Read", here("k.pem"), "ask"),
        (&["allow WebFetch(domain:example.com)"], "WebFetch", url("https://EXAMPLE.com/a"), "allow"),
        (&["allow WebFetch(domain:example.com)"], "WebFetch", url("https://example.com.evil.org/"), "ask"),
        (&["allow WebFetch(domain:example.com)"], "WebFetch", url("https://evil.org/?example.com"), "ask"),
        (&["allow WebFetch(domain:example.com)"], "WebFetch", url("https://example.com@evil.org/"), "ask"),
        (&["deny WebFetch(domain:example.com)"], "WebFetch", url("https://a.example.com./"), "deny"),
        (&["allow mcp__fs"], "mcp__fs__read", json!({}), "allow"),
        (&["allow mcp__fs__*"], "mcp__fs__read", json!({}), "allow"),
        (&["allow mcp__fs__read"], "mcp__fs__read", json!({}), "allow"),
        (&["allow mcp__fs__read"], "mcp__fs__write", json!({}), "ask"),
        (&["allow mcp__fs"], "mcp__fsx__read", json!({}), "ask"),
        // It may be a tool of a server `fs__b`.
        (&["allow mcp__fs"], "mcp__fs__b__read", json!({}), "ask"),
        (&["allow mcp__fs__b__read"], "mcp__fs__b__read", json!({}), "allow"),
        (&["allow mcp__fs", "allow mcp__fs__*"], "mcp__fs___read", json!({}), "ask"),
        (&["allow mcp__fs_"], "mcp__fs___read", json!({}), "ask"),
        (&["allow mcp__fs___read"], "mcp__fs___read", json!({}), "allow"),
        (&["deny mcp__fs"], "mcp__fs___read", json!({}), "deny"),
        (&["allow mcp__my_fs", "deny mcp__my.fs"], "mcp__my_fs__read", json!({}), "deny"),
        (&["allow mcp__my_fs", "ask mcp__my.fs__do.*"], "mcp__my_fs__do_it", json!({}), "ask"),
        (&["allow mcp__my.fs"], "mcp__my_fs__read", json!({}), "ask"),
        (&["allow Bash", "deny mcp__fs"], "mcp__fs__b__read", json!({}), "deny"),
        (&["allow mcp__fs__b__read", "deny mcp__fs__b"], "mcp__fs__b__read", json!({}), "deny"),
        (&["allow mcp__fs", "deny mcp__*__read"], "mcp__fs__read", json!({}), "deny"),
        (&["allow mcp__fs", "deny mcp__fs__re*"], "mcp__fs__read", json!({}), "deny"),
        (&["allow mcp__fs", "ask mcp__*"], "mcp__fs__read", json!({}), "ask"),
        (&["allow Skill", "deny Skill(deploy)"], "Skill", json!({"skill": "/deploy"}), "deny"),
        // Every form of the name that the tool accepts, and no other key.
        (&["deny Skill(deploy)"], "Skill", json!({"skill": "//deploy"}), "deny"),
        (&["ask Skill(/deploy)"], "Skill", json!({"skill": "deploy"}), "ask"),
        (&["deny Skill(deploy)"], "Skill", json!({"skill": "deploy", "subagent_type": "x"}), "deny"),
        (&["deny Agent(general-purpose)"], "Agent", json!({"skill": "x"}), "deny"),
        (&["deny Agent(Explore)"], "Task", json!({"subagent_type": "Explore", "skill": "x"}), "deny"),
        (&["allow mcp__*"], "mcp__fs__read", json!({}), "ask"),
        (&["deny Task"], "Agent", json!({}), "deny"),
        (&["allow Read(*)"], "Read", path("/etc/passwd"), "ask"),
        (&["allow Edit(*)"], "Edit", here("deep/a"), "allow"),
        (&["allow WebFetch(domain:*)"], "WebFetch", url("https://example.com/a"), "allow"),
        (&["allow WebFetch", "deny WebFetch(example.com)"], "WebFetch", url("https://example.com/a"), "deny"),
        (&["allow WebFetch(domain:*.example.com)"], "WebFetch", url("https://a.example.com/a"), "allow"),
        (&["allow WebFetch(domain:*.example.com)"], "WebFetch", url("https://example.com/a"), "ask"),
        (&["allow WebFetch", "deny WebFetch(domain:bücher.org)"], "WebFetch", url("https://bücher.org/"), "deny"),
        (
            &["allow WebFetch", "ask WebFetch(domain:Bücher.org)"],
            "WebFetch",
            url("https://a.xn--bcher-kva.org/"),
            "ask",
        ),
        (&["allow WebFetch(domain:bücher.org)"], "WebFetch", url("https://xn--bcher-kva.org/"), "allow"),
        // What is not a host denies everything.
        (&["allow WebFetch", "deny WebFetch(domain:example.com/)"], "WebFetch", url("https://example.com/"), "deny"),
        (
            &["allow WebFetch", "deny WebFetch(domain:example.com:81)"],
            "WebFetch",
            url("https://example.com:81/"),
            "deny",
        ),
        (&["allow WebFetch", "deny WebFetch(domain:example.*)"], "WebFetch", url("https://example.com/"), "deny"),
        (&["allow WebFetch(domain:example.*)"], "WebFetch", url("https://example.com/"), "ask"),
        (&["deny Bash"], "Bash", json!({"command": "ls"}), "deny"),
        (&["deny Agent(Explore)"], "Agent", json!({"subagent_type": "Explore"}), "deny"),
        (&["deny Agent(Explore)"], "Agent", json!({"subagent_type": "Plan"}), "allow"),
        (&["deny Agent(Explore)"], "Agent", json!({"prompt": "x"}), "allow"),
        (&["allow Skill(review)"], "Skill", json!({"skill": "review"}), "allow"),
        (&["allow Skill(review)"], "Skill", json!({"skill": "deploy"}), "ask"),
        (&["allow mcp__fs__read(x)"], "mcp__fs__read", json!({}), "ask"),
        (&["deny mcp__fs__read(x)"], "mcp__fs__read", json!({}), "deny"),
        (&["allow ExitPlanMode"], "ExitPlanMode", json!({}), "ask"),
        (&["deny Write(a.txt)"], "Bash", json!({"command": "echo x > a.txt"}), "deny"),
    ];
    for (texts, tool, input, expected) in table {
        assert_eq!(
            decision_word(&workspace.evaluate(PermissionMode::Default, texts, tool, &input)),
            expected,
            "{texts:?} {tool} {input}"
        );
    }
}

#[test]
fn deny_rules_hold_in_every_mode() {
    let workspace = TestWorkspace::new();
    for mode in [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::BypassPermissions,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
    ] {
        assert_eq!(workspace.bash_decision(mode, &["allow Bash", "deny Bash(rm:*)"], "rm x"), "deny");
        let input = json!({"file_path": workspace.path_text(".env")});
        assert_eq!(decision_word(&workspace.evaluate(mode, &["deny Read(.env)"], "Read", &input)), "deny");
    }
}

#[test]
fn files_that_git_compares_after_an_allowed_command_are_asked_about() {
    let workspace = TestWorkspace::new();
    let decide = |command: &str| {
        workspace.bash_decision(
            PermissionMode::Default,
            &["allow Bash(git checkout:*)", "allow Bash(git clone:*)"],
            command,
        )
    };
    // Without a repository it compares any files.
    assert_eq!(decide("git clone x y && git diff y/link/secret a.txt"), "ask");
    workspace.write(".git/HEAD", "");
    let outside = workspace.inner.root().join("../add/e.txt");
    let outside = format!("git checkout x && git diff link/secret {}", outside.display());
    for (command, expected) in [
        ("git checkout x && git diff link/secret ../add/e.txt", "ask"),
        (outside.as_str(), "ask"),
        ("git checkout x && git diff origin/main HEAD -- src", "allow"),
        ("git checkout x && git diff main..origin/main", "allow"),
    ] {
        assert_eq!(decide(command), expected, "{command}");
    }
}

#[test]
fn files_that_are_opened_after_words_are_expanded_are_in_use_throughout() {
    let workspace = TestWorkspace::new();
    let name_use = |command: &str| {
        let input = json!({"command": command});
        match workspace.evaluate(PermissionMode::Default, &["allow Bash(make:*)", "allow Edit(**)"], "Bash", &input) {
            Decision::Allow { profile: SandboxProfile::ByRule { name_use, .. }, .. } => Some(name_use),
            _ => None,
        }
    };
    assert_eq!(name_use("make > log"), Some(NameUse::AtStart));
    assert_eq!(name_use("make d/*/* > log"), Some(NameUse::Throughout));
}

/// A command in the sandbox may make a name a link to a guarded file after it was compared.
#[test]
fn names_that_a_command_by_rule_writes_are_in_use_throughout() {
    let workspace = TestWorkspace::new();
    workspace.write("evil", "");
    for (rule, command, expected) in [
        ("allow Bash(cp:*)", "cp evil x", NameUse::Throughout),
        ("allow Bash(cp evil x)", "cp evil x", NameUse::Throughout),
        ("allow Bash(rm:*)", "rm -f d/x", NameUse::Throughout),
        ("allow Bash(env:*)", "env cp evil x", NameUse::Throughout),
        ("allow Bash(sh:*)", "sh -c 'cp evil x'", NameUse::Throughout),
        ("allow Bash(flock:*)", "flock a.txt cp evil x", NameUse::Throughout),
        ("allow Bash(make:*)", "make evil", NameUse::Never),
    ] {
        match workspace.evaluate(PermissionMode::Default, &[rule], "Bash", &json!({"command": command})) {
            Decision::Allow { profile: SandboxProfile::ByRule { name_use, .. }, .. } => {
                assert_eq!(name_use, expected, "{rule} {command}");
            }
            decision => panic!("{rule} {command}: {decision:?}"),
        }
    }
}

#[test]
fn git_that_a_rule_allows_finds_no_repository_that_another_command_has_made() {
    let workspace = TestWorkspace::new();
    workspace.write(".git/HEAD", "");
    workspace.write("sub/a", "");
    let rules = ["allow Bash(git:*)", "allow Bash(make:*)", "allow Bash(cp:*)"];
    let uses_git = |command: &str| {
        let input = json!({"command": command});
        match workspace.evaluate(PermissionMode::Default, &rules, "Bash", &input) {
            Decision::Allow { profile: SandboxProfile::ByRule { uses_git, .. }, .. } => Some(uses_git),
            _ => None,
        }
    };
    assert_eq!(uses_git("make"), Some(false));
    workspace.inner.set_cwd(workspace.path("sub"));
    // These run with `safe.bareRepository`.
    assert_eq!(uses_git("git checkout x && git add a"), Some(true));
    assert_eq!(uses_git("git checkout x && git status"), Some(true));
    assert_eq!(uses_git("git checkout x && make && git status"), Some(true));
    // A file `.git` makes another repository too.
    assert_eq!(uses_git("cp a .git && git status"), None);
}

#[test]
fn commands_are_allowed_part_by_part() {
    let workspace = TestWorkspace::new();
    let table: [(&[&str], &str, &str); 38] = [
        (&[], "cd . && git status", "allow"),
        (&["allow Bash(git status:*)"], "cd . && git status", "allow"),
        (&["allow Bash(git status:*)"], "cd sub && git status", "ask"),
        (&["allow Bash(npm test)"], "npm test && git status", "ask"),
        // The checkout may have made a link to the file.
        (&["allow Bash(git checkout:*)", "allow Bash(cat:*)", "deny Read(./.env)"], "git checkout x && cat n", "ask"),
        (&["allow Bash(git checkout:*)", "allow Bash(cat:*)"], "git checkout x && cat n", "allow"),
        (&["allow Bash(make:*)"], "make | sed -n 1,5p", "allow"),
        (&["allow Bash(make:*)"], "make | column -s , -t", "allow"),
        (&["allow Bash(make:*)"], "make; sed -n 1,5p a.txt", "ask"),
        (&["allow Bash(npm test)", "allow Bash(git add:*)"], "git add . && git status", "allow"),
        (
            &["allow Bash(git:*)", "deny Read(.env)"],
            "git --no-pager status && git add -A && git commit -m fix",
            "allow",
        ),
        (&["allow Bash(npm test)"], "npm test", "allow"),
        (&["allow Bash(npm test)"], "npm test --watch", "ask"),
        (&["allow Bash(npm run:*)"], "npm run build -- --fast", "allow"),
        (&["allow Bash(npm run:*)"], "npm runaway", "ask"),
        (&["allow Bash(git diff:*)"], "git diff HEAD~3 | head -20", "allow"),
        (&["allow Bash(git diff:*)"], "git  'diff'\tx", "allow"),
        (&["allow Bash(touch aa *)"], "touch aa", "allow"),
        (&["allow Bash(touch aa *)"], "touch aa bb", "allow"),
        (&["allow Bash(touch aa *)"], "touch aab", "ask"),
        (&["allow Bash(git * main)"], "git push origin main", "allow"),
        (&["allow Bash(git commit -m 'a b':*)"], "git commit -m \"a b\" x", "allow"),
        (&["allow Bash(make:*)", "allow Bash(cargo test:*)"], "make && cargo test -p x", "allow"),
        (&["allow Bash(make:*)"], "make && cargo test", "ask"),
        (&["allow Bash(make:*)"], "timeout 60 make all", "allow"),
        (&["allow Bash(make:*)"], "NODE_ENV=test make all", "allow"),
        (&["allow Bash(make:*)"], "for i in 1 2; do make $i; done", "allow"),
        // The program may make the file a link, and the next round opens it.
        (&["allow Bash(git checkout:*)", "allow Edit(log)"], "git checkout b 2>> log", "allow"),
        (&["allow Bash(git checkout:*)", "allow Edit(log)"], "for i in 1 2; do git checkout b 2>> log; done", "ask"),
        (&["allow Bash(make:*)"], "for i in 1 2; do make -f - < a; done", "ask"),
        (&["allow Bash(make:*)"], "if make; then echo yes; fi", "allow"),
        (&["allow Bash(for i in 1 2; do x $((i)); done)"], "for i in 1 2; do x $((i)); done", "allow"),
        (&["allow Bash"], "anything $((1)) at all", "allow"),
        (&["allow Bash(*)"], "anything", "allow"),
        (&[], "ls -la src && grep -rn 'fn main' src | wc -l", "allow"),
        (&[], "find . -name '*.rs' -type f", "allow"),
        (&[], "cd src && cat main.rs", "allow"),
        (&[], "# nothing", "allow"),
    ];
    for (texts, command, expected) in table {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, texts, command), expected, "{texts:?} {command}");
    }
}

#[test]
fn wildcards_and_variables_are_read_in_the_sandbox() {
    let workspace = TestWorkspace::new();
    for name in ["a.md", "src/main.rs", "linked/a", "dashed/-o"] {
        workspace.write(name, "x");
    }
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), workspace.path("linked/out")).unwrap();
    let decide = |mode, rules: &[&str], command: &str| {
        let decision = workspace.evaluate(mode, rules, "Bash", &json!({"command": command}));
        match decision {
            Decision::Allow { profile: SandboxProfile::Read, .. } => "read",
            decision => crate::decision_word(&decision),
        }
    };
    let table = [
        ("ls *.md", "read"),
        ("wc -l src/*.rs *.md | sort -n", "read"),
        ("echo \"$HOME\" $PATH ~ *", "read"),
        ("echo \"$(pwd)\"", "read"),
        ("echo /usr/bin", "read"),
        ("for f in 1 2; do echo $f; done", "read"),
        ("git --no-pager log --oneline -3", "read"),
        ("git branch -vv", "read"),
        ("command -v cargo && type -t ls", "read"),
        ("sed -n '2,$p;7p' a.md", "read"),
        ("jq -r '.a[] | .b' a.md", "read"),
        ("rg -n 'fn main' src -g '*.rs'", "read"),
        ("tree -L 2 src", "read"),
        ("nl -ba a.md", "read"),
        ("grep -rn foo --include=*.rs .", "read"),
        ("strings a.md | head -n 3", "read"),
        ("base64 -d a.md && sha1sum a.md && sha512sum a.md", "read"),
        ("hexdump -C a.md", "read"),
        ("git describe --tags; git tag --list; git branch --list", "read"),
        ("git reflog -n 5; git reflog", "read"),
        ("git --version && git ls-tree -r HEAD && git cat-file -p HEAD:a.md", "read"),
        ("git merge-base HEAD HEAD; git check-ignore -v a.md; git for-each-ref --sort=refname", "read"),
        ("git rev-list --count HEAD; git describe --always --dirty; git grep -n main", "read"),
        ("git config --get user.name", "read"),
        ("node --version && python3 --version", "read"),
        ("uptime; free -h; printenv HOME", "read"),
        ("for f in src/*.rs a.md; do echo \"== $f\"; wc -l \"$f\"; done", "read"),
        ("for f in a.md; do head -n 2 \"${f}\"; done", "read"),
        ("echo {a,b}{c,d} {1..20}", "read"),
        ("echo ${a}..${b}", "read"),
        ("echo {1..1000000000}", "ask"),
        ("echo {1..99}{1..99}{1..99}{1..99}", "ask"),
        ("echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "ask"),
        // A link or an option may be among the files.
        ("for f in linked/*; do cat \"$f\"; done", "ask"),
        ("for f in *.md; do cat $f; done", "ask"),
        ("for f in /etc/passwd; do cat \"$f\"; done", "ask"),
        ("for f in -o; do sort \"$f\"; done", "ask"),
        ("for f in a.md; do for g in $x; do cat \"$g\"; done; done", "ask"),
        ("for f in a.md; do cat \"$g\"; done", "ask"),
        ("cat linked/*", "ask"),
        ("cd dashed && cat *", "ask"),
        ("cat dashed/*", "read"),
        ("cat ../*", "ask"),
        ("cat /etc/*", "ask"),
        ("cat ~/*", "ask"),
        ("cat */a", "ask"),
        ("cat $x", "ask"),
        ("cat {a.md,/etc/passwd}", "ask"),
        ("cat -*", "ask"),
        ("find . *", "ask"),
        ("uniq * ", "ask"),
        ("echo $(touch x)", "ask"),
        ("echo * > x", "ask"),
        ("command ls", "ask"),
        ("command -v ls -p rm", "ask"),
        ("sed -n '1w x' a.md", "ask"),
        ("sed -n 1p -i a.md", "ask"),
        ("sed -n '1p' /etc/passwd", "ask"),
        ("jq -n 'import \"a\" as a; 1'", "ask"),
        ("jq --rawfile a /etc/passwd .", "ask"),
        ("rg --pre cat x", "ask"),
        ("tree -o x", "ask"),
        ("grep -rn foo --include=../*.rs .", "ask"),
        ("sort --include=*.rs", "ask"),
        ("strings @a.md", "ask"),
        ("base64 -o x a.md", "ask"),
        ("sha1sum -c a.md", "ask"),
        ("hexdump -f a.md", "ask"),
        ("xxd a.md b", "ask"),
        ("git reflog expire --all", "ask"),
        ("git grep -O main", "ask"),
        ("git grep --no-index main", "ask"),
        ("git cat-file --textconv HEAD:a.md", "ask"),
        ("git --shallow-file x status", "ask"),
        ("git config --get user.name x", "ask"),
        ("git config user.name", "ask"),
        ("node --version x", "ask"),
        ("npm version", "ask"),
    ];
    for (command, expected) in table {
        assert_eq!(decide(PermissionMode::Default, &[], command), expected, "{command}");
    }
    // Beside a rule these would run without a sandbox.
    for command in ["printenv", "node --version", "strings a.md", "git reflog"] {
        let line = format!("{command}; make");
        assert_eq!(decide(PermissionMode::Default, &["allow Bash(make:*)"], &line), "ask", "{line}");
    }
    // What the shell expands runs in no other profile.
    assert_eq!(decide(PermissionMode::Default, &["allow Bash(make:*)"], "make; ls *.md"), "ask");
    assert_eq!(decide(PermissionMode::AcceptEdits, &[], "touch a; ls *.md"), "ask");
    // A file of a rule may be among the names.
    assert_eq!(decide(PermissionMode::Default, &["deny Read(.env)"], "cat .e*"), "ask");
    assert_eq!(decide(PermissionMode::Default, &["deny Read(.env)"], "ls *.md"), "read");
    assert_eq!(decide(PermissionMode::Plan, &[], "ls *.md"), "read");
}

#[test]
fn a_question_comes_with_what_would_answer_it() {
    let workspace = TestWorkspace::new();
    let question = |tool: &str, input: Value| match workspace.evaluate(PermissionMode::Default, &[], tool, &input) {
        Decision::Ask(question) => question,
        other => panic!("{tool} {input}: {other:?}"),
    };
    let shown = |updates: &[PermissionUpdate]| serde_json::to_value(updates).unwrap();
    let touch = question("Bash", json!({"command": "touch aa"}));
    assert_eq!(
        shown(&touch.suggestions),
        json!([
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch aa *"}], "behavior": "allow", "destination": "localSettings"},
            {"type": "addDirectories", "directories": [workspace.inner.root()], "destination": "session"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        ])
    );
    assert_eq!(touch.blocked_path, Some(workspace.path("aa")));
    let write = question("Write", json!({"file_path": workspace.path_text("c.txt"), "content": "c"}));
    assert_eq!(
        shown(&write.suggestions),
        json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}])
    );
    assert_eq!(write.blocked_path, None);
    let mcp = question("mcp__calc__add", json!({}));
    assert_eq!(
        shown(&mcp.suggestions),
        json!([{"type": "addRules", "rules": [{"toolName": "mcp__calc__add"}], "behavior": "allow", "destination": "localSettings"}])
    );
    let outside = question("Bash", json!({"command": "touch /srv/x"}));
    assert!(outside.message.starts_with("touch in '/srv/x' needs approval"));
}

#[test]
fn taking_a_suggestion_means_not_being_asked_again() {
    let calls = [
        ("Bash", json!({"command": "touch aa"})),
        ("Bash", json!({"command": "npm run build && cargo test 'a b' | tee -a log"})),
        ("Bash", json!({"command": "env X=1 make"})),
        ("Bash", json!({"command": "sh -c 'make; make install'"})),
        ("Read", json!({"file_path": "/srv/a/b.txt"})),
        ("Write", json!({"file_path": "c.txt"})),
        ("WebFetch", json!({"url": "https://example.com/x"})),
        ("mcp__calc__add", json!({})),
    ];
    for (tool, input) in calls {
        let workspace = TestWorkspace::new();
        let Decision::Ask(question) = workspace.evaluate(PermissionMode::Default, &[], tool, &input) else {
            panic!("{tool} {input}")
        };
        let mut rules = RuleSet::default();
        let mode = rules.apply(&question.suggestions[0], &workspace.inner).unwrap().unwrap_or_default();
        let again = evaluate(mode, &rules, tool, &input, &workspace.inner);
        assert_eq!(decision_word(&again), "allow", "{tool} {input}: {:?}", question.suggestions);
    }
}

#[test]
fn a_suggestion_covers_nothing_but_the_folder_that_was_asked_about() {
    let workspace = TestWorkspace::new();
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    for name in ["a", "{a,b}", "?", "[ab]", "*", "a\\b"] {
        std::fs::create_dir(outside.join(name)).unwrap();
        std::fs::write(outside.join(name).join("f"), "x").unwrap();
    }
    std::os::unix::fs::symlink(&outside, workspace.path("link")).unwrap();
    for name in ["{a,b}", "?", "[ab]", "*", "a\\b"] {
        let input = json!({"file_path": outside.join(name).join("f")});
        let Decision::Ask(question) = workspace.evaluate(PermissionMode::Default, &[], "Read", &input) else {
            panic!("{name}")
        };
        let mut rules = RuleSet::default();
        for update in &question.suggestions {
            rules.apply(update, &workspace.inner).unwrap();
        }
        let other = json!({"file_path": outside.join("a/f")});
        let decision = evaluate(PermissionMode::Default, &rules, "Read", &other, &workspace.inner);
        assert_eq!(decision_word(&decision), "ask", "{name}");
    }
    // The folder is suggested, not a link to it.
    for (tool, expected) in [("Read", format!("/{}/**", outside.display())), ("Write", outside.display().to_string())] {
        let input = json!({"file_path": workspace.path("link/new")});
        let Decision::Ask(question) = workspace.evaluate(PermissionMode::Default, &[], tool, &input) else {
            panic!("{tool}")
        };
        let shown = serde_json::to_value(&question.suggestions[0]).unwrap();
        let found = shown.pointer("/rules/0/ruleContent").or(shown.pointer("/directories/0")).unwrap();
        assert_eq!(found.as_str(), Some(expected.as_str()), "{tool}");
    }
}

#[test]
fn updates_change_rules_folders_and_mode() {
    let workspace = TestWorkspace::new();
    let mut set = parse_rules(&["allow Bash(ls:*)"]);
    let rule = |content: &str| json!([{"toolName": "Bash", "ruleContent": content}]);
    let change = |kind: &str, content: &str| {
        update(json!({"type": kind, "rules": rule(content), "behavior": "allow", "destination": "session"}))
    };
    let texts =
        |set: &RuleSet| set.iter().map(|rule| format!("{} {}", rule.source.as_str(), rule.rule)).collect::<Vec<_>>();
    set.apply(&change("addRules", "a"), &workspace.inner).unwrap();
    set.apply(&change("addRules", "a"), &workspace.inner).unwrap();
    assert_eq!(texts(&set), ["cliArg Bash(ls:*)", "session Bash(a)"]);
    set.apply(&change("replaceRules", "b"), &workspace.inner).unwrap();
    assert_eq!(texts(&set), ["cliArg Bash(ls:*)", "session Bash(b)"]);
    set.apply(&change("removeRules", "b"), &workspace.inner).unwrap();
    assert_eq!(texts(&set), ["cliArg Bash(ls:*)"]);
    let folder = |kind: &str| update(json!({"type": kind, "directories": ["/srv/x"], "destination": "session"}));
    let read = json!({"file_path": "/srv/x/y"});
    set.apply(&folder("addDirectories"), &workspace.inner).unwrap();
    assert_eq!(decision_word(&evaluate(PermissionMode::Default, &set, "Read", &read, &workspace.inner)), "allow");
    set.apply(&folder("removeDirectories"), &workspace.inner).unwrap();
    assert_eq!(decision_word(&evaluate(PermissionMode::Default, &set, "Read", &read, &workspace.inner)), "ask");
    let mode = |mode: &str| update(json!({"type": "setMode", "mode": mode, "destination": "session"}));
    assert_eq!(set.apply(&mode("plan"), &workspace.inner), Ok(Some(PermissionMode::Plan)));
}

#[test]
fn unknown_values_allow_nothing() {
    let workspace = TestWorkspace::new();
    let mut set = RuleSet::default();
    let updates = [
        json!({"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "permit", "destination": "session"}),
        json!({"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "everywhere"}),
        json!({"type": "setMode", "mode": "yolo", "destination": "session"}),
        json!({"type": "setMode", "mode": "acceptEdits", "destination": "everywhere"}),
        json!({"type": "addDirectories", "directories": ["/srv"], "destination": "everywhere"}),
        json!({"type": "allowEverything", "destination": "session"}),
    ];
    for value in updates {
        assert!(set.apply(&update(value.clone()), &workspace.inner).is_err(), "{value}");
    }
    assert_eq!(set, RuleSet::default());
    assert_eq!(PermissionMode::parse("bypass"), None);
    assert_eq!(Behavior::parse("Allow"), None);
    assert_eq!(RuleSource::parse("cli"), None);
}

#[test]
fn lists_of_rules_are_split_outside_brackets() {
    let texts = quipu_engine::split_list("Bash(git log:*, x),Read Edit(a b),Bash(ls)Edit(x),Bash(open");
    let (rules, wrong): (Vec<_>, Vec<_>) = texts.iter().partition(|text| Rule::parse_flag(text).is_some());
    assert_eq!(rules, ["Bash(git log:*, x)", "Read", "Edit(a b)"]);
    assert_eq!(wrong, ["Bash(ls)Edit(x)", "Bash(open"]);
}

#[test]
fn a_decision_has_its_reason() {
    let workspace = TestWorkspace::new();
    let decision =
        workspace.evaluate(PermissionMode::Default, &["allow Bash(make:*)"], "Bash", &json!({"command": "make"}));
    let Decision::Allow { reason: DecisionReason::Rule { rule, source }, profile: SandboxProfile::ByRule { .. } } =
        decision
    else {
        panic!("{decision:?}")
    };
    assert_eq!((rule.to_string().as_str(), source.as_str()), ("Bash(make:*)", "cliArg"));
    let decision = workspace.evaluate(PermissionMode::Default, &[], "Bash", &json!({"command": "echo hi"}));
    assert_eq!(decision, Decision::Allow { reason: DecisionReason::Subcommands, profile: SandboxProfile::Read });
    let decision = workspace.evaluate(PermissionMode::Plan, &[], "Write", &json!({"file_path": "/w/a"}));
    let message = "Cannot write to /w/a while in plan mode.".to_owned();
    assert_eq!(decision, Decision::Deny { message, reason: DecisionReason::Mode(PermissionMode::Plan) });
    let Decision::Deny { message, .. } =
        workspace.evaluate(PermissionMode::Default, &["deny Bash"], "Bash", &json!({"command": "x"}))
    else {
        panic!()
    };
    assert!(quipu_message::synthetic::is_automatic_denial(&message));
}

#[test]
fn a_text_runs_in_one_profile_or_asks() {
    let workspace = TestWorkspace::new();
    let rules = ["allow Bash(make:*)", "allow Bash(git status:*)"];
    let profile = |mode, command: &str| match workspace.evaluate(mode, &rules, "Bash", &json!({"command": command})) {
        Decision::Allow { profile: SandboxProfile::ByRule { .. }, .. } => Some(SandboxProfile::None),
        Decision::Allow { profile, .. } => Some(profile),
        _ => None,
    };
    let cases = [
        (PermissionMode::Default, "cat a && ls", Some(SandboxProfile::Read)),
        (PermissionMode::Default, "cat <<E\nx\nE", Some(SandboxProfile::Read)),
        (PermissionMode::Default, "make", Some(SandboxProfile::None)),
        (PermissionMode::Default, "cd src && make 2>&1 | tail -n 3", Some(SandboxProfile::None)),
        (PermissionMode::Default, "make <<E\nx\nE", Some(SandboxProfile::None)),
        (PermissionMode::Default, "cat <<E | make\nx\nE", None),
        (PermissionMode::Default, "make && echo a\\\nb", None),
        (PermissionMode::Default, "make $(cat a)", None),
        (PermissionMode::Default, "make `cat a`", None),
        (PermissionMode::Default, "make && diff <(cat a) b", None),
        // After `make` a name may lead out of the session's folders.
        (PermissionMode::Default, "cat a && make", Some(SandboxProfile::None)),
        (PermissionMode::Default, "cat a | head -n 3; make", Some(SandboxProfile::None)),
        // Both start at the same time.
        (PermissionMode::Default, "cat a | make", None),
        (PermissionMode::Default, "cat a |\n\n# x\nmake", None),
        (PermissionMode::Default, "cat a | head -n 3\nmake", Some(SandboxProfile::None)),
        (PermissionMode::Default, "make && ls src", Some(SandboxProfile::None)),
        (PermissionMode::Default, "make | grep -A 3 x | sort -k 2 | head -n 3", Some(SandboxProfile::None)),
        (PermissionMode::Default, "make 2>&1 | grep -e x -i", Some(SandboxProfile::None)),
        (PermissionMode::Default, "make && cat a", None),
        (PermissionMode::Default, "make | head -n 3 a", None),
        (PermissionMode::Default, "make | grep x a", None),
        (PermissionMode::Default, "make | grep -e x a", None),
        (PermissionMode::Default, "make | grep -efm a", None),
        (PermissionMode::Default, "make | grep -- x a", None),
        (PermissionMode::Default, "make && cd src && ls", None),
        (PermissionMode::Default, "make; wc < a", None),
        (PermissionMode::Default, "cat a & make", None),
        (PermissionMode::Default, "for i in 1 2; do cat a; make; done", None),
        (PermissionMode::AcceptEdits, "make > a", Some(SandboxProfile::None)),
        (PermissionMode::AcceptEdits, "make && make > a", None),
        (PermissionMode::AcceptEdits, "mkdir a && cat b", Some(SandboxProfile::Workspace)),
        (PermissionMode::AcceptEdits, "echo x > a", Some(SandboxProfile::Workspace)),
        (PermissionMode::AcceptEdits, "mkdir a && make", None),
        (PermissionMode::BypassPermissions, "mkdir a && make", Some(SandboxProfile::None)),
    ];
    for (mode, command, expected) in cases {
        assert_eq!(profile(mode, command), expected, "{mode}: {command}");
    }
}

/// A rule for a command never makes a line asked about, or denied, that runs without the rule.
#[test]
fn what_runs_in_the_sandbox_without_rules_does_so_with_them() {
    let workspace = TestWorkspace::new();
    for name in ["a.txt", "src/a.txt", "package.json"] {
        workspace.write(name, "");
    }
    let rules = ["allow Bash(cat:*)", "allow Bash(ls:*)", "allow Bash(mkdir:*)"];
    for (mode, commands) in [
        (
            PermissionMode::Default,
            ["cat package.json | jq .name", "for f in *.txt; do echo $f; cat \"$f\"; done", "(cd src && ls)"],
        ),
        (PermissionMode::Plan, ["cat a.txt", "ls", "cat a.txt | wc -l"]),
        (PermissionMode::AcceptEdits, ["mkdir x && touch x/y", "ls src > names", "cat a.txt"]),
    ] {
        for command in commands {
            assert_eq!(workspace.bash_decision(mode, &[], command), "allow", "{mode} {command}");
            assert_eq!(workspace.bash_decision(mode, &rules, command), "allow", "{mode} {command}");
        }
    }
    assert_eq!(workspace.bash_decision(PermissionMode::Plan, &rules, "mkdir x"), "deny");
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, "ls | make"), "ask");
}
