//! Structured output: a tool whose input is the final answer.

use futures_util::future::BoxFuture;
use jsonschema::Validator;
use parking_lot::Mutex;
use quipu_message::{Entry, Json, Maybe, ToolName, ToolUseId, attachment};
use serde_json::Value;

use crate::attachments::new_attachment;
use crate::error::EngineError;
use crate::tool::{CallContext, Tool, ToolDefinition, ToolEffect, ToolOutput, Workspace};

/// The attachment that stores the answer in the transcript.
pub(crate) fn output_attachment(call: &ToolUseId, answer: &Json) -> Entry {
    let (data, tool_use_id) = (Maybe::Value(answer.clone()), Maybe::Value(call.clone()));
    let attached = attachment::StructuredOutput { data, tool_use_id, ..attachment::StructuredOutput::default() };
    let attached = attachment::Attachment::StructuredOutput(Box::new(attached));
    Entry::Attachment(Box::new(new_attachment(attached)))
}

/// Takes the final answer and validates it against a schema.
pub(crate) struct StructuredOutputTool {
    schema: Value,
    validator: Validator,
    output: Mutex<Option<Json>>,
}

impl StructuredOutputTool {
    /// A tool for the schema of `--json-schema`. Fails if that is not a valid schema.
    pub(crate) fn from_flag(schema: &str) -> Result<Self, EngineError> {
        let bad =
            |error: serde_json::Error| EngineError::InvalidFlag { flag: "--json-schema", reason: error.to_string() };
        Self::new(&Json::parse(schema).map_err(bad)?)
    }

    /// A tool for a JSON schema. Fails if it is not valid.
    pub(crate) fn new(schema: &Json) -> Result<Self, EngineError> {
        let schema = schema.to_value();
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| EngineError::InvalidFlag { flag: "--json-schema", reason: error.to_string() })?;
        Ok(Self { schema, validator, output: Mutex::default() })
    }

    /// Removes and returns the answer; `None` if the model gave none since the last call.
    pub(crate) fn take_output(&self) -> Option<Json> {
        self.output.lock().take()
    }
}

impl Tool for StructuredOutputTool {
    fn name(&self) -> ToolName {
        ToolName::StructuredOutput
    }

    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name(),
            description: "Gives the final answer in the requested form. Call it once, at the end, with the \
                          whole answer as its input."
                .to_owned(),
            input_schema: self.schema.clone(),
        }
    }

    fn effect(&self, _input: &Value) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Workspace, _call: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        let wrong: Vec<String> =
            self.validator.iter_errors(&input).map(|e| format!("{}: {e}", e.instance_path())).collect();
        let output = if wrong.is_empty() {
            *self.output.lock() = Some(Json::from(input));
            let text = "Structured output provided successfully";
            ToolOutput::new(text, &text)
        } else {
            ToolOutput::failure(format!("Output does not match required schema: {}", wrong.join("; ")))
        };
        Box::pin(std::future::ready(output))
    }
}
