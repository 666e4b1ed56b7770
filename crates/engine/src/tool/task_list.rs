//! What runs in the background: shell commands and subagents.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use quipu_message::ToolUseId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::new_run_id;

/// All background tasks of a session.
#[derive(Default)]
pub struct TaskList {
    tasks: Mutex<BTreeMap<String, Task>>,
    listener: Arc<Mutex<Option<TaskListener>>>,
}

/// Hears of every task that begins, and of its end.
pub type TaskListener = Arc<dyn Fn(&Task) + Send + Sync>;

/// A background task.
#[derive(Debug, Clone)]
pub struct Task {
    /// Which.
    pub id: String,
    /// What kind of work it is.
    pub kind: TaskKind,
    /// What it is for.
    pub description: String,
    /// Where its output is.
    pub output_path: PathBuf,
    /// The call that began it.
    pub tool_use_id: ToolUseId,
    /// Names this run of it.
    pub run_id: String,
    /// Ends it.
    pub cancel: CancellationToken,
    status: watch::Sender<TaskStatus>,
    output: Arc<Mutex<Option<String>>>,
    is_seen: Arc<AtomicBool>,
}

/// What kind of work a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskKind {
    /// A shell command.
    Command,
    /// A subagent of this name.
    Subagent(String),
}

impl TaskKind {
    /// The word of the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Command => "local_bash",
            Self::Subagent(_) => "local_agent",
        }
    }
}

/// How a background task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// It runs.
    Running,
    /// It ended by itself, with a code; a subagent's is 0 when it has a report.
    Exited(i32),
    /// It was ended.
    Killed,
}

impl TaskStatus {
    /// The word of the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Exited(0) => "completed",
            Self::Exited(_) => "failed",
            Self::Killed => "killed",
        }
    }

    /// The word of the wire for an end.
    pub fn as_notification_str(self) -> &'static str {
        if self == Self::Killed { "stopped" } else { self.as_str() }
    }
}

impl Task {
    /// A task that is about to run.
    pub fn new(id: String, kind: TaskKind, description: String, file: PathBuf, call: ToolUseId) -> Self {
        Self {
            id,
            kind,
            description,
            output_path: file,
            tool_use_id: call,
            run_id: new_run_id(),
            cancel: CancellationToken::new(),
            status: watch::Sender::new(TaskStatus::Running),
            output: Arc::default(),
            is_seen: Arc::default(),
        }
    }

    /// How it stands.
    pub fn status(&self) -> TaskStatus {
        *self.status.borrow()
    }

    /// Waits for its end and says how that was.
    pub async fn wait(&self) -> TaskStatus {
        let mut status = self.status.subscribe();
        status.wait_for(|status| *status != TaskStatus::Running).await.map_or(TaskStatus::Killed, |status| *status)
    }

    /// What it gave; none while it runs.
    pub fn output(&self) -> Option<String> {
        self.output.lock().clone()
    }

    /// The model knows how it ended.
    pub fn mark_seen(&self) {
        self.is_seen.store(true, Ordering::Relaxed);
    }

    /// Whether the model knows how it ended.
    pub fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Relaxed)
    }
}

impl TaskList {
    /// All tasks that were started.
    pub fn list(&self) -> Vec<Task> {
        self.lock().values().cloned().collect()
    }

    /// The tasks that run.
    pub fn running(&self) -> Vec<Task> {
        self.lock().values().filter(|task| task.status() == TaskStatus::Running).cloned().collect()
    }

    /// One task.
    pub fn find(&self, id: &str) -> Option<Task> {
        self.lock().get(id).cloned()
    }

    /// Ends a task with all its children; false when there is none that runs.
    pub fn stop(&self, id: &str) -> bool {
        let running = self.find(id).filter(|task| task.status() == TaskStatus::Running);
        running.map(|task| task.cancel.cancel()).is_some()
    }

    /// Ends all tasks, and waits until they have. Nobody hears of it.
    pub async fn stop_all(&self) {
        *self.listener.lock() = None;
        loop {
            // What ends may have begun something meanwhile.
            let running = self.running();
            if running.is_empty() {
                return;
            }
            running.iter().for_each(|task| task.cancel.cancel());
            join_all(running.iter().map(Task::wait)).await;
        }
    }

    /// Says who hears of tasks.
    pub fn set_listener(&self, listener: TaskListener) {
        *self.listener.lock() = Some(listener);
    }

    /// Lets a task run on its own, to its end or until it is stopped: `work` heeds that.
    pub fn spawn(&self, task: Task, work: impl Future<Output = (TaskStatus, String)> + Send + 'static) {
        self.lock().insert(task.id.clone(), task.clone());
        notify_listener(&self.listener, &task);
        let listener = Arc::clone(&self.listener);
        tokio::spawn(async move {
            let (status, output) = work.await;
            *task.output.lock() = Some(output);
            task.status.send_replace(status);
            notify_listener(&listener, &task);
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Task>> {
        self.tasks.lock()
    }
}

fn notify_listener(listener: &Mutex<Option<TaskListener>>, task: &Task) {
    let listener = listener.lock().clone();
    if let Some(listener) = listener {
        listener(task);
    }
}

impl fmt::Debug for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("list", &self.list()).finish_non_exhaustive()
    }
}

impl Drop for TaskList {
    fn drop(&mut self) {
        self.list().iter().for_each(|task| task.cancel.cancel());
    }
}
