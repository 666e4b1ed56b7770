//! Ways past the reader of commands and the rules about files that reviews found.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use quipu_engine::testing::permission::{
    Behavior, PermissionMode, Rule, RuleSet, RuleSource, evaluate, hidden_file_filter,
};
use quipu_engine::testing::tool::WorkspaceOptions;
use serde_json::{Value, json};

use crate::{TestWorkspace, decision_word, parse_rules, success_text};

/// Every command with the same rules and mode, and what is decided instead of `expected`.
fn differing_decisions(
    workspace: &TestWorkspace,
    mode: PermissionMode,
    texts: &[&str],
    expected: &str,
    commands: &[&str],
) -> Vec<String> {
    let decided = commands.iter().map(|command| (workspace.bash_decision(mode, texts, command), command));
    let wrong = decided.filter(|(decision, _)| *decision != expected);
    wrong.map(|(decision, command)| format!("{decision} {command:?}")).collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_continued_line_is_read_as_bash_reads_it_or_not_at_all() {
    let workspace = TestWorkspace::new();
    let hidden = [
        "cat <<EOF\nEO\\\nF\ntouch one\nEOF",
        "cat <<EO\\\nF\n$(touch two)\nEOF",
        "echo \"$\\\n(touch three)\"",
        "cat <<EOF\n$\\\n(touch four)\nEOF",
        "cat $\\\nHOME/.ssh/id_rsa",
        "cat \"$\\\n{HOME}/x\"",
        "cat $\\\n'\\x2fetc\\x2fpasswd'",
        "cat <<EOF\nfoo \\\nEOF\necho '\nEOF\ntouch five\n'\n",
        "echo $(\\\n(1))",
        "echo a\\\nb",
    ];
    for mode in [PermissionMode::Default, PermissionMode::AcceptEdits] {
        assert_eq!(differing_decisions(&workspace, mode, &[], "ask", &hidden), none());
    }
    assert_eq!(differing_decisions(&workspace, PermissionMode::Plan, &[], "deny", &hidden), none());
    let rules = ["allow Bash(git status:*)"];
    let command = "git status <<EO\\\nF\n$(touch five)\nEOF";
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, command), "ask");
    let rules = ["allow Bash", "deny Bash(rm:*)"];
    for command in ["cat <<EOF\nEO\\\nF\nrm -f x\nEOF", "r\\\nm x"] {
        assert_eq!(workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command), "deny", "{command:?}");
    }
    // The usual way to break a long command over lines.
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], "ls -l \\\n  -a \\\n  ."), "allow");
}

