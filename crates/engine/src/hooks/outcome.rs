//! The combined outcome of the hooks of one event.

use std::time::Duration;

use quipu_message::attachment::{
    Attachment, AttachmentEntry, HookBlocked, HookContext, HookFailed, HookMessage, HookSucceeded, RenderedMessage,
};
use quipu_message::hook::{AnyHookOutput, PermissionDecision};
use quipu_message::{Content, Entry, Json, Maybe, Role, ToolUseId};
use serde::Serialize;

use crate::attachments::new_attachment;
use crate::clock::new_id;

/// One run of a hook.
#[derive(Debug, Clone, Default)]
pub(crate) struct HookRun {
    /// The command line, or `callback`.
    pub command: String,
    /// Whether it is a command of a settings file.
    pub is_command: bool,
    /// Its JSON output.
    pub output: AnyHookOutput,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Its exit code; `None` for a callback, or if a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether it blocks the event.
    pub blocked: bool,
    /// Why it failed; a failure blocks nothing by itself.
    pub failure: Option<String>,
    /// How long it ran.
    pub duration: Duration,
}

impl HookRun {
    /// Whether it is a command, and failed.
    fn has_failed(&self) -> bool {
        self.is_command && self.failure.is_some()
    }
}

/// The combined outcome of the hooks of one event. `deny` wins over `ask`, and `ask` over `allow`.
#[derive(Debug, Default)]
pub(crate) struct HookOutcome {
    /// Why a hook denies the event; `None` if none does.
    pub deny_reason: Option<String>,
    /// Whether a hook wants permission to be requested.
    pub ask: bool,
    /// Whether a hook allows the tool call.
    pub allow: bool,
    /// The tool input to use instead.
    pub updated_input: Option<Json>,
    /// The tool output to use instead.
    pub updated_output: Option<Json>,
    /// Why hooks block the event, one reason per hook.
    pub block_reasons: Vec<String>,
    /// Why a hook ends the turn; `None` if none does.
    pub stop_reason: Option<String>,
    /// Messages for the user.
    pub user_messages: Vec<String>,
    /// Attachments to record; the model sees some of them.
    pub attachments: Vec<Entry>,
    /// The hooks that ran.
    pub runs: Vec<HookRun>,
    /// The decision about a permission request, as JSON.
    pub permission_response: Option<Json>,
    event: String,
    name: String,
    tool_use_id: ToolUseId,
}

/// Why a hook blocks, as its attachment stores it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockingError<'a> {
    blocking_error: &'a str,
    command: &'a str,
}

impl HookOutcome {
    pub(super) fn new(event: &str, name: &str, call: Option<&ToolUseId>) -> Self {
        let call = call.cloned().unwrap_or_else(|| format!("hook-{}", new_id()).into());
        Self { event: event.to_owned(), name: name.to_owned(), tool_use_id: call, ..Self::default() }
    }

    /// The event and its subject, such as `PreToolUse:Bash`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Id of the tool call; a new id for events without one.
    pub(crate) fn tool_use_id(&self) -> &ToolUseId {
        &self.tool_use_id
    }

