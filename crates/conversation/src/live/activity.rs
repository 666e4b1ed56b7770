//! What a session does, and whether it waits for its user.

use quipu_message::synthetic::{INTERRUPT, INTERRUPT_FOR_TOOL_USE};
use quipu_message::system::System;
use quipu_message::tool::ToolInput;
use quipu_message::user_assistant::{Assistant, User};
use quipu_message::{Block, Content, Entry, ToolUse};
use serde::Serialize;

use crate::conversation::Node;
use crate::tool_results::ToolResults;
use crate::user_text::{UserText, classify_user_text, user_prompt};

/// What a session does, as far as its lines say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// What it does.
    pub state: ActivityState,
    /// The question, the plan's first line, or the tool that runs.
    pub detail: Option<String>,
    /// Whether the lines leave no doubt. An answer without a stop reason may go on, and a
    /// tool call may wait for a permission: a reader with a clock knows more after some
    /// seconds of silence.
    pub is_certain: bool,
    /// The time of the last line.
    pub last_timestamp: Option<String>,
}

/// What a session does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityState {
    /// It has not begun.
    #[default]
    New,
    /// The model works.
    Working,
    /// A tool runs.
    Tool,
    /// A tool call needs the user's permission.
    Permission,
    /// The model has asked the user something.
    Question,
    /// The user is to approve a plan.
    Plan,
    /// The turn is over: the next prompt is the user's.
    Prompt,
    /// The user has left.
    Ended,
}

impl ActivityState {
    /// Whether it goes on only when the user does something.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Permission | Self::Question | Self::Plan | Self::Prompt)
    }
}

impl Activity {
    /// The activity after the session has been silent for some seconds: tools that take no
    /// time wait for a permission, and an answer that seemed to be the last one was.
    pub fn after_silence(mut self) -> Self {
        if self.state == ActivityState::Tool && !self.is_certain {
            self.state = ActivityState::Permission;
        }
        self.is_certain = true;
        self
    }
}

/// What the session with this path does.
pub(super) fn activity_from_path(path: &[&Node]) -> Activity {
    let since = path.iter().rev().find_map(|node| node.timestamp()).map(str::to_owned);
    let activity =
        activity_from_pending_calls(path).or_else(|| path.iter().rev().find_map(|node| activity_from_entry(node)));
    Activity { last_timestamp: since, ..activity.unwrap_or_default() }
}

/// The tool calls of this turn that have no result: a question before others.
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
        _ => (ActivityState::Tool, Some(call.name.clone())),
    };
    let is_certain = state != ActivityState::Tool || !is_instant_tool(&call.name);
    Activity { state, detail, is_certain, last_timestamp: None }
}

/// Tools that end at once, unless they have to wait for a permission.
fn is_instant_tool(tool: &str) -> bool {
    matches!(tool, "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "Glob" | "LS" | "TodoWrite")
}

/// What the last entry says; `None` for those that say nothing about it.
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
        // What a local command printed; the model is not asked.
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
    let says = matches!(content, Content::Text(_)) || content.blocks().iter().any(|block| block.text().is_some());
    let (state, is_certain) = match line.message.stop_reason.text() {
        _ if line.is_api_error() => (ActivityState::Prompt, true),
        Some("tool_use" | "pause_turn") => (ActivityState::Working, true),
        Some(_) => (ActivityState::Prompt, true),
        None if says && !calls => (ActivityState::Prompt, false),
        None => (ActivityState::Working, true),
    };
    Activity { state, is_certain, ..Activity::default() }
}