/// Bash reads these lines in another way than they look.
#[test]
fn a_line_without_a_sandbox_is_written_in_a_small_part_of_the_language() {
    let workspace = TestWorkspace::new();
    workspace.write(".git/config", "");
    let rules = ["allow Bash(cat:*)", "allow Bash(git status:*)", "allow Bash(make:*)", "allow Bash(git log)"];
    let asked = [
        "cat \"$(cat <<'EOF'\nEOF)\"; ./evil #\"\nEOF\n)\"",
        "git status \"$(git status <<'EOF'\nEOF)\"; ./evil #\"\nEOF\n)\"",
        "for x in $(make <<'EOF'\nEOF); do ./evil; done #\nEOF\n); do make; done",
        "cat <(cat <<'EOF'\nEOF); ./evil #\nEOF\n)",
        "cat 2147483648>/dev/stderr; make",
        "uniq payload 2147483648>/dev/null; make",
        "git log 2>&---output=x",
        "cat notes 2>&-.env",
        "make $(make)",
        "make & make",
        "{ make; }",
    ];
    let differing = |mode, rules: &[&str], commands: &[&str], expected: &str| {
        differing_decisions(&workspace, mode, rules, expected, commands)
    };
    for mode in [PermissionMode::Default, PermissionMode::AcceptEdits] {
        assert_eq!(differing(mode, &rules, &asked, "ask"), none());
    }
    let allowed = [
        "make -j2 2>&1 | tail -n 5",
        "git status && make \"$x\"",
        "for i in 1 2; do make $i; done",
        "make \"$(cat <<'EOF'\nA message (of several lines).\nEOF\n)\"",
        "cat - <<'EOF'\ntext\nEOF",
    ];
    assert_eq!(differing(PermissionMode::Default, &rules, &allowed, "allow"), none());
    let rules = ["allow Bash", "deny Bash(./evil:*)", "deny Read(.env)", "deny Bash(git status:*)"];
    let refused = [
        "cat \"$(cat <<'EOF'\nEOF)\"; ./evil #\"\nEOF\n)\"",
        "cat notes 2>&-.env",
        "git 2>&-status",
        "timeout 9 grep -r SECRET",
        "env git show HEAD",
        "/usr/local/bin/git show HEAD",
        "nice env --chdir=src cat ../.env",
        "unshare --wd=src cat ../.env",
        "git -C src config -f ../.env -l",
        "git config -f x -l",
        "git stash list -U3",
        "git tag -l --format='%(raw)'",
        "git submodule foreach x",
    ];
    let slipped: Vec<&&str> = refused
        .iter()
        .filter(|command| workspace.bash_decision(PermissionMode::Default, &rules, command) == "allow")
        .collect();
    assert_eq!(slipped, Vec::<&&str>::new());
    let rules = ["allow Bash(git:*)", "deny Read(.env)"];
    let allowed = [
        "git commit -am 'fix: x'",
        "git status -sb",
        "git stash push -m x",
        "git checkout -b x",
        "git push -u origin x",
    ];
    assert_eq!(differing(PermissionMode::Default, &rules, &allowed, "allow"), none());
    assert_eq!(
        differing(PermissionMode::Default, &["deny Read(.env)"], &["git status -v", "git status -vv"], "ask"),
        none()
    );
    // Files with rules may be in the folder.
    workspace.write("secrets/key", "");
    let rules = ["allow Bash(rm:*)", "allow Bash(mv:*)", "deny Edit(./secrets/key)"];
    assert_eq!(
        differing(PermissionMode::Default, &rules, &["rm -r secrets", "timeout 5 mv secrets other"], "ask"),
        none()
    );
    assert_eq!(differing(PermissionMode::Default, &rules, &["rm x"], "allow"), none());
    // The folder is not the session's, and the command reads it without a name.
    let rules = ["allow Bash(cd:*)"];
    assert_eq!(differing(PermissionMode::Default, &rules, &["cd /etc && grep -riee"], "ask"), none());
    // Code that cannot be parsed or is not seen.
    let rules = ["allow Bash", "deny Read(.env)"];
    let hidden = [
        "time cat .env",
        "cat .env; ((1))",
        "{cat,.env}",
        "sh -c 'cat .env; x=$((1))'",
        "sh -c 'cat .e*; x=$((1))'",
        "echo 'cat .e*' | sh",
        "bash <<'E'\ncat .e*\nE",
        "npm exec -c 'cat .env; ((1))'",
    ];
    let slipped: Vec<&&str> = hidden
        .iter()
        .filter(|command| workspace.bash_decision(PermissionMode::Default, &rules, command) == "allow")
        .collect();
    assert_eq!(slipped, Vec::<&&str>::new());
    let named = ["time cat .env", "cat .env; ((1))", "case x in x) cat .env;; esac", "cat .env ${x:-}"];
    assert_eq!(differing(PermissionMode::BypassPermissions, &["deny Read(.env)"], &named, "deny"), none());
    // Parts of a rule that are no words, and words that the shell would expand.
    let differs = [
        ("allow Bash(python3 <<< 'print(1)')", "python3 <<'E'\nx\nE"),
        ("allow Bash(bash # lint:*)", "bash -c x"),
        ("allow Bash(./i.sh 2>&1:*)", "./i.sh x"),
        ("allow Bash('./[id].sh':*)", "./[id].sh"),
        ("allow Bash(./i.sh '{a,b}')", "./i.sh {a,b}"),
        ("allow Bash(PYTHONPATH=./src pytest:*)", "'PYTHONPATH=./src' pytest -q"),
        ("allow Bash(test:*)", "test -v 'a[$(./evil)]'"),
        ("allow Bash([ -f *)", "[ -f x -o -v 'a[$(./evil)]' ]"),
        ("allow Bash(export A=1:*)", "export A=1 PATH=./d; ls"),
        ("allow Bash(hash:*)", "hash -p ./i.sh ls; ls"),
    ];
    for (rule, command) in differs {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[rule], command), "ask", "{rule} {command}");
    }
    // White space that belongs to a name.
    let rules = ["allow Bash(./build.sh)"];
    assert_eq!(differing(PermissionMode::Default, &rules, &["./build.sh\u{2003}", "./build.sh\u{b}"], "ask"), none());
}

