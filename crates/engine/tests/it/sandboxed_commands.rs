//! Commands in the sandbox of the kernel.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use quipu_engine::testing::permission::{PermissionMode, evaluate, sandbox_restrictions};
use quipu_engine::testing::sandbox::{self, SandboxLevel, SandboxProfile};
use quipu_engine::testing::tool::{CallContext, Tool as _, ToolOutput, Workspace, WorkspaceOptions};
use quipu_engine::testing::tools::bash::Bash;
use serde_json::json;

use crate::{TestWorkspace, decision_word, error_text, parse_rules, success_text};

/// The real sandbox.
pub(crate) fn real_sandbox_options() -> sandbox::SandboxOptions {
    let launcher = Some(Path::new(env!("CARGO_BIN_EXE_quipu-launcher")).to_owned());
    sandbox::SandboxOptions { launcher, ..sandbox::SandboxOptions::default() }
}

fn sandbox_workspace() -> TestWorkspace {
    let env = [("PATH", std::env::var_os("PATH").unwrap())];
    let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
    TestWorkspace::with_real_sandbox(WorkspaceOptions {
        env,
        sandbox: real_sandbox_options(),
        ..WorkspaceOptions::default()
    })
}

/// Whether the kernel supports the sandbox; prints a notice if it does not.
#[allow(clippy::print_stderr, reason = "skipped tests are reported")]
pub(crate) fn kernel_can() -> bool {
    let workspace = sandbox_workspace();
    let level = workspace.inner.sandbox().level();
    if *level != SandboxLevel::Full {
        eprintln!("\n*** NOT TESTED: this system cannot hold commands in a sandbox: {level:?} ***\n");
    }
    *level == SandboxLevel::Full
}

async fn run(workspace: &TestWorkspace, profile: SandboxProfile, command: &str) -> ToolOutput {
    workspace
        .run_tool_with("Bash", json!({"command": command}), &CallContext { profile, ..CallContext::new("toolu_1") })
        .await
}

#[tokio::test]
async fn a_command_that_reads_is_held_to_reading() {
    if !kernel_can() {
        return;
    }
    let workspace = sandbox_workspace();
    workspace.write("a", "text\n");
    let read = async |command: &str| run(&workspace, SandboxProfile::Read, command).await;
    assert_eq!(success_text(read("cat a | tr a-z A-Z; wc -l < a").await), "TEXT\n1");
    assert_eq!(
        success_text(read("cat <(echo one) <<< two; echo x > /dev/null; echo t > $TMPDIR/t && cat $TMPDIR/t").await),
        "one\nt"
    );
    for command in [
        "echo x > a",
        "rm a",
        "touch b",
        "chmod 600 a",
        "touch a",
        "mv a b",
        "ln a b",
        "ln -s a b",
        "mkdir d",
        "truncate -s 0 a",
    ] {
        error_text(read(command).await);
        assert_eq!(workspace.read_text("a"), "text\n", "{command}");
    }
    assert!(error_text(read("exec 3<>/dev/tcp/127.0.0.1/9").await).contains("Operation not permitted"));
    let home = std::env::var("HOME").unwrap();
    error_text(read(&format!("ls {home}")).await);
    assert_eq!(
        success_text(read("ps -e 2>/dev/null | wc -l; test -r /proc/1/environ && echo yes").await).lines().last(),
        Some("yes")
    );
    assert!(error_text(read("exit 7").await).starts_with("Exit code 7"));
    assert!(error_text(read("kill -9 $$").await).starts_with("Exit code 137"));
}

