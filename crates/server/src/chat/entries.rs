//! How each entry of an agent changes the state of its chat.

use quipu_conversation::price::Prices;
use quipu_message::api::StreamEvent;
use quipu_message::control::response::{InitializeResponse, SlashCommand};
use quipu_message::progress::{ProgressData, ProgressKind};
use quipu_message::stream::{StreamEventEntry, TurnResult};
use quipu_message::system::System;
use quipu_message::tool::ToolInput;
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::values::{ActivityStatus, CommandState, CompactResult, MessageLevel, SessionActivity};
use quipu_message::{Entry, Maybe};
use serde_json::Number;

use super::state::ChatState;
use super::view::{ChatCommand, ChatModel, ChatPhase, ChatTodo, NoteLevel};

/// Entries whose message is remembered, for tombstones.
const MAX_RECENT_ENTRIES: usize = 256;
/// Slash commands that are offered.
const MAX_COMMANDS: usize = 500;

impl ChatState {
    /// Applies the response to `initialize`: commands, models and version of the agent.
    pub(super) fn apply_initialize(&mut self, response: &InitializeResponse) {
        let chat = self.touch();
        chat.commands = response.commands.iter().take(MAX_COMMANDS).map(chat_command).collect();
        chat.models = response
            .models
            .get()
            .into_iter()
            .flatten()
            .map(|model| ChatModel {
                value: model.value.clone(),
                display_name: model.display_name.clone(),
                description: model.description.clone(),
            })
            .collect();
        chat.agent_version = response.claude_code_version.text().map(str::to_owned);
        if let Some(mode) = response.current_permission_mode.get() {
            chat.permission_mode = mode.as_str().to_owned();
        }
        chat.state = ChatPhase::Idle;
    }

    /// Applies an entry of the agent's output.
    pub(super) fn apply(&mut self, entry: &Entry, now: &str, prices: &Prices) {
        match entry {
            Entry::StreamEvent(event) => self.apply_stream_event(event, now, prices),
            Entry::Assistant(assistant) => self.apply_assistant(assistant, now),
            Entry::User(user) => self.apply_user(user, now),
            Entry::System(system) => self.apply_system(system, now),
            Entry::Result(result) => self.apply_result(result),
            Entry::Tombstone(tombstone) => {
                let uuid = tombstone.message.uuid.text().unwrap_or_default();
                let known = self.recent_entries.iter().find(|(entry, _)| entry == uuid);
                if let Some((_, message)) = known.cloned() {
                    self.partial.withdraw(&message);
                    self.add_withdrawn(message);
                }
            }
            Entry::CommandLifecycle(line) if line.state.get() != Some(&CommandState::Queued) => {
                self.take_from_queue(line.command_uuid.text().unwrap_or_default());
                if line.state.get() == Some(&CommandState::Started) {
                    self.set_running(now);
                }
            }
            Entry::ToolProgress(line) => {
                let elapsed = milliseconds(&line.elapsed_time_seconds);
                self.set_progress(line.tool_use_id.text().unwrap_or_default(), elapsed, None);
            }
            Entry::Progress(line) => {
                if let (Some(id), ProgressData::Tagged(ProgressKind::Bash(bash))) =
                    (line.tool_use_id.text(), &line.data)
                {
                    let text = bash.output.text().map(str::to_owned);
                    self.set_progress(id, milliseconds(&bash.elapsed_time_seconds), text);
                }
            }
            Entry::ConversationReset(reset) => {
                if let Some(id) = reset.new_conversation_id.text() {
                    self.set_session(id);
                }
            }
            Entry::AuthStatus(status) => self.add_note(NoteLevel::Error, status.error.text().unwrap_or_default()),
            Entry::Error(error) => self.add_note(NoteLevel::Error, &error.to_text()),
            _ => {}
        }
    }

    fn apply_stream_event(&mut self, entry: &StreamEventEntry, now: &str, prices: &Prices) {
        let agent = entry.envelope.parent_tool_use_id.text();
        if let Some(withdrawn) = self.partial.push(agent, &entry.event) {
            self.add_withdrawn(withdrawn);
        }
        match &entry.event {
            StreamEvent::MessageStart(start) => {
                let usage = start.message.usage.get().cloned().unwrap_or_default();
                self.usage.start_message(agent, start.message.model.text().unwrap_or_default(), usage);
                self.set_running(now);
            }
            StreamEvent::MessageDelta(delta) => {
                if let Some(usage) = delta.usage.get() {
                    self.usage.end_message(agent, usage, prices);
                    self.show_usage();
                }
            }
            _ => {}
        }
    }

