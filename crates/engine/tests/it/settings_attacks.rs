//! Attempts to get round what settings and variables name: patterns, folders and commands.

use std::path::{Path, PathBuf};

use quipu_engine::testing::permission::{Decision, PermissionMode, evaluate};
use quipu_engine::testing::sandbox::SandboxOptions;
use quipu_engine::testing::tool::{Workspace, WorkspaceOptions};
use serde_json::json;

use crate::{TestWorkspace, decision_word, parse_rules};

#[test]
fn folders_that_variables_name_for_settings_are_guarded() {
    let folder = tempfile::tempdir().unwrap();
    let p = folder.path().canonicalize().unwrap();
    let decide = |variable: &str, value: PathBuf, rules: &[&str], file: &str| {
        let env = [(variable.into(), value.into_os_string())].into();
        let workspace = Workspace::new(&p, WorkspaceOptions { env, ..WorkspaceOptions::default() });
        let input = json!({"file_path": p.join(file), "content": "x"});
        decision_word(&evaluate(PermissionMode::AcceptEdits, &parse_rules(rules), "Write", &input, &workspace))
    };
    for variable in ["CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"] {
        assert_eq!(decide(variable, p.join("own"), &[], "own/settings.json"), "ask", "{variable}");
        assert_eq!(decide(variable, p.join("own"), &["allow Edit(**)"], "own/git/config"), "ask", "{variable}");
        assert_eq!(decide(variable, p.join("own"), &["allow Edit(own/**)"], "own/git/config"), "allow", "{variable}");
        assert_eq!(decide(variable, p.join("own"), &[], "other/settings.json"), "allow", "{variable}");
        // A relative path starts in the folder of the process.
        let up = "../".repeat(std::env::current_dir().unwrap().components().count() - 1);
        let relative = PathBuf::from(format!("{up}{}", p.join("own").strip_prefix("/").unwrap().display()));
        assert_eq!(decide(variable, relative, &[], "own/settings.json"), "ask", "{variable}");
        // Who works in the folder itself means to change what is in it.
        assert_eq!(decide(variable, p.clone(), &[], "notes.md"), "allow", "{variable}");
    }
    // But not which programs run.
    assert_eq!(decide("CLAUDE_CONFIG_DIR", p.clone(), &[], "settings.json"), "ask");
    assert_eq!(decide("XDG_CONFIG_HOME", p.clone(), &[], "quipu/config.toml"), "ask");
    assert_eq!(decide("CLAUDE_CONFIG_DIR", p.join("own"), &["allow Edit(own/**)"], "own/settings.json"), "allow");
}

#[test]
fn every_deny_rule_protects_the_file_that_it_names() {
    let check = |pattern: &str, names: &[&str]| {
        let workspace = TestWorkspace::new();
        for name in names {
            workspace.write(name, "SECRET\n");
            let (rule, input) = (format!("deny Read({pattern})"), json!({"file_path": name}));
            let decision = workspace.evaluate(PermissionMode::Default, &[&rule], "Read", &input);
            assert_eq!(decision_word(&decision), "deny", "{pattern} {name}");
        }
    };
    check("{.env,key}", &[".env", "key", "{.env,key}"]);
    check("./{a,b}/key", &["a/key", "b/key", "{a,b}/key"]);
    check("a{b", &["a{b"]);
    check("d{1}/{k,l}.txt", &["d{1}/k.txt", "d{1}/l.txt", "d1/k.txt"]);
    check("x{1}{.txt,.y}", &["x{1}.txt", "x1.y"]);
    check("{a,b}{", &["a{", "b{"]);
    check("a{1,2}/b{c", &["a1/b{c"]);
    check("a}b", &["a}b"]);
    check("*{b", &["a{b"]);
    check("a\\", &["a\\"]);
    check("./.", &["key"]);
    check("./a/./*.pem", &["a/x.pem"]);
    check("./x*/../key", &["key"]);
    check("ключ", &["ключ", "Ключ", "a/КЛЮЧ"]);
    check("a[ ]", &["a "]);
    check("Ä/*.pem", &["ä/x.pem"]);
    let workspace = TestWorkspace::new();
    let decide = |pattern: &str, name: &str| {
        let (rule, input) = (format!("allow Edit({pattern})"), json!({"file_path": name}));
        decision_word(&workspace.evaluate(PermissionMode::Default, &[&rule], "Edit", &input))
    };
    assert_eq!(decide("*.{js,ts}", "a.ts"), "allow");
    assert_eq!((decide("*.{js,ts}", "a.rs"), decide("a{b", "a{b")), ("ask", "ask"));
}

