//! Replaying a recording: the agent gets the recorded flags and environment, each line of stdin after the
//! output that preceded it, and the recorded responses to its control requests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use quipu_api::mock::{MockServer, ReceivedRequest, Script};
use serde_json::Value;

use super::recording::{Io, Recording, Run, lines};
use super::request_shape::{SUBAGENT, Sent};
use super::work_folder::Folder;

/// Limit on the time of one step.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs whose stdin ends after the last line, in the middle of the turn.
const EARLY_END: [&str; 1] = ["54_stdin_eof_midturn"];

/// Runs that a signal ends after the first complete answer.
const SIGNALLED: [&str; 1] = ["55_sigint_midturn"];

/// Runs that read a line of stdin only after they had printed the answer that follows it.
const READ_LATE: [&str; 1] = ["28_replay_queue"];

/// Runs in a folder that was not trusted.
const UNTRUSTED: [&str; 1] = ["84_rules_mix"];

/// Runs in a git repository.
const REPOSITORY: [&str; 1] = ["71_worktree"];

/// The folder for temporary files in the recordings.
const THEIR_TEMPORARY: &str = "/tmp/dev";

/// What the agent did when a recording was replayed.
pub(super) struct Played {
    pub(super) stdout: Vec<Value>,
    pub(super) transcripts: Vec<Vec<Value>>,
    pub(super) subagents: Vec<Vec<Value>>,
    pub(super) exits: Vec<Option<i32>>,
    pub(super) requests: Vec<Sent>,
    pub(super) stderr: String,
    /// Our folder, and the recorded folder that it replaces.
    pub(super) cwd: String,
}

/// Plays all runs of a recording in one folder.
pub(super) fn play(recording: &Recording) -> Played {
    let folder = Folder::of(recording);
    if REPOSITORY.contains(&recording.name.as_str()) {
        folder.make_repository();
    }
    let cwd = folder.path.display().to_string();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let temporary = folder.temporary().display().to_string();
    let here = |text: &str| text.replace(recording.cwd(), &cwd).replace(THEIR_TEMPORARY, &temporary);
    let server = recording.calls().map(|calls| {
        let script = Script::parse(&here(&calls)).unwrap();
        runtime.block_on(MockServer::start(script)).unwrap()
    });
    let url = server.as_ref().map_or_else(|| "http://127.0.0.1:9".to_owned(), MockServer::url);
    let mut played = Played {
        stdout: Vec::new(),
        transcripts: Vec::new(),
        subagents: Vec::new(),
        exits: Vec::new(),
        requests: Vec::new(),
        stderr: String::new(),
        cwd: cwd.clone(),
    };
    // Recorded ids, and ours in their place.
    let mut ids: BTreeMap<String, String> = BTreeMap::new();
    for run in &recording.runs {
        let known = ids.clone();
        let swap = |text: &str| known.iter().fold(here(text), |text, (theirs, ours)| text.replace(theirs, ours));
        let mut agent = Agent::start(run, &folder, &url, &swap);
        agent.drive(recording, run, &folder, &swap, &mut ids);
        let (stdout, stderr, exit) = agent.finish();
        map_ids(run, &stdout, &mut ids);
        played.stdout.extend(stdout);
        played.stderr.push_str(&stderr);
        played.exits.push(exit);
    }
    played.requests = server.iter().flat_map(MockServer::requests).map(sent).collect();
    played.transcripts = folder.transcripts().iter().map(lines).collect();
    played.subagents = folder.subagents().iter().map(lines).collect();
    played
}

fn sent(received: ReceivedRequest) -> Sent {
    let number = |rule: &str| rule.strip_prefix("recorded call ")?.parse().ok();
    Sent {
        betas: received.header("anthropic-beta").unwrap_or_default().to_owned(),
        call: received.matched_rule.as_deref().and_then(number),
        by_subagent: received.header(SUBAGENT).is_some(),
        body: serde_json::from_str(&received.body).unwrap(),
    }
}

