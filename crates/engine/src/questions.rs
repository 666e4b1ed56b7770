//! Tools that speak with the person or the host instead of the machine.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use quipu_message::Json;
use quipu_message::tool::ToolInput;
use serde_json::{Value, json};

use crate::permission::Mode;
use crate::session::Session;
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};

/// Asks the person to choose. The host's leave to run it carries the answers.
pub(crate) struct AskUser;

impl Tool for AskUser {
    fn definition(&self) -> Definition {
        Definition {
            name: "AskUserQuestion".to_owned(),
            description: "Asks the person up to four questions with two to four choices each. Use it when the answer \
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
                    "answers": { "type": "object", "description": "Left out; the person fills it in" },
                },
                "required": ["questions"],
            }),
        }
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Changes
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Place, _call: &'a Call) -> BoxFuture<'a, Output> {
        let output = match ToolInput::read("AskUserQuestion", &Json::from(input.clone())) {
            ToolInput::AskUserQuestion(asked) => {
                let answers = asked.answers.into_option().unwrap_or_default();
                let said: Vec<String> =
                    answers.iter().map(|(question, answer)| format!("\"{question}\"=\"{}\"", answer.words())).collect();
                if said.is_empty() {
                    Output::failure("The person gave no answer")
                } else {
                    let text = format!(
                        "Your questions have been answered: {}. You can now continue with these answers in mind.",
                        said.join(", ")
                    );
                    Output::new(text, &input)
                }
            }
            _ => Output::failure("The answer cannot be read"),
        };
        Box::pin(std::future::ready(output))
    }
}

/// Shows the plan; the host's leave to run it ends plan mode.
pub(crate) struct ExitPlan {
    pub(crate) session: Arc<Session>,
}

impl Tool for ExitPlan {
    fn definition(&self) -> Definition {
        Definition {
            name: "ExitPlanMode".to_owned(),
            description: "Shows the person your finished plan and asks to begin with it. Use it once, in plan mode, \
                          when the plan is ready."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": { "plan": { "type": "string", "description": "The plan, in Markdown" } },
                "required": ["plan"],
            }),
        }
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Changes
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Place, _call: &'a Call) -> BoxFuture<'a, Output> {
        if self.session.state().mode == Mode::Plan {
            self.session.set_mode(Mode::Default);
        }
        Box::pin(std::future::ready(Output::new("The person agrees with the plan. Begin with it.", &input)))
    }
}

/// Reads a skill to the model.
pub(crate) struct Skill {
    pub(crate) session: Arc<Session>,
}

impl Tool for Skill {
    fn definition(&self) -> Definition {
        Definition {
            name: "Skill".to_owned(),
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

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Place, _call: &'a Call) -> BoxFuture<'a, Output> {
        let name = input["skill"].as_str().unwrap_or_default().trim_start_matches('/');
        let args = input["args"].as_str().unwrap_or_default();
        let found = self.session.state().catalog.saved.get(name).cloned();
        let output = match found {
            Some(skill) => {
                let text = format!("Its files are in {}.\n\n{}", skill.folder.display(), skill.expand(args));
                Output::new(text, &json!({ "success": true, "commandName": name }))
            }
            None => Output::failure(format!("There is no skill {name}")),
        };
        Box::pin(std::future::ready(output))
    }
}
