//! Hooks: closures that an agent calls when something happens.

use std::sync::Arc;
use std::time::Duration;

use quipu_message::Json;
use quipu_message::control::request::HookCallback;
use quipu_message::hook::{HookEvent, HookOutput};

use crate::callbacks::{CallbackContext, HookFn};

/// A closure for an event. Which event it is for is read off the closure's argument.
///
/// Hooks of the same event run beside each other.
///
/// ```
/// use quipu_sdk::hook::{HookAnswer, PreToolUse, PreToolUseAnswer};
/// use quipu_sdk::{Hook, Options};
///
/// let careful = Hook::on(|call: PreToolUse, _| async move {
///     match call.tool_input.text().contains("rm -rf") {
///         true => PreToolUseAnswer::deny("Nothing is removed here."),
///         false => HookAnswer::nothing(),
///     }
/// });
/// let options = Options::new().hook(careful.matching("Bash"));
/// # let _ = options;
/// ```
#[derive(Clone)]
pub struct Hook {
    pub(crate) event: String,
    pub(crate) matcher: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) blocks_on_failure: bool,
    pub(crate) callback: HookFn,
}

impl Hook {
    /// A hook for the event that its argument names.
    pub fn on<E, F, R>(hook: F) -> Self
    where
        E: HookEvent,
        F: Fn(E, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = HookOutput<E::Specific>> + Send + 'static,
    {
        let hook = Arc::new(hook);
        Self::new(E::NAME, move |due, context| {
            let hook = Arc::clone(&hook);
            async move {
                let event = due.input.read::<E>().map_err(|error| format!("{} cannot be read: {error}", E::NAME))?;
                Ok(hook(event, context).await.to_json())
            }
        })
    }

    /// A hook for an event by its name, for what this crate has no types for.
    pub fn on_event<F, R>(event: impl Into<String>, hook: F) -> Self
    where
        F: Fn(Json, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        let hook = Arc::new(hook);
        Self::new(event, move |due, context| {
            let hook = Arc::clone(&hook);
            async move { hook(due.input, context).await }
        })
    }

    fn new<F, R>(event: impl Into<String>, run: F) -> Self
    where
        F: Fn(HookCallback, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        let run: HookFn = Arc::new(move |due, context| Box::pin(run(due, context)));
        Self { event: event.into(), matcher: None, timeout: None, blocks_on_failure: false, callback: run }
    }

    /// Only for these tools or sources: a name, or a pattern such as `Edit|Write`.
    #[must_use]
    pub fn matching(mut self, matcher: impl Into<String>) -> Self {
        self.matcher = Some(matcher.into());
        self
    }

    /// How long it may take; then it has failed.
    #[must_use]
    pub fn timeout(mut self, patience: Duration) -> Self {
        self.timeout = Some(patience);
        self
    }

    /// What it guards does not happen when the hook fails. Without this, a hook that
    /// fails is as good as none.
    #[must_use]
    pub fn blocking_on_failure(mut self) -> Self {
        self.blocks_on_failure = true;
        self
    }
}
