//! Attempts to get round the rules, as tables.

use std::fs;
use std::os::unix::fs::symlink;

use quipu_engine::testing::permission::{PermissionMode, evaluate_target, file_target};
use quipu_engine::testing::tool::{CallContext, WorkspaceOptions};
use quipu_message::ToolName;
use serde_json::json;

use crate::{TestWorkspace, decision_word, output_text, parse_rules};

/// A folder with links that lead out of it, beside a folder with a secret.
pub(crate) fn workspace_with_links() -> (TestWorkspace, tempfile::TempDir) {
    let workspace = TestWorkspace::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    workspace.write("in/file", "x");
    workspace.write("a.txt", "x");
    symlink(outside.path(), workspace.path("out")).unwrap();
    symlink(outside.path().join("secret"), workspace.path("secret")).unwrap();
    symlink(outside.path().join("not-yet"), workspace.path("dangling")).unwrap();
    symlink(workspace.path("ring"), workspace.path("ring")).unwrap();
    symlink("..", workspace.path("up")).unwrap();
    symlink("out", workspace.path("chain")).unwrap();
    symlink("../..", workspace.path("in/link")).unwrap();
    (workspace, outside)
}

#[test]
fn no_file_tool_leaves_the_folders() {
    let (workspace, outside) = workspace_with_links();
    let beside = workspace.inner.root().with_file_name("beside").display().to_string();
    let paths = [
        "out/secret".to_owned(),
        "secret".to_owned(),
        "dangling".to_owned(),
        "ring".to_owned(),
        "up/x".to_owned(),
        "../x".to_owned(),
        "in/../../x".to_owned(),
        "in/../out/secret".to_owned(),
        "not/there/../../../x".to_owned(),
        "./././../x".to_owned(),
        "out/../x".to_owned(),
        "secret/".to_owned(),
        "secret/.".to_owned(),
        "out/".to_owned(),
        "out//secret".to_owned(),
        "in/../up/x".to_owned(),
        "up/./x".to_owned(),
        "chain/secret".to_owned(),
        "in/link/x".to_owned(),
        "/proc/self/root/etc/passwd".to_owned(),
        "/proc/self/cwd/../x".to_owned(),
        "/etc/passwd".to_owned(),
        "//etc/passwd".to_owned(),
        "~/x".to_owned(),
        format!("{}x/y", workspace.inner.root().display()),
        format!("{}/../x", workspace.inner.root().display()),
        beside,
        outside.path().join("secret").display().to_string(),
    ];
    // Without a home, `~` is an ordinary name inside the folder.
    let really_inside = |path: &str| path == "~/x";
    for path in paths {
        for tool in ["Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"] {
            let input = json!({"file_path": path, "notebook_path": path, "path": path, "pattern": "x"});
            let decision = decision_word(&workspace.evaluate(PermissionMode::AcceptEdits, &[], tool, &input));
            assert_eq!(decision, if really_inside(&path) { "allow" } else { "ask" }, "{tool} {path}");
            let decision =
                decision_word(&workspace.evaluate(PermissionMode::DontAsk, &["allow Edit(in/**)"], tool, &input));
            assert!(decision == "deny" || really_inside(&path), "{tool} {path}");
        }
    }
    for pattern in ["/etc/*", "../*", "in/../../*", "~/*", "./../*", "in/..", "**/../../*", "//etc/*"] {
        let decision = workspace.evaluate(PermissionMode::Default, &[], "Glob", &json!({"pattern": pattern}));
        assert_eq!(decision_word(&decision), "ask", "Glob {pattern}");
    }
}