#[test]
fn options_that_hold_a_path_are_not_passed_over() {
    let workspace = TestWorkspace::new();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), workspace.path("linkdir")).unwrap();
    symlink(outside.path().join("secret"), workspace.path("link")).unwrap();
    symlink(outside.path().join("secret"), workspace.path("-link")).unwrap();
    workspace.write("a.txt", "x");
    let commands = [
        "cp -t.git config",
        "mv -t.claude x",
        "cp -r -t. tmpl/.",
        "mv -tlinkdir a.txt",
        "cp -S.x a.txt b.txt",
        "cat -- -link",
        "diff --from-file=link a.txt",
        "diff --to-file=link a.txt",
        "grep -flink a.txt",
        "grep --file=link a.txt",
        "git blame --contents=link a.txt",
        "git ls-files --exclude-from=link",
        "md5sum -c link",
        "date 010100002020",
        "date 01010000",
        "touch -rlink a.txt",
    ];
    for mode in [PermissionMode::Default, PermissionMode::AcceptEdits] {
        assert_eq!(differing_decisions(&workspace, mode, &[], "ask", &commands), none());
    }
    let usual = [
        "ls -la",
        "ls -lah --color=never src",
        "head -n 5 a.txt",
        "head -20 a.txt",
        "tail -n +3 a.txt",
        "grep -rn --include='*.rs' main .",
        "grep -A3 -e x a.txt",
        "cut -d, -f1 a.txt",
        "cut -f1-3 a.txt",
        "sort -k2 -t, -u a.txt",
        "wc -l a.txt",
        "date +%Y-%m-%d",
        "date -u",
        "date",
        "find . -name '*.rs' -type f -maxdepth 3",
        "git log --oneline -5",
        "git diff --stat HEAD~1 -- src",
        "git log --format='%h %s' -n 3",
        "test -f a.txt && echo yes",
        "[ -d src ] || echo no",
        "du -sh .",
        "uniq -c a.txt",
        "cat -n a.txt",
        "stat -c %s a.txt",
    ];
    assert_eq!(differing_decisions(&workspace, PermissionMode::Default, &[], "allow", &usual), none());
}

#[test]
fn a_change_of_folder_is_followed_both_ways() {
    let home = tempfile::tempdir().unwrap();
    let workspace = TestWorkspace::with_options(WorkspaceOptions {
        env: [("HOME".into(), home.path().into())].into(),
        ..WorkspaceOptions::default()
    });
    fs::create_dir_all(workspace.path("a/b/c/d")).unwrap();
    symlink("a/b/c/d", workspace.path("l")).unwrap();
    let leading_out = [
        "cd -- && cat .ssh/id_rsa",
        "cd -P && mkdir -p .ssh && echo k > .ssh/authorized_keys",
        "cd -L && cat x",
        "cd -e && cat x",
        "cd '' && cat x",
        "cd l/../.. && cat outside.txt",
        "cd l/../.. && echo x > dropped",
        "cd l/../../..",
    ];
    for mode in [PermissionMode::Default, PermissionMode::AcceptEdits] {
        assert_eq!(differing_decisions(&workspace, mode, &[], "ask", &leading_out), none());
    }
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], "cd a/b && cat x"), "allow");
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], "cd a/../a/b && ls"), "allow");
}

#[test]
fn rules_about_files_follow_a_change_of_folder() {
    let workspace = TestWorkspace::new();
    let outside = tempfile::tempdir().unwrap();
    let denied = format!("deny Edit(/{}/denied/**)", outside.path().display());
    let into = format!("cd {} && touch denied/q", outside.path().display());
    fs::create_dir_all(workspace.path("src")).unwrap();
    let table: [(&[&str], PermissionMode, &str, &str); 10] = [
        (&["deny Read(./src/.env)"], PermissionMode::Default, "cd src && cat .env", "deny"),
        (&["deny Read(./.env)", "allow Bash(cat:*)"], PermissionMode::Default, "cd src && cat ../.env", "deny"),
        (&["deny Edit(./src/.env)"], PermissionMode::AcceptEdits, "cd src && echo PWN > .env", "deny"),
        (&[&denied, "allow Bash"], PermissionMode::Default, &into, "deny"),
        (&[&denied, "allow Bash"], PermissionMode::BypassPermissions, &into, "deny"),
        (&["deny Read(./src/.env)", "allow Bash"], PermissionMode::Default, "cd src && cd . && cat .env", "deny"),
        (&["deny Read(./src/.env)", "allow Bash"], PermissionMode::Default, "pushd src && cat .env", "deny"),
        (&["deny Read(./src/.env)", "allow Bash"], PermissionMode::Default, "builtin cd src && cat .env", "deny"),
        (&["deny Read(./src/.env)", "allow Bash"], PermissionMode::Default, "env -C src cat .env", "deny"),
        (&["deny Read(./src/.env)", "allow Bash"], PermissionMode::Default, "sh -c 'cat src/.env'", "deny"),
    ];
    for (texts, mode, command, expected) in table {
        assert_eq!(workspace.bash_decision(mode, texts, command), expected, "{texts:?} {command}");
    }
}

