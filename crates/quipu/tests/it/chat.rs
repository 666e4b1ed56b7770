//! `quipu chat`, typed on a pseudo-terminal.

mod chat_terminal;

use std::fs::{self, File};
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use chat_terminal::*;
use rustix::process::{Pid, Signal, kill_process};

use crate::pty_runner;

const SCRIPT: &str = r#"
- when: {tools: false}
  reply: A title
- when: {result_of: Bash}
  reply: It is **done**.
- when: {says: run}
  reply:
    - thinking: "First this.\nThen that."
    - text: I run it.
    - tool: Bash
      input: {command: "touch made"}
- when: {says: endless}
  reply: "This answer never ends, because the model waits."
  hang_after: 4
- reply: Good day.
"#;

#[test]
fn a_chat_has_text_thinking_tools_and_a_line_that_resumes_it() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = home.start(&[]);
    chat.prompt("hello");
    chat.until("Good day.");
    chat.prompt("run it");
    let screen = chat.until("Allow Bash?");
    assert!(screen.contains("∴ First this. (+1 line)") && screen.contains("… pending Bash $ touch made"), "{screen}");
    assert!(screen.contains("a  always allow Bash(touch made *) in this project"), "{screen}");
    assert!(!home.work().join("made").exists());
    chat.send("y");
    // The status line is removed at the end of the turn.
    let screen = chat.until_screen(|screen| screen.contains("It is done.") && !screen.contains("Esc interrupts"));
    assert!(screen.contains("✓ ok Bash $ touch made") && !screen.contains("Allow Bash?"), "{screen}");
    assert!(home.work().join("made").exists());
    // Each prompt is shown once.
    assert_eq!(screen.matches("▌ you\n  run it\n").count(), 1, "{screen}");
    let screen = chat.exit();
    assert!(screen.contains("resume with: quipu chat "), "{screen}");
}

#[test]
fn a_call_is_denied_with_a_message() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = home.start(&[]);
    chat.prompt("run it");
    chat.until("Allow Bash?");
    chat.send("n");
    chat.until("Why not?");
    chat.send("not today");
    chat.until("› not today");
    chat.send(ENTER);
    let screen = chat.until("It is done.");
    assert!(screen.contains("✗ failed Bash $ touch made"), "{screen}");
    assert!(home.last_request().contains("The user denied this tool call: not today"), "{}", home.last_request());
    assert!(!home.work().join("made").exists());
    chat.exit();
}

#[test]
fn a_call_that_is_always_allowed_is_not_asked_about_again() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = home.start(&[]);
    chat.prompt("run it");
    chat.until("Allow Bash?");
    chat.send("a");
    chat.until("It is done.");
    fs::remove_file(home.work().join("made")).unwrap();
    chat.prompt("run again");
    chat.until_screen(|screen| screen.matches("It is done.").count() == 2);
    assert!(home.work().join("made").exists());
    chat.exit();
}

#[test]
fn the_input_of_a_call_is_edited() {
    let home = ChatHome::new(SCRIPT);
    let mut command = home.command(&[]);
    let mut chat = ChatTerminal::start(command.env("EDITOR", "sed -i s/made/other/"), 24, 80);
    chat.prompt("run it");
    chat.until("Allow Bash?");
    chat.send("e");
    chat.until("(input edited by you)");
    chat.send("y");
    chat.until("It is done.");
    assert!(home.work().join("other").exists() && !home.work().join("made").exists());
    chat.exit();
}

#[test]
fn a_question_is_answered() {
    let home = ChatHome::new(
        r#"
- when: {tools: false}
  reply: A title
- when: {result_of: AskUserQuestion}
  reply: Left it is.
- reply:
    - tool: AskUserQuestion
      input:
        questions:
          - question: "Which way?"
            header: Way
            multiSelect: false
            options: [{label: left, description: past the mill}, {label: right, description: home}]
"#,
    );
    let mut chat = home.start(&[]);
    chat.prompt("which way");
    // The call is shown before the question.
    let screen = chat.until("1  left");
    assert!(screen.contains("past the mill") && screen.contains("2  right"), "{screen}");
    chat.send("1");
    chat.until("Left it is.");
    assert!(home.last_request().contains("left"), "{}", home.last_request());
    chat.exit();
}