#[test]
fn files_that_decide_what_programs_do_are_never_changed_unasked() {
    let (workspace, _outside) = workspace_with_links();
    workspace.write(".git/config", "");
    symlink(workspace.path(".git"), workspace.path("innocent")).unwrap();
    // A guarded link, a link to it, and the folder that another guarded link leads to.
    workspace.write("conf/env", "");
    workspace.write("editor/tasks.json", "");
    workspace.write("scripts/check.sh", "");
    workspace.write(".git/hooks/x", "");
    for (target, link) in [
        ("conf/env", ".envrc"),
        (".envrc", "chained"),
        ("editor", ".vscode"),
        ("none", ".mcp.json"),
        ("../../scripts/check.sh", ".git/hooks/pre-commit"),
        ("../in", ".git/refs"),
    ] {
        symlink(target, workspace.path(link)).unwrap();
    }
    for path in [
        "scripts/check.sh",
        "in/file",
        "chained",
        "conf/env",
        "editor/new.json",
        "none",
        ".ſsh/rc",
        ".conﬁg/git/config",
        "CLAUDE~1/settings.json",
        "VSCODE~2/tasks.json",
        ".git/config",
        ".git/hooks/pre-commit",
        ".claude/settings.json",
        ".mcp.json",
        "sub/.git/config",
        ".GIT/config",
        "innocent/config",
        ".githooks/pre-commit",
    ] {
        let decision = workspace.evaluate(PermissionMode::AcceptEdits, &[], "Write", &json!({"file_path": path}));
        assert_eq!(decision_word(&decision), "ask", "{path}");
        for command in [format!("touch {path}"), format!("echo x > {path}"), format!("cp a.txt {path}")] {
            assert_eq!(workspace.bash_decision(PermissionMode::AcceptEdits, &[], &command), "ask", "{command}");
        }
    }
    // Rules that do not name the target of a guarded link do not allow changing it.
    let decide = |rule: &str, path: &str| {
        let input = json!({"file_path": path, "content": "x"});
        decision_word(&workspace.evaluate(PermissionMode::Default, &[rule], "Write", &input))
    };
    for path in ["conf/env", "editor/new.json", "none"] {
        for rule in ["allow Edit", "allow Edit(**)", "allow Edit(conf/**)", "allow Edit(editor/**)"] {
            assert_eq!(decide(rule, path), "ask", "{rule} {path}");
        }
    }
    assert_eq!(decide("allow Edit(conf/env)", "conf/env"), "allow");
}

#[test]
fn comments_and_tildes_inside_of_commands_hide_nothing() {
    let (workspace, _outside) = workspace_with_links();
    for command in [
        "for x in a #'\ndo touch evil; done; for y in b #'\ndo hostname; done",
        "for x in a #\"\ndo touch evil; done; for y in b #\"\ndo hostname; done",
        "hostname > #'\ntouch evil #'",
        "hostname > a=~/victim",
        "hostname < a=~/secret",
        "hostname < a:~/secret",
        "cd a=~ && cat secret && hostname",
    ] {
        let decision = workspace.bash_decision(PermissionMode::AcceptEdits, &["allow Bash(hostname)"], command);
        assert_eq!(decision, "ask", "{command}");
    }
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &["allow Bash(hostname)"], "hostname # a'"), "allow");
}

#[tokio::test]
async fn a_search_for_names_lists_the_folder_that_was_permitted() {
    let (workspace, outside) = workspace_with_links();
    symlink("in", workspace.path("link")).unwrap();
    let input = json!({"pattern": "*", "path": "link"});
    let target = file_target(&ToolName::Glob, &input, &workspace.inner);
    let call = CallContext { target, ..CallContext::new("toolu_1") };
    let names = || async { output_text(&workspace.run_tool_with("Glob", input.clone(), &call).await) };
    assert!(names().await.contains("in/file"));
    // The link leads elsewhere since, and the folder itself is one.
    std::fs::remove_file(workspace.path("link")).unwrap();
    symlink(outside.path(), workspace.path("link")).unwrap();
    assert!(names().await.contains("in/file"));
    std::fs::rename(workspace.path("in"), workspace.path("moved")).unwrap();
    symlink(outside.path(), workspace.path("in")).unwrap();
    assert!(names().await.contains("Directory does not exist"));
}