#[test]
fn links_of_processes_lead_elsewhere_for_a_command() {
    let workspace = TestWorkspace::new();
    workspace.write("src/.env", "KEY=1");
    symlink("/proc/self/cwd", workspace.path("here")).unwrap();
    workspace.inner.set_cwd(workspace.path("src"));
    let commands = ["cat /proc/self/cwd/.env", "cat < /proc/thread-self/cwd/.env", "cat ../here/.env"];
    for rules in [&["deny Read(./src/.env)", "allow Bash(cat:*)"][..], &["ask Edit(./src/.env)", "allow Bash"]] {
        assert_eq!(differing_decisions(&workspace, PermissionMode::Default, rules, "ask", &commands), none());
    }
    assert_eq!(differing_decisions(&workspace, PermissionMode::Default, &[], "ask", &commands), none());
    assert_eq!(
        workspace.bash_decision(PermissionMode::Default, &["deny Read(.env)", "allow Bash"], "cat /proc/cpuinfo"),
        "allow"
    );
}

#[test]
fn a_folder_that_git_moves_may_contain_a_refused_file() {
    let workspace = TestWorkspace::new();
    workspace.write("src/.env", "KEY=1");
    workspace.write("a.txt", "x");
    for refused in ["deny Read(./src/.env)", "deny Edit(./src/.env)"] {
        let rules = [refused, "allow Bash(git:*)"];
        let moves = ["git mv src s2", "git mv -k src s2", "git -C . mv a.txt src s2"];
        assert_eq!(differing_decisions(&workspace, PermissionMode::Default, &rules, "ask", &moves), none());
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, "git mv a.txt b.txt"), "allow");
    }
}

#[test]
fn a_file_is_read_before_a_command_that_starts_later() {
    let workspace = TestWorkspace::new();
    workspace.write("a.txt", "x");
    let rules = ["allow Bash(npm test:*)"];
    let usual =
        ["cat a.txt | head -n 1; npm test", "grep 'x|y&' a.txt && npm test", "npm test | grep FAIL | head -n 5"];
    assert_eq!(differing_decisions(&workspace, PermissionMode::Default, &rules, "allow", &usual), none());
    let together =
        ["cat a.txt | npm test", "{ cat a.txt; } | npm test", "cat a.txt & npm test", "head a.txt |& npm test"];
    assert_eq!(differing_decisions(&workspace, PermissionMode::Default, &rules, "ask", &together), none());
}

