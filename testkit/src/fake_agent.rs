//! A fake agent: writes the output of a recording and compares its input with the recording.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, ReadHalf, WriteHalf};

/// How long to wait for a line of the host.
const HOST_TIMEOUT: Duration = Duration::from_secs(20);

/// One step of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The agent writes this line.
    Send(Value),
    /// The host must write a line like this.
    Expect(Value),
    /// The agent writes these bytes, which need not be JSON.
    WriteBytes(Vec<u8>),
}

/// Differences between the host and the recording.
#[derive(Debug, Default)]
pub struct PlayReport {
    /// Description of each line that differs.
    pub differences: Vec<String>,
    /// Lines of the host that no step waited for.
    pub unexpected: Vec<Value>,
}

/// The steps of a recording's `io.jsonl`.
pub fn recorded_steps(folder: &Path) -> Vec<Step> {
    parse_steps(&std::fs::read_to_string(folder.join("io.jsonl")).unwrap_or_default())
}

/// Steps of the text of a recording: `in` are lines of the host, `out` lines of the agent.
pub fn parse_steps(text: &str) -> Vec<Step> {
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let step = |mut row: Value| match row["dir"].as_str() {
        Some("in") => Step::Expect(row["msg"].take()),
        _ => Step::Send(row["msg"].take()),
    };
    let mut steps: Vec<Step> = rows.map(step).collect();
    // Some hosts send their first prompt before the response to `initialize`, others after it.
    let is_prompt = |step: &Step| matches!(step, Step::Expect(line) if line["type"] == "user");
    while let Some(at) = steps.windows(2).position(|pair| is_prompt(&pair[0]) && is_initialize_response(&pair[1])) {
        steps.swap(at, at + 1);
    }
    steps
}

/// Whether a step answers `initialize`.
fn is_initialize_response(step: &Step) -> bool {
    matches!(step, Step::Send(line) if !line["response"]["response"]["commands"].is_null() && !line["response"]["response"]["pid"].is_null())
}

/// Plays a script over a connection to its end, then closes it.
///
/// Ids of the recording are replaced by those of the host: a response gets the id of the host's
/// request, and a hook is called by the name that the host registered. A host that sends
/// `initialize` when the recording does not still gets a response.
pub async fn play<S: AsyncRead + AsyncWrite>(steps: Vec<Step>, stream: S) -> io::Result<PlayReport> {
    let (reader, writer) = tokio::io::split(stream);
    let mut agent = FakeAgent {
        reader: BufReader::new(reader),
        writer,
        received: VecDeque::new(),
        host_ids: HashMap::new(),
        report: PlayReport::default(),
    };
    let greets =
        steps.iter().any(|step| matches!(step, Step::Expect(line) if line["request"]["subtype"] == "initialize"));
    if !greets {
        let hello = json!({ "type": "control_request", "request_id": "hello", "request": { "subtype": "initialize" } });
        agent.expect(&hello).await?;
        let answer = json!({ "subtype": "success", "request_id": "hello", "response": { "commands": [] } });
        agent.send(json!({ "type": "control_response", "response": answer })).await?;
    }
    for step in steps {
        match step {
            Step::Send(line) => agent.send(line).await?,
            Step::Expect(line) => agent.expect(&line).await?,
            Step::WriteBytes(bytes) => {
                agent.writer.write_all(&bytes).await?;
                agent.writer.flush().await?;
            }
        }
    }
    agent.report.unexpected.extend(agent.received);
    let _ = agent.writer.shutdown().await;
    Ok(agent.report)
}

struct FakeAgent<S> {
    reader: BufReader<ReadHalf<S>>,
    writer: WriteHalf<S>,
    /// Lines of the host that no step has waited for yet.
    received: VecDeque<Value>,
    /// Names and ids of the host by those of the recording.
    host_ids: HashMap<String, String>,
    report: PlayReport,
}

impl<S: AsyncRead + AsyncWrite> FakeAgent<S> {
    async fn send(&mut self, mut line: Value) -> io::Result<()> {
        for pointer in ["/response/request_id", "/request/callback_id"] {
            if let Some(id) = line.pointer_mut(pointer)
                && let Some(other) = id.as_str().and_then(|id| self.host_ids.get(id))
            {
                *id = Value::from(other.as_str());
            }
        }
        self.writer.write_all(format!("{line}\n").as_bytes()).await?;
        self.writer.flush().await
    }

    /// Waits for the line of a step; lines before it are kept for later steps.
    async fn expect(&mut self, wanted: &Value) -> io::Result<()> {
        let line = match self.received.iter().position(|line| is_expected(line, wanted)) {
            Some(at) => self.received.remove(at).unwrap_or_default(),
            None => loop {
                let line = self.read_line(wanted).await?;
                if is_expected(&line, wanted) {
                    break line;
                }
                self.received.push_back(line);
            },
        };
        if wanted["type"] == "control_request" {
            self.host_ids.insert(to_text(&wanted["request_id"]), to_text(&line["request_id"]));
            self.map_hook_ids(&wanted["request"]["hooks"], &line["request"]["hooks"]);
        }
        self.compare(wanted, &line);
        Ok(())
    }

    async fn read_line(&mut self, wanted: &Value) -> io::Result<Value> {
        let mut line = String::new();
        let read = tokio::time::timeout(HOST_TIMEOUT, self.reader.read_line(&mut line)).await;
        let missing = |why: &str| io::Error::other(format!("{why} instead of {wanted}"));
        match read {
            Err(_) => Err(missing("silence")),
            Ok(Ok(0)) => Err(missing("the end")),
            Ok(Ok(_)) => serde_json::from_str(&line).map_err(io::Error::other),
            Ok(Err(error)) => Err(error),
        }
    }

    /// Maps the hook names of the recording to those of the host, event by event.
    fn map_hook_ids(&mut self, theirs: &Value, ours: &Value) {
        for (event, matchers) in theirs.as_object().into_iter().flatten() {
            let names = |matchers: &Value| -> Vec<String> {
                let ids = |matcher: &Value| matcher["hookCallbackIds"].as_array().cloned().unwrap_or_default();
                matchers.as_array().into_iter().flatten().flat_map(ids).map(|id| to_text(&id)).collect()
            };
            self.host_ids.extend(names(matchers).into_iter().zip(names(&ours[event])));
        }
    }

    fn compare(&mut self, wanted: &Value, line: &Value) {
        let text_of = |line: &Value| match line["type"].as_str() {
            Some("user") => line["message"].clone(),
            Some("control_response") => line["response"].clone(),
            Some("control_request") if line["request"]["subtype"] != "initialize" => line["request"].clone(),
            _ => Value::Null,
        };
        let (theirs, ours) = (text_of(wanted), text_of(line));
        if theirs != ours {
            self.report.differences.push(format!("- {theirs}\n+ {ours}"));
        }
    }
}

/// Whether a line is the one that a step waits for.
fn is_expected(line: &Value, wanted: &Value) -> bool {
    line["type"] == wanted["type"]
        && match wanted["type"].as_str() {
            Some("control_request") => line["request"]["subtype"] == wanted["request"]["subtype"],
            Some("control_response") => line["response"]["request_id"] == wanted["response"]["request_id"],
            _ => true,
        }
}

fn to_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