/// None of these may run because `git diff`, `npm test` and `echo` may.
#[test]
fn allow_rules_match_nothing_beyond_their_text() {
    let (workspace, outside) = workspace_with_links();
    let rules = ["allow Bash(git diff:*)", "allow Bash(npm test)", "allow Bash(echo:*)"];
    let elsewhere = outside.path().join("new").display().to_string();
    let attempts = [
        // lists
        "git diff; rm -rf x",
        "git diff && rm -rf x",
        "git diff || rm -rf x",
        "git diff | sh",
        "git diff |& sh",
        "git diff & rm -rf x",
        "git diff\nrm -rf x",
        "git diff;\n\n\trm x",
        "npm test;rm x",
        "npm test&&rm x",
        "{ git diff; rm x; }",
        "(git diff; rm x)",
        "if git diff; then rm x; fi",
        "while git diff; do rm x; done",
        "for i in a b; do rm $i; done",
        "! rm x",
        // substitutions
        "git diff $(rm x)",
        "git diff `rm x`",
        "git diff \"$(rm x)\"",
        "git diff \"`rm x`\"",
        "git diff \"a $(echo $(rm x)) b\"",
        "git diff <(rm x)",
        "git diff >(rm x)",
        "git diff ${x:-$(rm x)}",
        "git diff ${x:-`rm x`}",
        "git diff $((x[$(rm x)]))",
        "git diff $[ $(rm x) ]",
        "echo \"${x@P}\"",
        "echo ${!x}",
        // here-documents
        "echo <<EOF\n$(rm x)\nEOF",
        "echo <<EOF\n`rm x`\nEOF",
        "echo <<'EOF'\nx\nEOF\nrm x",
        "echo <<-EOF\n\tx\n\tEOF\nrm x",
        "echo <<EOF $(rm x)\nEOF",
        "sh <<EOF\nrm x\nEOF",
        "sh <<< 'rm x'",
        // redirections
        "echo x > /etc/passwd",
        "echo x >> ~/.bashrc",
        "echo x > ../x",
        "echo x > out/x",
        "echo x > dangling",
        "echo x >| secret",
        "echo x &> /etc/x",
        "echo x >& /etc/x",
        "echo x 2> /etc/x",
        "echo x > $HOME/x",
        "echo x > \"$(rm x)\"",
        "echo x > /dev/tcp/10.0.0.1/80",
        "echo x <> /etc/x",
        "> /etc/passwd",
        "echo < /etc/passwd",
        "echo x > /dev/null > /etc/x",
        // wrappers and shells
        "env git diff",
        "env rm x",
        "env -i PATH=/tmp/evil git diff",
        "timeout 5 rm x",
        "timeout -s KILL 5 git diff",
        "nice rm x",
        "nice -n 5 rm x",
        "nohup rm x",
        "xargs rm",
        "echo x | xargs rm",
        "sh -c 'git diff'",
        "bash -c 'rm x'",
        "bash -c \"git diff; rm x\"",
        "eval 'rm x'",
        "eval git diff",
        "command rm x",
        "exec rm x",
        "builtin rm x",
        "sudo git diff",
        "stdbuf -oL rm x",
        "setsid rm x",
        "find . -exec rm {} +",
        "find . -delete",
        "find . -fprint x",
        "source x",
        ". ./x",
        "trap 'rm x' EXIT",
        "alias git=rm; git diff",
        "time rm x",
        "coproc rm x",
        // changed meaning
        "PATH=/tmp/evil git diff",
        "PATH=/tmp/evil; git diff",
        "GIT_EXTERNAL_DIFF=rm git diff",
        "LD_PRELOAD=/tmp/x.so npm test",
        "export PATH=/tmp/evil; git diff",
        "NODE_ENV=$(rm x) npm test",
        "git() { rm x; }; git diff",
        "function git { rm x; }; git diff",
        "for PATH in /tmp/evil; do git diff; done",
        "hash -p /tmp/evil git; git diff",
        "./git diff",
        "/tmp/evil/git diff",
        "out/git diff",
        "git -c core.pager=rm diff",
        "git --exec-path=/tmp/evil diff",
        // words that only look right
        "git diffx",
        "gitdiff",
        "\"git diff\"",
        "'git diff' x",
        "git\u{a0}diff",
        "git\u{2003}diff",
        "git\u{200b} diff",
        "git diff\u{2028}rm x",
        "git diff\rrm x",
        "git \u{202e}diff",
        "$git diff",
        "git $x",
        "g?t diff",
        "git d*",
        "{git,diff}",
        "{rm,-rf,x}",
        "~/git diff",
        "$'git' diff",
        "$'\\x72m' x",
        "npm test x",
        "npm testx",
        "npm  test --",
        // comments and continuations
        "git diff # x\nrm x",
        "# x\nrm x",
        "git diff \\\n; rm x",
        "git diff \\\n&& rm x",
        "r\\\nm x",
        "git diff '#' ; rm x",
        "git diff a#; rm x",
        // not a command at all
        "git diff '",
        "git diff \"",
        "git diff $(",
        "git diff `",
        "git diff (",
        "git diff )",
        "git diff \\",
        "case x in x) rm x;; esac",
        "[[ -n $(rm x) ]]",
        "((x=$(rm x)))",
        "select i in a; do rm x; done",
        "x=(a $(rm x))",
        "a[$(rm x)]=1",
        "test -v 'a[$(rm x)]'",
        "[ -v 'a[$(rm x)]' ]",
        // variables of the shell, with which `npm` may be another program
        "printf '12345678%n' PATH; npm test",
        "printf -- '%8s%-2ln' x PATH && npm test",
        "printf -v PATH x; npm test",
        "echo x {PATH}</dev/null; npm test",
        "echo {PATH}<a.txt\nnpm test",
        "echo {PATH}<<E\nx\nE\nnpm test",
        // a locale in which a backslash belongs to the character before it
        "LC_ALL=ja_JP.SJIS\nnpm test",
        "LANG=zh_TW.Big5; npm test",
        "npm test; echo \"\u{3041}\\\"; rm x #\"",
        "npm test; echo \u{3041}\\'; rm x '",
        "npm test; echo \u{3041}`: ` rm x `:`",
        // options after `--`
        "npm test; find -- . -delete",
        "npm test; find -- . -exec rm {} +",
        "find . -- -fprint x; npm test",
        "test -- -a -v 'x[PATH=1]'; npm test",
        "test -n -- -a -v 'x[PATH=1]'; npm test",
        "[ -- -o -v 'x[PATH=1]' ]; npm test",
        "git diff; git blame -- a.txt --output=x",
        // bodies of here-documents beside substitutions
        "echo <<'echo' $(echo a\nrm x\necho\n)\necho\n",
        "echo <<'echo' \"$(echo a\nrm x\necho\n)\"\necho\n",
        "echo <<'echo' <(echo a\nrm x\necho\n)\necho\n",
        "echo $(echo <<'echo')\nrm x\necho\n",
        // a sign that starts no comment
        "echo <(echo a)#; rm x",
        "echo >(echo a)#; rm x",
        "echo a<(echo a)#; rm x",
        "echo <(echo)<(echo)#; rm x",
    ];
    for command in attempts.into_iter().map(str::to_owned).chain([format!("echo x > {elsewhere}")]) {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, &command), "ask", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::DontAsk, &rules, &command), "deny", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::Plan, &rules, &command), "deny", "plan {command}");
    }
}

