//! Hooks: closures that the agent calls at certain events.

use std::sync::Arc;
use std::time::Duration;

use quipu_message::Json;
use quipu_message::control::request::HookCallback;
use quipu_message::hook::{HookEvent, HookOutput};

use crate::callbacks::{CallbackContext, HookFn};

/// A closure for a hook event; the type of its argument names the event.
///
/// Hooks of the same event run concurrently.
///
/// ```
/// use quipu_sdk::hook::{HookOutput, PreToolUse, PreToolUseOutput};
/// use quipu_sdk::{Hook, Options};
///
/// let careful = Hook::on(|call: PreToolUse, _| async move {
///     match call.tool_input.text().contains("rm -rf") {
///         true => PreToolUseOutput::deny("Nothing is removed here."),
///         false => HookOutput::empty(),
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
    /// A hook for the event `E`. An input that is not an `E` makes it fail.
    pub fn on<E, F, R>(hook: F) -> Self
    where
        E: HookEvent,
        F: Fn(E, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = HookOutput<E::Specific>> + Send + 'static,
    {
        let hook = Arc::new(hook);
        Self::new(E::NAME, move |call, context| {
            let hook = Arc::clone(&hook);
            async move {
                let event = call.input.read::<E>().map_err(|error| format!("{} cannot be read: {error}", E::NAME))?;
                Ok(hook(event, context).await.to_json())
            }
        })
    }

    /// A hook for an event by name, for events without a type in this crate.
    pub fn on_event<F, R>(event: impl Into<String>, hook: F) -> Self
    where
        F: Fn(Json, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        let hook = Arc::new(hook);
        Self::new(event, move |call, context| {
            let hook = Arc::clone(&hook);
            async move { hook(call.input, context).await }
        })
    }

    fn new<F, R>(event: impl Into<String>, run: F) -> Self
    where
        F: Fn(HookCallback, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        let run: HookFn = Arc::new(move |call, context| Box::pin(run(call, context)));
        Self { event: event.into(), matcher: None, timeout: None, blocks_on_failure: false, callback: run }
    }

    /// Limits the hook to tools or sources that match a name or a pattern such as `Edit|Write`.
    #[must_use]
    pub fn matching(mut self, matcher: impl Into<String>) -> Self {
        self.matcher = Some(matcher.into());
        self
    }

    /// Time limit; a hook that takes longer fails.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A failure of the hook blocks the action. Without this, a hook that fails is ignored.
    #[must_use]
    pub fn blocking_on_failure(mut self) -> Self {
        self.blocks_on_failure = true;
        self
    }
}
