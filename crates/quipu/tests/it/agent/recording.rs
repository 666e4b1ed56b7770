//! A recording: what was run, said and written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Runs of which nothing is recorded but the exit code.
const SILENT: [(&str, usize); 2] = [("33_session_id", 1), ("35_bypass_root", 0)];

/// A recording of one or more runs.
pub(super) struct Recording {
    pub(super) name: String,
    /// What the runs found in their working folder, where that was kept.
    pub(super) files: Option<PathBuf>,
    /// What the runs found in their home folder, where that was kept.
    pub(super) home: Option<PathBuf>,
    pub(super) runs: Vec<Run>,
    pub(super) api: Option<String>,
    /// What the session files held.
    pub(super) transcripts: Vec<Vec<Value>>,
    /// What the subagents' files held.
    pub(super) subagents: Vec<Vec<Value>>,
}

/// One run of the program.
pub(super) struct Run {
    pub(super) argv: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: String,
    pub(super) io: Vec<Io>,
    pub(super) exit: Option<i32>,
}

/// A line in or out.
pub(super) struct Io {
    pub(super) is_in: bool,
    pub(super) msg: Value,
}

impl Io {
    /// The line as it was sent.
    pub(super) fn text(&self) -> String {
        match self.msg.get("_raw") {
            Some(raw) => raw.as_str().unwrap_or_default().to_owned(),
            None => self.msg.to_string(),
        }
    }
}

impl Recording {
    pub(super) fn load(folder: &Path) -> Self {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let spawned = lines(&folder.join("spawn.jsonl"));
        let commands = commands(&fs::read_to_string(folder.join("cmd.txt")).unwrap());
        let mut segments = segments(lines(&folder.join("io.jsonl"))).into_iter();
        let runs = spawned.iter().enumerate().map(|(index, spawn)| {
            let silent = SILENT.contains(&(name.as_str(), index));
            let strings = |value: &Value| -> Vec<String> {
                value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
            };
            let mut env: Vec<(String, String)> = spawn["env"]
                .as_object()
                .unwrap()
                .iter()
                .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
                .collect();
            let command = commands.get(index);
            env.extend(command.map(|command| command.env.clone()).unwrap_or_default());
            Run {
                argv: strings(&spawn["argv"]),
                env,
                cwd: spawn["cwd"].as_str().unwrap().to_owned(),
                io: if silent { Vec::new() } else { segments.next().unwrap_or_default() },
                exit: command.and_then(|command| command.exit),
            }
        });
        let runs = runs.collect();
        let numbered = (2..).map(|n| folder.join(format!("transcript_{n}.jsonl"))).take_while(|path| path.exists());
        let first = Some(folder.join("transcript.jsonl")).filter(|path| path.exists());
        let transcripts = first.into_iter().chain(numbered).map(|path| lines(&path)).collect();
        let subagents = quipu_testkit::files_under(&folder.join("dot_claude"), is_subagent);
        let kept = |name: &str| Some(folder.join(name)).filter(|path| path.is_dir());
        Self {
            name,
            files: kept("files"),
            home: kept("home"),
            runs,
            api: fs::read_to_string(folder.join("api.jsonl")).ok(),
            transcripts,
            subagents: subagents.iter().map(lines).collect(),
        }
    }

    /// The folder the runs were in.
    pub(super) fn cwd(&self) -> &str {
        &self.runs[0].cwd
    }

    /// All lines on stdout.
    pub(super) fn stdout(&self) -> Vec<Value> {
        let lines = self.runs.iter().flat_map(|run| &run.io).filter(|io| !io.is_in).map(|io| io.msg.clone());
        // An array is all lines at once.
        lines.flat_map(|line| line.as_array().cloned().unwrap_or_else(|| vec![line])).collect()
    }

    /// The recorded calls. Where a tool's input was recorded in pieces that name
    /// another folder, it is the one that was said.
    pub(super) fn calls(&self) -> Option<String> {
        let inputs: BTreeMap<String, Value> = self
            .stdout()
            .iter()
            .flat_map(|line| line["message"]["content"].as_array().cloned().unwrap_or_default())
            .filter(|block| block["type"] == "tool_use")
            .map(|block| (block["id"].as_str().unwrap().to_owned(), block["input"].clone()))
            .collect();
        let mut text = String::new();
        for line in self.api.as_ref()?.lines() {
            let mut call: Value = serde_json::from_str(line).unwrap();
            if let Some(events) = call.get_mut("sse").and_then(Value::as_array_mut) {
                replace_split_inputs(events, &inputs);
            }
            text.push_str(&format!("{call}\n"));
        }
        Some(text)
    }
}

fn replace_split_inputs(events: &mut Vec<Value>, inputs: &BTreeMap<String, Value>) {
    let starts: Vec<(Value, Value)> = events
        .iter()
        .filter(|event| event["content_block"]["type"] == "tool_use")
        .filter_map(|event| {
            let input = inputs.get(event["content_block"]["id"].as_str()?)?;
            Some((event["index"].clone(), input.clone()))
        })
        .collect();
    for (index, input) in starts {
        let is_piece = |event: &Value| event["delta"]["type"] == "input_json_delta" && event["index"] == index;
        let pieces = events.iter().filter(|event| is_piece(event));
        let joined: String = pieces.map(|event| event["delta"]["partial_json"].as_str().unwrap_or_default()).collect();
        let same = serde_json::from_str::<Value>(&joined).is_ok_and(|found| found == input);
        // A folder name that is split between two deltas cannot be replaced.
        if same && !joined.contains("/home/dev/") {
            continue;
        }
        let mut first = true;
        events.retain_mut(|event| {
            if !is_piece(event) {
                return true;
            }
            event["delta"]["partial_json"] = Value::from(input.to_string());
            std::mem::take(&mut first)
        });
    }
}

pub(super) fn is_subagent(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("agent-") && name.ends_with(".jsonl")
}

pub(super) fn lines(path: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Splits the lines of several runs: each restarts its clock.
fn segments(rows: Vec<Value>) -> Vec<Vec<Io>> {
    let mut segments: Vec<Vec<Io>> = Vec::new();
    let mut last = f64::MAX;
    for row in rows {
        let t = row["t"].as_f64().unwrap();
        if t + 0.2 < last || segments.is_empty() {
            segments.push(Vec::new());
        }
        last = t;
        segments.last_mut().unwrap().push(Io { is_in: row["dir"] == "in", msg: row["msg"].clone() });
    }
    segments
}

/// A command line of `cmd.txt`.
struct CommandLine {
    /// Variables that were set beside those of `spawn.jsonl`.
    env: Vec<(String, String)>,
    exit: Option<i32>,
}

/// The command lines of `cmd.txt`, one for each run.
fn commands(text: &str) -> Vec<CommandLine> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let exit = |line: &str| {
        let digits: String = line.split("exit=").nth(1)?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    lines.map(|line| CommandLine { env: added_env(line), exit: exit(line) }).collect()
}

/// The variables of `env+={'NAME': 'value'}`; one that was removed has the value `None`.
fn added_env(line: &str) -> Vec<(String, String)> {
    let list = line.split("env+={").nth(1).and_then(|rest| rest.split('}').next()).unwrap_or_default();
    let text = |word: &str| word.trim().strip_prefix('\'')?.strip_suffix('\'').map(str::to_owned);
    let pairs = list.split(", ").filter_map(|pair| pair.split_once(':'));
    pairs.filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect()
}
