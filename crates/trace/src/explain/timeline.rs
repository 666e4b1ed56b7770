//! Where the wall time of a session went.

use std::collections::{BTreeMap, HashMap};

use quipu_conversation::{UserText, classify_user_text, parse_timestamp};
use quipu_message::system::System;
use quipu_message::values::DecisionSource;
use quipu_message::view::{BlockView, ContentView};
use quipu_message::{Entry, StopReason, ToolName, View, synthetic};

/// Tools that read or write one file, so that a long time means a permission request.
const QUICK_TOOLS: [ToolName; 6] =
    [ToolName::Read, ToolName::Edit, ToolName::MultiEdit, ToolName::Write, ToolName::NotebookEdit, ToolName::TodoWrite];

/// Time that such a tool is assumed to take at most.
const MAX_QUICK_TOOL_MS: i64 = 5000;

/// What happened during a part of the wall time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Activity {
    /// The model was working on a response.
    Model,
    /// A tool ran; with its name.
    Tool(String),
    /// A question or a permission request waited for the user.
    Waiting,
    /// A hook ran.
    Hooks,
    /// A failed API call waited to be sent again.
    Retries,
    /// The history was being summarised.
    Compaction,
    /// Nothing ran between two turns.
    Idle,
}

/// A part of the wall time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSpan {
    /// Milliseconds from the first entry of the session.
    pub start_ms: u64,
    /// Length in milliseconds.
    pub duration_ms: u64,
    /// What the time was spent on.
    pub activity: Activity,
    /// Line of the entry that ended the span.
    pub line: u64,
}

/// The wall time of a session, without gaps: the lengths of the spans add up to it.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Spans in order of time; neighbours with the same activity are joined.
    pub spans: Vec<TimeSpan>,
    /// Milliseconds from the first to the last entry.
    pub wall_ms: u64,
}

impl Timeline {
    /// Milliseconds of each activity.
    pub fn totals(&self) -> BTreeMap<Activity, u64> {
        let mut totals = BTreeMap::new();
        for span in &self.spans {
            *totals.entry(span.activity.clone()).or_default() += span.duration_ms;
        }
        totals
    }
}

/// Builds a [`Timeline`] from the entries of a session file, in the order of the file.
///
/// A file records when entries were written, not what ran in between. The time before an entry
/// is therefore assigned by what the entry ends: an `assistant` entry ends work of the model, a
/// tool result ends its tool, a prompt after the end of a turn ends idle time. Entries of
/// subagents are left out: their time is that of the tool call that waits for them.
#[derive(Debug, Default)]
pub(super) struct TimelineBuilder {
    timeline: Timeline,
    start_ms: Option<i64>,
    /// Time up to which the wall time is assigned.
    now_ms: i64,
    /// Tool calls without a result, in order, with their names.
    pending: Vec<(String, String)>,
    /// Names of all tool calls by id.
    tool_names: HashMap<String, String>,
    is_turn_over: bool,
    /// Time at which a failed call is sent again.
    retry_at_ms: i64,
}

impl TimelineBuilder {
    /// Adds a line of the main file.
    pub(super) fn push(&mut self, line: u64, text: &str, view: &View<'_>) {
        if view.is_sidechain == Some(true) || view.agent_id.is_some() {
            return;
        }
        let time = view.timestamp.as_deref().and_then(parse_timestamp).map(|time| time.as_millisecond());
        let Some(time) = time else { return };
        if self.start_ms.is_none() {
            self.start_ms = Some(time);
            self.now_ms = time;
        }
        match view.kind.as_deref() {
            Some("assistant") => self.push_assistant(line, time, view),
            Some("user") => self.push_user(line, time, text, view),
            Some("system") => self.push_system(line, time, text),
            _ => self.push_other(line, time, text),
        }
    }

    /// The timeline of all lines that were added.
    pub(super) fn finish(mut self) -> Timeline {
        self.timeline.wall_ms = self.start_ms.map_or(0, |start| (self.now_ms - start).unsigned_abs());
        self.timeline
    }

    fn push_assistant(&mut self, line: u64, time: i64, view: &View<'_>) {
        self.assign_retry(line, time);
        self.assign(line, time, Activity::Model);
        let Some(message) = &view.message else { return };
        for block in message.content.iter().flat_map(ContentView::blocks) {
            if let (Some("tool_use"), Some(id), Some(name)) =
                (block.kind.as_deref(), block.id.as_deref(), block.name.as_deref())
                && !self.tool_names.contains_key(id)
            {
                self.tool_names.insert(id.to_owned(), name.to_owned());
                self.pending.push((id.to_owned(), name.to_owned()));
            }
        }
        let stop_reason = message.stop_reason.as_deref().map(StopReason::from);
        let last = message.content.as_ref().and_then(|content| content.blocks().last());
        let is_end = match stop_reason {
            Some(reason) => reason != StopReason::ToolUse,
            // Older files do not record it. A text at the end of a message ends the turn, unless
            // another block of the message follows.
            None => self.pending.is_empty() && last.is_some_and(|block| block.kind.as_deref() == Some("text")),
        };
        if is_end {
            self.end_turn();
        } else {
            self.is_turn_over = false;
        }
    }

    fn end_turn(&mut self) {
        self.is_turn_over = true;
        self.pending.clear();
    }