#[test]
fn a_plan_is_approved() {
    let home = ChatHome::new(
        r#"
- when: {tools: false}
  reply: A title
- when: {result_of: ExitPlanMode}
  reply: I begin.
- reply:
    - tool: ExitPlanMode
      input: {plan: "1. Look around"}
"#,
    );
    let mut chat = home.start(&["--permission-mode", "plan"]);
    chat.prompt("make a plan");
    let screen = chat.until("Approve this plan?");
    assert!(screen.contains("1. Look around"), "{screen}");
    chat.send("y");
    let screen = chat.until("I begin.");
    assert!(screen.contains("ExitPlanMode (approved)"), "{screen}");
    chat.exit();
}

#[test]
fn escape_interrupts_and_a_queued_prompt_follows() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = home.start(&[]);
    chat.prompt("endless");
    chat.until("This answer");
    chat.prompt("hello");
    let screen = chat.until("queued: hello");
    assert!(screen.contains("Esc interrupts"), "{screen}");
    chat.send(ESCAPE);
    let screen = chat.until("Good day.");
    assert!(screen.contains("[Request interrupted by user]") && !screen.contains("queued"), "{screen}");
    chat.exit();
}

#[test]
fn commands_and_files_are_completed() {
    let home = ChatHome::new(SCRIPT);
    home.write("notes/harbour.txt", "x");
    let mut chat = home.start(&[]);
    chat.send("/com");
    chat.until("/compact  ");
    chat.send(TAB);
    chat.until("› /compact");
    chat.send(CTRL_C);
    chat.until("Ctrl-C again");
    chat.send("/mode pl");
    chat.until("Reads and plans");
    chat.send(TAB);
    chat.until("› /mode plan");
    chat.send(ENTER);
    chat.until("permission mode: plan");
    chat.send("see @harb");
    chat.until("@notes/harbour.txt");
    chat.send(TAB);
    chat.until("› see @notes/harbour.txt");
    chat.send("please");
    chat.send(ENTER);
    chat.until("Good day.");
    assert!(home.last_request().contains("see @notes/harbour.txt please"), "{}", home.last_request());
    chat.exit();
}

#[test]
fn help_lists_commands_and_keys() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = ChatTerminal::start(&mut home.command(&[]), 40, 80);
    chat.prompt("/help");
    let screen = chat.until("Ctrl-D");
    assert!(screen.contains("/exit") && screen.contains("/compact") && screen.contains("Alt-Enter"), "{screen}");
    chat.prompt("/model");
    chat.until("For hard problems");
    // The output of a command of the agent is shown whole.
    chat.prompt("/cost");
    chat.until("Code changes: 0 lines added");
    chat.prompt("/exit");
    let (status, screen) = chat.end();
    assert!(status.success(), "{screen}");
}

#[test]
fn a_session_is_resumed_and_forked() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = home.start(&[]);
    chat.prompt("hello");
    chat.until("Good day.");
    let id = |screen: &str| screen.split("quipu chat ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let first = id(&chat.exit());
    let mut chat = home.start(&["latest"]);
    let screen = chat.until("hello");
    assert!(screen.contains("Good day."), "{screen}");
    chat.prompt("and again");
    chat.until_screen(|screen| screen.matches("Good day.").count() == 2);
    assert_eq!(id(&chat.exit()), first);
    let request = home.server.requests().into_iter().filter_map(|seen| seen.request).next_back().unwrap();
    assert!(request.messages.len() >= 3, "{:?}", request.messages.len());
    let mut chat = home.start(&[&first[..8], "--fork"]);
    chat.prompt("elsewhere");
    chat.until_screen(|screen| screen.matches("Good day.").count() == 3);
    assert_ne!(id(&chat.exit()), first);
}

