//! Tools for the user or the host: questions, the plan, skills.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use quipu_message::tool::ToolInput;
use quipu_message::{Json, ToolName};
use serde_json::{Value, json};

use crate::permission::{EffectiveMode, skill_name};
use crate::session::Session;
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

/// Asks the user multiple-choice questions. The permission response of the host contains the answers.
pub(crate) struct AskUserQuestionTool;

impl Tool for AskUserQuestionTool {
    fn name(&self) -> ToolName {
        ToolName::AskUserQuestion
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Asks the user up to four questions with two to four choices each. Use it when the answer \
                          changes what you do next and cannot be found out otherwise."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "questions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "question": { "type": "string", "description": "The question, as a whole sentence" },
                                "header": { "type": "string", "description": "One or two words for it" },
                                "multiSelect": { "type": "boolean", "description": "Whether several may be chosen" },
                                "options": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "properties": {
                                            "label": { "type": "string" },
                                            "description": { "type": "string" },
                                        },
                                        "required": ["label"],
                                    },
                                },
                            },
                            "required": ["question", "options"],
                        },
                    },
                    "answers": { "type": "object", "description": "Leave it out; the user fills it in" },
                },
                "required": ["questions"],
            }),
        }
    }

    fn effect(&self, _input: &Value) -> ToolEffect {
        ToolEffect::Mutating
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Workspace, _call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        let output = match ToolInput::from_name_and_json(&ToolName::AskUserQuestion, &Json::from(input.clone())) {
            ToolInput::AskUserQuestion(asked) => {
                let answers = asked.answers.into_option().unwrap_or_default();
                let said: Vec<String> = answers
                    .iter()
                    .map(|(question, answer)| format!("\"{question}\"=\"{}\"", answer.extract_text()))
                    .collect();
                if said.is_empty() {
                    ToolOutput::failure("The user gave no answer")
                } else {
                    let text = format!(
                        "Your questions have been answered: {}. You can now continue with these answers in mind.",
                        said.join(", ")
                    );
                    ToolOutput::new(text, &input)
                }
            }
            _ => ToolOutput::failure("The answer cannot be read"),
        };
        Box::pin(std::future::ready(output))
    }
}

/// Shows the plan to the user. Permission to run it ends plan mode.
pub(crate) struct ExitPlanModeTool {
    pub(crate) session: Arc<Session>,
}

impl Tool for ExitPlanModeTool {
    fn name(&self) -> ToolName {
        ToolName::ExitPlanMode
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Shows the user your finished plan and asks to begin with it. Use it once, in plan mode, \
                          when the plan is ready."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": { "plan": { "type": "string", "description": "The plan, in Markdown" } },
                "required": ["plan"],
            }),
        }
    }

    fn effect(&self, _input: &Value) -> ToolEffect {
        ToolEffect::Mutating
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Workspace, _call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        if self.session.permissions.mode() == EffectiveMode::Plan {
            self.session.set_mode(EffectiveMode::Default);
        }
        Box::pin(std::future::ready(ToolOutput::new("The user agrees with the plan. Begin with it.", &input)))
    }
}

/// Gives the model the text of a skill.
pub(crate) struct SkillTool {
    pub(crate) session: Arc<Session>,
}

impl Tool for SkillTool {
    fn name(&self) -> ToolName {
        ToolName::Skill
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Reads you the instructions of a skill, by its name. Use it before you begin work that a \
                          skill is for, and then follow it."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "skill": { "type": "string", "description": "The skill" },
                    "args": { "type": "string", "description": "What it is used with" },
                },
                "required": ["skill"],
            }),
        }
    }

    fn effect(&self, _input: &Value) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Workspace, _call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        let name = skill_name(input["skill"].as_str().unwrap_or_default());
        let args = input["args"].as_str().unwrap_or_default();
        let found = self.session.definitions().saved_prompts.get(name).cloned();
        let output = match found {
            Some(skill) => {
                let text = format!("Its files are in {}.\n\n{}", skill.folder.display(), skill.expand(args));
                ToolOutput::new(text, &json!({ "success": true, "commandName": name }))
            }
            None => ToolOutput::failure(format!("There is no skill {name}")),
        };
        Box::pin(std::future::ready(output))
    }
}
