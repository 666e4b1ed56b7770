//! An agent killed with SIGKILL at a random moment of a run of fifty turns: its session
//! can be resumed, no user prompt is lost, no call without a result is sent.
//!
//! Killed between the blocks of one answer: every complete block is in the file.
//!
//! A few kills by default; `QUIPU_KILLS=200` for the long run of `make crash`.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scripted_agent::{ScriptedAgent, every_call_is_answered};

const TURNS: u32 = 50;
const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// What a run printed before it was killed.
#[derive(Default)]
struct RunReport {
    /// Prompts that it reported as queued.
    queued: Vec<u32>,
    /// Prompts that it reported as started.
    replayed: Vec<u32>,
    /// Number of turns that ended.
    results: u32,
    /// Whether a turn was running.
    in_turn: bool,
}

fn prompt_text(prompt: u32) -> String {
    format!("question {prompt:02};")
}

fn prompt_id(prompt: u32) -> String {
    format!("00000000-0000-4000-8000-{prompt:012}")
}

/// Sends fifty prompts, each after the answer to the one before, and every seventh together with
/// the next. The agent is killed the given time after the given prompt was sent.
fn run(agent: &ScriptedAgent, kill: Option<(u32, Duration)>) -> RunReport {
    let args = ["--allowedTools", "Bash", "--replay-user-messages", "--session-id", SESSION];
    let mut process = agent.spawn(&args);
    let (mut stdin, mut child) = (process.stdin.take().unwrap(), process.child);
    let (now, prompt_sent) = std::sync::mpsc::channel();
    let killer = std::thread::spawn(move || {
        if let Ok(after) = prompt_sent.recv() {
            std::thread::sleep(after);
            child.kill().unwrap();
        }
        child.wait().unwrap()
    });
    let mut report = RunReport::default();
    let mut sent = 0;
    'run: while sent < TURNS {
        for _ in 0..if sent % 7 == 6 { 2 } else { 1 } {
            let message = json!({"role": "user", "content": prompt_text(sent)});
            // The reader may be gone already.
            let _ = writeln!(stdin, "{}", json!({"type": "user", "uuid": prompt_id(sent), "message": message}));
            if let Some((_, after)) = kill.filter(|(prompt, _)| *prompt == sent) {
                now.send(after).unwrap();
            }
            sent += 1;
        }
        loop {
            let mut line = String::new();
            if process.stdout.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
                break 'run;
            }
            report.record(&serde_json::from_str(&line).unwrap());
            if !report.in_turn && report.replayed.contains(&(sent - 1)) {
                break;
            }
        }
    }
    drop(now);
    if kill.is_none() {
        drop(stdin);
        assert!(killer.join().unwrap().success());
    } else {
        killer.join().unwrap();
    }
    report
}

