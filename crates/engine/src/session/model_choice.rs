//! The model of a session and how it thinks, as flags, commands and the host choose them.

use parking_lot::Mutex;
use quipu_message::values::ThinkingDisplay;

/// The model of a session and how it thinks.
#[derive(Debug)]
pub(crate) struct ModelChoice {
    state: Mutex<ModelParameters>,
}

/// The model and its parameters at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelParameters {
    /// The full name of the model.
    pub(crate) model: String,
    /// The model in permission mode `plan`; `None` if it is the same.
    pub(crate) planning_model: Option<String>,
    /// The effort level; `None` if settings choose it.
    pub(crate) effort: Option<String>,
    /// The most tokens of thinking, 0 for none; `None` if the model chooses.
    pub(crate) max_thinking_tokens: Option<u64>,
    /// How thinking is displayed; `None` if the output format chooses.
    pub(crate) thinking_display: Option<ThinkingDisplay>,
}

impl ModelChoice {
    /// A choice that begins with these parameters.
    pub(crate) fn new(parameters: ModelParameters) -> Self {
        Self { state: Mutex::new(parameters) }
    }

    /// The full name of the model.
    pub(crate) fn model(&self) -> String {
        self.state.lock().model.clone()
    }

    /// A copy of the model and all parameters.
    pub(crate) fn parameters(&self) -> ModelParameters {
        self.state.lock().clone()
    }

    /// Changes parameters, and returns what `change` returns.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut ModelParameters) -> T) -> T {
        change(&mut self.state.lock())
    }
}
