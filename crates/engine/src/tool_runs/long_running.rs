//! Reports about tool calls that take long.

use quipu_message::stream::ToolProgress;
use quipu_message::system::{System, stream_only};
use quipu_message::tool::ToolInput;
use quipu_message::values::{TaskState, TaskType};
use quipu_message::{AgentId, Entry, Envelope, Json, Maybe, ToolUse};

use crate::output::OutputStream as Out;
use crate::tool::ToolOutput;

/// The report that a call has been running for a while.
pub(super) fn task_started(id: &str, call: &ToolUse, input: &Json, output: &Out) -> System {
    System::TaskStarted(Box::new(stream_only::TaskStarted {
        task_id: Maybe::Value(AgentId::from(id)),
        run_id: Maybe::Value(id.to_owned()),
        tool_use_id: Maybe::Value(call.id.clone()),
        description: Maybe::Value(describe_call(call, input)),
        task_type: Maybe::Value(TaskType::LocalBash),
        is_backgrounded: Maybe::Value(false),
        envelope: output.envelope(),
        ..stream_only::TaskStarted::default()
    }))
}

/// The running time of a call, for remote hosts, which see no other progress.
pub(super) fn tool_progress(call: &ToolUse, seconds: u64, envelope: Envelope) -> Entry {
    Entry::ToolProgress(Box::new(ToolProgress {
        tool_use_id: Maybe::Value(call.id.clone()),
        tool_name: Maybe::Value(call.name.clone()),
        elapsed_time_seconds: Maybe::Value(seconds.into()),
        envelope: Envelope { timestamp: Maybe::Absent, ..envelope },
        ..ToolProgress::default()
    }))
}

/// The report that a call has ended.
pub(super) fn task_notification(id: &str, call: &ToolUse, input: &Json, done: &ToolOutput, output: &Out) -> System {
    let status = if done.is_error { TaskState::Failed } else { TaskState::Completed };
    System::TaskNotification(Box::new(stream_only::TaskNotification {
        task_id: Maybe::Value(AgentId::from(id)),
        run_id: Maybe::Value(id.to_owned()),
        tool_use_id: Maybe::Value(call.id.clone()),
        status: status.into(),
        output_file: Maybe::Value(String::new()),
        summary: Maybe::Value(describe_call(call, input)),
        envelope: output.envelope(),
        ..stream_only::TaskNotification::default()
    }))
}

fn describe_call(call: &ToolUse, input: &Json) -> String {
    match ToolInput::from_name_and_json(&call.name, input) {
        ToolInput::Bash(bash) => bash.description.into_option().unwrap_or(bash.command),
        _ => call.name.to_string(),
    }
}
