//! What a session is doing, and whether it waits for the user.

use quipu_message::synthetic::{INTERRUPT, INTERRUPT_FOR_TOOL_USE};
use quipu_message::system::System;
use quipu_message::tool::ToolInput;
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::{Block, Content, Entry, ToolName, ToolUse};
use serde::Serialize;

use crate::node::Node;
use crate::tool_results::ToolResults;
use crate::user_text::{UserText, classify_user_text, user_prompt};

/// What a session is doing, as far as its lines show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// Kind of activity.
    pub state: ActivityState,
    /// Text of the question, first line of the plan, or name of the running tool.
    pub detail: Option<String>,
    /// Whether the lines prove the state. A response without a stop reason may continue, and
    /// a tool call may wait for a permission; if no line arrives for some seconds, use
    /// [`after_silence`](Self::after_silence).
    pub is_certain: bool,
    /// Timestamp of the last entry, as written.
    pub last_timestamp: Option<String>,
}

/// Kinds of activity of a session.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityState {
    /// There is no prompt yet.
    #[default]
    New,
    /// The model is working.
    Working,
    /// A tool is running.
    Tool,
    /// A tool call needs the user's permission.
    Permission,
    /// The model asked the user a question.
    Question,
    /// A plan needs the user's approval.
    Plan,
    /// The turn is over; the session waits for a prompt.
    Prompt,
    /// The user ended the session.
    Ended,
}

impl ActivityState {
    /// Whether the session waits for the user.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Permission | Self::Question | Self::Plan | Self::Prompt)
    }
}

impl Activity {
    /// The activity if no line arrived for some seconds: a tool that normally returns at once
    /// waits for a permission, and a response without a stop reason was the last one.
    pub fn after_silence(mut self) -> Self {
        if self.state == ActivityState::Tool && !self.is_certain {
            self.state = ActivityState::Permission;
        }
        self.is_certain = true;
        self
    }
}

/// The activity of a session with this active path.
pub(super) fn activity_from_path(path: &[&Node]) -> Activity {
    let last_timestamp = path.iter().rev().find_map(|node| node.timestamp()).map(str::to_owned);
    let activity =
        activity_from_pending_calls(path).or_else(|| path.iter().rev().find_map(|node| activity_from_entry(node)));
    Activity { last_timestamp, ..activity.unwrap_or_default() }
}

/// The activity of the tool calls of this turn without a result, those that wait for the user
/// first; `None` if all calls have results.
fn activity_from_pending_calls(path: &[&Node]) -> Option<Activity> {
    let turn = path.iter().rposition(|node| node.user().and_then(user_prompt).is_some()).unwrap_or(0);
    let results = ToolResults::new(path[turn..].iter().copied());
    let calls = path[turn..].iter().flat_map(|node| node.tool_uses());
    let waiting: Vec<&ToolUse> = calls.filter(|call| results.get(&call.id).is_none()).collect();
    let states = waiting.iter().map(|call| activity_from_call(call));
    states.min_by_key(|activity| (!activity.state.is_waiting(), activity.is_certain))
}

fn activity_from_call(call: &ToolUse) -> Activity {
    let (state, detail) = match ToolInput::from_tool_use(call) {
        ToolInput::AskUserQuestion(input) => {
            let question = input.questions.first().and_then(|question| question.question.text());
            (ActivityState::Question, question.map(str::to_owned))
        }
        ToolInput::ExitPlanMode(input) => {
            let heading = input.plan.text().and_then(|plan| plan.lines().find(|line| !line.trim().is_empty()));
            (ActivityState::Plan, heading.map(|line| line.trim_start_matches('#').trim().to_owned()))
        }
        _ => (ActivityState::Tool, Some(call.name.to_string())),
    };
    let is_certain = state != ActivityState::Tool || !is_instant_tool(&call.name);
    Activity { state, detail, is_certain, last_timestamp: None }
}

/// Whether a tool returns at once unless it waits for a permission.
fn is_instant_tool(tool: &ToolName) -> bool {
    use ToolName::{Edit, Glob, Ls, MultiEdit, NotebookEdit, Read, TodoWrite, Write};
    matches!(tool, Read | Write | Edit | MultiEdit | NotebookEdit | Glob | Ls | TodoWrite)
}

/// The activity after an entry; `None` if the entry does not change it.
fn activity_from_entry(node: &Node) -> Option<Activity> {
    let state = |state| Some(Activity { state, is_certain: true, ..Activity::default() });
    match &node.entry {
        Entry::User(user) => state_from_user(user).and_then(state),
        Entry::Assistant(line) => Some(activity_from_assistant(line)),
        Entry::System(system) => match system.as_ref() {
            System::TurnDuration(_) | System::StopHookSummary(_) | System::LocalCommand(_) => {
                state(ActivityState::Prompt)
            }
            _ => None,
        },
        _ => None,
    }
}

fn state_from_user(user: &User) -> Option<ActivityState> {
    if user.is_meta.is_true() {
        return None;
    }
    let texts: Vec<&str> = match &user.message.content {
        Content::Text(text) => vec![text],
        content => content.blocks().iter().filter_map(Block::text).collect(),
    };
    if texts.iter().any(|text| [INTERRUPT, INTERRUPT_FOR_TOOL_USE].contains(&text.trim())) {
        return Some(ActivityState::Prompt);
    }
    match user_prompt(user).as_deref().map(str::trim) {
        Some("/exit" | "/quit") => Some(ActivityState::Ended),
        Some(_) => Some(ActivityState::Working),
        // Output of a local command, which does not call the model.
        None if texts.iter().any(|text| matches!(classify_user_text(text), UserText::Notice(_))) => {
            Some(ActivityState::Prompt)
        }
        None if texts.is_empty() => Some(ActivityState::Working),
        None => None,
    }
}

fn activity_from_assistant(line: &Assistant) -> Activity {
    let content = &line.message.content;
    let calls = content.blocks().iter().any(|block| block.tool_use().is_some());
    let has_text = matches!(content, Content::Text(_)) || content.blocks().iter().any(|block| block.text().is_some());
    let (state, is_certain) = match line.message.stop_reason.text() {
        _ if line.is_api_error() => (ActivityState::Prompt, true),
        Some("tool_use" | "pause_turn") => (ActivityState::Working, true),
        Some(_) => (ActivityState::Prompt, true),
        None if has_text && !calls => (ActivityState::Prompt, false),
        None => (ActivityState::Working, true),
    };
    Activity { state, is_certain, ..Activity::default() }
}
