//! Bash, TaskOutput, TaskStop.

use std::process::Command;

use quipu_engine::testing::sandbox::{NameUse, SandboxProfile};
use quipu_engine::testing::tool::{CallContext, TaskStatus, Tool as _, ToolEffect, WorkspaceOptions};
use quipu_engine::testing::tools::bash::Bash;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{TestWorkspace, error_text, output_text, success_text};

/// A workspace whose commands find the usual programs.
fn bash_workspace() -> TestWorkspace {
    TestWorkspace::with_options(WorkspaceOptions { env: env(&[]), ..WorkspaceOptions::default() })
}

fn env(more: &[(&str, &str)]) -> std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap();
    let more = more.iter().map(|(name, value)| (name.into(), value.into()));
    more.chain([("PATH".into(), path)]).collect()
}

fn bash_input(command: &str) -> Value {
    json!({"command": command})
}

/// A checkout can turn a folder into a repository by its contents, whose settings name programs.
#[tokio::test]
async fn git_that_a_rule_allows_uses_no_repository_without_a_git_folder() {
    let workspace = bash_workspace();
    for (name, text) in [
        ("sub/HEAD", "ref: refs/heads/main\n"),
        ("sub/objects/x", ""),
        ("sub/refs/x", ""),
        ("sub/config", "[core]\nrepositoryformatversion = 0\nworktree = .\nfsmonitor = touch ../ran; false\n"),
    ] {
        workspace.write(name, text);
    }
    let run = |uses_git: bool| {
        let profile = SandboxProfile::ByRule { name_use: NameUse::Never, last_command: 0, uses_git };
        let call = CallContext { profile, ..CallContext::new("toolu_1") };
        let input = json!({"command": "git -C sub status"});
        let workspace = &workspace;
        async move { workspace.run_tool_with("Bash", input, &call).await }
    };
    run(true).await;
    assert!(!workspace.path("ran").exists());
    // Without it the program runs, or the test shows nothing.
    let output = output_text(&run(false).await);
    assert!(workspace.path("ran").exists(), "{output}");
}

#[tokio::test]
async fn output_and_errors_come_in_order() {
    let workspace = bash_workspace();
    let output = workspace.run_tool("Bash", bash_input("echo one; echo two >&2; echo three")).await;
    let raw = json!({"stdout": "one\ntwo\nthree", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false});
    assert_eq!(output.raw.as_ref().unwrap().to_string(), raw.to_string());
    assert_eq!(success_text(output), "one\ntwo\nthree");
}

#[tokio::test]
async fn a_failure_shows_its_exit_code() {
    let workspace = bash_workspace();
    let output = workspace.run_tool("Bash", bash_input("echo out; echo err >&2; exit 3")).await;
    assert_eq!(output.raw, Some(json!("Error: Exit code 3\nout\nerr")));
    assert_eq!(error_text(output), "Exit code 3\nout\nerr");
    assert_eq!(error_text(workspace.run_tool("Bash", bash_input("exit 4")).await), "Exit code 4");
    assert_eq!(error_text(workspace.run_tool("Bash", bash_input("kill -9 $$")).await), "Exit code 137");
    assert!(error_text(workspace.run_tool("Bash", bash_input("echo 'unclosed")).await).starts_with("Exit code 2\n"));
    assert!(
        error_text(workspace.run_tool("Bash", bash_input("no-such-program-here")).await).starts_with("Exit code 127\n")
    );
}

#[tokio::test]
async fn some_exit_codes_are_answers() {
    let workspace = bash_workspace();
    workspace.write("a", "x\n");
    let output = workspace.run_tool("Bash", bash_input("cat a | grep y")).await;
    assert_eq!(output.raw.as_ref().unwrap()["returnCodeInterpretation"], "No matches found");
    assert_eq!(success_text(output), "No matches found");
    assert_eq!(success_text(workspace.run_tool("Bash", bash_input("test -f b")).await), "Condition is false");
    assert!(error_text(workspace.run_tool("Bash", bash_input("grep y b")).await).starts_with("Exit code 2\n"));
}