/// Maps a session of ours to the recorded one.
fn map_ids(run: &Run, stdout: &[Value], ids: &mut BTreeMap<String, String>) {
    let session = |line: &Value| line["session_id"].as_str().map(str::to_owned);
    let theirs = run.io.iter().filter(|io| !io.is_in).find_map(|io| session(&io.msg));
    if let (Some(theirs), Some(ours)) = (theirs, stdout.iter().find_map(session)) {
        ids.insert(theirs, ours);
    }
}

/// The running agent.
struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    received: Arc<(Mutex<Received>, Condvar)>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Received {
    stdout: Vec<Value>,
    stderr: String,
    is_over: bool,
}

impl Agent {
    fn start(run: &Run, folder: &Folder, url: &str, swap: &dyn Fn(&str) -> String) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu-agent"));
        command.args(run.argv.iter().map(|arg| swap(arg))).current_dir(&folder.path).env_clear();
        if !UNTRUSTED.contains(&folder.name()) {
            command.arg("--trust-folder");
        }
        for (name, value) in &run.env {
            command.env(name, swap(value));
        }
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &folder.home)
            .env("ANTHROPIC_BASE_URL", url)
            .env("CLAUDE_CODE_TMPDIR", folder.temporary());
        if let Some((_, theirs)) = run.env.iter().find(|(name, _)| name == "CLAUDE_CONFIG_DIR") {
            command.env("CLAUDE_CONFIG_DIR", folder.restored(theirs));
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let received: Arc<(Mutex<Received>, Condvar)> = Arc::default();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let stdout_reader = {
            let received = Arc::clone(&received);
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    let line: Value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                    // An array is all lines at once.
                    let lines = line.as_array().cloned().unwrap_or_else(|| vec![line]);
                    lock(&received.0).stdout.extend(lines);
                    received.1.notify_all();
                }
                lock(&received.0).is_over = true;
                received.1.notify_all();
            })
        };
        let stderr_reader = {
            let received = Arc::clone(&received);
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = BufReader::new(err).read_to_string(&mut text);
                lock(&received.0).stderr = text;
            })
        };
        let stdin = child.stdin.take();
        Self { child, stdin, received, readers: vec![stdout_reader, stderr_reader] }
    }

    fn drive(
        &mut self,
        recording: &Recording,
        run: &Run,
        folder: &Folder,
        swap: &dyn Fn(&str) -> String,
        ids: &mut BTreeMap<String, String>,
    ) {
        let mut responses = RecordedResponses::new(run, swap);
        for (index, io) in run.io.iter().enumerate().filter(|(_, io)| io.is_in) {
            if io.msg["type"] == "control_response" {
                continue;
            }
            let mut before = index;
            if index > 0 && READ_LATE.contains(&recording.name.as_str()) {
                let answer = run.io[index..].iter().position(|io| io.msg["type"] == "assistant");
                before += answer.map_or(0, |at| at + 1);
            }
            let needed = milestones(run.io[..before].iter().filter(|io| !io.is_in).map(|io| &io.msg));
            self.wait(&mut responses, &format!("line {index}"), |stdout| reached(&needed, &milestones(stdout.iter())));
            if before > index {
                wait_recorded(folder);
            }
            if io.msg["request"]["subtype"] == "interrupt" && calls_tool(run.io[..index].iter().map(|io| &io.msg)) {
                // The recorded host interrupted a tool that was running.
                wait_for_entry(folder, |line| line["type"] == "tools-used");
            }
            map_prompt_ids(run, &lock(&self.received.0).stdout, ids);
            let text = ids.iter().fold(swap(&io.text()), |text, (theirs, ours)| text.replace(theirs, ours));
            self.send(&text);
        }
        if SIGNALLED.contains(&recording.name.as_str()) {
            self.wait(&mut responses, "an answer", |stdout| stdout.iter().any(|line| line["type"] == "assistant"));
            wait_recorded(folder);
            let pid = self.child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        }
        let streams = run.io.iter().any(|io| io.is_in);
        if streams && !EARLY_END.contains(&recording.name.as_str()) {
            let needed = milestones(run.io.iter().filter(|io| !io.is_in).map(|io| &io.msg));
            self.wait(&mut responses, "the end", |stdout| reached(&needed, &milestones(stdout.iter())));
        }
        self.stdin = None;
    }

    /// RecordedResponses control requests until a condition holds.
    fn wait(&mut self, responses: &mut RecordedResponses<'_>, what: &str, holds: impl Fn(&[Value]) -> bool) {
        let until = Instant::now() + STEP_TIMEOUT;
        loop {
            let (replies, ready) = {
                let mut received = lock(&self.received.0);
                let replies = responses.to(&received.stdout);
                let ready = holds(&received.stdout) || received.is_over;
                if replies.is_empty() && !ready {
                    let left = until.saturating_duration_since(Instant::now());
                    assert!(!left.is_zero(), "waiting for {what}; stdout so far: {:#?}", kinds(&received.stdout));
                    received = self.received.1.wait_timeout(received, left).unwrap().0;
                    drop(received);
                    continue;
                }
                (replies, ready)
            };
            replies.iter().for_each(|reply| self.send(&responses.swap(reply)));
            if ready {
                return;
            }
        }
    }

    fn send(&mut self, text: &str) {
        if let Some(stdin) = &mut self.stdin {
            // The agent may have ended already.
            let _ = writeln!(stdin, "{text}").and_then(|()| stdin.flush());
        }
    }

    fn finish(mut self) -> (Vec<Value>, String, Option<i32>) {
        let until = Instant::now() + STEP_TIMEOUT;
        let exit = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if Instant::now() > until {
                let _ = self.child.kill();
                panic!("the agent does not end; stdout so far: {:#?}", kinds(&lock(&self.received.0).stdout));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        let received = std::mem::take(&mut *lock(&self.received.0));
        (received.stdout, received.stderr, exit)
    }
}

