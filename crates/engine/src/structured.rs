//! The answer in a form that was asked for: a tool whose input is the answer.

use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use jsonschema::Validator;
use quipu_message::{Entry, Json, Maybe, ToolUseId, attachment};
use serde_json::Value;

use crate::error::EngineError;
use crate::talk::stamped_attachment;
use crate::tool::{Call, Definition, Effect, Output, Place, Tool};

/// The tool's name.
pub(crate) const NAME: &str = "StructuredOutput";

/// The answer, as the file keeps it.
pub(crate) fn kept(call: &ToolUseId, answer: &Json) -> Entry {
    let (data, tool_use_id) = (Maybe::Value(answer.clone()), Maybe::Value(call.clone()));
    let attached = attachment::StructuredOutput { data, tool_use_id, ..attachment::StructuredOutput::default() };
    let attached = attachment::Attachment::StructuredOutput(Box::new(attached));
    Entry::Attachment(Box::new(stamped_attachment(attached)))
}

/// Takes the answer and checks its form.
pub(crate) struct Structured {
    schema: Value,
    validator: Validator,
    given: Mutex<Option<Json>>,
}

impl Structured {
    /// A tool for answers of the form that `--json-schema` gives.
    pub(crate) fn read(schema: &str) -> Result<Self, EngineError> {
        let bad = |error: serde_json::Error| EngineError::Flag { flag: "--json-schema", reason: error.to_string() };
        Self::new(&Json::parse(schema).map_err(bad)?)
    }

    /// A tool for answers of this form.
    pub(crate) fn new(schema: &Json) -> Result<Self, EngineError> {
        let schema = schema.value();
        let validator = jsonschema::validator_for(&schema)
            .map_err(|error| EngineError::Flag { flag: "--json-schema", reason: error.to_string() })?;
        Ok(Self { schema, validator, given: Mutex::default() })
    }

    /// The answer, once.
    pub(crate) fn take(&self) -> Option<Json> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Tool for Structured {
    fn definition(&self) -> Definition {
        Definition {
            name: NAME.to_owned(),
            description: "Gives the final answer in the form that was asked for. Call it once, at the end, with the \
                          whole answer as its input."
                .to_owned(),
            input_schema: self.schema.clone(),
        }
    }

    fn effect(&self, _input: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, input: Value, _place: &'a Place, _call: &'a Call) -> BoxFuture<'a, Output> {
        let wrong: Vec<String> =
            self.validator.iter_errors(&input).map(|e| format!("{}: {e}", e.instance_path())).collect();
        let output = if wrong.is_empty() {
            *self.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(Json::from(input));
            let text = "Structured output provided successfully";
            Output::new(text, &text)
        } else {
            Output::failure(format!("Output does not match required schema: {}", wrong.join("; ")))
        };
        Box::pin(std::future::ready(output))
    }
}
