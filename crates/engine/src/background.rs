//! Background tasks: reports their start and end to the host, and their end to the model.

use std::sync::Arc;

use quipu_message::system::{System, stream_only};
use quipu_message::tool::{BackgroundTask, TaskPatch};
use quipu_message::{AgentId, Json, Maybe};

use crate::clock::now_millis;
use crate::input::{Prompt, TaskNotice};
use crate::session::Session;
use crate::tool::{Task, TaskKind, TaskStatus};

/// Reports the tasks of the session from now on.
pub(crate) fn report_tasks(session: &Arc<Session>) {
    let weak = Arc::downgrade(session);
    session.workspace.tasks().set_listener(Arc::new(move |task| {
        let Some(session) = weak.upgrade() else { return };
        match task.status() {
            TaskStatus::Running => task_started(&session, task),
            status => task_ended(&session, task, status),
        }
    }));
}

/// Emits the list of running tasks.
pub(crate) fn emit_running_tasks(session: &Session) {
    session.emit_system(running_tasks_entry(session));
}

/// The list of running tasks, for the stream.
pub(crate) fn running_tasks_entry(session: &Session) -> System {
    let row = |task: Task| BackgroundTask {
        run_id: Maybe::Value(task.run_id.clone()),
        task_type: task.kind.wire_type(),
        subagent_type: match &task.kind {
            TaskKind::Command => Maybe::Absent,
            TaskKind::Subagent(name) => Maybe::Value(name.clone()),
        },
        task_id: task.id,
        description: task.description,
        ..BackgroundTask::default()
    };
    let tasks: Vec<BackgroundTask> = session.workspace.tasks().running().into_iter().map(row).collect();
    System::BackgroundTasksChanged(Box::new(stream_only::BackgroundTasksChanged {
        tasks: Maybe::Value(Json::from_serialize(&tasks)),
        envelope: session.output.envelope(),
        ..stream_only::BackgroundTasksChanged::default()
    }))
}

fn task_started(session: &Session, task: &Task) {
    emit_running_tasks(session);
    // Subagents report their start themselves.
    if task.kind == TaskKind::Command {
        // With a host that keeps stdin open, commands end with the session.
        if !session.options.stream_input {
            session.queue.expect_command(&task.id);
        }
        session.emit_system(System::TaskStarted(Box::new(stream_only::TaskStarted {
            task_id: Maybe::Value(AgentId::from(task.id.as_str())),
            run_id: Maybe::Value(task.run_id.clone()),
            tool_use_id: Maybe::Value(task.tool_use_id.clone()),
            description: Maybe::Value(task.description.clone()),
            task_type: Maybe::Value(task.kind.wire_type()),
            is_backgrounded: Maybe::Value(true),
            envelope: session.output.envelope(),
            ..stream_only::TaskStarted::default()
        })));
    }
}

fn task_ended(session: &Arc<Session>, task: &Task, status: TaskStatus) {
    let summary = task_summary(task, status);
    if task.kind == TaskKind::Command {
        emit_task_ended(session, task, status, &summary);
    }
    emit_running_tasks(session);
    if task.is_seen() {
        session.queue.clear_expected(&task.id);
        return;
    }
    let notice = TaskNotice { task_id: task.id.clone(), run_id: task.run_id.clone() };
    let prompt = Prompt { task_notice: Some(notice), ..Prompt::from(task_notification_text(task, status, &summary)) };
    let session = Arc::clone(session);
    tokio::spawn(async move { session.enqueue_prompt(prompt).await });
}

fn emit_task_ended(session: &Session, task: &Task, status: TaskStatus, summary: &str) {
    let id = || Maybe::Value(AgentId::from(task.id.as_str()));
    let patch = TaskPatch { status: status.wire_state(), end_time: Maybe::Value(now_millis()), ..TaskPatch::default() };
    session.emit_system(System::TaskUpdated(Box::new(stream_only::TaskUpdated {
        task_id: id(),
        run_id: Maybe::Value(task.run_id.clone()),
        patch: Maybe::Value(Json::from_serialize(&patch)),
        envelope: session.output.envelope(),
        ..stream_only::TaskUpdated::default()
    })));
    session.emit_system(System::TaskNotification(Box::new(stream_only::TaskNotification {
        task_id: id(),
        run_id: Maybe::Value(task.run_id.clone()),
        tool_use_id: Maybe::Value(task.tool_use_id.clone()),
        status: Maybe::Value(status.notified_state()),
        output_file: Maybe::Value(task.output_path.display().to_string()),
        summary: Maybe::Value(summary.to_owned()),
        envelope: session.output.envelope(),
        ..stream_only::TaskNotification::default()
    })));
}

/// How a task ended, as a sentence.
fn task_summary(task: &Task, status: TaskStatus) -> String {
    let what = match &task.kind {
        TaskKind::Command => "Background command",
        TaskKind::Subagent(_) => "Subagent",
    };
    let name = &task.description;
    match (status, &task.kind) {
        (TaskStatus::Exited(code), TaskKind::Command) => {
            let how = if code == 0 { "completed" } else { "failed" };
            format!("{what} \"{name}\" {how} (exit code {code})")
        }
        (TaskStatus::Exited(0), _) => format!("{what} \"{name}\" is done"),
        (TaskStatus::Exited(_), _) => format!("{what} \"{name}\" failed"),
        (TaskStatus::Killed | TaskStatus::Running, _) => format!("{what} \"{name}\" was stopped"),
    }
}

/// The prompt that informs the model about the end of a task.
fn task_notification_text(task: &Task, status: TaskStatus, summary: &str) -> String {
    let (id, call, file, status) = (&task.id, &task.tool_use_id, task.output_path.display(), status.wire_state());
    let result = match &task.kind {
        TaskKind::Command => String::new(),
        TaskKind::Subagent(_) => format!("<result>{}</result>\n", task.output().unwrap_or_default()),
    };
    format!(
        "<task-notification>\n<task-id>{id}</task-id>\n<tool-use-id>{call}</tool-use-id>\n\
         <output-file>{file}</output-file>\n<status>{status}</status>\n<summary>{summary}</summary>\n{result}\
         </task-notification>\nRead the output file to retrieve the result: {file}"
    )
}
