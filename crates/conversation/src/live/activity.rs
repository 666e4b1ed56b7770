//! What a session does, and whether it waits for its user.

use quipu_message::synthetic::{INTERRUPT, INTERRUPT_FOR_TOOL_USE};
use quipu_message::system::System;
use quipu_message::tool::ToolInput;
use quipu_message::turn::{Assistant, User};
use quipu_message::{Block, Content, Entry, ToolUse};
use serde::Serialize;

use crate::conversation::Node;
use crate::pair::Results;
use crate::person::{Said, prompt, said};

/// What a session does, as far as its lines say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// What it does.
    pub state: State,
    /// The question, the plan's first line, or the tool that runs.
    pub detail: Option<String>,
    /// Whether the lines leave no doubt. An answer without a stop reason may go on, and a
    /// tool call may wait for a permission: a reader with a clock knows more after some
    /// seconds of silence.
    pub is_certain: bool,
    /// The time of the last line.
    pub since: Option<String>,
}

/// What a session does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
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

impl State {
    /// Whether it goes on only when the user does something.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::Permission | Self::Question | Self::Plan | Self::Prompt)
    }
}

impl Activity {
    /// The activity after the session has been silent for some seconds: tools that take no
    /// time wait for a permission, and an answer that seemed to be the last one was.
    pub fn after_silence(mut self) -> Self {
        if self.state == State::Tool && !self.is_certain {
            self.state = State::Permission;
        }
        self.is_certain = true;
        self
    }
}

/// What the session with this path does.
pub(super) fn of(path: &[&Node]) -> Activity {
    let since = path.iter().rev().find_map(|node| node.timestamp()).map(str::to_owned);
    let activity = waiting_call(path).or_else(|| path.iter().rev().find_map(|node| last(node)));
    Activity { since, ..activity.unwrap_or_default() }
}

/// The tool calls of this turn that have no result: a question before others.
fn waiting_call(path: &[&Node]) -> Option<Activity> {
    let turn = path.iter().rposition(|node| node.user().and_then(prompt).is_some()).unwrap_or(0);
    let results = Results::new(path[turn..].iter().copied());
    let calls = path[turn..].iter().flat_map(|node| node.tool_uses());
    let waiting: Vec<&ToolUse> = calls.filter(|call| results.get(&call.id).is_none()).collect();
    let states = waiting.iter().map(|call| of_call(call));
    states.min_by_key(|activity| (!activity.state.is_waiting(), activity.is_certain))
}

fn of_call(call: &ToolUse) -> Activity {
    let (state, detail) = match ToolInput::of(call) {
        ToolInput::AskUserQuestion(input) => {
            let question = input.questions.first().and_then(|question| question.question.text());
            (State::Question, question.map(str::to_owned))
        }
        ToolInput::ExitPlanMode(input) => {
            let heading = input.plan.text().and_then(|plan| plan.lines().find(|line| !line.trim().is_empty()));
            (State::Plan, heading.map(|line| line.trim_start_matches('#').trim().to_owned()))
        }
        _ => (State::Tool, Some(call.name.clone())),
    };
    let is_certain = state != State::Tool || !takes_no_time(&call.name);
    Activity { state, detail, is_certain, since: None }
}

/// Tools that end at once, unless they have to wait for a permission.
fn takes_no_time(tool: &str) -> bool {
    matches!(tool, "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | "Glob" | "LS" | "TodoWrite")
}

/// What the last entry says; `None` for those that say nothing about it.
fn last(node: &Node) -> Option<Activity> {
    let state = |state| Some(Activity { state, is_certain: true, ..Activity::default() });
    match &node.entry {
        Entry::User(user) => user_state(user).and_then(state),
        Entry::Assistant(line) => Some(answered(line)),
        Entry::System(system) => match system.as_ref() {
            System::TurnDuration(_) | System::StopHookSummary(_) | System::LocalCommand(_) => state(State::Prompt),
            _ => None,
        },
        _ => None,
    }
}

fn user_state(user: &User) -> Option<State> {
    if user.is_meta.is_true() {
        return None;
    }
    let texts: Vec<&str> = match &user.message.content {
        Content::Text(text) => vec![text],
        content => content.blocks().iter().filter_map(Block::text).collect(),
    };
    if texts.iter().any(|text| [INTERRUPT, INTERRUPT_FOR_TOOL_USE].contains(&text.trim())) {
        return Some(State::Prompt);
    }
    match prompt(user).as_deref().map(str::trim) {
        Some("/exit" | "/quit") => Some(State::Ended),
        Some(_) => Some(State::Working),
        // What a local command printed; the model is not asked.
        None if texts.iter().any(|text| matches!(said(text), Said::Notice(_))) => Some(State::Prompt),
        None if texts.is_empty() => Some(State::Working),
        None => None,
    }
}

fn answered(line: &Assistant) -> Activity {
    let content = &line.message.content;
    let calls = content.blocks().iter().any(|block| block.tool_use().is_some());
    let says = matches!(content, Content::Text(_)) || content.blocks().iter().any(|block| block.text().is_some());
    let (state, is_certain) = match line.message.stop_reason.text() {
        _ if line.is_api_error() => (State::Prompt, true),
        Some("tool_use" | "pause_turn") => (State::Working, true),
        Some(_) => (State::Prompt, true),
        None if says && !calls => (State::Prompt, false),
        None => (State::Working, true),
    };
    Activity { state, is_certain, ..Activity::default() }
}
