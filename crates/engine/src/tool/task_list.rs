//! Background tasks of a session: shell commands and subagents.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use quipu_message::ToolUseId;
use quipu_message::values::{TaskState, TaskType};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::new_run_id;

/// All background tasks of a session, running or ended.
#[derive(Default)]
pub struct TaskList {
    tasks: Mutex<BTreeMap<String, Task>>,
    listener: Arc<Mutex<Option<TaskListener>>>,
}

/// Called when a task starts and when it ends.
pub type TaskListener = Arc<dyn Fn(&Task) + Send + Sync>;

/// A background task.
#[derive(Debug, Clone)]
pub struct Task {
    /// ID that TaskOutput and TaskStop refer to.
    pub id: String,
    /// Whether it is a command or a subagent.
    pub kind: TaskKind,
    /// Short description for the user.
    pub description: String,
    /// File that the output is written to.
    pub output_path: PathBuf,
    /// ID of the tool call that started it.
    pub tool_use_id: ToolUseId,
    /// ID of this run; later runs sort after earlier ones.
    pub run_id: String,
    /// Cancelled to end the task.
    pub cancel: CancellationToken,
    status: watch::Sender<TaskStatus>,
    output: Arc<Mutex<Option<String>>>,
    is_seen: Arc<AtomicBool>,
}

/// Kind of a background task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskKind {
    /// A shell command.
    Command,
    /// A subagent, with the name of its definition.
    Subagent(String),
}

impl TaskKind {
    /// Returns the value used in JSON.
    pub fn wire_type(&self) -> TaskType {
        match self {
            Self::Command => TaskType::LocalBash,
            Self::Subagent(_) => TaskType::LocalAgent,
        }
    }
}

/// Status of a background task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// Still running.
    Running,
    /// Ended by itself with an exit code; 0 for a subagent that returned a report.
    Exited(i32),
    /// Stopped by TaskStop, the host or the end of the session.
    Killed,
}

impl TaskStatus {
    /// Returns the value used in JSON.
    pub fn wire_state(self) -> TaskState {
        match self {
            Self::Running => TaskState::Running,
            Self::Exited(0) => TaskState::Completed,
            Self::Exited(_) => TaskState::Failed,
            Self::Killed => TaskState::Killed,
        }
    }

    /// Returns the value used in task notifications, where a killed task is `stopped`.
    pub fn notified_state(self) -> TaskState {
        if self == Self::Killed { TaskState::Stopped } else { self.wire_state() }
    }
}

impl Task {
    /// Describes a task that is about to start ([`TaskList::spawn`]).
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

    /// Returns the current status.
    pub fn status(&self) -> TaskStatus {
        *self.status.borrow()
    }

    /// Waits until the task has ended and returns its final status.
    pub async fn wait(&self) -> TaskStatus {
        let mut status = self.status.subscribe();
        status.wait_for(|status| *status != TaskStatus::Running).await.map_or(TaskStatus::Killed, |status| *status)
    }

    /// Returns the final output; `None` while the task runs.
    pub fn output(&self) -> Option<String> {
        self.output.lock().clone()
    }

    /// Records that the model has been informed of the end.
    pub fn mark_seen(&self) {
        self.is_seen.store(true, Ordering::Relaxed);
    }

    /// Whether the model has been informed of the end.
    pub fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Relaxed)
    }
}

impl TaskList {
    /// Returns all tasks, in the order of their ids.
    pub fn list(&self) -> Vec<Task> {
        self.lock().values().cloned().collect()
    }

    /// Returns the tasks that are still running.
    pub fn running(&self) -> Vec<Task> {
        self.lock().values().filter(|task| task.status() == TaskStatus::Running).cloned().collect()
    }

    /// Returns the task with this id, if there is one.
    pub fn find(&self, id: &str) -> Option<Task> {
        self.lock().get(id).cloned()
    }

    /// Cancels a task; returns `false` if no running task has this id.
    pub fn stop(&self, id: &str) -> bool {
        let running = self.find(id).filter(|task| task.status() == TaskStatus::Running);
        running.map(|task| task.cancel.cancel()).is_some()
    }

    /// Cancels all tasks and waits for their end, without calling the listener.
    pub async fn stop_all(&self) {
        *self.listener.lock() = None;
        loop {
            // A task that ends may have started another one.
            let running = self.running();
            if running.is_empty() {
                return;
            }
            running.iter().for_each(|task| task.cancel.cancel());
            join_all(running.iter().map(Task::wait)).await;
        }
    }

    /// Sets the function that is called when tasks start and end.
    pub fn set_listener(&self, listener: TaskListener) {
        *self.listener.lock() = Some(listener);
    }

    /// Runs a task to its end in the background; `work` must watch `task.cancel`.
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
        f.debug_struct("TaskList").field("list", &self.list()).finish_non_exhaustive()
    }
}

impl Drop for TaskList {
    fn drop(&mut self) {
        self.list().iter().for_each(|task| task.cancel.cancel());
    }
}
