//! Commands that run in the background: TaskOutput reads them, TaskStop ends them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use quipu_message::tool::output::{Task as TaskWire, TaskOutput as TaskOutputWire, TaskStopOutput};
use quipu_message::tool::{TaskOutputInput, TaskStopInput};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::capture::Captured;
use super::process::{End, Process};
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};
use crate::tools::{input, settle};

/// How much of a task's output the model is given, in characters.
const MOST_OUTPUT: usize = 30_000;
/// How long TaskOutput waits when the call does not say, and at all, in milliseconds.
const WAIT: u64 = 30_000;
const LONGEST_WAIT: u64 = 600_000;

/// All background commands of a session.
#[derive(Debug, Default)]
pub struct Tasks {
    list: Mutex<BTreeMap<String, Task>>,
}

/// A background command.
#[derive(Debug, Clone)]
pub struct Task {
    /// Which.
    pub id: String,
    /// The command.
    pub command: String,
    /// What it is for.
    pub description: String,
    /// Where its output is.
    pub file: PathBuf,
    status: watch::Receiver<Status>,
    output: Arc<Mutex<Option<Captured>>>,
    stop: CancellationToken,
}

/// How a background command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It runs.
    Running,
    /// It ended by itself, with a code.
    Ended(i32),
    /// It was ended.
    Killed,
}

impl Status {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended(0) => "completed",
            Self::Ended(_) => "failed",
            Self::Killed => "killed",
        }
    }
}

impl Task {
    /// How it stands.
    pub fn status(&self) -> Status {
        *self.status.borrow()
    }

    /// Waits for its end and says how that was.
    pub async fn ended(&self) -> Status {
        let mut status = self.status.clone();
        status.wait_for(|status| *status != Status::Running).await.map_or(Status::Killed, |status| *status)
    }
}

impl Tasks {
    /// All tasks that were started.
    pub fn list(&self) -> Vec<Task> {
        self.lock().values().cloned().collect()
    }

    /// One task.
    pub fn find(&self, id: &str) -> Option<Task> {
        self.lock().get(id).cloned()
    }

    /// Ends a task with all its children; false when there is none that runs.
    pub fn stop(&self, id: &str) -> bool {
        let running = self.find(id).filter(|task| task.status() == Status::Running);
        running.map(|task| task.stop.cancel()).is_some()
    }

    /// Ends all tasks, and waits until they have.
    pub async fn stop_all(&self) {
        for task in self.list() {
            task.stop.cancel();
            task.ended().await;
        }
    }

    /// Lets a command run on its own.
    pub(super) fn add(&self, mut process: Process, command: &str, description: String) -> String {
        let (tell, status) = watch::channel(Status::Running);
        let id = process.id.clone();
        let task = Task {
            id: id.clone(),
            command: command.to_owned(),
            description,
            file: process.file().to_owned(),
            status,
            output: Arc::default(),
            stop: CancellationToken::new(),
        };
        self.lock().insert(id.clone(), task.clone());
        tokio::spawn(async move {
            let end = process.wait_or(&task.stop).await;
            let captured = process.captured().await;
            *task.output.lock().unwrap_or_else(PoisonError::into_inner) = Some(captured);
            let _ = tell.send(match end {
                End::Exit(code) => Status::Ended(code),
                End::Signal(signal) => Status::Ended(128 + signal),
                End::Late | End::Stopped => Status::Killed,
            });
        });
        id
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Task>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.list().iter().for_each(|task| task.stop.cancel());
    }
}

/// Reads what background commands print.
#[derive(Debug, Clone, Copy)]
pub struct TaskOutput;

