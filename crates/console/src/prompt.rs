//! What the agent requests of the user: permissions, answers and approval of plans.

use std::path::Path;

use crossterm::event::KeyEvent;
use quipu_message::tool::ToolInput;
use quipu_render::{Cursor, Terminal};
use quipu_sdk::Decision;
use quipu_sdk::control::request::CanUseTool;
use tokio::sync::oneshot;

use crate::permission_prompt::PermissionPrompt;
use crate::question_prompt::QuestionPrompt;

/// Reason for the model when the user ends a turn at a prompt.
pub(crate) const INTERRUPT_REASON: &str = "The user interrupted the turn.";

/// A permission request of the agent that waits for a decision.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) call: CanUseTool,
    pub(crate) reply: oneshot::Sender<Decision>,
}

/// A prompt that is shown to the user.
#[derive(Debug)]
pub(crate) enum UserPrompt {
    Permission(Box<PermissionPrompt>),
    Question(Box<QuestionPrompt>),
}

/// What a key or a paste did to a prompt.
#[derive(Debug)]
pub(crate) enum PromptStep {
    /// The prompt is still open.
    Open,
    /// The user decided.
    Decided(Decision),
    /// The input of the tool call is to be edited in the user's editor.
    EditInput,
    /// The whole tool call is to be printed.
    ShowAll,
}

impl UserPrompt {
    /// The prompt for a permission request. `folder` is the working folder of the agent.
    pub(crate) fn new(call: &CanUseTool, folder: &Path) -> Self {
        match ToolInput::from_name_and_json(&call.tool_name, &call.input) {
            ToolInput::AskUserQuestion(input) if !input.questions.is_empty() => {
                Self::Question(Box::new(QuestionPrompt::new(input)))
            }
            _ => Self::Permission(Box::new(PermissionPrompt::new(call.clone(), folder))),
        }
    }

    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> PromptStep {
        match self {
            Self::Permission(prompt) => prompt.handle_key(key),
            Self::Question(prompt) => prompt.handle_key(key),
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match self {
            Self::Permission(prompt) => prompt.paste(text),
            Self::Question(prompt) => prompt.paste(text),
        }
    }

    /// The rows of the prompt, and the cursor if text is being typed.
    pub(crate) fn rows(&self, style: &Terminal) -> (Vec<String>, Option<Cursor>) {
        match self {
            Self::Permission(prompt) => prompt.rows(style),
            Self::Question(prompt) => prompt.rows(style),
        }
    }
}
