//! Attempts of commands that run in the profile `Workspace` without approval on files that rules, the
//! `sandbox` settings or their names protect.

use std::fs;
use std::path::Path;
use std::time::Duration;

use quipu_engine::testing::permission::{Decision, PermissionMode, hidden_file_filter, sandbox_restrictions};
use quipu_engine::testing::sandbox::SandboxProfile;
use quipu_engine::testing::tool::{CallContext, Tool as _, Workspace, WorkspaceOptions};
use quipu_engine::testing::tools::bash::Bash;
use serde_json::{Value, json};

use crate::sandboxed_commands::{kernel_can, real_sandbox_options};
use crate::{TestWorkspace, output_text, parse_rules};

/// A workspace with files to attack, and the settings `sandbox.filesystem` and the rules that protect
/// them.
fn attacked_workspace(filesystem: &Value, rules: &[&str]) -> TestWorkspace {
    let env = [("PATH", std::env::var_os("PATH").unwrap())];
    let mut sandbox = real_sandbox_options();
    sandbox.settings = serde_json::from_value(json!({"enabled": true, "filesystem": filesystem})).unwrap();
    let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let workspace = TestWorkspace::with_real_sandbox(WorkspaceOptions { env, sandbox, ..WorkspaceOptions::default() });
    for name in ["secret/key", ".env"] {
        workspace.write(name, "SECRET\n");
    }
    for name in ["kept", "sub/a", ".git/config", "secret/.npmrc", "secret/in/.git/config", ".envrc"] {
        workspace.write(name, "old\n");
    }
    let restrictions = sandbox_restrictions(&parse_rules(rules), &workspace.inner);
    workspace.inner.sandbox().set_restrictions(restrictions);
    workspace
}

/// Runs a command as if nothing but the sandbox had approved it.
async fn run(workspace: &TestWorkspace, command: &str) -> String {
    let call = CallContext { profile: SandboxProfile::Workspace, ..CallContext::new("toolu_1") };
    output_text(&workspace.run_tool_with("Bash", json!({"command": command}), &call).await)
}

/// Runs a command, and another one from when the first has made the file `made`. The file `again` is made when the first
/// has ended. Returns the output of the second.
async fn run_overlapping(workspace: &TestWorkspace, first: &str, second: &str) -> String {
    let first = async {
        run(workspace, first).await;
        workspace.write("again", "");
    };
    let second = async {
        while !workspace.path("made").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        run(workspace, second).await
    };
    tokio::join!(first, second).1
}

#[tokio::test]
async fn a_cancelled_command_leaves_no_guarded_file() {
    if !kernel_can() {
        return;
    }
    for command in [
        "echo x > .npmrc; touch begun; sleep 60",
        "trap '' TERM; touch begun; while :; do echo x > .npmrc; done",
        "(trap '' TERM HUP; setsid sh -c 'while :; do echo x > .npmrc; done' >/dev/null 2>&1 &) ; touch begun; sleep 60",
    ] {
        let workspace = attacked_workspace(&json!({}), &[]);
        let running = run(&workspace, command);
        let begun = async {
            while !workspace.path("begun").exists() || !workspace.path(".npmrc").exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            output = running => panic!("{command}: {output}"),
            () = begun => {}
        }
        // The call was dropped, as by an interrupt.
        assert!(!workspace.path(".npmrc").exists(), "{command}");
        assert!(workspace.path("npmrc.moved-aside-1").exists(), "{command}");
    }
}

#[tokio::test]
async fn a_folder_that_became_a_link_is_left() {
    if !kernel_can() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    fs::write(out.path().join("x"), "SECRET\n").unwrap();
    let workspace = attacked_workspace(&json!({}), &[]);
    run(&workspace, "mkdir d; cd d").await;
    assert_eq!(workspace.inner.cwd(), workspace.path("d"));
    let output = run(&workspace, &format!("trap - EXIT; cd ..; mv d e; ln -s {} d", out.path().display())).await;
    assert_eq!(workspace.inner.cwd(), workspace.inner.root(), "{output}");
    let output = workspace.run_tool("Bash", json!({"command": "pwd; cat x"})).await;
    assert!(!output_text(&output).contains("SECRET"), "{}", output_text(&output));
}