    fn push_user(&mut self, line: u64, time: i64, text: &str, view: &View<'_>) {
        let content = view.message.as_ref().and_then(|message| message.content.as_ref());
        let blocks = content.map(ContentView::blocks).unwrap_or_default();
        let results: Vec<&BlockView<'_>> = blocks.iter().filter(|block| block.tool_use_id.is_some()).collect();
        if !results.is_empty() {
            for result in results {
                self.push_result(line, time, text, result.tool_use_id.as_deref().unwrap_or_default());
            }
            self.is_turn_over = false;
            return;
        }
        let is_typed = |text: &str| matches!(classify_user_text(text), UserText::Prompt { .. });
        let texts: Vec<&str> = match content {
            Some(ContentView::Text(text)) => vec![text],
            _ => blocks.iter().filter_map(|block| block.text.as_deref()).collect(),
        };
        let is_prompt = view.is_meta != Some(true) && texts.iter().any(|text| is_typed(text));
        let is_interrupt = texts.iter().any(|text| synthetic::is_synthetic(text));
        self.assign_running(line, time);
        if is_interrupt {
            self.end_turn();
        } else if is_prompt {
            self.is_turn_over = false;
        }
    }

    /// A tool result. Time that the tool itself did not use was spent waiting for the user, if
    /// the duration is recorded or the tool only reads or writes a file. So was the time of
    /// tools that ask the user, and of calls that the user refused.
    fn push_result(&mut self, line: u64, time: i64, text: &str, id: &str) {
        self.pending.retain(|(pending, _)| pending != id);
        let name = self.tool_names.get(id).cloned().unwrap_or_else(|| "unknown tool".to_owned());
        let tool = ToolName::from(name.as_str());
        let waits = matches!(tool, ToolName::AskUserQuestion | ToolName::ExitPlanMode);
        if waits {
            return self.assign(line, time, Activity::Waiting);
        }
        let user = match Entry::read(text) {
            Ok(Entry::User(user)) => user,
            _ => return self.assign(line, time, Activity::Tool(name)),
        };
        let source = user.decision_record().and_then(|record| record.source.get().cloned());
        let run_ms = user.tool_duration_ms().filter(|_| !tool.is_agent());
        if source == Some(DecisionSource::UserReject) {
            return self.assign(line, time, Activity::Waiting);
        }
        let is_quick = QUICK_TOOLS.contains(&tool).then_some(MAX_QUICK_TOOL_MS);
        let gap = (time - self.now_ms).max(0);
        if let Some(ran) = run_ms.and_then(|run_ms| i64::try_from(run_ms).ok()).or(is_quick)
            && gap > ran
        {
            self.assign(line, time - ran, Activity::Waiting);
        }
        self.assign(line, time, Activity::Tool(name));
    }

    fn push_system(&mut self, line: u64, time: i64, text: &str) {
        let Ok(Entry::System(system)) = Entry::read(text) else { return self.assign_running(line, time) };
        match &*system {
            System::ApiError(error) => {
                self.assign_retry(line, time);
                self.assign(line, time, Activity::Retries);
                let wait = error.retry_in_ms.get().and_then(serde_json::Number::as_f64).unwrap_or_default();
                self.retry_at_ms = time + wait as i64;
            }
            System::CompactBoundary(_) => self.assign(line, time, Activity::Compaction),
            System::StopHookSummary(_) => {
                self.assign(line, time, Activity::Hooks);
                self.end_turn();
            }
            System::TurnDuration(_) => {
                self.assign_running(line, time);
                self.end_turn();
            }
            _ => self.assign_running(line, time),
        }
    }

    fn push_other(&mut self, line: u64, time: i64, text: &str) {
        if let Ok(Entry::Attachment(entry)) = Entry::read(text)
            && let Some(run_ms) = entry.attachment.hook_duration_ms()
        {
            let gap = (time - self.now_ms).max(0);
            let before = time - i64::try_from(run_ms).unwrap_or(i64::MAX).min(gap);
            self.assign_running(line, before);
            return self.assign(line, time, Activity::Hooks);
        }
        self.assign_running(line, time);
    }

    /// Assigns the time before an entry that does not itself tell what ran: the first pending
    /// tool, idle time after a turn, or the model.
    fn assign_running(&mut self, line: u64, time: i64) {
        self.assign_retry(line, time);
        let activity = match self.pending.first() {
            Some((_, name)) => Activity::Tool(name.clone()),
            None if self.is_turn_over => Activity::Idle,
            None => Activity::Model,
        };
        self.assign(line, time, activity);
    }

    /// Assigns the wait before a failed call is sent again.
    fn assign_retry(&mut self, line: u64, time: i64) {
        if self.retry_at_ms > self.now_ms {
            self.assign(line, self.retry_at_ms.min(time), Activity::Retries);
        }
    }

    /// Assigns the time up to `time`. Entries that are older than an earlier one add nothing.
    fn assign(&mut self, line: u64, time: i64, activity: Activity) {
        if time <= self.now_ms {
            return;
        }
        let duration_ms = (time - self.now_ms).unsigned_abs();
        let start_ms = self.start_ms.map_or(0, |start| (self.now_ms - start).unsigned_abs());
        self.now_ms = time;
        match self.timeline.spans.last_mut() {
            Some(last) if last.activity == activity => {
                last.duration_ms += duration_ms;
                last.line = line;
            }
            _ => self.timeline.spans.push(TimeSpan { start_ms, duration_ms, activity, line }),
        }
    }
}
