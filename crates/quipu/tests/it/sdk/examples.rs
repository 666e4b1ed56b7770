//! The SDK's examples, as a user runs them: offline, against `quipu-agent`.
#![allow(clippy::print_stderr, reason = "skipped tests are reported")]

use std::path::Path;
use std::process::Command;

/// What an example prints; `None` if it was not built, as when this package is tested alone.
fn run(example: &str) -> Option<String> {
    let agent = env!("CARGO_BIN_EXE_quipu-agent");
    let program = Path::new(agent).with_file_name("examples").join(example);
    if !program.exists() {
        eprintln!("\n*** SKIPPED: {} is not built; test the whole workspace ***\n", program.display());
        return None;
    }
    let out = Command::new(program).args(["--cli", agent]).output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{example}: {said}{complained}");
    Some(said.into_owned())
}

fn check(example: &str, expect: &[&str]) {
    let Some(said) = run(example) else { return };
    for words in expect {
        assert!(said.contains(words), "{example} does not say {words:?}:\n{said}");
    }
}

#[test]
fn query_prints_every_message() {
    check("query", &["system/init", "A quipu is a record kept in knotted cords.", "result/success"]);
}

#[test]
fn chat_runs_several_turns() {
    check(
        "chat",
        &["The agent is version 2.1.", "> How is the weather?\n  I cannot see it from here.", "That cost 0."],
    );
}

#[test]
fn permissions_allows_changes_and_refuses() {
    check(
        "permissions",
        &["? may Bash run `mkdir listed && ls`", "? may Bash run `mkdir published", "rm -rf important`"],
    );
}

#[test]
fn hooks_block_log_and_add_context() {
    check("hooks", &["(diary: Bash ran)", "= Done.", "= I was not allowed to."]);
}

#[test]
fn mcp_tool_is_called() {
    check("mcp_tool", &["store is connected", "(looked for apples: Some(7))", "(looked for melons: None)"]);
}

#[test]
fn structured_answers_in_a_form() {
    check("structured", &["Ada Lovelace (1815) wrote Notes on the Analytical Engine."]);
}

#[test]
fn interrupt_stops_a_turn_and_continues() {
    check("interrupt", &["That is enough.", "The turn ended as error_during_execution.", "= As you like."]);
}