#[tokio::test]
async fn a_running_command_may_replace_names_and_make_repositories() {
    if !kernel_can() {
        return;
    }
    let workspace = attacked_workspace(&json!({}), &[]);
    fs::remove_dir_all(workspace.path(".git")).unwrap();
    let rules = ["allow Bash(echo:*)", "allow Bash(git status:*)", "allow Bash(npm test:*)", "allow Edit(n)"];
    let profile =
        |command: &str| match workspace.evaluate(PermissionMode::Auto, &rules, "Bash", &json!({"command": command})) {
            Decision::Allow { profile, .. } => profile,
            decision => panic!("{command}: {decision:?}"),
        };
    let commands = ["echo x > n", "cat sub/a; npm test", "git status", "cd sub && npm test"];
    for command in commands {
        assert!(matches!(profile(command), SandboxProfile::ByRule { .. }), "{command}");
    }
    let running = run(&workspace, "mkdir .git; touch begun; sleep 60");
    let checked = async {
        while !workspace.path("begun").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for command in commands {
            assert_eq!(profile(command), SandboxProfile::Workspace, "{command}");
        }
        assert!(!profile("npm test").is_sandboxed());
    };
    tokio::select! {
        output = running => panic!("{output}"),
        () = checked => {}
    }
    assert!(!profile("git status").is_sandboxed());
}

#[tokio::test]
async fn names_of_a_running_command_are_not_replaced() {
    if !kernel_can() {
        return;
    }
    let rules = ["allow Bash(hostname)", "allow Bash(git status)", "allow Bash(touch:*)", "allow Edit(log)"];
    let check = async |command: &str, beside: &[(&str, bool)]| {
        let workspace = attacked_workspace(&json!({}), &[]);
        let evaluate = |command: &str| {
            let input = json!({"command": command});
            workspace.evaluate(PermissionMode::Auto, &rules, "Bash", &input)
        };
        let Decision::Allow { profile, .. } = evaluate(command) else { panic!("{command}") };
        let call = CallContext { profile, ..CallContext::new("t") };
        let input = json!({"command": command, "run_in_background": true});
        let started = workspace.run_tool_with("Bash", input, &call).await;
        assert!(!started.is_error, "{command}: {}", output_text(&started));
        for (other, runs) in beside {
            let is_allowed = matches!(evaluate(other), Decision::Allow { .. });
            assert_eq!(is_allowed, *runs, "{other} beside {command}");
        }
        // A command that was allowed before the other one started.
        let call = CallContext { profile: SandboxProfile::Workspace, ..CallContext::new("w") };
        let output = workspace.run_tool_with("Bash", json!({"command": "rm -f sub/a"}), &call).await;
        assert_eq!(output.is_error, beside[0] == ("rm sub/a", false), "{command}: {}", output_text(&output));
        workspace.inner.tasks().stop_all().await;
    };
    let none_run = [("rm sub/a", false), ("mv sub s", false), ("cat sub/a", true), ("cat sub/a; hostname", false)];
    check("sleep 60; cat sub/a; hostname", &none_run).await;
    check("sleep 60; git status", &[("rm sub/a", false), ("cat sub/a", true), ("hostname", true)]).await;
    check("cat sub/a; sleep 60; hostname", &[("rm sub/a", false), ("touch x", false), ("git status", false)]).await;
    check("sleep 60; hostname", &[("rm sub/a", true), ("touch x", true), ("cd sub && hostname", true)]).await;
    // A rule with the whole command does not run it beside names in use either.
    check("sleep 60; cat sub/a; hostname", &[("rm sub/a", false), ("hostname", false), ("git status", false)]).await;
    check("cd sub && sleep 60; hostname", &[("rm sub/a", false), ("touch x", true), ("hostname > log", true)]).await;
}