#[tokio::test]
async fn a_workspace_is_written_but_for_what_is_guarded_or_refused() {
    if !kernel_can() {
        return;
    }
    let workspace = sandbox_workspace();
    for name in ["a", ".git/config", "sub/.git/HEAD", ".mcp.json", "kept", ".env", "src/b"] {
        workspace.write(name, "old\n");
    }
    workspace.inner.sandbox().set_restrictions(sandbox_restrictions(
        &parse_rules(&["deny Edit(kept)", "deny Read(.env)"]),
        &workspace.inner,
    ));
    let work = async |command: &str| run(&workspace, SandboxProfile::Workspace, command).await;
    success_text(
        work("echo new > a; mkdir d; cp a d/b; mv d e; chmod 700 e; touch -d 2001-01-01 a; ln -s a l; rm src/b").await,
    );
    assert_eq!((workspace.read_text("a"), workspace.read_text("e/b")), ("new\n".to_owned(), "new\n".to_owned()));
    for command in [
        "echo x > .git/config",
        "touch .git/new",
        "mv .git g",
        "rm -rf sub/.git",
        "echo x > .mcp.json",
        "mv a .mcp.json",
        "echo x > kept",
        "chmod 600 kept",
        "cat .env",
        "echo x > .env",
        "touch /tmp/x-outside /usr/x-outside ~/x-outside",
        "chmod 700 /tmp",
        "exec 3<>/dev/tcp/127.0.0.1/9",
    ] {
        error_text(work(command).await);
    }
    for name in [".git/config", "sub/.git/HEAD", ".mcp.json", "kept", ".env"] {
        assert_eq!(workspace.read_text(name), "old\n", "{name}");
    }
}

#[tokio::test]
async fn a_guarded_file_that_a_command_makes_is_moved_aside() {
    if !kernel_can() {
        return;
    }
    let workspace = sandbox_workspace();
    workspace.write("a", "x");
    let output = run(
        &workspace,
        SandboxProfile::Workspace,
        "mkdir -p sub .claude && cp a .claude/settings.json && cp a sub/.envrc",
    )
    .await;
    let text = error_text(output);
    assert!(
        text.contains(&workspace.path_text(".claude")) && text.contains(&workspace.path_text("sub/.envrc")),
        "{text}"
    );
    assert!(!workspace.path(".claude").exists() && !workspace.path("sub/.envrc").exists());
    assert_eq!(workspace.read_text("claude.moved-aside-1/settings.json"), "x");
    assert_eq!(workspace.read_text("sub/envrc.moved-aside-1"), "x");
    success_text(run(&workspace, SandboxProfile::Workspace, "cat a").await);
}

#[tokio::test]
async fn a_guarded_file_cannot_be_replaced_by_moving_the_folder_above_it() {
    if !kernel_can() {
        return;
    }
    let workspace = sandbox_workspace();
    workspace.write("sub/.git/config", "old");
    let command = "mv sub away; mkdir -p sub/.git; echo new > sub/.git/config";
    let text = error_text(run(&workspace, SandboxProfile::Workspace, command).await);
    assert!(text.contains("Read-only") && !text.contains("moved"), "{text}");
    assert_eq!(workspace.read_text("sub/.git/config"), "old");
    assert!(!workspace.path("away").exists());
}

#[tokio::test]
async fn a_guarded_link_is_moved_aside_if_its_target_appears() {
    if !kernel_can() {
        return;
    }
    let workspace = sandbox_workspace();
    symlink("later.json", workspace.path(".mcp.json")).unwrap();
    success_text(run(&workspace, SandboxProfile::Workspace, "echo x > other.json").await);
    let text = error_text(run(&workspace, SandboxProfile::Workspace, "echo x > later.json").await);
    assert!(text.contains(&workspace.path_text(".mcp.json")), "{text}");
    assert!(workspace.path("mcp.json.moved-aside-1").is_symlink() && !workspace.path(".mcp.json").is_symlink());
}

/// A workspace in a folder of a repository whose root commands may write to. The repository's settings
/// belong to the session.
fn workspace_in_repository(repository: &Path, folder: &str) -> Workspace {
    let env = [("PATH", std::env::var_os("PATH").unwrap())];
    let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let settings = json!({"enabled": true, "filesystem": {"allowWrite": [repository]}});
    let settings = serde_json::from_value(settings).unwrap();
    let folder = repository.join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let options = WorkspaceOptions {
        env,
        settings_folders: vec![folder.clone(), repository.to_owned()],
        sandbox: sandbox::SandboxOptions { settings, ..real_sandbox_options() },
        ..WorkspaceOptions::default()
    };
    Workspace::new(folder, options)
}