#[test]
fn what_may_read_a_refused_file_is_asked_about() {
    let workspace = TestWorkspace::new();
    workspace.write(".env", "KEY=1");
    workspace.write("list", "KEY=1");
    fs::create_dir_all(workspace.path("empty")).unwrap();
    let commands = [
        "grep -d recurse '' .",
        "grep -r KEY .",
        "grep -r KEY",
        "diff -N . empty",
        "diff . empty",
        "cat .e{},nv}",
        "git log -p",
        "git log --patch",
        "git diff",
        "git show",
        "git blame list",
        "cat $F",
        "cat .e*",
        "sh -c 'cat .e*'",
        "mapfile -c1 -C 'cat .e*;' a < list",
        "mapfile -c1 -C'cat .e*;' a < list",
        "compgen -W'$(cat .e*)'",
        "split --filter='cat .e*' list",
    ];
    for behavior in ["deny", "ask"] {
        let rule = format!("{behavior} Read(./.env)");
        let found: Vec<String> =
            differing_decisions(&workspace, PermissionMode::Default, &[&rule], "ask", &commands).into_iter().collect();
        assert_eq!(found, none(), "{behavior}");
    }
    let refused = ["git show HEAD:.env", "grep -f.env list", "cat ./.env", "grep KEY list .env", "cat ${PWD}/.env"];
    assert_eq!(
        differing_decisions(&workspace, PermissionMode::Default, &["deny Read(./.env)"], "deny", &refused),
        none()
    );
    // The same where a rule allows every command.
    let unsure = ["cat .e*", "cat $F", "cat .e{},nv}", "cat $((1))"];
    assert_eq!(
        differing_decisions(&workspace, PermissionMode::Default, &["allow Bash", "deny Read(./.env)"], "ask", &unsure),
        none()
    );
    let searching = [
        "grep -r KEY .",
        "grep -r KEY",
        "rg KEY",
        "ls -a | xargs cat",
        "find . -type f -exec cat {} +",
        "diff . empty",
        "git diff",
        "git log -p",
    ];
    for allow in ["allow Bash", "allow Bash(grep:*)"] {
        let rules = [allow, "deny Read(./.env)"];
        assert_eq!(
            differing_decisions(&workspace, PermissionMode::Default, &rules, "ask", &searching),
            none(),
            "{allow}"
        );
    }
    let code = ["python3 -c 'print(open(\".env\").read())'", "perl -e 'open(F, \"<.env\")'", "awk '{print}' .env"];
    for mode in [PermissionMode::Default, PermissionMode::BypassPermissions] {
        assert_eq!(differing_decisions(&workspace, mode, &["allow Bash", "deny Read(./.env)"], "deny", &code), none());
    }
    let usual = ["cat list", "make all", "git status", "git log --oneline -3", "ls .", "find . -name '*.rs'"];
    assert_eq!(
        differing_decisions(&workspace, PermissionMode::Default, &["allow Bash", "deny Read(./.env)"], "allow", &usual),
        none()
    );
    let usual = ["cat list", "git status", "git log --oneline -3", "ls -la .", "grep KEY list"];
    assert_eq!(
        differing_decisions(&workspace, PermissionMode::Default, &["deny Read(./.env)"], "allow", &usual),
        none()
    );
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &["ask Read(list)"], "cat list"), "ask");
}

#[test]
fn nothing_follows_a_moved_folder_unasked() {
    let workspace = TestWorkspace::new();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir_all(workspace.path("tmpl")).unwrap();
    symlink(outside.path().join("file"), workspace.path("tmpl/evil")).unwrap();
    symlink(outside.path(), workspace.path("tmpl/outdir")).unwrap();
    workspace.write("a.txt", "x");
    let commands = [
        "mv tmpl new && echo PWN > new/evil",
        "cp -r tmpl new && echo PWN > new/evil",
        "cp -a tmpl new; echo PWN > new/evil",
        "mv tmpl new && cp a.txt new/outdir/x",
        "mv tmpl new && cat new/evil",
        "for i in 1 2; do mv tmpl new; done",
    ];
    assert_eq!(differing_decisions(&workspace, PermissionMode::AcceptEdits, &[], "ask", &commands), none());
    let usual = ["mv tmpl new", "cp -r tmpl new", "mkdir -p in && mv a.txt in/", "cp a.txt b.txt && cat b.txt"];
    assert_eq!(differing_decisions(&workspace, PermissionMode::AcceptEdits, &[], "allow", &usual), none());
}

#[test]
fn deny_rules_match_commands_disguised_as_in_the_review() {
    let workspace = TestWorkspace::new();
    let rules = ["allow Bash", "deny Bash(rm:*)"];
    let commands = [
        "echo 'rm V' | sh -s arg",
        "echo 'rm V' | bash /dev/stdin",
        "echo 'rm V' | bash /proc/self/fd/0",
        "echo 'rm V' | bash +x",
        "echo 'rm V' | bash -o posix",
        "source /dev/stdin <<< 'rm V'",
        "echo rm V | xargs env",
        "echo rm V | xargs timeout 5",
        "echo rm V | xargs nice",
        "echo rm V | xargs",
        "git ls-remote --upload-pack='rm V;' .",
        "git fetch --upload-pack='rm V;' .",
        "git clone -u 'rm V;' . x",
        "git grep -O'rm V;' x",
        "XX='!rm V' git --config-env=alias.y=XX y",
        "hash -p /bin/rm foo && foo V",
        "let 'a[$(rm V)]=1'",
        "test -v 'a[$(rm V)]'",
        "printf -v 'a[$(rm V)]' x",
        "read 'a[$(rm V)]' <<< x",
        "mapfile -C 'rm V #' -c 1 <<< x",
        "compgen -C 'rm V' x",
        "ld.so /bin/rm V",
        "/lib/ld-musl-x86_64.so.1 /bin/rm V",
        "zip -q -T -TT 'rm V #' z f",
        "split --filter='rm V' x",
    ];
    let slipped: Vec<&&str> = commands
        .iter()
        .filter(|command| {
            [PermissionMode::Default, PermissionMode::BypassPermissions]
                .iter()
                .any(|mode| workspace.bash_decision(*mode, &rules, command) == "allow")
        })
        .collect();
    // `xargs` alone runs `echo`.
    assert_eq!(slipped, [&"echo rm V | xargs"]);
    let usual = [
        "bash build.sh",
        "bash -c 'git pull'",
        "bash -x build.sh",
        "test -f x",
        "printf '%s' x",
        "read x",
        "git fetch origin",
    ];
    assert_eq!(differing_decisions(&workspace, PermissionMode::Default, &rules, "allow", &usual), none());
}