/// In a folder below the root of the repository a file `.git` would be another repository.
#[tokio::test]
async fn git_and_a_command_that_could_make_its_repository_do_not_run_at_the_same_time() {
    if !kernel_can() {
        return;
    }
    let rules = ["allow Bash(git status)", "allow Bash(cp:*)", "allow Bash(mv a b)"];
    let workspace = attacked_workspace(&json!({}), &[]);
    let evaluate =
        |command: &str| workspace.evaluate(PermissionMode::Default, &rules, "Bash", &json!({"command": command}));
    for (folder, runs_beside) in [("", true), ("sub", false)] {
        workspace.inner.set_cwd(workspace.path(folder));
        for (first, second) in
            [("sleep 60; git status", "cp x y"), ("sleep 60; git status", "mv a b"), ("cp x y; sleep 60", "git status")]
        {
            let Decision::Allow { profile, .. } = evaluate(first) else { panic!("{first} in '{folder}'") };
            let call = CallContext { profile, ..CallContext::new("t") };
            let input = json!({"command": first, "run_in_background": true});
            let started = workspace.run_tool_with("Bash", input, &call).await;
            assert!(!started.is_error, "{first}: {}", output_text(&started));
            let is_allowed = matches!(evaluate(second), Decision::Allow { .. });
            assert_eq!(is_allowed, runs_beside, "{second} beside {first} in '{folder}'");
            workspace.inner.tasks().stop_all().await;
            assert!(matches!(evaluate(second), Decision::Allow { .. }), "{second} alone in '{folder}'");
        }
    }
}

#[tokio::test]
async fn a_program_does_not_use_names_that_a_command_could_replace_by_links_to_denied_files() {
    if !kernel_can() {
        return;
    }
    let workspace = attacked_workspace(&json!({}), &[]);
    let is_sandboxed = |rules: &[&str], command: &str| match workspace.evaluate(
        PermissionMode::Auto,
        rules,
        "Bash",
        &json!({"command": command}),
    ) {
        Decision::Allow { profile, .. } => profile.is_sandboxed(),
        decision => panic!("{command}: {decision:?}"),
    };
    let denied = ["deny Read(secret/**)", "allow Bash(make:*)", "allow Bash(make -f kept all)"];
    let lines = [
        "make -f sub/a",
        "make -fkept",
        "make --file=kept",
        "make kept",
        "make -f kept all",
        "make -p -f new",
        "make @kept",
    ];
    lines.iter().for_each(|line| assert!(!is_sandboxed(&denied, line), "{line}"));
    let running = run(&workspace, "touch begun; sleep 60");
    let checked = async {
        while !workspace.path("begun").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for line in lines {
            assert!(is_sandboxed(&denied, line), "{line}");
            assert!(!is_sandboxed(&denied[1..], line), "{line}");
        }
        assert!(!is_sandboxed(&denied, "make all"));
    };
    tokio::select! {
        output = running => panic!("{output}"),
        () = checked => {}
    }
}