    fn apply_assistant(&mut self, assistant: &Assistant, now: &str) {
        self.set_running(now);
        if let (Some(uuid), Some(message)) = (assistant.envelope.uuid.text(), assistant.message.id.text()) {
            self.recent_entries.push_back((uuid.to_owned(), message.to_owned()));
            if self.recent_entries.len() > MAX_RECENT_ENTRIES {
                self.recent_entries.pop_front();
            }
        }
        if assistant.envelope.parent_tool_use_id.is_value() {
            return;
        }
        for call in assistant.message.content.blocks().iter().filter_map(|block| block.tool_use()) {
            if let ToolInput::TodoWrite(list) = ToolInput::from_tool_use(call) {
                let todo = |todo: &quipu_message::tool::Todo| ChatTodo {
                    content: todo.content.clone(),
                    status: todo.status.get().map_or("pending", |status| status.as_str()).to_owned(),
                    active_form: todo.active_form.text().map(str::to_owned),
                };
                self.touch().todos = list.todos.iter().map(todo).collect();
            }
        }
    }

    fn apply_user(&mut self, user: &User, now: &str) {
        if user.is_replay.is_true() {
            self.take_from_queue(user.envelope.uuid.text().unwrap_or_default());
            self.set_running(now);
        }
        for id in user.message.content.blocks().iter().filter_map(|block| block.result_tool_use_id()) {
            self.progress.remove(id.as_str());
            self.partial.remove_agent(id.as_str());
        }
    }

    fn apply_result(&mut self, result: &TurnResult) {
        for uuid in
            result.user_message_uuid.get().into_iter().chain(result.user_message_uuids.get().into_iter().flatten())
        {
            self.take_from_queue(uuid.as_str());
        }
        self.usage.end_turn(result.total_cost_usd.get().and_then(Number::as_f64), result.usage.get());
        self.show_usage();
        self.withdraw_incomplete(false);
        if !self.reports_activity {
            self.set_idle();
        }
    }

    fn apply_system(&mut self, system: &System, now: &str) {
        match system {
            System::Init(init) => {
                for uuid in init.user_message_uuids.get().into_iter().flatten() {
                    self.take_from_queue(uuid.as_str());
                }
                if let Some(id) = init.envelope.session_id.text() {
                    self.set_session(id);
                }
                self.set_running(now);
                let chat = self.touch();
                chat.model = init.model.text().map(str::to_owned).or_else(|| chat.model.take());
                if let Some(mode) = init.permission_mode.get() {
                    chat.permission_mode = mode.as_str().to_owned();
                }
            }
            System::SessionStateChanged(change) => {
                self.reports_activity = true;
                match change.state.get() {
                    Some(SessionActivity::Idle) => self.set_idle(),
                    Some(SessionActivity::Running | SessionActivity::RequiresAction) => self.set_running(now),
                    _ => {}
                }
            }
            System::Status(status) => {
                if let Some(mode) = status.permission_mode.get() {
                    self.touch().permission_mode = mode.as_str().to_owned();
                }
                match (status.status.get(), self.chat.state) {
                    (Some(ActivityStatus::Compacting), ChatPhase::Idle | ChatPhase::Running) => {
                        let chat = self.touch();
                        chat.state = ChatPhase::Compacting;
                        chat.turn_started_at.get_or_insert_with(|| now.to_owned());
                    }
                    (Some(ActivityStatus::Compacting), _) => {}
                    (_, ChatPhase::Compacting) => self.touch().state = ChatPhase::Running,
                    _ => {}
                }
                if status.compact_result.get().is_some_and(|result| *result != CompactResult::Success) {
                    let error = status.compact_error.text().unwrap_or("the agent gave no reason");
                    self.add_note(NoteLevel::Error, &format!("the conversation was not compacted: {error}"));
                }
            }
            System::CommandsChanged(change) => {
                let commands = change.commands.get().and_then(|commands| commands.read::<Vec<SlashCommand>>().ok());
                if let Some(commands) = commands {
                    self.touch().commands = commands.iter().take(MAX_COMMANDS).map(chat_command).collect();
                }
            }
            System::TaskStarted(task) => self.set_task_progress(&task.tool_use_id, &task.description),
            System::TaskProgress(task) => self.set_task_progress(&task.tool_use_id, &task.description),
            System::BackgroundTasksChanged(change) => {
                let tasks = change.tasks.get().and_then(|tasks| tasks.read::<Vec<serde_json::Value>>().ok());
                self.background_tasks = tasks.map_or(0, |tasks| tasks.len());
            }
            other => self.note_system(other),
        }
    }