#[tokio::test]
async fn settings_of_the_repository_cannot_be_changed_from_a_folder_of_it() {
    if !kernel_can() {
        return;
    }
    let call = CallContext { profile: SandboxProfile::Workspace, ..CallContext::new("toolu_1") };
    let run =
        async |workspace: &Workspace, command: &str| Bash.run(json!({"command": command}), workspace, &call).await;
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let workspace = workspace_in_repository(&root, "sub");
    // They do not exist yet.
    let text =
        error_text(run(&workspace, "mkdir ../.claude; echo {} > ../.claude/settings.local.json; touch ../x").await);
    assert!(text.contains(root.join(".claude").to_str().unwrap()), "{text}");
    assert!(root.join("x").exists() && !root.join(".claude").exists() && root.join("claude.moved-aside-1").exists());
    let text =
        error_text(run(&workspace, "mkdir ../other; ln -s other ../.claude; echo {} > ../other/settings.json").await);
    assert!(text.contains(root.join(".claude").to_str().unwrap()) && !root.join(".claude").exists(), "{text}");
    // They exist.
    let file = root.join(".claude/settings.local.json");
    std::fs::create_dir(root.join(".claude")).unwrap();
    std::fs::write(&file, "old").unwrap();
    for command in ["echo new > ../.claude/settings.local.json", "rm -rf ../.claude", "mv ../.claude ../away"] {
        error_text(run(&workspace, command).await);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old", "{command}");
    }
    // The user may change them meanwhile.
    std::fs::write(root.join("fresh"), "new").unwrap();
    let command = run(&workspace, "touch begun; until [ -e go ]; do sleep 0.01; done");
    let change = async {
        while !root.join("sub/begun").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        std::fs::rename(root.join("fresh"), &file).unwrap();
        std::fs::write(root.join("sub/go"), "").unwrap();
    };
    success_text(futures_util::future::join(command, change).await.0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    // They are links into the session's folder.
    std::fs::write(root.join("sub/local.json"), "old").unwrap();
    std::fs::remove_file(&file).unwrap();
    symlink("../sub/local.json", &file).unwrap();
    error_text(run(&workspace, "echo new > local.json").await);
    assert_eq!(std::fs::read_to_string(root.join("sub/local.json")).unwrap(), "old");
    let allows = |name: &str| {
        let input = json!({"file_path": root.join("sub").join(name), "content": "x"});
        let decision = evaluate(PermissionMode::AcceptEdits, &parse_rules(&[]), "Write", &input, &workspace);
        decision_word(&decision)
    };
    assert_eq!((allows("local.json"), allows("other.json")), ("ask", "allow"));
}

#[tokio::test]
async fn a_worktree_inside_the_settings_of_its_repository_can_be_changed() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let workspace = workspace_in_repository(&root, ".claude/worktrees/w");
    let input = json!({"file_path": workspace.root().join("a"), "content": "x"});
    let decision = evaluate(PermissionMode::AcceptEdits, &parse_rules(&[]), "Write", &input, &workspace);
    assert_eq!(decision_word(&decision), "allow");
    if kernel_can() {
        let call = CallContext { profile: SandboxProfile::Workspace, ..CallContext::new("toolu_1") };
        let command = json!({"command": "echo x > a && ! touch ../../settings.local.json 2> /dev/null"});
        success_text(Bash.run(command, &workspace, &call).await);
        assert!(workspace.root().join("a").exists() && !root.join(".claude/settings.local.json").exists());
    }
}

#[tokio::test]
async fn files_that_rules_refuse_are_found_again_when_they_change() {
    if !kernel_can() {
        return;
    }
    let workspace = sandbox_workspace();
    workspace.write("deep/down/a.pem", "SECRET");
    workspace.write("kept/b", "SECRET");
    workspace.inner.sandbox().set_restrictions(sandbox_restrictions(
        &parse_rules(&["deny Read(*.pem)", "deny Read(kept/**)"]),
        &workspace.inner,
    ));
    let read = async |command: &str| run(&workspace, SandboxProfile::Read, command).await;
    assert!(error_text(read("cat deep/down/a.pem").await).contains("Permission denied"));
    error_text(read("cat kept/b").await);
    error_text(read("cat kept/*").await);
    workspace
        .inner
        .sandbox()
        .set_restrictions(sandbox_restrictions(&parse_rules(&["deny Read(kept/b)"]), &workspace.inner));
    assert_eq!(success_text(read("cat deep/down/a.pem").await), "SECRET");
    error_text(read("cat kept/b").await);
}

