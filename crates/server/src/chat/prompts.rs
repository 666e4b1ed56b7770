//! What the user has to decide: permissions, questions, plans, input for MCP servers.

use std::collections::BTreeMap;

use quipu_message::control::PermissionUpdate;
use quipu_message::control::request::{CanUseTool, ElicitationRequest};
use quipu_message::control::response::ElicitationResponse;
use quipu_message::tool::AskUserQuestionInput;
use quipu_message::{Json, Maybe, ToolName};
use quipu_sdk::Decision;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::view::{Prompt, PromptKind, Suggestion};
use crate::error::ApiError;

/// The user's reply to a prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum PromptReply {
    /// The call runs, or the answer is given.
    Allow {
        /// Input that replaces the model's; for an elicitation, the answer.
        input: Option<Value>,
        /// Index of the suggestion to follow.
        suggestion: Option<usize>,
        /// Answers to the questions, by the text of the question.
        answers: Option<BTreeMap<String, Value>>,
    },
    /// The call does not run.
    Deny {
        /// Reason, which the model gets.
        message: Option<String>,
        /// Whether the turn ends, too.
        #[serde(default)]
        interrupt: bool,
    },
}

impl PromptReply {
    /// Denies because there is no page to reply.
    pub(super) fn deny(message: &str) -> Self {
        Self::Deny { message: Some(message.to_owned()), interrupt: false }
    }

    /// The decision on a tool call. Fails if the reply does not fit the call.
    pub(super) fn into_decision(self, call: &CanUseTool) -> Result<Decision, ApiError> {
        match self {
            Self::Allow { input, suggestion, answers } => {
                let input = match answers {
                    Some(answers) => Some(with_answers(&call.input, answers)?),
                    None => input.as_ref().map(Json::from_serialize),
                };
                let updates = match suggestion {
                    Some(index) => vec![call.suggestions().into_iter().nth(index).ok_or_else(|| {
                        ApiError::bad_request("prompt.suggestion", format!("there is no suggestion {index}"))
                    })?],
                    None => Vec::new(),
                };
                Ok(Decision::Allow { input, updates })
            }
            Self::Deny { message, interrupt } => {
                let message = message.filter(|text| !text.trim().is_empty());
                Ok(Decision::Deny { message: message.unwrap_or_else(|| "The user denied this.".to_owned()), interrupt })
            }
        }
    }

    /// The response to an MCP server's question.
    pub(super) fn into_elicitation_response(self) -> Json {
        match self {
            Self::Allow { input, .. } => {
                Json::from_serialize(&ElicitationResponse::accept(input.as_ref().map(Json::from_serialize)))
            }
            Self::Deny { .. } => Json::from_serialize(&ElicitationResponse::decline()),
        }
    }
}

/// The input of a question with the answers in it.
fn with_answers(input: &Json, answers: BTreeMap<String, Value>) -> Result<Json, ApiError> {
    let mut questions: AskUserQuestionInput = input
        .read()
        .map_err(|error| ApiError::bad_request("prompt.answers", format!("this prompt has no questions: {error}")))?;
    let answers = answers.iter().map(|(question, answer)| (question.clone(), Json::from_serialize(answer)));
    questions.answers = Maybe::Value(answers.collect());
    Ok(Json::from_serialize(&questions))
}

impl Prompt {
    pub(super) fn for_tool_call(id: String, call: &CanUseTool, since: String) -> Self {
        let kind = match call.tool_name {
            ToolName::AskUserQuestion => PromptKind::Question,
            ToolName::ExitPlanMode => PromptKind::Plan,
            _ => PromptKind::Permission,
        };
        let reason = call.decision_reason.get().map(Json::extract_text).filter(|text| !text.is_empty());
        Self {
            id,
            kind,
            tool_name: call.tool_name.to_string(),
            tool_use_id: call.tool_use_id.text().map(str::to_owned),
            input: call.input.clone(),
            description: call.description.text().map(str::to_owned),
            reason,
            suggestions: call.suggestions().iter().map(Suggestion::new).collect(),
            blocked_path: call.blocked_path.text().map(str::to_owned),
            since,
            agent_id: call.agent_id.text().map(str::to_owned),
        }
    }

    pub(super) fn for_elicitation(id: String, request: &ElicitationRequest, since: String) -> Self {
        Self {
            id,
            kind: PromptKind::Elicitation,
            tool_name: request.mcp_server_name.text().unwrap_or_default().to_owned(),
            tool_use_id: None,
            input: request.requested_schema.get().cloned().unwrap_or_default(),
            description: request.message.text().map(str::to_owned),
            reason: None,
            suggestions: Vec::new(),
            blocked_path: None,
            since,
            agent_id: None,
        }
    }
}

impl Suggestion {
    pub(super) fn new(update: &PermissionUpdate) -> Self {
        let quote = |texts: &[String]| texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ");
        match update {
            PermissionUpdate::AddRules(add) => {
                let rules: Vec<String> = add.rules.iter().map(|rule| rule.to_string()).collect();
                Self {
                    label: format!("always {} {}", add.behavior.as_str(), quote(&rules)),
                    rules,
                    behavior: Some(add.behavior.as_str().to_owned()),
                    destination: Some(add.destination.as_str().to_owned()),
                    ..Self::default()
                }
            }
            PermissionUpdate::SetMode(set) => Self {
                label: format!("set the permission mode `{}`", set.mode.as_str()),
                mode: Some(set.mode.as_str().to_owned()),
                destination: Some(set.destination.as_str().to_owned()),
                ..Self::default()
            },
            PermissionUpdate::AddDirectories(add) => Self {
                label: format!("add the folder {}", quote(&add.directories)),
                directories: add.directories.clone(),
                destination: Some(add.destination.as_str().to_owned()),
                ..Self::default()
            },
            other => Self { label: other.tag().to_owned(), ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests;
