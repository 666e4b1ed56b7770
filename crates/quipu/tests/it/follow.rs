//! `quipu follow` and `quipu show -`: conversations as they happen.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::terminal_output::OnTerminal;

/// A config folder, and a project in it.
struct Sessions {
    dir: TempDir,
}

impl Sessions {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("projects/-home-sam-app")).unwrap();
        Self { dir }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.path().join("projects/-home-sam-app").join(format!("{id}.jsonl"))
    }

    fn append(&self, id: &str, line: &str) {
        append(&self.path(id), line);
    }

    fn quipu(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("quipu"));
        command.arg("--claude-dir").arg(self.dir.path()).args(args).env_clear();
        command.env("HOME", self.dir.path()).env("XDG_CACHE_HOME", self.dir.path().join("cache"));
        command
    }

    fn follow(&self, args: &[&str]) -> Followed {
        let mut child = self.quipu(&["-q", "follow"]).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Followed { child, lines: Box::new(lines.map(Result::unwrap)) }
    }
}

fn append(path: &Path, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

/// A command whose output is read line by line.
struct Followed {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Followed {
    /// Reads until a line holds a text; returns all lines read.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        let mut all = String::new();
        for line in self.lines.by_ref() {
            all.push_str(&line);
            all.push('\n');
            if line.contains(text) {
                return all;
            }
        }
        panic!("{text} did not come:\n{all}");
    }

    fn json(&mut self, text: &str) -> Value {
        serde_json::from_str(self.until(text).lines().last().unwrap()).unwrap()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn user(uuid: &str, text: &str) -> String {
    format!(r#"{{"type":"user","uuid":"{uuid}","cwd":"/home/sam/app","message":{{"role":"user","content":"{text}"}}}}"#)
}

fn answer(uuid: &str, block: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","message":{{"id":"m{uuid}","role":"assistant","model":"claude-opus-5-5","content":[{block}]}}}}"#
    )
}

const ASKS: &str = r#"{"type":"tool_use","id":"t1","name":"AskUserQuestion","input":{"questions":[{"question":"Which way?","options":[{"label":"left"},{"label":"right"}]}]}}"#;
const RUNS: &str = r#"{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"sleep 600"}}"#;

fn result(uuid: &str, call: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{text}"}}]}}}}"#
    )
}

#[test]
fn what_is_appended_is_shown_as_it_comes() {
    let sessions = Sessions::new();
    sessions.append("s1", &user("a", "already there"));
    let path = sessions.path("s1");
    let mut shown = sessions.follow(&[path.to_str().unwrap()]);
    shown.until("already there");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let late = user("b", "said later") + "\n";
    file.write_all(&late.as_bytes()[..20]).unwrap();
    file.write_all(&late.as_bytes()[20..]).unwrap();
    shown.until("said later");
}

#[test]
fn a_call_is_shown_while_it_waits_and_again_with_its_result_under_one_speaker() {
    let sessions = Sessions::new();
    sessions.append("s1", &user("a", "go on"));
    let mut shown = sessions.follow(&[]);
    shown.until("go on");
    sessions.append("s1", &answer("b", r#"{"type":"thinking","thinking":"hm"}"#));
    sessions.append("s1", &answer("c", ASKS));
    let text = shown.until("left · right");
    assert!(text.contains("▌ claude-opus-5-5") && text.contains("… pending AskUserQuestion"), "{text}");
    sessions.append("s1", &result("d", "t1", "left it is"));
    sessions.append("s1", &answer("e", r#"{"type":"text","text":"so be it"}"#));
    let text = shown.until("so be it");
    assert!(text.contains("✓ ok AskUserQuestion") && !text.contains('▌'), "{text}");
}

#[test]
fn with_json_each_item_is_a_line_and_a_call_comes_again() {
    let sessions = Sessions::new();
    sessions.append("s1", &user("a", "go on"));
    let mut shown = sessions.follow(&["latest", "--json"]);
    let item = shown.json("go on");
    assert_eq!((&item["session_id"], &item["kind"]), (&"s1".into(), &"user".into()));
    sessions.append("s1", &answer("b", RUNS));
    assert_eq!(shown.json("t2")["tool"]["status"], "pending");
    sessions.append("s1", &result("c", "t2", "slept"));
    let item = shown.json("t2");
    assert_eq!((&item["tool"]["status"], &item["tool"]["result"]), (&"success".into(), &"slept".into()));
}

#[test]
fn the_latest_is_waited_for_and_left_for_a_newer_one() {
    let sessions = Sessions::new();
    fs::remove_dir_all(sessions.dir.path().join("projects")).unwrap();
    let mut shown = sessions.follow(&["--json"]);
    fs::create_dir_all(sessions.dir.path().join("projects/-home-sam-app")).unwrap();
    sessions.append("s1", &user("a", "the first"));
    assert_eq!(shown.json("the first")["session_id"], "s1");
    sessions.append("s2", &user("b", "the second"));
    assert_eq!(shown.json("the second")["session_id"], "s2");
    let other = sessions.dir.path().join("projects/-home-sam-other");
    fs::create_dir_all(&other).unwrap();
    append(&other.join("s3.jsonl"), &user("c", "the third"));
    assert_eq!(shown.json("the third")["session_id"], "s3");
}

#[test]
fn subagents_are_shown_as_they_work() {
    let sessions = Sessions::new();
    sessions.append("s1", &user("a", "look around"));
    let mut shown = sessions.follow(&["s1"]);
    shown.until("look around");
    let folder = sessions.dir.path().join("projects/-home-sam-app/s1/subagents");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent-a7.meta.json"), r#"{"agentType":"Explore","description":"find the door"}"#).unwrap();
    let line = |text: &str| answer(text, &format!(r#"{{"type":"text","text":"{text}"}}"#));
    let line = |text: &str| {
        line(text).replace("{\"type\":\"assistant\"", "{\"type\":\"assistant\",\"isSidechain\":true,\"agentId\":\"a7\"")
    };
    append(&folder.join("agent-a7.jsonl"), &line("it is in the wall"));
    let text = shown.until("it is in the wall");
    assert!(text.contains("┌ subagent find the door") && text.contains("│ "), "{text}");
}

#[test]
fn all_shows_which_sessions_wait_and_for_what() {
    let sessions = Sessions::new();
    sessions.append("s1", &user("a", "go on"));
    sessions.append("s1", &answer("b", ASKS));
    sessions.append("s2", &user("c", "go on"));
    let mut shown = sessions.follow(&["--all", "--json"]);
    let item = shown.json("waiting_for");
    assert_eq!((&item["session_id"], &item["waiting_for"]), (&"s1".into(), &"question".into()));
    assert!(item["text"].as_str().unwrap().contains("Which way?"));
    let done = answer("d", r#"{"type":"text","text":"done"}"#)
        .replace("\"content\"", "\"stop_reason\":\"end_turn\",\"content\"");
    sessions.append("s2", &done);
    assert_eq!(shown.json("\"done\"")["session_id"], "s2");
    assert_eq!(shown.json("waiting_for")["waiting_for"], "prompt");
    sessions.append("s3", &user("e", "change it"));
    sessions.append("s3", &answer("f", r#"{"type":"tool_use","id":"t3","name":"Edit","input":{"file_path":"x"}}"#));
    let item = shown.json("waiting_for");
    assert_eq!((&item["session_id"], &item["waiting_for"]), (&"s3".into(), &"permission".into()));
}

#[test]
fn on_a_terminal_a_waiting_call_is_overwritten_by_its_result() {
    let sessions = Sessions::new();
    sessions.append("s1", &user("a", "go on"));
    sessions.append("s1", &answer("b", RUNS));
    let mut terminal = OnTerminal::start(&mut sessions.quipu(&["follow", "s1"]), None);
    terminal.until(|screen| screen.contains("… pending Bash") || screen.contains("… Bash"));
    sessions.append("s1", &answer("c", r#"{"type":"text","text":"meanwhile"}"#));
    terminal.until(|screen| screen.find("meanwhile").is_some_and(|at| screen[at..].contains("… Bash")));
    sessions.append("s1", &result("d", "t2", "slept well"));
    let screen = terminal.until(|screen| screen.contains("slept well"));
    assert!(screen.contains("✓ Bash") && !screen.contains('…'), "{screen}");
    terminal.stop();
}

fn event(event: &str) -> String {
    format!(r#"{{"type":"stream_event","uuid":"e","session_id":"s","event":{event}}}"#)
}

fn half_an_answer() -> [String; 4] {
    [
        user("a", "go on"),
        event(
            r#"{"type":"message_start","message":{"id":"m","role":"assistant","model":"claude-opus-5-5","content":[]}}"#,
        ),
        event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
        event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"the first half"}}"#),
    ]
}

const WHOLE: &str = r#"{"type":"assistant","uuid":"b","session_id":"s","message":{"id":"m","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"the first half and the second"}]}}"#;

#[test]
fn a_stream_is_shown_as_it_comes_and_in_a_pipe_only_what_is_whole() {
    let sessions = Sessions::new();
    let mut child = sessions.quipu(&["show", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = Followed { child, lines: Box::new(lines.map(Result::unwrap)) };
    half_an_answer().iter().for_each(|line| writeln!(input, "{line}").unwrap());
    shown.until("go on");
    writeln!(input, "{WHOLE}").unwrap();
    let text = shown.until("the second");
    assert_eq!(text.matches("the first half").count(), 1, "{text}");
    drop(input);
    assert_eq!(shown.lines.next(), None);
    assert!(shown.child.wait().unwrap().success());
}

#[test]
fn on_a_terminal_a_stream_grows() {
    let sessions = Sessions::new();
    let (reader, mut input) = std::io::pipe().unwrap();
    let mut terminal = OnTerminal::start(&mut sessions.quipu(&["show", "-"]), Some(reader.into()));
    half_an_answer().iter().for_each(|line| writeln!(input, "{line}").unwrap());
    terminal.until(|screen| screen.contains("the first half"));
    writeln!(input, "{WHOLE}").unwrap();
    drop(input);
    let (status, screen) = terminal.end();
    assert!(status.success());
    assert_eq!(screen.trim_end(), "▌ you\n  go on\n\n▌ claude-opus-5-5\n  the first half and the second");
}

#[test]
fn a_stream_that_breaks_off_shows_what_came() {
    let sessions = Sessions::new();
    let (reader, mut input) = std::io::pipe().unwrap();
    half_an_answer().iter().for_each(|line| writeln!(input, "{line}").unwrap());
    drop(input);
    let out = sessions.quipu(&["show", "-"]).stdin(reader).output().unwrap();
    assert!(String::from_utf8(out.stdout).unwrap().contains("the first half") && out.status.success());
}

#[test]
fn json_of_a_stream_stays_one_document() {
    let sessions = Sessions::new();
    let (reader, mut input) = std::io::pipe().unwrap();
    writeln!(input, "{}\n{WHOLE}", user("a", "go on")).unwrap();
    drop(input);
    let out = sessions.quipu(&["show", "-", "--json"]).stdin(reader).output().unwrap();
    let items: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(items.len(), 2);
}

#[test]
fn ctrl_c_and_a_reader_that_leaves_end_it_quietly() {
    let sessions = Sessions::new();
    sessions.append("s1", &user("a", "go on"));
    let mut terminal = OnTerminal::start(&mut sessions.quipu(&["-q", "follow", "s1"]), None);
    terminal.until(|screen| screen.contains("go on"));
    let pid = Pid::from_child(terminal.child());
    kill_process(pid, Signal::INT).unwrap();
    let (_, screen) = terminal.end();
    assert!(!screen.contains("error") && !screen.contains("panic"), "{screen}");

    let mut child =
        sessions.quipu(&["-q", "follow", "s1"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.by_ref().find(|line| line.as_ref().unwrap().contains("go on")).unwrap().unwrap();
    drop(lines);
    sessions.append("s1", &user("b", "more"));
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

#[test]
fn follow_switches_to_an_active_session_once_the_latest_waits() {
    let sessions = Sessions::new();
    let at = |line: String, time: &str| line.replacen('{', &format!("{{\"timestamp\":\"2026-11-15T{time}Z\","), 1);
    let done = answer("d", r#"{"type":"text","text":"done"}"#);
    let done = done.replace("\"content\"", "\"stop_reason\":\"end_turn\",\"content\"");
    sessions.append("s1", &at(user("a", "the older one"), "08:00:00"));
    sessions.append("s2", &at(user("b", "the newer one"), "09:00:00"));
    let mut shown = sessions.follow(&["--json"]);
    shown.until("the newer one");
    // While it works, it is not left.
    sessions.append("s1", &at(user("c", "meanwhile"), "09:00:01"));
    sessions.append("s2", &at(done, "09:00:02"));
    let text = shown.until("done");
    assert!(!text.contains("meanwhile"), "{text}");
    sessions.append("s1", &at(user("e", "and now"), "09:00:03"));
    assert_eq!(shown.json("and now")["session_id"], "s1");
}

#[test]
fn a_file_that_is_replaced_is_not_shown_from_its_start() {
    let sessions = Sessions::new();
    for n in 0..30 {
        sessions.append("s1", &user(&format!("u{n}"), &format!("prompt {n}.")));
    }
    let mut shown = sessions.follow(&["s1", "--tail", "3"]);
    shown.until("prompt 29.");
    let copy = sessions.dir.path().join("copy");
    fs::copy(sessions.path("s1"), &copy).unwrap();
    append(&copy, &user("last", "after the repair"));
    fs::rename(&copy, sessions.path("s1")).unwrap();
    let text = shown.until("after the repair");
    assert!(text.contains("prompt 29.") && !text.contains("prompt 27."), "{text}");
}

#[test]
fn on_a_terminal_all_lists_the_sessions_that_wait_at_the_bottom() {
    let sessions = Sessions::new();
    sessions.append("s1", &user("a", "go on"));
    sessions.append("s1", &answer("b", ASKS));
    sessions.append("s2", &user("c", "go on"));
    let mut terminal = OnTerminal::start(&mut sessions.quipu(&["-q", "follow", "--all"]), None);
    let waits = "s1 app waits for your answer: Which way?";
    terminal.until(|screen| screen.trim_end().ends_with(waits) && screen.contains("s2 app works"));
    sessions.append("s2", &answer("d", RUNS));
    let screen = terminal.until(|screen| screen.contains("s2 app runs Bash"));
    assert!(screen.contains("── s2 app") && screen.trim_end().ends_with(waits), "{screen}");
    terminal.stop();
}