#[tokio::test]
async fn a_command_without_output_is_reported() {
    let workspace = bash_workspace();
    let output = workspace.run_tool("Bash", bash_input("touch aa")).await;
    let raw = json!({"stdout": "", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": true});
    assert_eq!(output.raw, Some(raw));
    assert_eq!(success_text(output), "(Bash completed with no output)");
    assert!(workspace.path("aa").exists());
}

#[tokio::test]
async fn the_folder_is_kept_and_nothing_else() {
    let workspace = bash_workspace();
    workspace.write("in/x", "");
    success_text(workspace.run_tool("Bash", bash_input("cd in; X=1; export Y=2")).await);
    assert_eq!(
        success_text(workspace.run_tool("Bash", bash_input("pwd; echo \"[$X$Y]\"")).await),
        format!("{}\n[]", workspace.path_text("in"))
    );
    success_text(workspace.run_tool("Read", json!({"file_path": "x"})).await);
    error_text(workspace.run_tool("Bash", bash_input("cd ..; exit 3")).await);
    assert_eq!(workspace.inner.cwd(), workspace.inner.root());
    let gone = success_text(workspace.run_tool("Bash", bash_input("cd / && pwd")).await);
    assert_eq!(gone, format!("/\nShell cwd was reset to {}", workspace.inner.root().display()));
    assert_eq!(workspace.inner.cwd(), workspace.inner.root());
    success_text(workspace.run_tool("Bash", bash_input("cd in; rm -r ../in")).await);
    assert_eq!(
        success_text(workspace.run_tool("Bash", bash_input("pwd")).await),
        workspace.inner.root().to_str().unwrap()
    );
}

#[tokio::test]
async fn secrets_of_ours_and_input_are_kept_from_commands() {
    let more = [
        ("ANTHROPIC_API_KEY", "sk-1"),
        ("ANTHROPIC_AUTH_TOKEN", "t"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "o"),
        ("MINE", "yes"),
        ("CDPATH", "/"),
    ];
    let workspace = TestWorkspace::with_options(WorkspaceOptions { env: env(&more), ..WorkspaceOptions::default() });
    assert_eq!(
        success_text(workspace.run_tool("Bash", bash_input("env | grep -E 'ANTHROPIC|OAUTH|CDPATH|MINE'")).await),
        "MINE=yes"
    );
    assert_eq!(success_text(workspace.run_tool("Bash", bash_input("cat; echo end")).await), "end");
}

#[tokio::test]
async fn long_output_is_saved_and_shown_in_part() {
    let workspace = bash_workspace();
    let output = workspace.run_tool("Bash", bash_input("seq 1 20000")).await;
    let raw = output.raw.clone().unwrap();
    let words = success_text(output);
    assert!(words.starts_with("<persisted-output>\nOutput too large (106.3KB). Full output saved to: "), "{words}");
    assert!(words.ends_with("\n...\n</persisted-output>") && words.len() < 3000);
    let saved = std::fs::read_to_string(raw["persistedOutputPath"].as_str().unwrap()).unwrap();
    assert_eq!(saved.lines().count(), 20000);
    assert_eq!(raw["persistedOutputSize"].as_u64(), Some(saved.len() as u64));
    let longer = workspace.run_tool("Bash", bash_input("seq 1 200000")).await.raw.unwrap();
    let saved = std::fs::read_to_string(longer["persistedOutputPath"].as_str().unwrap()).unwrap();
    assert_eq!(saved.lines().count(), 200_000);
    let failed = error_text(workspace.run_tool("Bash", bash_input("seq 1 200000; exit 1")).await);
    assert!(
        failed.starts_with("Exit code 1\n1\n2\n") && failed.ends_with("\n200000") && failed.chars().count() < 31_000
    );
    assert!(failed.contains("characters left out"));
    let read = json!({"file_path": longer["persistedOutputPath"]});
    let decision = workspace.evaluate(quipu_engine::testing::permission::PermissionMode::Default, &[], "Read", &read);
    assert_eq!(crate::decision_word(&decision), "allow");
}

/// Whether a process is there and has not ended.
fn is_process_alive(pid: &str) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().unwrap();
    let state = String::from_utf8(state.stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

#[tokio::test]
async fn a_late_command_ends_with_its_children() {
    let workspace = bash_workspace();
    let command = "sleep 300 & echo $! > child; echo started; wait";
    let output = workspace.run_tool("Bash", json!({"command": command, "timeout": 300})).await;
    assert_eq!(error_text(output), "Exit code 143\nCommand timed out after 300ms\nstarted");
    assert!(!is_process_alive(&workspace.read_text("child")));
    let stubborn = "trap '' TERM; (trap '' TERM; sleep 300) & echo $! > child; echo started; wait; wait";
    error_text(workspace.run_tool("Bash", json!({"command": stubborn, "timeout": 300})).await);
    assert!(!is_process_alive(&workspace.read_text("child")));
}

#[tokio::test]
async fn a_stopped_command_ends_with_its_children() {
    let workspace = bash_workspace();
    let call = CallContext::new("toolu_1");
    let cancel = call.cancel.clone();
    let command = bash_input("sleep 300 & echo $! > child; mkfifo ready; echo > ready; wait");
    let watch = async {
        // The command itself signals when it is ready.
        while !workspace.path("ready").exists() {
            tokio::task::yield_now().await;
        }
        tokio::fs::read(workspace.path("ready")).await.unwrap();
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(workspace.run_tool_with("Bash", command, &call), watch);
    assert_eq!(output.raw.as_ref().unwrap()["interrupted"], true);
    error_text(output);
    assert!(!is_process_alive(&workspace.read_text("child")));
}

#[tokio::test]
async fn a_child_left_behind_does_not_hold_the_answer() {
    let workspace = bash_workspace();
    assert_eq!(
        success_text(workspace.run_tool("Bash", bash_input("sleep 300 & echo $! > child; echo done")).await),
        "done"
    );
    let pid = workspace.read_text("child");
    assert!(is_process_alive(&pid));
    Command::new("kill").arg(pid.trim()).status().unwrap();
}

#[tokio::test]
async fn the_progress_of_a_command_is_sent() {
    let workspace = bash_workspace();
    let (progress, mut updates) = mpsc::unbounded_channel();
    let call = CallContext { progress: Some(progress), ..CallContext::new("toolu_7") };
    let command = bash_input("echo first; mkfifo hold; cat hold");
    let listen = async {
        let update = updates.recv().await.unwrap();
        tokio::task::spawn_blocking({
            let hold = workspace.path("hold");
            move || std::fs::write(hold, "second\n").unwrap()
        })
        .await
        .unwrap();
        update
    };
    let (output, update) = tokio::join!(workspace.run_tool_with("Bash", command, &call), listen);
    assert_eq!(update.tool_use_id.as_str(), "toolu_7");
    assert!(success_text(output).contains("second"));
}

#[tokio::test]
async fn a_task_runs_in_the_background() {
    let workspace = bash_workspace();
    let command = "mkfifo hold; echo one; cat hold; exit 5";
    let output =
        workspace.run_tool("Bash", json!({"command": command, "run_in_background": true, "description": "wait"})).await;
    let id = output.raw.as_ref().unwrap()["backgroundTaskId"].as_str().unwrap().to_owned();
    assert!(
        success_text(output)
            .starts_with(&format!("Command running in background with ID: {id}. Output is being written to: "))
    );
    let ask = |block: bool, timeout: u64| json!({"task_id": id, "block": block, "timeout": timeout});
    let running = workspace.run_tool("TaskOutput", ask(false, 0)).await.raw.unwrap();
    assert_eq!((&running["retrieval_status"], &running["task"]["status"]), (&json!("not_ready"), &json!("running")));
    let late = workspace.run_tool("TaskOutput", ask(true, 10)).await.raw.unwrap();
    assert_eq!(late["retrieval_status"], "timeout");
    let hold = workspace.path("hold");
    tokio::task::spawn_blocking(move || {
        while !hold.exists() {
            std::thread::yield_now();
        }
        std::fs::write(hold, "two\n").unwrap();
    });
    assert!(!workspace.inner.tasks().find(&id).unwrap().is_seen());
    let done = workspace.run_tool("TaskOutput", ask(true, 600_000)).await;
    assert!(workspace.inner.tasks().find(&id).unwrap().is_seen());
    let raw = done.raw.clone().unwrap();
    let task = json!({"task_id": id, "task_type": "local_bash", "status": "failed", "description": "wait", "output": "one\ntwo", "exitCode": 5});
    assert_eq!(raw, json!({"retrieval_status": "success", "task": task}));
    assert!(
        success_text(done)
            .ends_with("<status>failed</status>\n\n<exit_code>5</exit_code>\n\n<output>\none\ntwo\n</output>")
    );
    assert!(
        error_text(workspace.run_tool("TaskStop", json!({"task_id": id})).await)
            .contains("not running (status: failed)")
    );
    assert!(
        error_text(workspace.run_tool("TaskOutput", json!({"task_id": "b0"})).await)
            .contains("No task found with ID: b0")
    );
}

#[tokio::test]
async fn a_background_task_is_ended_with_its_children() {
    let workspace = bash_workspace();
    let start = async |n: u8| {
        let command = format!("sleep 300 & echo $! > child{n}.tmp; mv child{n}.tmp child{n}; wait");
        let output = workspace.run_tool("Bash", json!({"command": command, "run_in_background": true})).await;
        while !workspace.path(&format!("child{n}")).exists() {
            tokio::task::yield_now().await;
        }
        output.raw.unwrap()["backgroundTaskId"].as_str().unwrap().to_owned()
    };
    let (one, two) = (start(1).await, start(2).await);
    let stopped = workspace.run_tool("TaskStop", json!({"task_id": one})).await;
    assert_eq!(stopped.raw.as_ref().unwrap()["task_type"], "local_bash");
    assert!(output_text(&stopped).starts_with(&format!("{{\"message\":\"Successfully stopped task: {one} (")));
    assert!(!is_process_alive(&workspace.read_text("child1")));
    workspace.inner.tasks().stop_all().await;
    assert_eq!(workspace.inner.tasks().find(&two).unwrap().status(), TaskStatus::Killed);
    assert!(!is_process_alive(&workspace.read_text("child2")));
}

#[test]
fn only_commands_that_read_may_run_beside_others() {
    for (command, effect) in [
        ("ls -la && git status", ToolEffect::ReadOnly),
        ("cat a 2>/dev/null | wc -l", ToolEffect::ReadOnly),
        ("touch a", ToolEffect::Mutating),
        ("cd x", ToolEffect::Mutating),
        ("cat a > b", ToolEffect::Mutating),
        ("ls $(rm x)", ToolEffect::Mutating),
        ("'", ToolEffect::Mutating),
    ] {
        assert_eq!(Bash.effect(&bash_input(command)), effect, "{command}");
    }
}
