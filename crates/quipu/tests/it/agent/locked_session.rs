//! A session file that another program keeps locked: the agent still reads stdin and signals.
#![cfg(unix)]

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::scripted_agent::ScriptedAgent;

/// Less than the time that the agent waits for the lock.
const RESPONSE_LIMIT: Duration = Duration::from_secs(8);

/// Locks the session file as another program would, until the file is dropped or unlocked.
fn lock_session(agent: &ScriptedAgent) -> File {
    let file = File::open(agent.session_file()).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn an_interrupt_ends_a_turn_though_the_session_file_is_locked() {
    let agent = ScriptedAgent::new("slow.yaml");
    let mut process = agent.spawn(&["--allowedTools", "Bash"]);
    process.send_prompt("sleep");
    process.read_until(|line| line["type"] == "assistant");
    let lock = lock_session(&agent);
    let began = Instant::now();
    process.send_request("1", json!({"subtype": "interrupt"}));
    process.read_until(|line| line["type"] == "control_response");
    assert_eq!(process.read_result()["terminal_reason"], "aborted_tools");
    assert!(began.elapsed() < RESPONSE_LIMIT, "{:?}", began.elapsed());
    lock.unlock().unwrap();
    // What could not be written is written as soon as it can be.
    process.send_prompt("next words");
    assert_eq!(process.read_result()["is_error"], false);
    assert_eq!(process.end().0, 0);
    let file = fs::read_to_string(agent.session_file()).unwrap();
    let places: Vec<_> =
        ["tool_use_id", "[Request interrupted by user for tool use]", "next words"].map(|text| file.find(text)).into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{file}");
}

#[test]
fn a_turn_is_announced_before_its_prompt_is_on_disk() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn(&[]);
    process.send_prompt("hello");
    process.read_result();
    let lock = lock_session(&agent);
    process.send_prompt("hello again");
    process.read_until(|line| line["subtype"] == "init");
    assert!(!fs::read_to_string(agent.session_file()).unwrap().contains("hello again"));
    lock.unlock().unwrap();
    assert_eq!(process.read_result()["is_error"], false);
    assert_eq!(process.end().0, 0);
}

#[test]
fn requests_and_signals_are_handled_while_the_session_file_is_locked() {
    let agent = ScriptedAgent::new("hello.yaml");
    let mut process = agent.spawn(&[]);
    process.send_prompt("hello");
    process.read_result();
    let _lock = lock_session(&agent);
    let began = Instant::now();
    process.send_request("1", json!({"subtype": "get_session_cost"}));
    process.read_until(|line| line["type"] == "control_response");
    process.send_prompt("hello again");
    process.send_request("2", json!({"subtype": "interrupt"}));
    process.read_until(|line| line["response"]["request_id"] == "2");
    Command::new("kill").args(["-TERM", &process.child.id().to_string()]).status().unwrap();
    assert_eq!(process.child.wait().unwrap().code(), Some(143));
    assert!(began.elapsed() < RESPONSE_LIMIT, "{:?}", began.elapsed());
}