/// Waits until an answer that calls tools is in the file: its blocks are emitted earlier.
fn wait_recorded(folder: &Folder) {
    wait_for_entry(folder, |line| line["message"]["stop_reason"] == "tool_use");
}

fn wait_for_entry(folder: &Folder, matches: impl Fn(&Value) -> bool) {
    let until = Instant::now() + STEP_TIMEOUT;
    while !folder.transcripts().iter().flat_map(lines).any(|line| matches(&line)) {
        assert!(Instant::now() < until, "the entry is not written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the last of some messages is an answer that calls a tool.
fn calls_tool<'a>(messages: impl DoubleEndedIterator<Item = &'a Value>) -> bool {
    let last = messages.rev().find(|message| message["type"] == "assistant" || message["type"] == "result");
    let blocks = last.and_then(|message| message["message"]["content"].as_array());
    blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_use"))
}

fn kinds(stdout: &[Value]) -> Vec<String> {
    stdout.iter().map(|line| format!("{} {} {}", line["type"], line["subtype"], line["request"]["subtype"])).collect()
}

/// Counts of the lines that a step may wait for.
fn milestones<'a>(stdout: impl Iterator<Item = &'a Value>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in stdout {
        let kind = match line["type"].as_str() {
            Some(kind @ ("result" | "control_response" | "assistant" | "prompt_suggestion")) => kind.to_owned(),
            Some("control_request") => match line["request"]["subtype"].as_str() {
                Some(subtype @ ("can_use_tool" | "hook_callback")) => subtype.to_owned(),
                _ => continue,
            },
            Some("stream_event") if line["event"]["delta"]["type"] == "text_delta" => "text".to_owned(),
            // A block is printed before the answer is complete.
            Some("stream_event") if line["event"]["type"] == "message_stop" => "whole".to_owned(),
            Some("user") if line["isReplay"] == true => "replay".to_owned(),
            _ => continue,
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn reached(needed: &BTreeMap<String, usize>, found: &BTreeMap<String, usize>) -> bool {
    needed.iter().all(|(kind, count)| found.get(kind).is_some_and(|found| found >= count))
}

/// Echoed prompts map our ids to the recorded ones.
fn map_prompt_ids(run: &Run, stdout: &[Value], ids: &mut BTreeMap<String, String>) {
    let replays = |line: &&Value| line["type"] == "user" && line["isReplay"] == true;
    let theirs = run.io.iter().filter(|io| !io.is_in).map(|io| &io.msg).filter(replays);
    for (theirs, ours) in theirs.zip(stdout.iter().filter(replays)) {
        if let (Some(theirs), Some(ours)) = (theirs["uuid"].as_str(), ours["uuid"].as_str()) {
            ids.insert(theirs.to_owned(), ours.to_owned());
        }
    }
}

/// The recorded responses to control requests of the agent.
struct RecordedResponses<'a> {
    open: Vec<(String, &'a Value)>,
    answered: usize,
    swap: &'a dyn Fn(&str) -> String,
}

impl<'a> RecordedResponses<'a> {
    fn new(run: &'a Run, swap: &'a dyn Fn(&str) -> String) -> Self {
        let keys: BTreeMap<&str, String> =
            control_requests(run.io.iter().filter(|io| !io.is_in).map(|io: &Io| &io.msg)).collect();
        let responses = run.io.iter().filter(|io| io.is_in && io.msg["type"] == "control_response");
        let open = responses.filter_map(|io| {
            let id = io.msg["response"]["request_id"].as_str()?;
            Some((keys.get(id)?.clone(), &io.msg))
        });
        Self { open: open.collect(), answered: 0, swap }
    }

    /// A response with our ids and folder.
    fn swap(&self, answer: &str) -> String {
        (self.swap)(answer)
    }

    /// The responses to control requests that have none yet.
    fn to(&mut self, stdout: &[Value]) -> Vec<String> {
        let requests: Vec<(&str, String, &Value)> = stdout
            .iter()
            .filter(|line| line["type"] == "control_request")
            .map(|line| (line["request_id"].as_str().unwrap(), request_key(line), line))
            .collect();
        let mut replies = Vec::new();
        for (id, key, line) in &requests[self.answered.min(requests.len())..] {
            self.answered += 1;
            let Some(at) = self.open.iter().position(|(open, _)| open == key) else { continue };
            let mut answer = self.open.remove(at).1.clone();
            answer["response"]["request_id"] = Value::from(*id);
            if let Some(reply) = answer["response"]["response"].get_mut("mcp_response")
                && reply.get("id").is_some()
            {
                reply["id"] = line["request"]["message"]["id"].clone();
            }
            replies.push(answer.to_string());
        }
        replies
    }
}

fn control_requests<'a>(lines: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = (&'a str, String)> {
    lines
        .filter(|line| line["type"] == "control_request")
        .map(|line| (line["request_id"].as_str().unwrap(), request_key(line)))
}

/// Key of a control request, the same in the recording and in the replay.
fn request_key(line: &Value) -> String {
    let request = &line["request"];
    let about = [
        &request["subtype"],
        &request["callback_id"],
        &request["tool_use_id"],
        &request["server_name"],
        &request["message"]["method"],
        &request["message"]["params"]["name"],
    ];
    // Events without a tool call have a generated id.
    let hook = request["subtype"] == "hook_callback";
    let about = about.iter().enumerate().filter(|(i, _)| !(hook && *i == 2));
    about.map(|(_, value)| value.as_str().unwrap_or_default()).collect::<Vec<_>>().join("/")
}

/// Locks, also after a panic of another thread.
fn lock(received: &Mutex<Received>) -> std::sync::MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