#[tokio::test]
async fn settings_protect_files_wherever_the_command_starts() {
    if !kernel_can() {
        return;
    }
    let check = async |filesystem: Value, rules: &[&str]| {
        for folder in ["", "sub"] {
            let workspace = attacked_workspace(&filesystem, rules);
            workspace.inner.set_cwd(workspace.path(folder));
            let p = workspace.inner.root().display().to_string();
            let output = run(&workspace, &format!("cd {p}; cat .env secret/key; echo x >> kept; rm -f kept")).await;
            assert!(!output.contains("SECRET"), "{filesystem} {rules:?} in '{folder}': {output}");
            assert_eq!(workspace.read_text("kept"), "old\n", "{filesystem} {rules:?} in '{folder}'");
        }
    };
    check(json!({"denyRead": ["secret", ".env"], "denyWrite": ["kept"]}), &[]).await;
    check(json!({"denyRead": ["./secret/", "sub/../.env"], "denyWrite": ["./kept"]}), &[]).await;
    check(json!({"denyRead": ["secret/**", ".e*"], "denyWrite": ["k?pt"]}), &[]).await;
    check(json!({"denyRead": ["**/key", "**/.env"], "denyWrite": ["**/kept"]}), &[]).await;
    check(json!({"denyRead": ["{secret,x}/key", "./.{env,x}"], "denyWrite": ["{kept,x}"]}), &[]).await;
    check(json!({"denyWrite": ["kept"]}), &["deny Read(./{secret,x}/key)", "deny Read({.env,x})"]).await;
    // Nothing asks before a file is used in the sandbox.
    check(json!({}), &["ask Read(.env)", "ask Read(secret/**)", "ask Edit(kept)"]).await;
    check(json!({}), &["deny Read(.env)", "ask Read(./secret//key)", "deny Write(./kept)"]).await;
}

#[tokio::test]
async fn a_file_that_must_not_be_written_cannot_be_created() {
    if !kernel_can() {
        return;
    }
    let check = async |filesystem: Value, rules: &[&str], made: &str| {
        let workspace = attacked_workspace(&filesystem, rules);
        let parent = Path::new(made).parent().unwrap().display().to_string();
        let output = run(&workspace, &format!("mkdir -p ./{parent}; echo x > {made}")).await;
        assert!(!workspace.path(made).exists() && output.contains("needs approval"), "{made}: {output}");
    };
    check(json!({"denyWrite": ["made"]}), &[], "made").await;
    check(json!({"denyWrite": ["ci/flows"]}), &[], "ci/flows/x").await;
    check(json!({"denyWrite": ["*.lock"]}), &[], "a.lock").await;
    check(json!({}), &["deny Edit(dist/**)"], "dist/a.js").await;
    check(json!({}), &["deny Edit(*.lock)"], "sub/new.lock").await;
    check(json!({}), &["ask Write(./sub/made)"], "sub/made").await;

    let workspace = attacked_workspace(&json!({}), &["deny Edit(link)"]);
    std::os::unix::fs::symlink("kept", workspace.path("link")).unwrap();
    let output = run(&workspace, "echo x >> link; rm link; echo x > link").await;
    assert!(!workspace.path("link").exists() && output.contains("needs approval"), "{output}");
    assert_eq!(workspace.read_text("kept"), "old\n", "{output}");
}

#[tokio::test]
async fn deny_rules_hold_in_folders_that_the_settings_make_writable() {
    if !kernel_can() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let out = out.path().canonicalize().unwrap();
    fs::create_dir(out.join("lib")).unwrap();
    fs::write(out.join("lib/conf"), "old\n").unwrap();
    let (conf, new) = (format!("deny Edit(/{}/lib/conf)", out.display()), format!("deny Edit(/{}/new)", out.display()));
    let workspace = attacked_workspace(&json!({"allowWrite": [out]}), &[&conf, &new]);
    let output =
        run(&workspace, &format!("cd {}; echo x >> lib/conf; echo x > new; echo x > other", out.display())).await;
    assert_eq!(fs::read_to_string(out.join("lib/conf")).unwrap(), "old\n", "{output}");
    assert!(!out.join("new").exists() && out.join("other").exists(), "{output}");

    let workspace = attacked_workspace(&json!({"allowWrite": [out.join("lib")], "denyWrite": [out]}), &[]);
    let output = run(&workspace, &format!("echo x >> {}/lib/conf", out.display())).await;
    assert_eq!(fs::read_to_string(out.join("lib/conf")).unwrap(), "old\n", "{output}");
}