#[test]
fn rules_for_files_match_every_form_of_the_path() {
    let workspace = TestWorkspace::new();
    workspace.write(".env", "SECRET=1\n");
    workspace.write("src/x", "SECRET=2\n");
    workspace.write("vendor/secrets/k", "SECRET=3\n");
    symlink(workspace.path(".env"), workspace.path("link")).unwrap();
    let absolute = format!("deny Read(/{}/.env)", workspace.inner.root().display());
    for rule in ["deny Read(./.env)", "deny Read(.env)", "ask Read(./.env)", &absolute] {
        for path in [".env", "./.env", "src/../.env", "link", &workspace.path_text("./.env")] {
            let input = json!({"file_path": path, "path": path, "pattern": "x"});
            for tool in ["Read", "Grep"] {
                assert_ne!(
                    decision_word(&workspace.evaluate(PermissionMode::Default, &[rule], tool, &input)),
                    "allow",
                    "{rule} {tool} {path}"
                );
            }
        }
    }
    // A worktree contains a copy of the file, and an edit shows whether a text is in it.
    for rule in ["deny Read(./.env)", "deny Read(.env)", &absolute] {
        for path in [
            ".env",
            "link",
            ".claude/worktrees/w/.env",
            ".claude/worktrees/w/src/../.env",
            ".claude/worktrees/w/.claude/worktrees/v/.env",
        ] {
            let decide = |tool: &str, input: &Value| {
                decision_word(&workspace.evaluate(
                    PermissionMode::AcceptEdits,
                    &["allow Edit(.env)", rule],
                    tool,
                    input,
                ))
            };
            let input = json!({"file_path": path, "notebook_path": path});
            for tool in ["Read", "Edit", "NotebookEdit"] {
                assert_eq!(decide(tool, &input), "deny", "{rule} {tool} {path}");
            }
            // What it replaces is shown, if there is something.
            assert_eq!(decide("Write", &input) == "deny", workspace.path(path).exists(), "{rule} {path}");
        }
    }
    for (rule, path) in [("deny Write(./f)", "f"), ("deny NotebookEdit(./f)", "f"), ("deny MultiEdit(./f)", "./x/../f")]
    {
        let input = json!({"file_path": path});
        for tool in ["Edit", "Write"] {
            assert_eq!(
                decision_word(&workspace.evaluate(PermissionMode::AcceptEdits, &[rule], tool, &input)),
                "deny",
                "{rule} {tool}"
            );
        }
    }
    for behavior in ["deny", "ask"] {
        let rule = format!("{behavior} Read(secrets/**)");
        let input = json!({"file_path": "vendor/secrets/k"});
        assert_eq!(decision_word(&workspace.evaluate(PermissionMode::Default, &[&rule], "Read", &input)), behavior);
    }
    let input = json!({"file_path": "/srv/vendor/secrets/k"});
    assert_eq!(
        decision_word(&workspace.evaluate(PermissionMode::Default, &["allow Read(secrets/**)"], "Read", &input)),
        "ask"
    );
}