#[tokio::test]
async fn without_a_launcher_nothing_is_started_in_a_profile() {
    let workspace = TestWorkspace::new();
    workspace.write("a", "x");
    for profile in [SandboxProfile::Read, SandboxProfile::Workspace] {
        assert!(error_text(run(&workspace, profile, "cat a").await).contains("cannot be held in a sandbox"));
    }
}

#[tokio::test]
async fn a_command_in_the_sandbox_ends_with_all_its_children() {
    if !kernel_can() {
        return;
    }
    let running = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.starts_with("sleep\0") && line.contains("98765.25")).count()
    };
    for level in [SandboxLevel::Full, SandboxLevel::WithoutMounts] {
        let env = [("PATH", std::env::var_os("PATH").unwrap())];
        let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
        let sandbox = sandbox::SandboxOptions { assumed_level: Some(level), ..real_sandbox_options() };
        let workspace =
            TestWorkspace::with_real_sandbox(WorkspaceOptions { env, sandbox, ..WorkspaceOptions::default() });
        let call = CallContext { profile: SandboxProfile::Read, ..CallContext::new("toolu_1") };
        let input = json!({"command": "sleep 98765.25 & sleep 98765.25", "timeout": 500});
        assert!(error_text(workspace.run_tool_with("Bash", input, &call).await).contains("timed out"));
        assert_eq!(running(), 0);
    }
}

#[tokio::test]
async fn a_command_without_namespaces_schedules_only_itself() {
    if !kernel_can() {
        return;
    }
    let env = [("PATH".into(), std::env::var_os("PATH").unwrap())].into();
    let sandbox =
        sandbox::SandboxOptions { assumed_level: Some(SandboxLevel::WithoutMounts), ..real_sandbox_options() };
    let workspace = TestWorkspace::with_real_sandbox(WorkspaceOptions { env, sandbox, ..WorkspaceOptions::default() });
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let id = other.id();
    for command in [
        format!("renice -n 19 -p {id}"),
        "renice -n 19 -u $(id -u)".to_owned(),
        format!("taskset -p 1 {id}"),
        format!("chrt -i -p 0 {id}"),
        format!("ionice -c 3 -p {id}"),
    ] {
        let output = run(&workspace, SandboxProfile::Read, &command).await;
        assert!(error_text(output).contains("not permitted"), "{command}");
    }
    let output = run(&workspace, SandboxProfile::Read, "nice -n 5 nice; taskset 1 echo ok; ionice -c 3 echo ok").await;
    assert_eq!(success_text(output), "5\nok\nok");
    other.kill().unwrap();
    other.wait().unwrap();
}