#[tokio::test]
async fn existing_files_are_not_taken_for_new_ones() {
    if !kernel_can() {
        return;
    }
    let check = async |rules: &[&str], is_writable: bool| {
        let workspace = attacked_workspace(&json!({}), rules);
        workspace.inner.add_folder(&workspace.path("sub"));
        for _ in 0..2 {
            let output = run(&workspace, "touch sub/b 2>/dev/null; echo done").await;
            assert_eq!(output, "done", "{rules:?}");
        }
        assert_eq!(workspace.path("sub/b").exists(), is_writable, "{rules:?}");
        for name in [".git/config", "secret/.npmrc", "secret/in/.git/config", ".envrc", "kept"] {
            assert_eq!(workspace.read_text(name), "old\n", "{rules:?} {name}");
        }
    };
    check(&[], true).await;
    check(&["deny Edit(**)"], false).await;
    check(&["deny Edit(//**)"], false).await;
    check(&["deny Edit(*)"], false).await;
    check(&["deny Read(.envrc)", "deny Read(secret/**)", "deny Read(.git/**)"], true).await;
    check(&["deny Edit(.envrc)", "ask Edit(secret/**)", "deny Edit(kept)"], true).await;
}

#[tokio::test]
async fn no_part_of_a_repository_appears_whatever_its_name() {
    if !kernel_can() {
        return;
    }
    let workspace = attacked_workspace(&json!({}), &[]);
    for name in ["bare/HEAD", "bare/objects/x", "bare/refs/x", "bare/worktrees/w/HEAD", "bare/worktrees/w/commondir"] {
        workspace.write(name, "old");
    }
    let parts = ["bare/config", "bare/config.worktree", "bare/hooks/post-checkout", "bare/worktrees/w/config.worktree"];
    let made = parts.map(|part| format!("mkdir -p $(dirname {part}); echo x > {part}")).join("; ");
    let output = run(&workspace, &made).await;
    for part in parts {
        assert!(!workspace.path(part).exists(), "{part}: {output}");
    }
    let output = run(&workspace, "echo x > bare/worktrees/w/commondir; mv kept bare/HEAD; touch bare/objects/y").await;
    for part in ["bare/HEAD", "bare/worktrees/w/commondir"] {
        assert_eq!(workspace.read_text(part), "old", "{part}: {output}");
    }
    assert!(workspace.path("bare/objects/y").exists(), "{output}");
}

#[tokio::test]
async fn a_command_cannot_take_the_names_for_files_that_are_moved_aside() {
    if !kernel_can() {
        return;
    }
    let long = format!(".yarnrc{}", "x".repeat(248));
    for (name, taken) in [(".npmrc", "npmrc"), (".vscode", "vscode"), (&long, "a")] {
        let workspace = attacked_workspace(&json!({}), &[]);
        let make = format!("touch {taken}.moved-aside-{{1..1000}}; mkdir {name}");
        let output = run(&workspace, &make).await;
        assert!(!workspace.path(name).exists() && output.contains("was moved to"), "{output}");
    }
}

#[tokio::test]
async fn a_folder_that_is_too_deep_to_be_checked_is_an_error() {
    if !kernel_can() {
        return;
    }
    let workspace = attacked_workspace(&json!({}), &[]);
    let name = "d".repeat(200);
    let output = run(&workspace, &format!("for i in {{1..25}}; do mkdir {name}; cd {name}; done; touch .envrc")).await;
    assert!(output.contains("paths in it are too long to be checked"), "{output}");
    // Nothing else runs there without a question until the user removes it.
    let decision = workspace.evaluate(PermissionMode::Auto, &[], "Bash", &json!({"command": "touch x"}));
    assert_eq!(crate::decision_word(&decision), "ask");
}