impl RunReport {
    fn record(&mut self, line: &Value) {
        let of = |id: &Value| id.as_str().and_then(|id| id.rsplit('-').next()).and_then(|n| n.parse::<u32>().ok());
        match line["type"].as_str().unwrap() {
            "command_lifecycle" if line["state"] == "queued" => self.queued.extend(of(&line["command_uuid"])),
            "user" if line["isReplay"] == true => {
                self.replayed.extend(of(&line["uuid"]));
                self.in_turn = true;
            }
            "result" => {
                assert_eq!(line["is_error"], false, "{line}");
                self.results += 1;
                self.in_turn = false;
            }
            _ => {}
        }
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "the figures of a long run")]
fn an_agent_killed_at_any_point_can_be_resumed_with_nothing_lost() {
    let kills: u64 = std::env::var("QUIPU_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    // How long a turn takes here.
    let began = Instant::now();
    let whole = run(&ScriptedAgent::new("long.yaml"), None);
    let length = u64::try_from(began.elapsed().as_micros()).unwrap() / u64::from(TURNS);
    assert_eq!(whole.replayed.len(), TURNS as usize);
    let (mut in_turn, mut turns, mut replayed, mut calls, mut no_file, mut torn) = (0, 0, 0, 0, 0, 0);
    let mut random = 0x9E37_79B9_u64;
    for kill in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Every question has its share; the moment is anywhere within a turn, at first
        // also before there is one.
        let question = u32::try_from(kill * u64::from(TURNS) / kills).unwrap();
        let after = Duration::from_micros((random >> 33) % (length * 3 / 2));
        let agent = ScriptedAgent::new("long.yaml");
        let report = run(&agent, Some((question, after)));
        (turns, replayed) = (turns + report.results, replayed + report.replayed.len());
        in_turn += u32::from(report.in_turn);
        let file = agent.folder.transcripts().pop().map(|path| fs::read_to_string(path).unwrap());
        let written = file.as_deref().unwrap_or_default();
        torn += u32::from(!written.is_empty() && !written.ends_with('\n'));
        for question in &report.queued {
            assert!(written.contains(&prompt_text(*question)), "question {question} is not in the file");
        }
        let flag = if file.is_some() { "--resume" } else { "--session-id" };
        no_file += u32::from(file.is_none());
        let lines = agent.lines(&["the end", flag, SESSION]);
        let result = lines.last().unwrap();
        assert_eq!((&result["is_error"], &result["result"]), (&json!(false), &json!("It ends well.")), "{written}");
        let seen = agent.server.requests();
        let sent = &seen.last().unwrap().body;
        // What was only received is as little lost as what was begun.
        for question in report.replayed.iter().chain(&report.queued) {
            assert!(sent.contains(&prompt_text(*question)), "question {question} is lost");
        }
        calls += every_call_is_answered(&agent);
    }
    eprintln!(
        "{kills} kills in runs of {TURNS} turns: {in_turn} within a turn, {no_file} before there was a file, \
         {torn} torn lines; {turns} turns ended, {replayed} questions acknowledged, none lost; \
         {calls} tool calls sent again, each with its result"
    );
}

/// An answer of twelve blocks of which only some come; then the model says no more.
fn blocks(come: usize) -> String {
    let block = |n| match n % 3 {
        2 => format!("    - {{tool: Bash, id: toolu_{n:02}, input: {{command: echo {n:02}}}}}\n"),
        _ => format!("    - text: words {n:02}\n"),
    };
    let blocks: String = (0..BLOCKS).map(block).collect();
    // A block is its start, one delta and its end; the message's start comes before all.
    let events = 1 + 3 * come;
    format!(
        "- when: {{says: the end}}\n  reply: It ends well.\n- reply:\n{blocks}  chunk: 1000\n  hang_after: {events}\n"
    )
}

const BLOCKS: usize = 12;

#[test]
#[allow(clippy::print_stderr, reason = "the figures of a long run")]
fn an_agent_killed_between_the_blocks_of_an_answer_has_recorded_those_that_are_complete() {
    let kills: usize = std::env::var("QUIPU_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let (mut complete, mut longest) = (0, Duration::ZERO);
    for kill in 0..kills {
        let come = 1 + kill % (BLOCKS - 1);
        let agent = ScriptedAgent::from_script_text(&blocks(come));
        let mut process = agent.spawn(&["--allowedTools", "Bash", "--session-id", SESSION]);
        process.send_prompt("go");
        let uuids: Vec<String> = (0..come)
            .map(|_| process.read_until(|line| line["type"] == "assistant")["uuid"].as_str().unwrap().to_owned())
            .collect();
        let read_at = Instant::now();
        let path = agent.session_file();
        let mut written = String::new();
        while !uuids.iter().all(|uuid| written.contains(uuid)) {
            assert!(read_at.elapsed() < Duration::from_secs(10), "{} blocks, but\n{written}", uuids.len());
            written = fs::read_to_string(&path).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        longest = longest.max(read_at.elapsed());
        process.child.kill().unwrap();
        process.child.wait().unwrap();
        complete += come;
        let lines = agent.lines(&["the end", "--resume", SESSION]);
        assert_eq!(lines.last().unwrap()["result"], "It ends well.", "{written}");
        let sent = agent.server.requests().last().unwrap().body.clone();
        for n in (0..come).filter(|n| n % 3 != 2) {
            assert!(sent.contains(&format!("words {n:02}")), "block {n} is not sent");
        }
        every_call_is_answered(&agent);
    }
    eprintln!(
        "{kills} kills within an answer: {complete} blocks complete, all in the file, the last after {longest:?}"
    );
}