/// The processes of a launcher program that wait for a command, once there are `count`.
fn waiting(launcher: &Path, count: usize) -> Vec<PathBuf> {
    let started = Instant::now();
    loop {
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let name = format!("{}\0", launcher.display());
        let runs =
            |path: &PathBuf| std::fs::read_to_string(path.join("cmdline")).is_ok_and(|all| all.starts_with(&name));
        let found: Vec<PathBuf> = all.filter(runs).collect();
        if found.len() == count {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{found:?} are waiting, not {count}");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_command_runs_in_the_launcher_that_waits() {
    if !kernel_can() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let launcher = folder.path().join("launcher");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_quipu-launcher"), &launcher).unwrap();
    let env = [("PATH", std::env::var_os("PATH").unwrap()), ("LANG", "C".into())];
    let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let sandbox = sandbox::SandboxOptions {
        launcher: Some(launcher.clone()),
        assumed_level: Some(SandboxLevel::WithoutMounts),
        ..real_sandbox_options()
    };
    let workspace = TestWorkspace::with_real_sandbox(WorkspaceOptions { env, sandbox, ..WorkspaceOptions::default() });
    workspace.write("sub/a", "text\n");
    let read = async |command: &str| success_text(run(&workspace, SandboxProfile::Read, command).await);
    read("cd sub").await;
    let process = waiting(&launcher, 1).remove(0);
    assert_eq!(std::fs::read(process.join("environ")).unwrap(), b"");
    assert_eq!(process.join("cwd").read_link().unwrap(), Path::new("/"));
    // It gets the variables and the folder of the command that it runs.
    let output = read("echo /proc/$$ $LANG $CLAUDECODE; pwd; cat a; ls $TMPDIR").await;
    assert_eq!(output, format!("{} C 1\n{}\ntext", process.display(), workspace.path_text("sub")));
    let process = waiting(&launcher, 1).remove(0);
    let id = process.file_name().unwrap().to_str().unwrap();
    assert!(std::process::Command::new("kill").args(["-9", id]).status().unwrap().success());
    waiting(&launcher, 0);
    assert_eq!(read("cat a").await, "text");
    waiting(&launcher, 1);
    drop(workspace);
    waiting(&launcher, 0);
}

#[test]
fn a_launcher_without_a_command_ends_when_stdin_does() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quipu-launcher"));
    let output = command.arg("--internal-sandbox-launcher").stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn many_commands_at_once_are_all_held() {
    if !kernel_can() {
        return;
    }
    let workspace = sandbox_workspace();
    workspace.write("a", "text\n");
    let commands = (0..40).map(|_| run(&workspace, SandboxProfile::Read, "cat a; touch b"));
    for output in futures_util::future::join_all(commands).await {
        let text = error_text(output);
        assert!(text.contains("text\ntouch: ") && text.contains("It ran in a sandbox"), "{text}");
    }
}

#[tokio::test]
async fn the_settings_of_git_are_readable_and_the_rest_of_home_is_not() {
    if !kernel_can() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(home.path().join(name).parent().unwrap()).unwrap();
        std::fs::write(home.path().join(name), text).unwrap();
    };
    write(".gitconfig", "[include]\n\tpath = ~/dotfiles/git\n[core]\n\texcludesFile = ~/ignored\n");
    write("dotfiles/git", "[user]\n\tname = Somebody\n");
    write("ignored", "x\n");
    write(".config/git/credentials", "SECRET");
    let env = [("PATH", std::env::var_os("PATH").unwrap()), ("HOME", home.path().into())];
    let env = env.into_iter().map(|(name, value)| (name.into(), value)).collect();
    let workspace = TestWorkspace::with_real_sandbox(WorkspaceOptions {
        env,
        sandbox: real_sandbox_options(),
        ..WorkspaceOptions::default()
    });
    let read = async |command: &str| run(&workspace, SandboxProfile::Read, command).await;
    assert_eq!(success_text(read("git config user.name; cat ~/ignored").await), "Somebody\nx");
    error_text(read("cat ~/.config/git/credentials").await);
    error_text(read("ls ~").await);
}

#[tokio::test]
async fn rules_hold_for_commands_in_every_folder_of_the_session() {
    if !kernel_can() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let further = temp.path().canonicalize().unwrap();
    let env = [("PATH".into(), std::env::var_os("PATH").unwrap())].into();
    let (folders, sandbox) = (vec![further.clone()], real_sandbox_options());
    let workspace =
        TestWorkspace::with_real_sandbox(WorkspaceOptions { env, folders, sandbox, ..WorkspaceOptions::default() });
    for name in [".env", "notes"] {
        std::fs::write(further.join(name), "text\n").unwrap();
    }
    let rules = parse_rules(&["deny Read(.env)", "deny Edit(notes)"]);
    workspace.inner.sandbox().set_restrictions(sandbox_restrictions(&rules, &workspace.inner));
    let run = async |profile, command: &str| {
        let command = format!("cd {} && {command}", further.display());
        run(&workspace, profile, &command).await
    };
    for profile in [SandboxProfile::Read, SandboxProfile::Workspace] {
        error_text(run(profile, "cat .e*").await);
        assert_eq!(success_text(run(profile, "cat notes").await), "text");
        error_text(run(profile, "echo x >> notes").await);
    }
    assert_eq!(std::fs::read_to_string(further.join("notes")).unwrap(), "text\n");
}