#[tokio::test]
async fn a_folder_that_is_moved_aside_contains_nothing_guarded() {
    if !kernel_can() {
        return;
    }
    // The rule matches the new names too.
    let workspace = attacked_workspace(&json!({}), &["deny Edit(**/*aside*)"]);
    let make = "mkdir -p .zed/.idea/.vscode .hg aside/aside lefthook.d/x; touch .zed/.idea/.vscode/.npmrc .zed/kept; cd .hg; git init -q sub; \
                mkdir -p a/.git/objects a/.git/refs; echo x > a/.git/HEAD; echo x > a/.git/config";
    let output = run(&workspace, make).await;
    let moved = workspace.path("zed.moved-aside-1");
    assert!(moved.join("kept").exists() && moved.join("idea.moved-aside-1").exists(), "{output}");
    assert!(moved.join("idea.moved-aside-1/vscode.moved-aside-1/npmrc.moved-aside-1").exists(), "{output}");
    let repository = workspace.path("hg.moved-aside-1/a/git.moved-aside-1");
    assert!(repository.join("objects").exists() && !repository.join("HEAD").exists(), "{output}");
    assert!(!repository.join("config").exists(), "{output}");
}

#[tokio::test]
async fn files_that_appear_between_commands_are_protected() {
    if !kernel_can() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let out = out.path().canonicalize().unwrap();
    let check = async |filesystem: Value, rules: &[&str], make: &dyn Fn(&TestWorkspace), command: &str| {
        let workspace = attacked_workspace(&filesystem, rules);
        run(&workspace, "true").await;
        make(&workspace);
        let output = run(&workspace, command).await;
        assert!(!output.contains("SECRET") && !output.contains("moved"), "{filesystem} {rules:?}: {output}");
    };
    let write = |name: &str, text: &str| fs::write(out.join(name), text).unwrap();
    let print = format!("cd {}; cat *", out.display());
    let change = format!("cd {}; echo x >> new.lock; echo x >> new.pem", out.display());
    // Outside the session's folders nothing is watched.
    check(json!({"denyRead": [out.join("*.pem")]}), &[], &|_| write("new.pem", "SECRET"), &print).await;
    write("new.pem", "old");
    let locked = format!("deny Edit(/{}/*.lock)", out.display());
    let open = json!({"allowWrite": [out], "denyWrite": [out.join("*.pem")]});
    check(open, &[&locked], &|_| write("new.lock", "old"), &change).await;
    for name in ["new.lock", "new.pem"] {
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "old");
    }
    // A rule about a folder above the session's.
    let env = [("PATH", std::env::var_os("PATH").unwrap())];
    let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
    fs::create_dir(out.join("p")).unwrap();
    let mut sandbox = real_sandbox_options();
    sandbox.settings.enabled = Some(true);
    let workspace = Workspace::new(out.join("p"), WorkspaceOptions { env, sandbox, ..WorkspaceOptions::default() });
    let rules = parse_rules(&[&format!("deny Read(/{}/**/*.pem)", out.display())]);
    workspace.sandbox().set_restrictions(sandbox_restrictions(&rules, &workspace));
    let run = async |command: &str| {
        let call = CallContext { profile: SandboxProfile::Workspace, ..CallContext::new("toolu_1") };
        output_text(&Bash.run(json!({"command": command}), &workspace, &call).await)
    };
    run("true").await;
    write("p/new.pem", "SECRET");
    write("p/.mcp.json", "old");
    let output = run("cat *.pem; echo x > .mcp.json").await;
    assert!(!output.contains("SECRET"), "{output}");
    assert_eq!(fs::read_to_string(out.join("p/.mcp.json")).unwrap(), "old", "{output}");
}