    /// Adds a note for entries that are messages to the user.
    fn note_system(&mut self, system: &System) {
        match system {
            System::CompactBoundary(line) => {
                let metadata = line.compact_metadata.get();
                let tokens = metadata.and_then(|metadata| metadata.pre_tokens.get());
                let text = tokens.map_or_else(
                    || "the conversation was compacted".to_owned(),
                    |tokens| format!("the conversation was compacted; it had {tokens} tokens"),
                );
                self.add_note(NoteLevel::Info, &text);
            }
            System::ApiRetry(retry) => {
                let number = |number: &Maybe<u64>| number.get().map_or("?".to_owned(), u64::to_string);
                let status =
                    retry.error_status.get().map_or("no response".to_owned(), |status| format!("status {status}"));
                let seconds = retry.retry_delay_ms.get().and_then(Number::as_f64).unwrap_or_default() / 1000.0;
                let (attempt, limit) = (number(&retry.attempt), number(&retry.max_retries));
                let text = format!("an API call failed ({status}); retry {attempt} of {limit} in {seconds:.0} s");
                self.add_note(NoteLevel::Warning, &text);
            }
            System::HookResponse(hook) if hook.outcome.get().is_some_and(|outcome| outcome.as_str() != "success") => {
                let output = hook.stderr.text().filter(|text| !text.trim().is_empty()).or(hook.output.text());
                let name = hook.hook_name.text().unwrap_or("a hook");
                self.add_note(NoteLevel::Warning, &format!("{name}: {}", output.unwrap_or("failed")));
            }
            System::Informational(line) => {
                let level = match line.level.get() {
                    Some(MessageLevel::Warning) => NoteLevel::Warning,
                    Some(MessageLevel::Error) => NoteLevel::Error,
                    _ => NoteLevel::Info,
                };
                self.add_note(level, line.content.text().unwrap_or_default());
            }
            System::Notification(line) => self.add_note(NoteLevel::Info, line.text.text().unwrap_or_default()),
            System::PermissionDenied(line) => {
                let reason = line.decision_reason.text().or(line.message.text()).unwrap_or("no reason given");
                let tool = line.tool_name.text().unwrap_or("a tool call");
                self.add_note(NoteLevel::Info, &format!("{tool} was denied: {reason}"));
            }
            System::ModelFallback(line) => self.add_note(NoteLevel::Warning, line.content.text().unwrap_or_default()),
            System::SessionWritesLost(_) => {
                self.add_note(NoteLevel::Error, "the agent could not write to the session file");
            }
            _ => {}
        }
    }

    fn set_task_progress(&mut self, call: &Maybe<quipu_message::ToolUseId>, description: &Maybe<String>) {
        if let Some(call) = call.text() {
            self.set_progress(call, 0, description.text().map(str::to_owned));
        }
    }

    /// The conversation continues in another session.
    fn set_session(&mut self, id: &str) {
        if self.chat.session_id != id && !id.is_empty() {
            let chat = self.touch();
            id.clone_into(&mut chat.session_id);
            id.clone_into(&mut chat.key);
        }
    }
}

fn chat_command(command: &SlashCommand) -> ChatCommand {
    ChatCommand {
        name: command.name.clone(),
        description: command.description.clone(),
        argument_hint: command.argument_hint.clone(),
    }
}

fn milliseconds(seconds: &Maybe<Number>) -> u64 {
    let seconds = seconds.get().and_then(Number::as_f64).unwrap_or_default();
    std::time::Duration::try_from_secs_f64(seconds)
        .map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