#[test]
fn two_times_ctrl_c_ends_in_the_middle_of_a_turn() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = home.start(&[]);
    chat.send("half a prompt");
    chat.until("half a prompt");
    chat.send(CTRL_C);
    chat.until_screen(|screen| screen.contains("Ctrl-C again ends the chat") && !screen.contains("half"));
    chat.prompt("endless");
    let screen = chat.until("This answer");
    assert!(!screen.contains("Ctrl-C again"), "{screen}");
    chat.send(CTRL_C);
    chat.until("Ctrl-C again");
    chat.send(CTRL_C);
    let (status, screen) = chat.end();
    assert!(status.success() && screen.contains("resume with"), "{screen}");
}

#[test]
fn an_agent_that_dies_ends_the_chat_with_an_error() {
    let home = ChatHome::new(SCRIPT);
    let agent = env!("CARGO_BIN_EXE_quipu-agent");
    let wrapper = home.write("agent", &format!("#!/bin/sh\necho $$ > \"$HOME/pid\"\nexec {agent} \"$@\"\n"));
    make_executable(&wrapper);
    let mut chat = home.start(&["--agent", "./agent"]);
    chat.prompt("endless");
    chat.until("This answer");
    let pid: i32 = fs::read_to_string(home.path().join("pid")).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let (status, screen) = chat.end();
    assert_eq!(status.code(), Some(1), "{screen}");
    assert!(screen.contains("error: the agent ended") && screen.contains("resume with"), "{screen}");
}

#[test]
fn a_signal_ends_the_chat_and_restores_the_terminal() {
    let home = ChatHome::new(SCRIPT);
    let mut command = home.command(&[]);
    let mut chat = ChatTerminal::start(&mut command, 24, 80);
    chat.prompt("hello");
    chat.until("Good day.");
    chat.kill(Signal::TERM);
    let (status, screen) = chat.end();
    assert!(status.success() && screen.contains("resume with"), "{screen}");
}

#[test]
fn an_agent_that_cannot_be_started_is_an_error() {
    let home = ChatHome::new(SCRIPT);
    let chat = ChatTerminal::start_at_question(&mut home.command(&["--agent", "no-such-agent"]), "error:");
    let (status, screen) = chat.end();
    assert!(!status.success() && screen.contains("cannot start no-such-agent"), "{screen}");
    assert!(screen.contains("hint: name an agent with --agent"), "{screen}");
    let (_, errors, _) = home.run_piped(&["--json"], "");
    assert!(errors.contains("usage.json"), "{errors}");
}

#[test]
fn a_narrow_terminal_and_wide_characters() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = ChatTerminal::start(&mut home.command(&[]), 20, 40);
    chat.send("每人最多中一次奖，不重复，而且要看一看这个长长的句子");
    // Rows hold 18 wide characters after the mark.
    chat.until("› 每人最多中一次奖，不重复，而且要看一\n  看这个长长的句子");
    chat.send(LEFT);
    chat.send(BACKSPACE);
    chat.until("看这个长长的子");
    chat.send(ENTER);
    let screen = chat.until("Good day.");
    assert!(screen.contains("▌ you\n  每人最多中一次奖"), "{screen}");
    assert!(home.last_request().contains("这个长长的子"), "{}", home.last_request());
    chat.prompt("run it");
    let screen = chat.until("Allow Bash?");
    assert!(screen.contains("y  allow once") && screen.contains("Esc  interrupt the turn"), "{screen}");
    chat.send("y");
    chat.until("It is done.");
    chat.exit();
}

#[test]
fn lines_are_broken_pasted_and_remembered() {
    let home = ChatHome::new(SCRIPT);
    let mut chat = home.start(&[]);
    chat.send(&format!("one{ALT_ENTER}two\\{ENTER}"));
    chat.send("\x1b[200~three\rfour\x1b[201~");
    chat.until("› one\n  two\n  three\n  four");
    chat.send(ENTER);
    chat.until("Good day.");
    assert!(home.last_request().contains("one\\ntwo\\nthree\\nfour"), "{}", home.last_request());
    chat.exit();
    let history = home.path().join(".local/state/quipu/chat-history.jsonl");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(history).unwrap().permissions().mode() & 0o777, 0o600);
    let mut chat = home.start(&[]);
    chat.send(UP);
    chat.until("› one\n  two\n  three\n  four");
    chat.send(CTRL_C);
    chat.exit();
}