#[test]
fn printf_that_sets_no_variable_only_reads() {
    let (workspace, _outside) = workspace_with_links();
    for command in ["printf '%s\\n' x", "printf '%d%%\\n' 5", "printf 'no %5.2f\\n' 1", "echo '\u{5b8c}\u{4e86}\\n'"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], command), "allow", "{command}");
    }
}

/// Without a sandbox, beside a command that a rule allows, only options may decide what a command does.
#[test]
fn commands_with_expressions_are_asked_about_beside_one_that_a_rule_allows() {
    let (workspace, _outside) = workspace_with_links();
    let check = |command: &str, expect: &str| {
        let line = format!("{command}; npm test");
        let rules = ["allow Bash(npm test)"];
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], command), "allow", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, &line), expect, "{line}");
    };
    for plain in
        ["echo '\u{5b8c}\u{4e86}\\n'", "ls -la", "cd .", "[ -f a.txt ]", "test ! -d a", "grep -c x a.txt", "sleep 1"]
    {
        check(plain, "allow");
    }
    for other in ["find . -name x", "printf '%s' x", "[ a = b ]", "test -n a -o -f b", "date +%s", "git log -1"] {
        check(other, "ask");
    }
}

/// None of these may run unasked because they seem to only read, or to change what may be changed.
#[test]
fn commands_that_only_seem_to_read_are_not_allowed() {
    let (workspace, _outside) = workspace_with_links();
    let attempts = [
        "cat /etc/passwd",
        "cat ../x",
        "cat out/secret",
        "cat secret",
        "cat ~/x",
        "cat $x",
        "cat *",
        "cat up/x",
        "head -c9 < /etc/passwd",
        "ls /",
        "ls ..",
        "cd / && ls",
        "cd .. && cat x",
        "cd out && cat secret",
        "cd in && cat ../../x",
        "cd && ls",
        "cd - && ls",
        "cd in; cd in; cat x",
        "for i in 1 2; do cat x; cd in; done",
        "pushd in && cat x",
        "grep -R x .",
        "grep -f/etc/passwd x",
        "grep x /etc/passwd",
        "sort -o a.txt in/file",
        "sort -uoa.txt in/file",
        "sort --output=a.txt in/file",
        "sort --compress-program=rm a.txt",
        "uniq a.txt in/file",
        "uniq - in/file",
        "uniq -- -a in/file",
        "sort --co=rm a.txt",
        "git diff --textco",
        "git diff --no-ind a.txt b",
        "date --se 2020-01-01",
        "wc --fil a.txt",
        "find / -name x",
        "find . -execdir rm {} +",
        "find . -ok rm {} +",
        "find . -fls x",
        "find -L . -name x",
        "find . -name x -delete",
        "date -s 2020-01-01",
        "file -C -m x",
        "git diff --output=x",
        "git log --output x",
        "git diff --ext-diff",
        "git diff --no-index /etc/passwd a.txt",
        "git -C / log",
        "git show --textconv",
        "git branch new",
        "git remote add x y",
        "git stash",
        "git tag v1",
        "git checkout .",
        "git config -l",
        "printf -v PATH x",
        "diff -r in out",
        "tee a.txt",
        "dd if=/dev/zero of=a.txt",
        "awk 'BEGIN{system(\"x\")}'",
        "sed -n 1w a.txt",
        "sed 1p a.txt",
        "python3 -c x",
        "wc --files0-from=a.txt",
        "touch /etc/x",
        "rm -rf /",
        "rm -rf .",
        "rm -rf ..",
        "rm -rf in/..",
        "rm *",
        "rm -rf $x",
        "rm -rf ~",
        "rm -rf out/secret",
        "mv a.txt ..",
        "mv a.txt out/",
        "mv a.txt /tmp",
        "cp secret b",
        "cp a.txt ../b",
        "cp -t /etc a.txt",
        "cp --target-directory=/etc a.txt",
        "mkdir ../x",
        "mkdir -p in/../../x",
        "ln -s /etc x",
        "chmod 777 a.txt",
        "cd .. && touch x",
        "cd in && rm ../../x",
        "rmdir up/x",
    ];
    for command in attempts {
        assert_eq!(workspace.bash_decision(PermissionMode::AcceptEdits, &[], command), "ask", "{command}");
    }
    for command in [
        "touch in/new",
        "rm -f a.txt",
        "mkdir -p in/deep",
        "mv a.txt in/",
        "cp a.txt b.txt",
        "echo x > new",
        "cd in && touch new",
    ] {
        assert_eq!(workspace.bash_decision(PermissionMode::AcceptEdits, &[], command), "allow", "{command}");
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], command), "ask", "{command}");
    }
}