#[tokio::test]
async fn searches_omit_denied_files_from_every_start_folder() {
    let calls: [(&str, Value); 11] = [
        ("Grep", json!({"pattern": "SECRET", "output_mode": "content"})),
        ("Grep", json!({"pattern": "SECRET", "output_mode": "content", "path": "."})),
        ("Grep", json!({"pattern": "SECRET", "output_mode": "content", "path": "./"})),
        ("Grep", json!({"pattern": "SECRET", "output_mode": "content", "path": "src/.."})),
        ("Grep", json!({"pattern": "SECRET", "output_mode": "content", "path": "alias"})),
        ("Grep", json!({"pattern": "SECRET", "output_mode": "count", "path": "."})),
        ("Grep", json!({"pattern": "SECRET", "path": ".", "glob": ".env"})),
        ("Glob", json!({"pattern": ".env", "path": "."})),
        ("Glob", json!({"pattern": "**/x", "path": "src/.."})),
        ("Glob", json!({"pattern": "./.env"})),
        ("Glob", json!({"pattern": "link"})),
    ];
    for texts in [["deny Read(./.env)", "deny Read(src/x)"], ["ask Read(.env)", "deny Read(src/**)"]] {
        let workspace = TestWorkspace::new();
        workspace.write(".env", "SECRET=1\n");
        workspace.write("src/x", "SECRET=2\n");
        workspace.write("src/keep", "nothing\n");
        symlink(workspace.inner.root(), workspace.path("alias")).unwrap();
        symlink(workspace.path(".env"), workspace.path("link")).unwrap();
        workspace.inner.set_hidden_files(hidden_file_filter(&parse_rules(&texts), &workspace.inner));
        for (tool, input) in &calls {
            let found = success_text(workspace.run_tool(tool, input.clone()).await);
            assert!(!found.contains("SECRET") && !found.contains(".env"), "{texts:?} {tool} {input}: {found}");
            assert!(!found.contains("src/x") && !found.contains("link"), "{texts:?} {tool} {input}: {found}");
        }
    }
}

#[test]
fn relative_rules_of_the_users_settings_begin_at_the_working_folder() {
    let home = tempfile::tempdir().unwrap();
    let workspace = TestWorkspace::with_options(WorkspaceOptions {
        env: [("HOME".into(), home.path().into())].into(),
        ..WorkspaceOptions::default()
    });
    let mut rules = RuleSet::default();
    for text in ["Read(./secret.txt)", "Read(two.txt)", "Read(*.env)", "Read(/three.txt)"] {
        rules.add(Behavior::Deny, RuleSource::User, Rule::parse(text).unwrap());
    }
    let decide = |path: &Path| {
        decision_word(&evaluate(PermissionMode::Default, &rules, "Read", &json!({"file_path": path}), &workspace.inner))
    };
    assert_eq!(decide(&workspace.path("secret.txt")), "deny");
    assert_eq!(decide(&workspace.path("two.txt")), "deny");
    assert_eq!(decide(&workspace.path("sub/deep.env")), "deny");
    assert_eq!(decide(&workspace.path("three.txt")), "allow");
    assert_eq!(decide(&home.path().join(".claude/three.txt")), "deny");
    let command = |text: &str| {
        decision_word(&evaluate(PermissionMode::Default, &rules, "Bash", &json!({"command": text}), &workspace.inner))
    };
    assert_eq!(command("cat secret.txt"), "deny");
}