#[test]
fn control_characters_of_the_agent_do_not_reach_the_terminal() {
    let home = ChatHome::new("- reply: \"safe \\e]0;title\\a\\e[2J\\e[31mtext\"\n");
    let mut chat = home.start(&[]);
    chat.prompt("hello");
    let screen = chat.until("safe text");
    assert!(screen.contains("▌ you"), "the screen was cleared: {screen}");
    chat.exit();
}

#[test]
fn without_a_terminal_each_line_is_a_prompt_and_permissions_are_denied() {
    let home = ChatHome::new(SCRIPT);
    let (out, err, success) = home.run_piped(&[], "hello\n\nrun it\n");
    assert_eq!(out, "Good day.\nIt is **done**.\n", "{err}");
    assert!(success && err.contains("denied Bash: it needs a permission"), "{err}");
    assert!(home.last_request().contains("the chat has no terminal"), "{}", home.last_request());
    assert!(!home.work().join("made").exists() && !out.contains('\x1b') && !err.contains('\x1b'));
    let (out, err, success) =
        ChatHome::new("- error: {status: 400, type: invalid_request_error, message: bad}\n").run_piped(&[], "hi\n");
    assert!(out.is_empty() && !success && err.contains("error: "), "{out} {err}");
}

#[test]
fn a_folder_is_asked_about_once_and_settings_are_the_defaults() {
    let home = ChatHome::new(SCRIPT);
    fs::write(home.config_file(), "# mine\n[chat]\npermission_mode = \"plan\"\n").unwrap();
    let ask = || ChatTerminal::start_at_question(&mut home.command(&[]), "Trust this folder?");
    let mut chat = ask();
    chat.send("n\n");
    let (status, screen) = chat.end();
    assert!(!status.success() && home.server.requests().is_empty());
    assert!(screen.contains("the folder is not trusted; no agent was started"), "{screen}");
    let mut chat = ask();
    chat.send("y\n");
    chat.until("mode plan");
    chat.exit();
    let settings = fs::read_to_string(home.config_file()).unwrap();
    assert!(settings.contains("# mine") && settings.contains(home.work().to_str().unwrap()), "{settings}");
    let mut chat = home.start(&[]);
    let screen = chat.until("mode plan");
    assert!(!screen.contains("Trust"), "{screen}");
    // Nothing was said, so there is nothing to resume.
    let screen = chat.exit();
    assert!(!screen.contains("resume with"), "{screen}");
}

#[test]
fn keys_that_were_meant_for_the_input_do_not_decide() {
    let home = ChatHome::new(
        r#"
- when: {tools: false}
  reply: A title
- when: {result_of: Bash}
  reply: It is done.
- delay_ms: 400
  reply:
    - tool: Bash
      input: {command: "touch made"}
"#,
    );
    let mut chat = home.start(&[]);
    chat.prompt("go");
    chat.send("a dra");
    chat.until("› a dra");
    chat.until("Allow Bash?");
    let shown = Instant::now();
    // For a second after the prompt appeared, letters have no effect.
    while !home.work().join("made").exists() {
        chat.send("y");
        chat.pause();
    }
    assert!(shown.elapsed() > Duration::from_millis(500), "{:?}", shown.elapsed());
    let screen = chat.until("It is done.");
    assert!(screen.contains("› a dra"), "{screen}");
    chat.send(CTRL_C);
    chat.exit();
}

#[test]
fn a_chat_ends_with_its_terminal() {
    let home = ChatHome::new(SCRIPT);
    let (ours, theirs) = pty_runner::open(24, 80);
    let end = || Stdio::from(theirs.try_clone().unwrap());
    // It is not the controlling terminal, so closing it sends no signal.
    let mut chat = home.command(&[]).stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").spawn().unwrap();
    drop(theirs);
    let mut ours = File::from(ours);
    let (mut shown, mut chunk) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&shown).contains('›') {
        let n = ours.read(&mut chunk).unwrap();
        shown.extend_from_slice(&chunk[..n]);
    }
    drop(ours);
    let closed = Instant::now();
    while chat.try_wait().unwrap().is_none() {
        if closed.elapsed() > Duration::from_secs(60) {
            chat.kill().unwrap();
            panic!("the chat runs without its terminal");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