#[test]
fn no_pattern_of_the_shell_reaches_a_file_that_may_not_be_read() {
    let workspace = TestWorkspace::new();
    workspace.write(".env", "KEY=1");
    workspace.write("deep/.env", "KEY=1");
    workspace.write("a.txt", "x");
    let commands = [
        "cat .e*",
        "cat .env*",
        "cat .en?",
        "cat .[e]nv",
        "cat .en[a-z]",
        "cat .en[!x]",
        "cat \".e\"*",
        "cat '.e'nv*",
        "cat .\\e*",
        "cat .e{nv,x}",
        "cat ./.e*",
        "cat */.e*",
        "cat d*p/.env",
        "cat de{ep,x}/.e*",
        "cat < .e*",
        "cat $FILE",
        "cat ${F}",
        "cat \"$F\"",
        "grep KEY .*",
        "head -n1 .??v",
        "cat $(echo .env)",
    ];
    let read = ["allow Bash(cat:*)", "allow Bash(grep:*)", "allow Bash(head:*)", "allow Bash(rm:*)"];
    for command in commands {
        for mode in [PermissionMode::Default, PermissionMode::AcceptEdits] {
            assert_ne!(
                workspace.bash_decision(mode, &[&["deny Read(.env)"], &read[..]].concat(), command),
                "allow",
                "{command}"
            );
            assert_ne!(workspace.bash_decision(mode, &["deny Read(.env)"], command), "allow", "{command}");
        }
    }
    assert_ne!(
        workspace.bash_decision(PermissionMode::Default, &["deny Edit(.env)", "allow Bash(rm:*)"], "rm .e*"),
        "allow"
    );
    // Where nothing is refused, and where nothing is hidden, the rule is as good as ever.
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &read, "cat .e*"), "allow");
    assert_eq!(
        workspace.bash_decision(PermissionMode::Default, &[&["deny Read(.env)"], &read[..]].concat(), "cat a.txt"),
        "allow"
    );
}

