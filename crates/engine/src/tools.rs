//! The tools every session has.

use std::sync::Arc;

use quipu_message::Json;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::tool::{Output, Tool};

pub mod read;

/// The tools every session has.
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(read::Read)]
}

/// Reads an input that [`check`](crate::tool::check) has let through.
fn input<T: DeserializeOwned>(input: Value) -> Result<T, Output> {
    Json::from(input).read().map_err(|e| Output::misuse(format!("InputValidationError: {e}")))
}

/// Runs the fallible part of a tool: either way there is an output.
fn settle(done: Result<Output, Output>) -> Output {
    done.unwrap_or_else(|failure| failure)
}
