//! An agent with a scripted model, in its own folder.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use quipu_api::mock::{MockServer, Script};
use quipu_message::{Block, ToolUseId};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::work_folder::Folder;

/// A folder for an agent, and a mock server with a script.
pub(super) struct ScriptedAgent {
    pub(super) folder: Folder,
    pub(super) server: MockServer,
    pub(super) runtime: Runtime,
}

/// A running agent with stdin and stdout.
pub(super) struct AgentProcess {
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: BufReader<ChildStdout>,
    /// The lines read so far.
    pub(super) lines: Vec<Value>,
}

pub(super) const STREAM: [&str; 4] = ["--output-format", "stream-json", "--input-format", "stream-json"];

impl ScriptedAgent {
    /// With a script in `fixtures/agent`.
    pub(super) fn new(script: &str) -> Self {
        Self::start(Script::read(&quipu_testkit::fixture("agent").join(script)).unwrap())
    }

    /// With the text of a script.
    pub(super) fn from_script_text(script: &str) -> Self {
        Self::start(Script::parse(script).unwrap())
    }

    fn start(script: Script) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(MockServer::start(script)).unwrap();
        Self { folder: Folder::new("own"), server, runtime }
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu-agent"));
        command
            .args(args)
            .current_dir(&self.folder.path)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder.path)
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .env("ANTHROPIC_API_KEY", "any")
            .env("CLAUDE_CODE_MAX_RETRIES", "2")
            .stdin(Stdio::null());
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The lines that a run prints.
    pub(super) fn lines(&self, args: &[&str]) -> Vec<Value> {
        let args = [&["-p", "--output-format", "stream-json", "--verbose"], args].concat();
        let out = self.run(&args);
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(super) fn spawn(&self, args: &[&str]) -> AgentProcess {
        self.spawn_initialized(&[&STREAM, args].concat())
    }

    /// An agent started with these flags and no others.
    pub(super) fn spawn_initialized(&self, args: &[&str]) -> AgentProcess {
        AgentProcess::start(self.command(args))
    }

    pub(super) fn session_file(&self) -> PathBuf {
        self.folder.transcripts().pop().unwrap()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.folder.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl AgentProcess {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { stdin: child.stdin.take(), child, stdout, lines: Vec::new() }
    }

    pub(super) fn send(&mut self, line: Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(super) fn send_prompt(&mut self, text: &str) {
        self.send(json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    pub(super) fn send_request(&mut self, id: &str, request: Value) {
        self.send(json!({"type": "control_request", "request_id": id, "request": request}));
    }

    /// Sends the response to the agent's last control request.
    pub(super) fn send_response(&mut self, response: Value) {
        let request = self.lines.iter().rev().find(|line| line["type"] == "control_request").unwrap();
        let id = request["request_id"].clone();
        self.send(json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}}));
    }

    /// Reads lines until one matches, and returns it.
    pub(super) fn read_until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).unwrap() > 0 {
            let value: Value = serde_json::from_str(&line).unwrap();
            self.lines.push(value.clone());
            if holds(&value) {
                return value;
            }
            line.clear();
        }
        panic!("the agent ended: {:#?}", self.lines);
    }

    pub(super) fn read_result(&mut self) -> Value {
        self.read_until(|line| line["type"] == "result")
    }

    pub(super) fn end(mut self) -> (i32, Vec<Value>) {
        self.stdin = None;
        let mut rest = String::new();
        while self.stdout.read_line(&mut rest).unwrap() > 0 {
            self.lines.push(serde_json::from_str(&rest).unwrap());
            rest.clear();
        }
        (self.child.wait().unwrap().code().unwrap(), self.lines)
    }
}

pub(super) fn kinds(lines: &[Value]) -> Vec<String> {
    let kind = |line: &Value| match line["subtype"].as_str() {
        Some(sub) => format!("{}/{sub}", line["type"].as_str().unwrap()),
        None => line["type"].as_str().unwrap().to_owned(),
    };
    lines.iter().map(kind).collect()
}

/// No request ever sent holds a call whose result is not in the next message, nor a
/// result without its call. Returns how many calls the last one holds.
pub(super) fn every_call_is_answered(agent: &ScriptedAgent) -> usize {
    let mut count = 0;
    for seen in agent.server.requests() {
        let Some(request) = seen.request else { continue };
        let mut open: Vec<ToolUseId> = Vec::new();
        count = 0;
        for message in &request.messages {
            let blocks = || message.content.blocks().iter();
            let mut results: Vec<_> = blocks().filter_map(Block::tool_result).map(|r| r.tool_use_id.clone()).collect();
            open.sort();
            results.sort();
            assert_eq!(open, results, "request {}", seen.number);
            open = blocks().filter_map(Block::tool_use).map(|call| call.id.clone()).collect();
            count += open.len();
        }
        assert!(open.is_empty(), "request {} ends with a call", seen.number);
    }
    count
}
