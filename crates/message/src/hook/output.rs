//! Typed hook outputs.

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
/// use quipu_message::ToolName;
/// use quipu_message::hook::{HookOutput, PreToolUse, PreToolUseOutput};
///
/// fn before(call: &PreToolUse) -> PreToolUseOutput {
///     match call.tool_name {
///         ToolName::Bash => HookOutput::deny("no shell here").with_system_message("a command was refused"),
///         ToolName::Write => HookOutput::ask("is this file yours?"),
///         _ => HookOutput::empty(),
///     }
/// }
///
/// let call = PreToolUse { tool_name: ToolName::Glob, ..PreToolUse::default() };
/// assert_eq!(before(&call).to_json().text(), "{}");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HookOutput<S> {
    /// Fields that hooks of every event may set.
    pub common: HookCommonOutput,
    /// Fields that only hooks of this event may set.
    pub specific: Option<S>,
}

/// The output type of a hook of event `E`.
pub type HookOutputFor<E> = HookOutput<<E as HookEvent>::Specific>;

/// The output type of a `PreToolUse` hook.
pub type PreToolUseOutput = HookOutput<PreToolUseSpecific>;

impl<S> HookOutput<S> {
    /// Makes an output that changes nothing.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Makes an output of a hook that continues in the background; the agent does not wait for it.
    pub fn asynchronous() -> Self {
        Self { common: HookCommonOutput { is_async: true.into(), ..HookCommonOutput::default() }, specific: None }
    }

    /// Sets the time limit of a hook that continues in the background.
    pub fn with_async_timeout(mut self, time: Duration) -> Self {
        self.common.async_timeout = Maybe::Value(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into());
        self
    }

    /// Blocks the tool call, the prompt or the end of the turn. The model gets the reason.
    pub fn block(mut self, reason: impl Into<String>) -> Self {
        self.common.decision = HookDecision::Block.into();
        self.common.reason = Maybe::Value(reason.into());
        self
    }

    /// Ends the turn. The user sees the reason.
    pub fn stop(mut self, reason: impl Into<String>) -> Self {
        self.common.should_continue = Maybe::Value(false);
        self.common.stop_reason = Maybe::Value(reason.into());
        self
    }

    /// Sets a message for the user.
    pub fn with_system_message(mut self, message: impl Into<String>) -> Self {
        self.common.system_message = Maybe::Value(message.into());
        self
    }

    /// Hides the hook's stdout from the user.
    pub fn suppress_output(mut self) -> Self {
        self.common.suppress_output = Maybe::Value(true);
        self
    }
}

impl<S: HasAdditionalContext> HookOutput<S> {
    /// Adds context for the model.
    pub fn with_additional_context(mut self, context: impl Into<String>) -> Self {
        self.specific.get_or_insert_default().set_additional_context(context.into());
        self
    }
}

impl<S: CanDecide> HookOutput<S> {
    /// Makes an output that allows the operation without asking the user.
    pub fn allow() -> Self {
        S::allow().into()
    }

    /// Makes an output that denies the operation. The model gets the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        S::deny(reason.into()).into()
    }
}

impl<S: CanAsk> HookOutput<S> {
    /// Makes an output that asks the user. The user sees the reason.
    pub fn ask(reason: impl Into<String>) -> Self {
        S::ask(reason.into()).into()
    }
}

impl HookOutput<PreToolUseSpecific> {
    /// Sets a new input for the tool call, if it is allowed.
    pub fn with_updated_input(mut self, input: impl Into<Json>) -> Self {
        self.specific.get_or_insert_default().updated_input = Maybe::Value(input.into());
        self
    }
}

impl HookOutput<PermissionRequestSpecific> {
    /// Makes an output that allows the tool call with a new input.
    pub fn allow_with_input(input: impl Into<Json>) -> Self {
        let allow = Allow { updated_input: Maybe::Value(input.into()), ..Allow::default() };
        let decision = PermissionRequestDecision::Allow(Box::new(allow));
        PermissionRequestSpecific { decision, ..PermissionRequestSpecific::default() }.into()
    }
}

impl HookOutput<PostToolUseSpecific> {
    /// Replaces the tool's output for the model.
    pub fn with_updated_tool_output(mut self, output: impl Into<Json>) -> Self {
        self.specific.get_or_insert_default().updated_tool_output = Maybe::Value(output.into());
        self
    }
}

impl<S: Serialize> HookOutput<S> {
    /// Returns the output as JSON, with the fields that are set.
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
