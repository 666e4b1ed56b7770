//! Agents for tests: scripted ones in memory, and small shell scripts.

use std::path::Path;
use std::time::Duration;

use quipu_sdk::transport::{MemoryPeer, MemoryTransport, Subprocess};
use quipu_sdk::{Client, Error, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, ReadHalf, WriteHalf};

/// An agent in memory that a test controls.
pub(crate) struct ScriptedAgent {
    reader: BufReader<ReadHalf<MemoryPeer>>,
    writer: WriteHalf<MemoryPeer>,
}

impl ScriptedAgent {
    /// What the host says next; `None` if it has disconnected.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
        }
    }

    /// Says a line.
    pub(crate) async fn send(&mut self, line: &Value) {
        self.write(format!("{line}\n").as_bytes()).await;
    }

    /// Writes bytes; a host that has hung up does not matter.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = self.writer.write_all(bytes).await;
    }

    /// Answers a request.
    pub(crate) async fn respond(&mut self, request: &Value, answer: Value) {
        let body = json!({ "subtype": "success", "request_id": request["request_id"], "response": answer });
        self.send(&json!({ "type": "control_response", "response": body })).await;
    }

    /// Asks the host something and waits for the answer to it.
    pub(crate) async fn request(&mut self, id: &str, request: Value) -> Value {
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request })).await;
        loop {
            let line = self.receive().await.unwrap();
            if line["response"]["request_id"] == *id {
                return line["response"].clone();
            }
        }
    }

    /// Answers `initialize`.
    pub(crate) async fn initialize(&mut self) {
        let hello = self.receive().await.unwrap();
        assert_eq!(hello["request"]["subtype"], "initialize");
        self.respond(&hello, json!({ "commands": [], "claude_code_version": "2.1.325" })).await;
    }
}

/// Both ends; the agent has said nothing yet.
pub(crate) fn scripted_agent() -> (MemoryTransport, ScriptedAgent) {
    let (near, far) = MemoryTransport::pair(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    (near, ScriptedAgent { reader: BufReader::new(reader), writer })
}

/// Options with which nothing waits for long.
pub(crate) fn short_timeouts() -> Options {
    let soon = Duration::from_millis(500);
    Options::new().response_timeout(soon).start_timeout(Duration::from_secs(20)).close_timeout(soon)
}

/// A client and the agent it has been greeted by.
pub(crate) async fn connected(options: Options) -> (Client, ScriptedAgent) {
    let (near, mut agent) = scripted_agent();
    let (client, ()) = tokio::join!(Client::connect_over(near, options), agent.initialize());
    (client.unwrap(), agent)
}

pub(crate) fn assistant_line(text: &str) -> Value {
    json!({ "type": "assistant", "message": { "role": "assistant", "content": [{ "type": "text", "text": text }] }, "session_id": "s" })
}

pub(crate) fn result_line(text: &str) -> Value {
    json!({ "type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
        "num_turns": 1, "result": text, "session_id": "s", "total_cost_usd": 0, "usage": {}, "uuid": "u" })
}

/// The answer to the first request of a client, as a shell script prints it.
pub(crate) const INITIALIZE_SCRIPT: &str = r#"read -r hello; echo '{"type":"control_response","response":{"subtype":"success","request_id":"quipu-0","response":{"commands":[]}}}'"#;

/// A shell script that is an agent.
pub(crate) fn shell_agent(text: &str) -> Subprocess {
    Subprocess { program: "sh".into(), args: vec!["-c".into(), text.into()], ..Subprocess::default() }
}

/// A client of a shell script that greets and then does as it likes.
pub(crate) async fn connect_shell(text: &str, options: Options) -> Result<Client, Error> {
    Client::connect_over(shell_agent(&format!("{INITIALIZE_SCRIPT}; {text}")), options).await
}

/// Whether a process is there and has not ended.
pub(crate) fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Waits until something is so.
pub(crate) async fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}