/// An option whose value is `--` does not end the options.
#[test]
fn options_are_seen_after_two_dashes_that_are_a_value() {
    let (workspace, _outside) = workspace_with_links();
    let decide = |rules: &[&str], command: &str| workspace.bash_decision(PermissionMode::Default, rules, command);
    for command in ["tree -P -- -o .envrc", "rg -e -- --pre=./x foo", "grep -e . -e -- -R in", "sort -t -- -o x a.txt"]
    {
        assert_eq!(decide(&[], command), "ask", "{command}");
    }
    let rules = ["allow Bash(grep:*)", "allow Bash(git commit:*)", "deny Read(.env)"];
    for command in ["grep -e SECRET -e -- -r", "git commit -m -- -v --dry-run"] {
        assert_eq!(decide(&rules, command), "ask", "{command}");
    }
    assert_eq!(decide(&rules, "git commit -m x -- a.txt"), "allow");
    let command = "cp -S -- -r in new && cat new/link/x";
    let rules = ["allow Bash(cp:*)"];
    assert_eq!(workspace.bash_decision(PermissionMode::AcceptEdits, &rules, command), "ask");
    for command in ["grep -n -- x a.txt", "git diff --stat -- a.txt", "ls -- in"] {
        assert_eq!(decide(&[], command), "allow", "{command}");
    }
}

#[test]
fn values_of_long_options_do_not_hide_names_of_files() {
    let (workspace, _outside) = workspace_with_links();
    workspace.write(".git/config", "");
    let decide = |command: &str| {
        let rules = ["allow Bash(git checkout:*)"];
        workspace.bash_decision(PermissionMode::Default, &rules, &format!("git checkout -q evil && {command}"))
    };
    for command in ["grep --exclude -A . data", "cut -f1 --output-delimiter -d data", "head --lines -n data"] {
        assert_eq!(decide(command), "ask", "{command}");
    }
    for command in ["ls", "grep -A 3 x", "grep --color=never -A 3 x", "head -n 3"] {
        assert_eq!(decide(command), "allow", "{command}");
    }
}

