//! What a hook answers, typed by its event.

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::specific::{
    Asks, Decides, Informs, PermissionRequestSpecific, PostToolUseSpecific, PreToolUseSpecific, RequestDecision,
};
use super::{HookCommon, HookEvent};
use crate::control::Allow;
use crate::{Json, Maybe};

/// What a hook answers: what any hook may, and what only hooks of its event may.
///
/// ```
/// use quipu_message::hook::{HookAnswer, PreToolUse, PreToolUseAnswer};
///
/// fn before(call: &PreToolUse) -> PreToolUseAnswer {
///     match call.tool_name.as_str() {
///         "Bash" => HookAnswer::deny("no shell here").say("a command was refused"),
///         "Write" => HookAnswer::ask("is this file yours?"),
///         _ => HookAnswer::nothing(),
///     }
/// }
///
/// let call = PreToolUse { tool_name: "Glob".to_owned(), ..PreToolUse::default() };
/// assert_eq!(before(&call).to_json().text(), "{}");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HookAnswer<S> {
    /// What any hook may answer.
    pub common: HookCommon,
    /// What only hooks of the event may answer.
    pub specific: Option<S>,
}

/// What a hook of an event answers.
pub type AnswerTo<E> = HookAnswer<<E as HookEvent>::Specific>;

/// What a hook of `PreToolUse` answers.
pub type PreToolUseAnswer = HookAnswer<PreToolUseSpecific>;

impl<S> HookAnswer<S> {
    /// Nothing: everything goes on as if the hook were not there.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// The hook goes on by itself, and the agent does not wait for it.
    pub fn later() -> Self {
        Self { common: HookCommon { is_async: true.into(), ..HookCommon::default() }, specific: None }
    }

    /// Sets how long a hook that goes on by itself may take.
    pub fn within(mut self, time: Duration) -> Self {
        self.common.async_timeout = Maybe::Value(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into());
        self
    }

    /// Holds up what the event is about: a call, a prompt, the end of a turn. The
    /// model is told why.
    pub fn block(mut self, reason: impl Into<String>) -> Self {
        self.common.decision = Maybe::Value("block".to_owned());
        self.common.reason = Maybe::Value(reason.into());
        self
    }

    /// Ends the turn; the person is told why.
    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.common.go_on = Maybe::Value(false);
        self.common.stop_reason = Maybe::Value(reason.into());
        self
    }

    /// Tells the person something.
    pub fn say(mut self, message: impl Into<String>) -> Self {
        self.common.system_message = Maybe::Value(message.into());
        self
    }

    /// Keeps what the hook printed from being shown.
    pub fn quiet(mut self) -> Self {
        self.common.suppress_output = Maybe::Value(true);
        self
    }
}

impl<S: Informs> HookAnswer<S> {
    /// Tells the model something.
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.specific.get_or_insert_default().inform(context.into());
        self
    }
}

impl<S: Decides> HookAnswer<S> {
    /// It may be done, without asking.
    pub fn allow() -> Self {
        S::allow().into()
    }

    /// It may not be done; the model is told why.
    pub fn deny(reason: impl Into<String>) -> Self {
        S::deny(reason.into()).into()
    }
}

impl<S: Asks> HookAnswer<S> {
    /// The person is asked, and told why.
    pub fn ask(reason: impl Into<String>) -> Self {
        S::ask(reason.into()).into()
    }
}

impl HookAnswer<PreToolUseSpecific> {
    /// The tool runs with this input, if it may run.
    pub fn with_input(mut self, input: impl Into<Json>) -> Self {
        self.specific.get_or_insert_default().updated_input = Maybe::Value(input.into());
        self
    }
}

impl HookAnswer<PermissionRequestSpecific> {
    /// The tool may run, with this input.
    pub fn allow_with(input: impl Into<Json>) -> Self {
        let allow = Allow { updated_input: Maybe::Value(input.into()), ..Allow::default() };
        let decision = RequestDecision::Allow(Box::new(allow));
        PermissionRequestSpecific { decision, ..PermissionRequestSpecific::default() }.into()
    }
}

impl HookAnswer<PostToolUseSpecific> {
    /// The model is shown this in place of what the tool gave.
    pub fn with_output(mut self, output: impl Into<Json>) -> Self {
        self.specific.get_or_insert_default().updated_tool_output = Maybe::Value(output.into());
        self
    }
}

impl<S: Serialize> HookAnswer<S> {
    /// The answer as it goes over the wire; what is not set is not there.
    pub fn to_json(&self) -> Json {
        Json::of(self)
    }
}

impl<S> Default for HookAnswer<S> {
    fn default() -> Self {
        Self { common: HookCommon::default(), specific: None }
    }
}

impl<S> From<S> for HookAnswer<S> {
    fn from(specific: S) -> Self {
        Self { common: HookCommon::default(), specific: Some(specific) }
    }
}

impl<S: Serialize> Serialize for HookAnswer<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.common.emit(&mut map)?;
        if let Some(specific) = &self.specific {
            map.serialize_entry("hookSpecificOutput", specific)?;
        }
        map.end()
    }
}