/// `sandbox.excludedCommands` names commands that are asked about although there is a sandbox.
#[test]
fn excluded_commands_are_asked_about_in_every_form() {
    let settings = json!({"enabled": true, "excludedCommands": ["docker", "git push:*"]});
    let settings = serde_json::from_value(settings).unwrap();
    let sandbox = SandboxOptions { settings, ..SandboxOptions::default() };
    let workspace = TestWorkspace::with_options(WorkspaceOptions { sandbox, ..WorkspaceOptions::default() });
    for command in [
        "docker ps",
        "/usr/bin/docker ps",
        "timeout 5 docker ps",
        "env X=1 docker ps",
        "sh -c 'docker ps'",
        "true && docker ps $((1))",
        "x=(docker ps); \"${x[@]}\"",
        "perl -e 'system(\"docker ps\")'",
        "git push",
        "git -C . push origin",
    ] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], command), "ask", "{command}");
    }
    for command in ["dockerd x", "make docker-image", "git pull", "x=(1 2)"] {
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &[], command), "allow", "{command}");
    }
}

#[test]
fn a_loop_over_a_variable_of_the_environment_is_asked_about() {
    let env = [("tool_config".into(), "/dev/null".into())].into();
    let workspace = TestWorkspace::with_options(WorkspaceOptions { env, ..WorkspaceOptions::default() });
    workspace.inner.set_env_script("export other_config='file_names'\n".to_owned());
    let rules = ["allow Bash(tool:*)"];
    for (name, expected) in [("tool_config", "ask"), ("other_config", "ask"), ("file_name", "allow")] {
        let command = format!("for {name} in x; do tool; done");
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, &command), expected, "{command}");
        let command = format!("tool `for {name} in x; do tool; done`");
        assert_eq!(workspace.bash_decision(PermissionMode::Default, &rules, &command), "ask", "{command}");
    }
}

/// The decision about a tool call on a file.
fn decide(workspace: &Workspace, rule: &str, tool: &str, path: &Path) -> &'static str {
    let input = json!({"file_path": path, "content": "x"});
    decision_word(&evaluate(PermissionMode::AcceptEdits, &parse_rules(&[rule]), tool, &input, workspace))
}

#[test]
fn a_file_that_cannot_be_read_is_not_replaced() {
    let workspace = TestWorkspace::new();
    workspace.write(".env", "SECRET\n");
    let decide = |rule: &str, name: &str| decide(&workspace.inner, rule, "Write", &workspace.path(name));
    assert_eq!((decide("deny Read(.env)", ".env"), decide("ask Read(.env)", ".env")), ("deny", "ask"));
    // There is nothing to see in a new file.
    assert_eq!((decide("deny Read(.env)", "new/.env"), decide("deny Read(*.pem)", ".env")), ("allow", "allow"));
    std::os::unix::fs::symlink(workspace.path(".env"), workspace.path("link")).unwrap();
    assert_eq!(decide("deny Read(.env)", "link"), "deny");
}

#[test]
fn a_pattern_may_begin_above_the_session() {
    let temp = tempfile::tempdir().unwrap();
    let top = temp.path().canonicalize().unwrap();
    std::fs::create_dir_all(top.join("a/session")).unwrap();
    let workspace = Workspace::new(top.join("a/session"), WorkspaceOptions::default());
    let check = |rule: &str, name: &str, expected: &str| {
        let tool = if rule.contains("Edit") { "Edit" } else { "Read" };
        assert_eq!(decide(&workspace, rule, tool, &top.join(name)), expected, "{rule} {name}");
    };
    for pattern in ["../**", "..", "../", ".././**", "..//**", "./../**"] {
        check(&format!("deny Read({pattern})"), "a/key", "deny");
        check(&format!("deny Edit({pattern})"), "a/b/key", "deny");
        check(&format!("deny Read({pattern})"), "key", "ask");
    }
    check("deny Read(../b/**)", "a/b/key", "deny");
    check("deny Read(../b/**)", "a/session/key", "allow");
    check("deny Read(../b/**)", "a/session/b/key", "allow");
    check("deny Read(../../key)", "key", "deny");
    check("deny Read(../../../../../../../**)", "key", "deny");
    check("deny Read(..b/**)", "a/session/..b/key", "deny");
    check("allow Read(../b/**)", "a/b/key", "allow");
    check("allow Read(../b/**)", "a/key", "ask");
}

