//! Work in the background: the host is told when it begins and ends, and the model
//! when it ends.

use std::sync::Arc;

use quipu_message::system::{System, live};
use quipu_message::tool::{BackgroundTask, TaskPatch};
use quipu_message::{AgentId, Json, Maybe};

use crate::clock::millis;
use crate::input::{Notice, Prompt};
use crate::session::Session;
use crate::tools::tasks::{Kind, Status, Task};

/// Tells of tasks from now on.
pub(crate) fn watch(session: &Arc<Session>) {
    let weak = Arc::downgrade(session);
    session.place.tasks().listen(Arc::new(move |task| {
        let Some(session) = weak.upgrade() else { return };
        match task.status() {
            Status::Running => began(&session, task),
            status => ended(&session, task, status),
        }
    }));
}

/// Says what runs in the background now.
pub(crate) fn say_running(session: &Session) {
    session.say(running(session));
}

/// What runs in the background now, as a line.
pub(crate) fn running(session: &Session) -> System {
    let row = |task: Task| BackgroundTask {
        run_id: Maybe::Value(task.run.clone()),
        task_type: task.kind.as_str().to_owned(),
        subagent_type: match &task.kind {
            Kind::Command => Maybe::Absent,
            Kind::Subagent(name) => Maybe::Value(name.clone()),
        },
        task_id: task.id,
        description: task.description,
        ..BackgroundTask::default()
    };
    let tasks: Vec<BackgroundTask> = session.place.tasks().running().into_iter().map(row).collect();
    System::BackgroundTasksChanged(Box::new(live::BackgroundTasksChanged {
        tasks: Maybe::Value(Json::of(&tasks)),
        envelope: session.output.envelope(),
        ..live::BackgroundTasksChanged::default()
    }))
}

/// Whether the model does not know yet what a prompt tells.
pub(crate) fn is_news(session: &Session, prompt: &Prompt) -> bool {
    let Some(notice) = &prompt.notice else { return true };
    session.place.tasks().find(&notice.task).is_none_or(|task| !task.is_seen())
}

fn began(session: &Session, task: &Task) {
    say_running(session);
    // A subagent tells of itself.
    if task.kind == Kind::Command {
        // With a host that keeps stdin open they end with the session.
        if !session.options.stream_input {
            session.queue.wait_for(&task.id);
        }
        session.say(System::TaskStarted(Box::new(live::TaskStarted {
            task_id: Maybe::Value(AgentId::from(task.id.as_str())),
            run_id: Maybe::Value(task.run.clone()),
            tool_use_id: Maybe::Value(task.call.clone()),
            description: Maybe::Value(task.description.clone()),
            task_type: Maybe::Value(task.kind.as_str().to_owned()),
            is_backgrounded: Maybe::Value(true),
            envelope: session.output.envelope(),
            ..live::TaskStarted::default()
        })));
    }
}

fn ended(session: &Arc<Session>, task: &Task, status: Status) {
    let summary = summary(task, status);
    if task.kind == Kind::Command {
        say_ended(session, task, status, &summary);
    }
    say_running(session);
    if task.is_seen() {
        session.queue.expect_no_more(&task.id);
        return;
    }
    let notice = Notice { task: task.id.clone(), run: task.run.clone() };
    let prompt = Prompt { notice: Some(notice), ..Prompt::from(words(task, status, &summary)) };
    let session = Arc::clone(session);
    tokio::spawn(async move { crate::agent::take_prompt(&session, prompt).await });
}

fn say_ended(session: &Session, task: &Task, status: Status, summary: &str) {
    let id = || Maybe::Value(AgentId::from(task.id.as_str()));
    let patch =
        TaskPatch { status: status.as_str().to_owned(), end_time: Maybe::Value(millis()), ..TaskPatch::default() };
    session.say(System::TaskUpdated(Box::new(live::TaskUpdated {
        task_id: id(),
        run_id: Maybe::Value(task.run.clone()),
        patch: Maybe::Value(Json::of(&patch)),
        envelope: session.output.envelope(),
        ..live::TaskUpdated::default()
    })));
    session.say(System::TaskNotification(Box::new(live::TaskNotification {
        task_id: id(),
        run_id: Maybe::Value(task.run.clone()),
        tool_use_id: Maybe::Value(task.call.clone()),
        status: Maybe::Value(status.in_notice().to_owned()),
        output_file: Maybe::Value(task.file.display().to_string()),
        summary: Maybe::Value(summary.to_owned()),
        envelope: session.output.envelope(),
        ..live::TaskNotification::default()
    })));
}

/// How a task ended, in words.
fn summary(task: &Task, status: Status) -> String {
    let what = match &task.kind {
        Kind::Command => "Background command",
        Kind::Subagent(_) => "Subagent",
    };
    let name = &task.description;
    match (status, &task.kind) {
        (Status::Ended(code), Kind::Command) => {
            let how = if code == 0 { "completed" } else { "failed" };
            format!("{what} \"{name}\" {how} (exit code {code})")
        }
        (Status::Ended(0), _) => format!("{what} \"{name}\" is done"),
        (Status::Ended(_), _) => format!("{what} \"{name}\" failed"),
        (Status::Killed | Status::Running, _) => format!("{what} \"{name}\" was stopped"),
    }
}

/// What the model is told.
fn words(task: &Task, status: Status, summary: &str) -> String {
    let (id, call, file, status) = (&task.id, &task.call, task.file.display(), status.as_str());
    let result = match &task.kind {
        Kind::Command => String::new(),
        Kind::Subagent(_) => format!("<result>{}</result>\n", task.output().unwrap_or_default()),
    };
    format!(
        "<task-notification>\n<task-id>{id}</task-id>\n<tool-use-id>{call}</tool-use-id>\n\
         <output-file>{file}</output-file>\n<status>{status}</status>\n<summary>{summary}</summary>\n{result}\
         </task-notification>\nRead the output file to retrieve the result: {file}"
    )
}
