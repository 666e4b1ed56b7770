//! Files that the words of a command name, in every folder that it names: deny rules match them, and an allow rule for the
//! command does not cover guarded ones.

use std::os::unix::fs::symlink;

use quipu_engine::testing::permission::{PermissionMode, hidden_file_filter};
use quipu_engine::testing::tool::TargetPath;

use crate::{TestWorkspace, parse_rules};

/// Without a sandbox a rule for a program would allow it to change what decides which programs run.
#[test]
fn commands_that_rules_allow_are_asked_about_if_they_write_guarded_files() {
    let workspace = TestWorkspace::new();
    for name in [".git/config", ".husky/_/a", ".npmrc", "x", "src/a.rs", "envrc"] {
        workspace.write(name, "");
    }
    symlink(workspace.path(".git"), workspace.path("linked")).unwrap();
    let programs = ["git:*", "find:*", "cp:*", "rm:*", "sort:*", "sed:*", "cat:*", "env:*"];
    let rules: Vec<String> = programs.iter().map(|program| format!("allow Bash({program})")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let decide = |rules: &[&str], command: &str| workspace.bash_decision(PermissionMode::Default, rules, command);
    for command in [
        "git log -1 --output=.git/config --format=x",
        "git log -1 --output .envrc",
        "git diff --output=sub/.envrc",
        "find . -maxdepth 0 -fprintf .git/config x",
        "find . -fprint .claude/settings.json",
        "find .husky -delete",
        "cp x .envrc",
        "cp -t .git/hooks x",
        "rm .npmrc",
        "sort -o.envrc x",
        "git log -1 --output=linked/hooks/post-commit",
        "cp x linked/hooks",
        "cp x/.envrc src",
        "for f in .claude/settings.local.json; do git log -1 --output=\"$f\"; done",
        "for f in .np*; do cp x \"$f\"; done",
        "for f in hooks/post-commit; do cp x .git/$f; done",
        "git log -1 {--output=.claude/settings.local.json,HEAD}",
        "git -C .husky log --output=pre-commit",
        "env cp x .envrc",
        "cp x .np*c",
        "for f in rc; do cp x .env$f; done",
        "for f in rc; do cp x .env\"${f}\"; done",
        "for f in env*; do cp x \".$f\"; done",
        "for f in 'x .envrc'; do cp $f; done",
        "cp x .envr{c..c}",
        "cp \".env\"{,rc}",
        "cp {x,.env\"rc\"}",
        "rm -f \".husky\"/{_,x}/a",
        "cp x ./.e[n]\"vrc\"",
        "cp x \"linked\"/h*/post-commit",
        "cp x \"$PWD\"/.envrc",
        "cp x $UNKNOWN",
        "sed -n 'w .envrc' x",
        "sed 's/x/y/w .envrc' x",
        "sed '1e cp x .envrc' x",
        "sed -n 1w.envrc x",
        "git fast-export --export-marks=.envrc HEAD",
        "git interpret-trailers --in-place --trailer a=b .npmrc",
        "git clone . .husky/x",
        "git mv -f x .vscode/tasks.json",
        "git rm .npmrc",
        "git log {\"--output=.envrc\",HEAD}",
        "git log \"$(cat <<'E'\n--output=.envrc\nE\n)\"",
        "rm .gi[t]/conf*",
        "rm .husky/*/a",
    ] {
        assert_eq!(decide(&rules, command), "ask", "{command}");
    }
    for command in [
        "git log -1 --output=log.txt",
        "git diff .npmrc",
        "git -C src status .npmrc",
        "git add .claude/settings.json",
        "git commit -m .envrc",
        "find . -maxdepth 0 -fprintf made x",
        "cat .npmrc",
        "cp x y",
        "cp x src",
        "rm x*",
        "rm src/*.rs",
        "for f in src/*.rs; do cp \"$f\" y; done",
        "for f in a b; do cp x src/$f.rs; done",
        "cp x src/{a,b}.rs",
        "git commit -m \"$(cat <<'E'\n.envrc\nE\n)\"",
    ] {
        assert_eq!(decide(&rules, command), "allow", "{command}");
    }
    assert_eq!(decide(&["allow Bash(cp x .envrc)"], "cp x .envrc"), "allow");
    assert_eq!(decide(&["allow Bash(cp * .envrc)"], "cp x .envrc"), "allow");
    assert_eq!(decide(&["allow Bash"], "cp x .envrc"), "allow");
}

/// Only the words of a command are compared in this mode, but in every folder and with every value that they name.
#[test]
fn rules_for_files_match_words_in_the_folders_and_values_of_a_line() {
    let workspace = TestWorkspace::new();
    for name in [".env", "secrets/key", "src/a", "deep/inner/key"] {
        workspace.write(name, "");
    }
    let rules = ["deny Read(.env)", "deny Read(secrets/**)", "deny Read(deep/inner/key)"];
    let decide = |command: &str| workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command);
    for command in [
        "cat /proc/$$/cwd/.env",
        "cat \"/proc/$$/cwd/secrets/key\"",
        "cat < /proc/$$/cwd/.env",
        "cd -P secrets; cat key",
        "cd -- secrets; cat key",
        "command cd secrets; cat key",
        "builtin cd secrets; cat key",
        "pushd secrets; cat key",
        "cd src; cd ../secrets; cat key",
        "for i in 1; do cd secrets; cat key; done",
        "bash -c 'cd secrets; cat key'",
        "cd \"$PWD/secrets\" && cat key",
        "env -C secrets cat key",
        "tar -C secrets -cf - key",
        "tar --directory=secrets -cf - key",
        "d=secrets; cat \"$d/key\"",
        "for d in secrets; do cat \"$d/key\"; done",
        "for d in secrets; do cd $d; cat key; done",
        "d=secrets; cd \"$d\"; cat key",
        "cd {secrets,}; cat key",
        "sh -c 'cd \"$1\"; cat key' x secrets",
        "f() { cat key; }; cd secrets; f",
        "env --chdir=secrets cat key",
        "env -Csecrets cat key",
        "env -S '-C secrets cat key'",
        "tar -cC secrets -f - key",
        "tar cCf secrets - key",
        "tar cfCC - deep inner key",
        "tar -Csecrets -cf - key",
        "tar --dir secrets -cf - key",
        "make -sCsecrets -fkey",
        "make --direc=secrets -f key",
        "find secrets -execdir cat key \\;",
        "cat .{env,}",
        "cat \".e\"{nv,x}",
        "cat {a.txt,.e\"nv\"}",
        "cat .e{\"n\",x}v",
        "xargs cat <<< .env",
        "cat ${f:-.env}",
        "read f <<< .env; cat $f",
        "git add -f ':(top).env'",
    ] {
        assert_eq!(decide(command), "deny", "{command}");
    }
    // Words in braces are limited; what is not compared is asked about, except in this mode.
    let many: Vec<String> = (0..1100).map(|n| format!("n{n}")).collect();
    let long = vec!["{a,b,c,d,e,f,g,h,i,j}{a,b,c,d,e,f,g,h,i,j}{a,b,c,d,e,f,g,h,i,j}"; 60].join(" ");
    for command in [format!("cat .e{{{},nv}}", many.join(",")), format!("ls {long}")] {
        let rules = [&rules[..], &["allow Bash"]].concat();
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, &command), "ask");
    }
    let json = format!("curl -d '[{}]' http://127.0.0.1", vec![r#"{"a": 1, "b": 2}"#; 20].join(","));
    assert_eq!(decide(&json), "allow");
    for command in
        ["cd src; cat a", "d=src; cat $d/a", "cat /proc/$$/cwd/src/a", "tar -C src -cf - a", "ls src; cat key"]
    {
        assert_eq!(decide(command), "allow", "{command}");
    }
}

/// A clone may have many deny rules, and a command may name many files: one by one this took minutes.
#[test]
fn many_rules_are_compared_with_many_names_at_once() {
    let workspace = TestWorkspace::new();
    let rules: Vec<String> = (0..300).map(|n| format!("deny Read(**/*q{n}*z*.key)")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let words = "{a,b,c,d,e,f,g,h,i,j}{a,b,c,d,e,f,g,h,i,j}{a,b,c,d,e,f,g,h,i,j}";
    let decide = |command: &str| workspace.bash_decision(PermissionMode::BypassPermissions, &rules, command);
    assert_eq!(decide(&format!("ls {words}")), "allow");
    assert_eq!(decide(&format!("ls {words} sub/aq299bzc.key")), "deny");
    let hidden = hidden_file_filter(&parse_rules(&rules), &workspace.inner)();
    let mut names = (0..5000).map(|n| workspace.inner.root().join(format!("q{n}x.key")));
    assert!(!names.any(|path| hidden(&TargetPath::new(path))));
    assert!(hidden(&TargetPath::new(workspace.path("sub/aq7bz.key"))));
}
