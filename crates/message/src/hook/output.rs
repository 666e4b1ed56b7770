//! What a hook answers, typed by its event.

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::specific::{
    CanAsk, CanDecide, HasAdditionalContext, PermissionRequestDecision, PermissionRequestSpecific, PostToolUseSpecific,
    PreToolUseSpecific,
};
use super::{HookCommonOutput, HookDecision, HookEvent};
use crate::control::Allow;
use crate::{Json, Maybe};

/// What a hook answers: what any hook may, and what only hooks of its event may.
///
/// ```
/// use quipu_message::hook::{HookOutput, PreToolUse, PreToolUseOutput};
///
/// fn before(call: &PreToolUse) -> PreToolUseOutput {
///     match call.tool_name.as_str() {
///         "Bash" => HookOutput::deny("no shell here").with_system_message("a command was refused"),
///         "Write" => HookOutput::ask("is this file yours?"),
///         _ => HookOutput::empty(),
///     }
/// }
///
/// let call = PreToolUse { tool_name: "Glob".to_owned(), ..PreToolUse::default() };
/// assert_eq!(before(&call).to_json().text(), "{}");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HookOutput<S> {
    /// What any hook may answer.
    pub common: HookCommonOutput,
    /// What only hooks of the event may answer.
    pub specific: Option<S>,
}

/// What a hook of an event answers.
pub type HookOutputFor<E> = HookOutput<<E as HookEvent>::Specific>;

/// What a hook of `PreToolUse` answers.
pub type PreToolUseOutput = HookOutput<PreToolUseSpecific>;

impl<S> HookOutput<S> {
    /// Nothing: everything goes on as if the hook were not there.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The hook goes on by itself, and the agent does not wait for it.
    pub fn asynchronous() -> Self {
        Self { common: HookCommonOutput { is_async: true.into(), ..HookCommonOutput::default() }, specific: None }
    }

    /// Sets how long a hook that goes on by itself may take.
    pub fn with_async_timeout(mut self, time: Duration) -> Self {
        self.common.async_timeout = Maybe::Value(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into());
        self
    }

    /// Holds up what the event is about: a call, a prompt, the end of a turn. The
    /// model gets the reason.
    pub fn block(mut self, reason: impl Into<String>) -> Self {
        self.common.decision = HookDecision::Block.into();
        self.common.reason = Maybe::Value(reason.into());
        self
    }

    /// Ends the turn; the user sees the reason.
    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.common.should_continue = Maybe::Value(false);
        self.common.stop_reason = Maybe::Value(reason.into());
        self
    }

    /// Tells the user something.
    pub fn with_system_message(mut self, message: impl Into<String>) -> Self {
        self.common.system_message = Maybe::Value(message.into());
        self
    }

    /// Keeps what the hook printed from being shown.
    pub fn suppress_output(mut self) -> Self {
        self.common.suppress_output = Maybe::Value(true);
        self
    }
}

impl<S: HasAdditionalContext> HookOutput<S> {
    /// Tells the model something.
    pub fn with_additional_context(mut self, context: impl Into<String>) -> Self {
        self.specific.get_or_insert_default().set_additional_context(context.into());
        self
    }
}

impl<S: CanDecide> HookOutput<S> {
    /// It may be done, without asking.
    pub fn allow() -> Self {
        S::allow().into()
    }

    /// It is blocked; the model gets the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        S::deny(reason.into()).into()
    }
}

impl<S: CanAsk> HookOutput<S> {
    /// The user is asked, and told why.
    pub fn ask(reason: impl Into<String>) -> Self {
        S::ask(reason.into()).into()
    }
}

impl HookOutput<PreToolUseSpecific> {
    /// The tool runs with this input, if it may run.
    pub fn with_updated_input(mut self, input: impl Into<Json>) -> Self {
        self.specific.get_or_insert_default().updated_input = Maybe::Value(input.into());
        self
    }
}

impl HookOutput<PermissionRequestSpecific> {
    /// The tool may run, with this input.
    pub fn allow_with_input(input: impl Into<Json>) -> Self {
        let allow = Allow { updated_input: Maybe::Value(input.into()), ..Allow::default() };
        let decision = PermissionRequestDecision::Allow(Box::new(allow));
        PermissionRequestSpecific { decision, ..PermissionRequestSpecific::default() }.into()
    }
}

impl HookOutput<PostToolUseSpecific> {
    /// The model is shown this in place of what the tool gave.
    pub fn with_updated_tool_output(mut self, output: impl Into<Json>) -> Self {
        self.specific.get_or_insert_default().updated_tool_output = Maybe::Value(output.into());
        self
    }
}

impl<S: Serialize> HookOutput<S> {
    /// The answer as it goes over the wire; what is not set is not there.
    pub fn to_json(&self) -> Json {
        Json::from_serialize(self)
    }
}

impl<S> Default for HookOutput<S> {
    fn default() -> Self {
        Self { common: HookCommonOutput::default(), specific: None }
    }
}

impl<S> From<S> for HookOutput<S> {
    fn from(specific: S) -> Self {
        Self { common: HookCommonOutput::default(), specific: Some(specific) }
    }
}

impl<S: Serialize> Serialize for HookOutput<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.common.write_fields(&mut map)?;
        if let Some(specific) = &self.specific {
            map.serialize_entry("hookSpecificOutput", specific)?;
        }
        map.end()
    }
}