#[test]
fn allow_rules_do_not_cover_guarded_files_unless_they_name_them() {
    let workspace = TestWorkspace::new();
    let decide = |texts: &[&str], path: &str| {
        decision_word(&workspace.evaluate(PermissionMode::Default, texts, "Write", &json!({"file_path": path})))
    };
    for path in [
        ".git/config",
        ".claude/settings.json",
        ".mcp.json",
        ".config/git/config",
        ".cargo/config.toml",
        ".devcontainer/devcontainer.json",
        ".yarn/x",
        ".mvn/x",
        ".bash_login",
        ".bash_aliases",
        ".bash_logout",
        ".zprofile",
        ".zshenv",
        ".zlogin",
        ".zlogout",
        ".npmrc",
        ".yarnrc.yml",
        ".yarnrc",
        ".pnp.cjs",
        ".pnp.loader.mjs",
        "bunfig.toml",
        ".bazelrc",
        ".pre-commit-config.yaml",
        "lefthook.yml",
        "gradle/wrapper/gradle-wrapper.properties",
        ".devcontainer.json",
        ".ripgreprc",
        "pyrightconfig.json",
        ".claude.json",
        "sub/.git/config",
        ".hg/hgrc",
        ".jj/repo/config.toml",
        ".config/fish/config.fish",
        ".kshrc",
        ".inputrc",
        ".ssh/config",
        ".config/systemd/user/x.service",
    ] {
        for texts in [&["allow Write"][..], &["allow Edit(./**)"], &["allow Edit(**)"]] {
            assert_eq!(decide(texts, path), "ask", "{texts:?} {path}");
        }
        assert_eq!(decide(&["allow Write"], &format!("x/{path}")), "ask", "x/{path}");
        let command = format!("echo x > {path}");
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &["allow Edit"], &command), "ask", "{command}");
    }
    // A folder that git takes for a repository, also when only one of its parts is missing.
    for name in ["r/HEAD", "r/objects/x", "r/refs/x", "s/objects/x", "s/refs/x", "t/HEAD"] {
        workspace.write(name, "");
    }
    for path in ["r/config", "r/hooks/post-checkout", "s/HEAD", "s/config", "t/commondir"] {
        assert_eq!(decide(&["allow Write"], path), "ask", "{path}");
    }
    assert_eq!(decide(&["allow Write"], "s/other"), "allow");
    assert_eq!(decide(&["allow Edit(r/config)"], "r/config"), "allow");
    // Other names that file systems know the same folder by.
    for path in [".g\u{200c}it/config", ".git\u{200d}/config", ".\u{206a}git/x", ".git./x", ".git /x", "GIT~1/config"] {
        assert_eq!(decide(&["allow Write"], path), "ask", "{path:?}");
    }
    assert_eq!(decide(&["allow Write"], ".git::$INDEX_ALLOCATION/config"), "ask");
    assert_eq!(decide(&["allow Write"], ".gitignore"), "allow");
    assert_eq!(decide(&["allow Write"], ".git/x/.claude/worktrees/a/b"), "ask");
    assert_eq!(decide(&["allow Write"], ".claude/worktrees/a/.git/config"), "ask");
    assert_eq!(decide(&["allow Write"], ".claude/worktrees/a/src/main.rs"), "allow");
    assert_eq!(decide(&["allow Write"], ".claude/worktrees"), "ask");
    assert_eq!(decide(&["allow Edit(.claude/**)"], ".claude/settings.json"), "allow");
    for name in [".git/HEAD", ".git/objects/x", ".git/refs/x"] {
        workspace.write(name, "");
    }
    assert_eq!(decide(&["allow Edit(.git/**)"], ".git/config"), "allow");
    assert_eq!(decide(&["allow Edit(/.mcp.json)"], ".mcp.json"), "allow");
    assert_eq!(decide(&["allow Write"], "src/main.rs"), "allow");
}

#[test]
fn a_rule_for_the_whole_folder_matches_however_it_is_written() {
    let workspace = TestWorkspace::new();
    workspace.write("sub/a.txt", "a");
    let input = json!({"file_path": workspace.path("sub/a.txt")});
    for pattern in ["/**", "/*", "/", ".", "./", "./**", "**", "*", ".//sub", "sub//a.txt", "./sub//**", "sub/**"] {
        for behavior in ["deny", "ask"] {
            let rule = format!("{behavior} Read({pattern})");
            let decision = workspace.evaluate(PermissionMode::Default, &[&rule], "Read", &input);
            assert_eq!(decision_word(&decision), behavior, "{rule}");
        }
    }
}

#[test]
fn braces_protect_the_targets_of_links_however_many_there_are() {
    let workspace = TestWorkspace::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("key"), "x").unwrap();
    workspace.write("config/prod", "x");
    workspace.write("other", "x");
    symlink("config/prod", workspace.path(".env")).unwrap();
    symlink(outside.path().join("key"), workspace.path("key")).unwrap();
    for (count, other) in [(2, "allow"), (65, "allow"), (1022, "allow"), (1023, "deny"), (100_000, "deny")] {
        let names: Vec<String> = (0..count).map(|index| format!("f{index}")).collect();
        let rules = [format!("deny Read({{{},.env,key}})", names.join(",")), "allow Read".to_owned()];
        let rules = rules.each_ref().map(String::as_str);
        let decision = |path: &Path| {
            let input = json!({"file_path": path});
            decision_word(&workspace.evaluate(PermissionMode::Default, &rules, "Read", &input))
        };
        for path in [workspace.path(".env"), workspace.path("config/prod"), outside.path().join("key")] {
            assert_eq!(decision(&path), "deny", "{count} {}", path.display());
        }
        assert_eq!(decision(&workspace.path("other")), other, "{count}");
    }
    let nested = ["deny Read({a,b,.}{c,d,e}{f,g,n}{h,i,v}{x,})"];
    let input = json!({"file_path": workspace.path("config/prod")});
    assert_eq!(decision_word(&workspace.evaluate(PermissionMode::Default, &nested, "Read", &input)), "deny");
}