impl Tool for TaskOutput {
    fn definition(&self) -> Definition {
        Definition {
            name: "TaskOutput".into(),
            description: "Gives the output of a command that runs in the background. Waits for its end, unless \
                          `block` is false or `timeout` comes first."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "task_id": {"type": "string", "description": "The task"},
                    "block": {"type": "boolean", "description": "Wait for its end (default: true)"},
                    "timeout": {"type": "integer", "minimum": 0, "description": "How long to wait, in milliseconds (default: 30000)"},
                },
                "required": ["task_id"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call_input: Value, place: &'a Place, call: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move { settle(output(call_input, place, call).await) })
    }
}

async fn output(call_input: Value, place: &Place, call: &Call) -> Result<Output, Output> {
    let wanted: TaskOutputInput = input(call_input)?;
    let task = place.tasks().find(&wanted.task_id).ok_or_else(|| no_task(&wanted.task_id))?;
    let wait = wanted.timeout.get().copied().unwrap_or(WAIT).min(LONGEST_WAIT);
    let blocks = wanted.block.get().copied().unwrap_or(true);
    if blocks {
        let ended = timeout(Duration::from_millis(wait), task.ended());
        tokio::select! {
            _ = ended => {}
            () = call.cancel.cancelled() => {}
        }
    }
    let status = task.status();
    let retrieval_status = match status {
        Status::Running if blocks => "timeout",
        Status::Running => "not_ready",
        _ => "success",
    };
    let exit_code = match status {
        Status::Ended(code) => Some(i64::from(code)),
        _ => None,
    };
    let raw = TaskOutputWire {
        retrieval_status: retrieval_status.to_owned(),
        task: TaskWire {
            task_id: task.id.clone(),
            task_type: KIND.to_owned(),
            status: status.as_str().to_owned(),
            description: task.description.clone(),
            output: printed(&task),
            exit_code: exit_code.into(),
            ..TaskWire::default()
        },
        ..TaskOutputWire::default()
    };
    let code = exit_code.map(|code| format!("<exit_code>{code}</exit_code>\n\n")).unwrap_or_default();
    let words = format!(
        "<retrieval_status>{retrieval_status}</retrieval_status>\n\n<task_id>{}</task_id>\n\n<task_type>{KIND}</task_type>\n\n<status>{}</status>\n\n{code}<output>\n{}\n</output>",
        task.id,
        status.as_str(),
        raw.task.output
    );
    Ok(Output::new(words, &raw))
}

const KIND: &str = "local_bash";

/// What a task has printed; while it runs, the file knows.
fn printed(task: &Task) -> String {
    let done = task.output.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match done {
        Some(captured) => captured.head_and_tail(MOST_OUTPUT),
        None => {
            let bytes = std::fs::read(&task.file).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let skip = text.chars().count().saturating_sub(MOST_OUTPUT);
            text.chars().skip(skip).collect::<String>().trim_end().to_owned()
        }
    }
}

fn no_task(id: &str) -> Output {
    Output::misuse(format!("No task found with ID: {id}"))
}

/// Ends background commands.
#[derive(Debug, Clone, Copy)]
pub struct TaskStop;

impl Tool for TaskStop {
    fn definition(&self) -> Definition {
        Definition {
            name: "TaskStop".into(),
            description: "Ends a command that runs in the background, and all it has started.".into(),
            input_schema: json!({
                "type": "object",
                "properties": {"task_id": {"type": "string", "description": "The task"}},
                "required": ["task_id"],
                "additionalProperties": false,
            }),
        }
    }

    fn effect(&self, _: &Value) -> Effect {
        Effect::Changes
    }

    fn run<'a>(&'a self, call_input: Value, place: &'a Place, _: &'a Call) -> BoxFuture<'a, Output> {
        Box::pin(async move { settle(stop(call_input, place).await) })
    }
}

async fn stop(call_input: Value, place: &Place) -> Result<Output, Output> {
    let wanted: TaskStopInput = input(call_input)?;
    let id = wanted.task_id.text().unwrap_or_default();
    let task = place.tasks().find(id).ok_or_else(|| no_task(id))?;
    if !place.tasks().stop(id) {
        let status = task.status().as_str();
        return Err(Output::misuse(format!("Task {id} is not running (status: {status})")));
    }
    task.ended().await;
    let raw = TaskStopOutput {
        message: format!("Successfully stopped task: {id} ({})", task.description),
        task_id: task.id,
        task_type: KIND.to_owned(),
        ..TaskStopOutput::default()
    };
    let words = quipu_message::Json::of(&raw).text().to_owned();
    Ok(Output::new(words, &raw))
}