#[tokio::test]
async fn links_that_change_between_commands_are_followed() {
    if !kernel_can() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let out = out.path().canonicalize().unwrap();
    let link = |target: &Path, name: &Path| {
        let _ = fs::remove_file(name);
        std::os::unix::fs::symlink(target, name).unwrap();
    };
    let check = async |rules: &[&str], before: &dyn Fn(&TestWorkspace), after: &dyn Fn(&TestWorkspace)| {
        let workspace = attacked_workspace(&json!({}), rules);
        let p = workspace.inner.root().to_owned();
        for name in ["r1/key", "r2/key"] {
            workspace.write(name, "SECRET\n");
        }
        before(&workspace);
        workspace.inner.set_hidden_files(hidden_file_filter(&parse_rules(rules), &workspace.inner));
        run(&workspace, "true").await;
        after(&workspace);
        let output = run(&workspace, &format!("cat {0}/r2/key {0}/link {1}/*", p.display(), out.display())).await;
        assert!(!output.contains("SECRET"), "{rules:?}: {output}");
        let found = workspace.run_tool("Grep", json!({"pattern": "SECRET", "path": "r2"})).await;
        assert!(!output_text(&found).contains("key"), "{rules:?}: {}", output_text(&found));
    };
    let path = |workspace: &TestWorkspace, name: &str| workspace.path(name);
    let to_first = |workspace: &TestWorkspace| link(Path::new("r1"), &path(workspace, "current"));
    let to_second = |workspace: &TestWorkspace| link(Path::new("r2"), &path(workspace, "current"));
    check(&["deny Read(./current/key)"], &to_first, &to_second).await;
    check(&["deny Read(current/**)"], &|_| (), &to_second).await;
    // What a link led to is still protected.
    check(&["deny Read(./current/key)"], &to_second, &to_first).await;
    let remove = |workspace: &TestWorkspace| fs::remove_file(path(workspace, "current")).unwrap();
    check(&["deny Read(./current/key)"], &to_second, &remove).await;
    // The link leads out of the session's folder, where nothing is watched.
    let rules = ["deny Read(link)", "deny Read(r2/**)"];
    let dangling = |workspace: &TestWorkspace| link(&out.join("env"), &path(workspace, "link"));
    check(&rules, &dangling, &|_| fs::write(out.join("env"), "SECRET").unwrap()).await;
    fs::write(out.join("other"), "none").unwrap();
    let chained = |workspace: &TestWorkspace| {
        link(&out.join("other"), &out.join("chain"));
        link(&out.join("chain"), &path(workspace, "link"));
    };
    check(&rules, &chained, &|_| link(&out.join("env"), &out.join("chain"))).await;
}

#[tokio::test]
async fn a_guarded_link_gets_no_target_in_a_folder_that_the_settings_make_writable() {
    if !kernel_can() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let target = out.path().canonicalize().unwrap().join("made");
    let workspace = attacked_workspace(&json!({"allowWrite": [out.path()]}), &[]);
    std::os::unix::fs::symlink(&target, workspace.path(".mcp.json")).unwrap();
    let output = run(&workspace, &format!("echo x > {}", target.display())).await;
    assert!(workspace.path(".mcp.json").symlink_metadata().is_err() && output.contains("needs approval"), "{output}");
}

#[tokio::test]
async fn the_folder_of_the_users_settings_cannot_be_changed() {
    if !kernel_can() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let p = folder.path().canonicalize().unwrap();
    let own = p.join("own");
    let env = [("PATH", std::env::var_os("PATH").unwrap()), ("CLAUDE_CONFIG_DIR", own.clone().into_os_string())];
    let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let workspace =
        Workspace::new(&p, WorkspaceOptions { env, sandbox: real_sandbox_options(), ..WorkspaceOptions::default() });
    let run = async |command: &str| {
        let call = CallContext { profile: SandboxProfile::Workspace, ..CallContext::new("toolu_1") };
        output_text(&Bash.run(json!({"command": command}), &workspace, &call).await)
    };
    let output = run("mkdir own; echo x > own/settings.json").await;
    assert!(!own.exists() && output.contains("needs approval"), "{output}");
    fs::create_dir(&own).unwrap();
    let output = run("echo x > own/settings.json; mv own other; touch made").await;
    assert!(p.join("made").exists() && own.read_dir().unwrap().next().is_none(), "{output}");
}