/// In some encodings `|` may be the second byte of a character.
#[test]
fn other_characters_than_ascii_need_a_known_encoding() {
    let decide = |variables: &[(&str, &str)], command: &str| {
        let env = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let workspace = TestWorkspace::with_options(WorkspaceOptions { env, ..WorkspaceOptions::default() });
        workspace.bash_decision(PermissionMode::Default, &["allow Bash(make:*)"], command)
    };
    let command = "grep -v \u{c1}| make /etc/passwd";
    let other: [&[(&str, &str)]; 6] = [
        &[("LC_ALL", "ja_JP.SJIS")],
        &[("LC_ALL", ""), ("LC_CTYPE", "zh_CN.GBK")],
        &[("LANG", "zh_CN.GB18030")],
        &[("LANG", "zh_CN")],
        &[("LC_CTYPE", "zh_TW.Big5"), ("LANG", "C.UTF-8")],
        &[("LC_ALL", "de_DE@euro")],
    ];
    for variables in other {
        assert_eq!(decide(variables, command), "ask", "{variables:?}");
        assert_eq!(decide(variables, "grep -v x| make a"), "allow", "{variables:?}");
    }
    let known: [&[(&str, &str)]; 7] = [
        &[],
        &[("LANG", "en_US.UTF-8")],
        &[("LC_ALL", "de_DE.utf8@euro"), ("LANG", "ja_JP.SJIS")],
        &[("LC_CTYPE", "UTF-8")],
        &[("LANG", "C")],
        &[("LANG", "POSIX")],
        &[("LC_ALL", "C.UTF-8")],
    ];
    for variables in known {
        assert_eq!(decide(variables, command), "allow", "{variables:?}");
    }
}

#[test]
fn commands_that_read_more_than_their_words_say_are_asked_about() {
    let (workspace, outside) = workspace_with_links();
    for name in ["d1", "d2"] {
        fs::create_dir(workspace.path(name)).unwrap();
        symlink(outside.path().join("secret"), workspace.path(name).join("link")).unwrap();
    }
    workspace.write("%n", "");
    for command in ["diff d1 d2", "diff d1 a.txt", "printf ?n PATH; ls", "printf ?n PATH"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], command), "ask", "{command}");
    }
    assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], "diff a.txt in/file"), "allow");
}

#[test]
fn a_rule_with_a_whole_command_follows_no_link_to_a_guarded_file() {
    let workspace = TestWorkspace::new();
    for name in [".git/config", "sub/a"] {
        workspace.write(name, "");
    }
    let outside = tempfile::tempdir().unwrap();
    symlink(".git/config", workspace.path("notes")).unwrap();
    symlink(outside.path(), workspace.path("build")).unwrap();
    symlink(".git", workspace.path("store")).unwrap();
    let decide = |command: &str| {
        let rule = format!("allow Bash({command})");
        workspace.bash_decision(PermissionMode::Default, &[&rule], command)
    };
    for command in ["cat x > notes", "cd build && date > log", "cd build && touch made", "cd store && touch made"] {
        assert_eq!(decide(command), "ask", "{command}");
    }
    for command in ["cat x > log", "cd sub && touch made", "cd sub && date > log"] {
        assert_eq!(decide(command), "allow", "{command}");
    }
}

#[test]
fn a_file_is_guarded_by_the_path_that_is_opened() {
    let workspace = TestWorkspace::new();
    for name in ["ok/x", ".claude/x"] {
        workspace.write(name, "");
    }
    let input = json!({"file_path": workspace.path_text("d/settings.json"), "content": "{}"});
    let decide = |rules: &[&str], opened: &str| {
        symlink(opened, workspace.path("d")).unwrap();
        let target = file_target(&ToolName::Write, &input, &workspace.inner);
        // The link leads elsewhere when it is evaluated.
        std::fs::remove_file(workspace.path("d")).unwrap();
        symlink("ok", workspace.path("d")).unwrap();
        let rules = parse_rules(rules);
        let mode = PermissionMode::AcceptEdits;
        let decision = evaluate_target(mode, &rules, &ToolName::Write, &input, &workspace.inner, target.as_ref());
        std::fs::remove_file(workspace.path("d")).unwrap();
        decision_word(&decision)
    };
    assert_eq!(decide(&[], "ok"), "allow");
    assert_eq!(decide(&[], ".claude"), "ask");
    assert_eq!(decide(&["allow Edit(**)"], ".claude"), "ask");
}