    /// A sentence for each command that failed without blocking.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        let failed = self.runs.iter().filter(|ran| ran.has_failed());
        failed.map(|ran| {
            let why = ran.failure.as_deref().unwrap_or_default();
            let stderr = Some(ran.stderr.trim_end()).filter(|stderr| !stderr.is_empty());
            let stderr = stderr.map(|stderr| format!(": {stderr}")).unwrap_or_default();
            format!("{} hook [{}] failed, {why}{stderr}", self.name, ran.command)
        })
    }

    pub(super) fn add_run(&mut self, ran: HookRun) {
        let output = &ran.output.common;
        let specific = ran.output.specific.get();
        let reason = output.reason.text().unwrap_or_default().to_owned();
        let after = self.event.starts_with("PostTool");
        if ran.blocked {
            let shown = format!("[{}]: {}", ran.command, ran.stderr);
            if after {
                self.attach_blocked(&shown, &ran.command);
            }
            self.add_block(shown);
        } else if output.decision.text() == Some("block") {
            self.attach_blocked(&reason, &ran.command);
            self.add_block(reason.clone());
        } else if output.decision.text() == Some("approve") {
            self.allow = true;
        }
        if let Some(message) = output.system_message.text().map(str::to_owned) {
            self.attach_message(&message);
            self.user_messages.push(message);
        }
        if let Some(specific) = specific {
            let why = specific.permission_decision_reason.text().unwrap_or_default().to_owned();
            // Output for another event can restrict, but not allow.
            let is_for_event = specific.hook_event_name.text().is_none_or(|event| event == self.event);
            match specific.permission_decision.get() {
                Some(PermissionDecision::Deny) => self.add_block(why),
                Some(PermissionDecision::Ask) => self.ask = true,
                Some(PermissionDecision::Allow) if is_for_event => self.allow = true,
                _ => {}
            }
            if let Some(input) = specific.updated_input.get().filter(|_| is_for_event) {
                self.updated_input = Some(input.clone());
            }
            if let Some(output) = specific.updated_tool_output.get() {
                self.updated_output = Some(output.clone());
            }
            if let Some(answer) = specific.decision.get().filter(|_| is_for_event) {
                self.permission_response = Some(answer.clone());
            }
            if let Some(context) = specific.additional_context.text().map(str::to_owned) {
                self.attach_context(context);
            }
        }
        if output.should_continue == Maybe::Value(false) {
            self.stop_reason = Some(output.stop_reason.text().unwrap_or_default().to_owned());
        }
        let speaks = matches!(self.event.as_str(), "UserPromptSubmit" | "SessionStart");
        if ran.is_command && speaks && ran.exit_code == Some(0) && specific.is_none() && !ran.stdout.trim().is_empty() {
            self.attach_success(&ran);
        }
        if ran.has_failed() {
            self.attach_failure(&ran);
        }
        self.runs.push(ran);
    }

    fn add_block(&mut self, why: String) {
        self.block_reasons.push(why.clone());
        self.deny_reason.get_or_insert(why);
    }

    fn attach_context(&mut self, context: String) {
        let text = format!("{} hook adds: {context}", self.name);
        self.attach(Some(text), |hook_name, tool_use_id, hook_event| {
            let content = Maybe::Value(Json::from_serialize(&[context]));
            let line = HookContext { content, hook_name, tool_use_id, hook_event, ..HookContext::default() };
            Attachment::HookContext(Box::new(line))
        });
    }

    fn attach_message(&mut self, message: &str) {
        self.attach(None, |hook_name, tool_use_id, hook_event| {
            let content = Maybe::Value(Json::from_serialize(message));
            let line = HookMessage { content, hook_name, tool_use_id, hook_event, ..HookMessage::default() };
            Attachment::HookMessage(Box::new(line))
        });
    }

    /// Handles a block of an event that has already happened: the model gets the reason.
    fn attach_blocked(&mut self, reason: &str, command: &str) {
        let text = self.event.starts_with("PostTool").then(|| format!("{} hook objects: {reason}", self.name));
        self.attach(text, |hook_name, tool_use_id, hook_event| {
            let blocking_error = Maybe::Value(Json::from_serialize(&BlockingError { blocking_error: reason, command }));
            let line = HookBlocked { blocking_error, hook_name, tool_use_id, hook_event, ..HookBlocked::default() };
            Attachment::HookBlocked(Box::new(line))
        });
    }

    fn attach_success(&mut self, ran: &HookRun) {
        let text = format!("{} hook says: {}", self.name, ran.stdout.trim_end());
        self.attach(Some(text), |hook_name, tool_use_id, hook_event| {
            let line = HookSucceeded {
                hook_name,
                tool_use_id,
                hook_event,
                content: Maybe::Value(Json::from_serialize(ran.stdout.trim_end())),
                stdout: Maybe::Value(ran.stdout.clone()),
                stderr: Maybe::Value(ran.stderr.clone()),
                exit_code: ran.exit_code.map(serde_json::Number::from).into(),
                command: Maybe::Value(ran.command.clone()),
                ..HookSucceeded::default()
            };
            Attachment::HookSucceeded(Box::new(line))
        });
    }

    fn attach_failure(&mut self, ran: &HookRun) {
        let stderr = if ran.stderr.is_empty() { ran.failure.clone().unwrap_or_default() } else { ran.stderr.clone() };
        self.attach(None, |hook_name, tool_use_id, hook_event| {
            Attachment::HookFailed(Box::new(HookFailed {
                hook_name,
                tool_use_id,
                hook_event,
                stdout: Maybe::Value(ran.stdout.clone()),
                stderr: Maybe::Value(stderr),
                exit_code: ran.exit_code.map(serde_json::Number::from).into(),
                ..HookFailed::default()
            }))
        });
    }

    /// Adds an attachment; the model sees `rendered` as a user message.
    fn attach(
        &mut self,
        told: Option<String>,
        make: impl FnOnce(Maybe<String>, Maybe<ToolUseId>, Maybe<String>) -> Attachment,
    ) {
        let attachment = make(
            Maybe::Value(self.name.clone()),
            Maybe::Value(self.tool_use_id.clone()),
            Maybe::Value(self.event.clone()),
        );
        let rendered = told.map(|text| {
            vec![RenderedMessage { content: Maybe::Value(Content::Text(text)), ..RenderedMessage::default() }]
        });
        let role = rendered.as_ref().map(|_| Role::User);
        let line =
            AttachmentEntry { rendered: rendered.into(), rendered_role: role.into(), ..new_attachment(attachment) };
        self.attachments.push(Entry::Attachment(Box::new(line)));
    }
}

#[cfg(test)]
mod tests {
    use quipu_message::hook::AnyHookSpecific;

    use super::*;

    #[test]
    fn output_for_another_event_allows_nothing() {
        let check = |event: Maybe<String>, decision: PermissionDecision| {
            let specific = AnyHookSpecific {
                hook_event_name: event,
                permission_decision: Maybe::Value(decision),
                ..AnyHookSpecific::default()
            };
            let output = AnyHookOutput { specific: Maybe::Value(specific), ..AnyHookOutput::default() };
            let mut outcome = HookOutcome::new("PreToolUse", "PreToolUse:Bash", None);
            outcome.add_run(HookRun { output, ..HookRun::default() });
            (outcome.allow, outcome.deny_reason.is_some())
        };
        let event = |name: &str| Maybe::Value(name.to_owned());
        assert_eq!(check(event("PreToolUse"), PermissionDecision::Allow), (true, false));
        assert_eq!(check(Maybe::Absent, PermissionDecision::Allow), (true, false));
        assert_eq!(check(event("PostToolUse"), PermissionDecision::Allow), (false, false));
        assert_eq!(check(event("PostToolUse"), PermissionDecision::Deny), (false, true));
    }
}