#[test]
fn deny_and_ask_rules_hold_in_every_folder_of_the_session() {
    let temp = tempfile::tempdir().unwrap();
    let further = temp.path().canonicalize().unwrap();
    let folders = vec![further.clone()];
    let workspace = TestWorkspace::with_options(WorkspaceOptions { folders, ..WorkspaceOptions::default() });
    let decide = |rule: &str, tool: &str, name: &str| decide(&workspace.inner, rule, tool, &further.join(name));
    for (pattern, name) in [
        (".env", "a/.env"),
        ("**/.env", ".env"),
        ("**", "key"),
        ("*.pem", "a/key.pem"),
        ("secrets/**", "a/secrets/key"),
        ("a/b/*.key", "a/b/x.key"),
        ("{.env,key}", "key"),
    ] {
        assert_eq!(decide(&format!("deny Read({pattern})"), "Read", name), "deny", "{pattern}");
        assert_eq!(decide(&format!("ask Edit({pattern})"), "Write", name), "ask", "{pattern}");
        assert_eq!(
            workspace.bash_decision(
                PermissionMode::Default,
                &[&format!("deny Read({pattern})")],
                &format!("cat {}", further.join(name).display())
            ),
            "deny",
            "{pattern}"
        );
    }
    // These name the session's own folder.
    for pattern in ["./.env", "/.env", "../.env", "."] {
        assert_eq!(decide(&format!("deny Read({pattern})"), "Read", ".env"), "allow", "{pattern}");
    }
    // An allow rule does too.
    let workspace = &workspace.inner;
    let input = json!({"file_path": further.join("x"), "content": "x"});
    let allowed = evaluate(PermissionMode::Default, &parse_rules(&["allow Edit(**)"]), "Write", &input, workspace);
    assert_eq!(decision_word(&allowed), "ask");
}

#[test]
fn without_a_home_folder_rules_for_it_protect_everything() {
    for env in [vec![], vec![("HOME".into(), "".into())], vec![("HOME".into(), "relative".into())]] {
        let options = WorkspaceOptions { env: env.into_iter().collect(), ..WorkspaceOptions::default() };
        let workspace = TestWorkspace::with_options(options);
        let decide = |rule: &str, path: &str| decide(&workspace.inner, rule, "Read", Path::new(path));
        for pattern in ["~/.ssh/**", "~", "~/"] {
            assert_eq!(decide(&format!("deny Read({pattern})"), "/home/me/.ssh/id"), "deny", "{pattern}");
            assert_eq!(decide(&format!("allow Read({pattern})"), "/home/me/.ssh/id"), "ask", "{pattern}");
        }
        assert_eq!(decide("ask Read(~/x)", &workspace.path_text("a")), "ask");
    }
}

#[test]
fn no_rule_is_suggested_for_a_host_that_is_a_pattern() {
    let workspace = TestWorkspace::new();
    let suggested = |url: &str| match workspace.evaluate(PermissionMode::Default, &[], "WebFetch", &json!({"url": url}))
    {
        Decision::Ask(question) => question.suggestions.len(),
        other => panic!("{other:?}"),
    };
    for url in ["http://*/", "http://*.com/", "http://a*b.com/", "http://a,b/", "http://a)b/", "file:///x", "x"] {
        assert_eq!(suggested(url), 0, "{url}");
    }
    for url in ["https://example.com/", "http://a-b.example.com:8080/", "http://127.0.0.1/", "http://[::1]/"] {
        assert_eq!(suggested(url), 1, "{url}");
    }
}