#[tokio::test]
async fn a_command_cannot_make_guarded_files_for_another_one() {
    if !kernel_can() {
        return;
    }
    let make = "mkdir -p n/objects n/refs; echo x > n/config; echo x > n/HEAD; echo x > a.lock; echo x > .npmrc";
    // The first command makes the files and loses or removes them, and the second makes them again.
    for end in ["", "; rm -rf n a.lock .npmrc"] {
        let workspace = attacked_workspace(&json!({}), &["deny Edit(*.lock)"]);
        let wait = |name: &str| format!("while [ ! -e {name} ]; do sleep 0.01; done");
        let first = format!("{make}; touch made; {}{end}", wait("second"));
        let second = format!("touch second; {}; rm -rf n; {make}", wait("again"));
        let output = run_overlapping(&workspace, &first, &second).await;
        for name in ["n/HEAD", "n/config", "a.lock", ".npmrc"] {
            assert!(!workspace.path(name).exists(), "{name} after '{end}': {output}");
        }
    }
}

#[tokio::test]
async fn a_command_cannot_open_a_covered_folder_for_another_one() {
    if !kernel_can() {
        return;
    }
    let workspace = attacked_workspace(&json!({"denyRead": ["covered"]}), &[]);
    let wait = |name: &str| format!("while [ ! -e {name} ]; do sleep 0.01; done");
    // The folder is covered for the second command. The first one did not find it and removes it.
    let first = format!("mkdir covered; touch made; {}; rmdir covered", wait("second"));
    let second = format!("touch second; {}; mkdir -p covered; echo x > covered/.npmrc", wait("again"));
    let output = run_overlapping(&workspace, &first, &second).await;
    assert!(!workspace.path("covered/.npmrc").exists(), "{output}");
    assert!(workspace.path("secret/.npmrc").exists() && workspace.path("secret/in/.git/config").exists(), "{output}");
}

#[tokio::test]
async fn a_guarded_link_that_was_made_is_not_followed() {
    if !kernel_can() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join(".npmrc"), "old").unwrap();
    let workspace = attacked_workspace(&json!({}), &[]);
    let output = run(&workspace, &format!("ln -s {} .vscode", outside.path().display())).await;
    assert!(output.contains(".vscode") && !output.contains(".npmrc"), "{output}");
    assert!(outside.path().join(".npmrc").exists() && !workspace.path(".vscode").is_symlink());
}

#[tokio::test]
async fn guarded_files_in_covered_folders_stay_where_they_are() {
    if !kernel_can() {
        return;
    }
    let workspace = attacked_workspace(&json!({"denyRead": ["secret"]}), &["deny Read(sub/**)"]);
    workspace.write("sub/.envrc", "old\n");
    let output = run(&workspace, "touch kept2").await;
    for name in ["kept2", "secret/.npmrc", "secret/in/.git/config", "sub/.envrc", ".git/config"] {
        assert!(workspace.path(name).exists(), "{name}: {output}");
    }
}

/// Single hosts cannot be filtered, so any rule against pages takes the network away.
#[tokio::test]
async fn a_rule_against_pages_outweighs_one_that_opens_the_network() {
    if !kernel_can() {
        return;
    }
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("echo x > /dev/tcp/127.0.0.1/{} && echo connected", server.local_addr().unwrap().port());
    for (rules, connects) in [
        (&["allow WebFetch"][..], true),
        (&["allow WebFetch", "deny WebFetch"], false),
        (&["allow WebFetch(domain:*)", "ask WebFetch(domain:a.example)"], false),
    ] {
        let workspace = attacked_workspace(&json!({}), rules);
        let output = run(&workspace, &connect).await;
        assert_eq!(output.contains("connected"), connects, "{rules:?}: {output}");
    }
}
