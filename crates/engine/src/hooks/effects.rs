//! What hooks say, put together.

use std::time::Duration;

use quipu_message::attachment::{
    Attachment, AttachmentLine, HookBlocked, HookContext, HookFailed, HookMessage, HookSucceeded, Rendered,
};
use quipu_message::hook::{HookOutput, PermissionDecision};
use quipu_message::{Content, Entry, Json, Maybe, ToolUseId};
use serde::Serialize;

use crate::clock::fresh;
use crate::talk::stamped_attachment;

/// What one hook did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ran {
    /// The command, or `callback`.
    pub command: String,
    /// Whether it is a command of a settings file.
    pub is_command: bool,
    /// What it said.
    pub said: HookOutput,
    /// What it printed.
    pub stdout: String,
    /// What it complained.
    pub stderr: String,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// Whether it blocks by its exit code.
    pub blocked: bool,
    /// Why it failed, without blocking anything.
    pub failure: Option<String>,
    /// How long it took.
    pub time: Duration,
}

impl Ran {
    /// Whether it is a command that failed.
    fn failed(&self) -> bool {
        self.is_command && self.failure.is_some()
    }
}

/// What the hooks of one event say together: a refusal beats a question, a question
/// beats an allowance.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Refused, and why.
    pub deny: Option<String>,
    /// The host must be asked.
    pub ask: bool,
    /// Allowed without asking.
    pub allow: bool,
    /// The input to use instead.
    pub updated_input: Option<Json>,
    /// The output to show instead.
    pub updated_output: Option<Json>,
    /// Blocked, and why.
    pub blocks: Vec<String>,
    /// The turn shall end, and why.
    pub stop: Option<String>,
    /// What the person is told.
    pub messages: Vec<String>,
    /// What the file keeps and the model sees.
    pub attachments: Vec<Entry>,
    /// What ran.
    pub ran: Vec<Ran>,
    /// A permission request's answer.
    pub answer: Option<Json>,
    event: String,
    name: String,
    call: ToolUseId,
}

/// Why a hook blocks, as its attachment says it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blocking<'a> {
    blocking_error: &'a str,
    command: &'a str,
}

impl Effects {
    pub(super) fn new(event: &str, name: &str, call: Option<&ToolUseId>) -> Self {
        let call = call.cloned().unwrap_or_else(|| format!("hook-{}", fresh()).into());
        Self { event: event.to_owned(), name: name.to_owned(), call, ..Self::default() }
    }

    /// The hooks' name: the event and what it is about.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The call, or the id made up for events without one.
    pub(crate) fn call(&self) -> &ToolUseId {
        &self.call
    }

    /// The commands that failed without blocking anything, in words.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        let failed = self.ran.iter().filter(|ran| ran.failed());
        failed.map(|ran| {
            let why = ran.failure.as_deref().unwrap_or_default();
            let said = Some(ran.stderr.trim_end()).filter(|said| !said.is_empty());
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            format!("{} hook [{}] failed, {why}{said}", self.name, ran.command)
        })
    }

    pub(super) fn take(&mut self, ran: Ran) {
        let said = &ran.said.common;
        let specific = ran.said.specific.get();
        let reason = said.reason.text().unwrap_or_default().to_owned();
        let after = self.event.starts_with("PostTool");
        if ran.blocked {
            let shown = format!("[{}]: {}", ran.command, ran.stderr);
            if after {
                self.attach_blocked(&shown, &ran.command);
            }
            self.refuse(shown);
        } else if said.decision.text() == Some("block") {
            self.attach_blocked(&reason, &ran.command);
            self.refuse(reason.clone());
        } else if said.decision.text() == Some("approve") {
            self.allow = true;
        }
        if let Some(message) = said.system_message.text().map(str::to_owned) {
            self.attach_message(&message);
            self.messages.push(message);
        }
        if let Some(specific) = specific {
            let why = specific.permission_decision_reason.text().unwrap_or_default().to_owned();
            match specific.permission_decision.get() {
                Some(PermissionDecision::Deny) => self.refuse(why),
                Some(PermissionDecision::Ask) => self.ask = true,
                Some(PermissionDecision::Allow) => self.allow = true,
                _ => {}
            }
            if let Some(input) = specific.updated_input.get() {
                self.updated_input = Some(input.clone());
            }
            if let Some(output) = specific.updated_tool_output.get() {
                self.updated_output = Some(output.clone());
            }
            if let Some(answer) = specific.decision.get() {
                self.answer = Some(answer.clone());
            }
            if let Some(context) = specific.additional_context.text().map(str::to_owned) {
                self.attach_context(context);
            }
        }
        if said.go_on == Maybe::Value(false) {
            self.stop = Some(said.stop_reason.text().unwrap_or_default().to_owned());
        }
        let speaks = matches!(self.event.as_str(), "UserPromptSubmit" | "SessionStart");
        if ran.is_command && speaks && ran.exit_code == Some(0) && specific.is_none() && !ran.stdout.trim().is_empty() {
            self.attach_success(&ran);
        }
        if ran.failed() {
            self.attach_failure(&ran);
        }
        self.ran.push(ran);
    }

    fn refuse(&mut self, why: String) {
        self.blocks.push(why.clone());
        self.deny.get_or_insert(why);
    }

    fn attach_context(&mut self, context: String) {
        let told = format!("{} hook adds: {context}", self.name);
        self.attach(Some(told), |hook_name, tool_use_id, hook_event| {
            let content = Maybe::Value(Json::of(&[context]));
            let line = HookContext { content, hook_name, tool_use_id, hook_event, ..HookContext::default() };
            Attachment::HookContext(Box::new(line))
        });
    }

    fn attach_message(&mut self, message: &str) {
        self.attach(None, |hook_name, tool_use_id, hook_event| {
            let content = Maybe::Value(Json::of(message));
            let line = HookMessage { content, hook_name, tool_use_id, hook_event, ..HookMessage::default() };
            Attachment::HookMessage(Box::new(line))
        });
    }

    /// What came before can no longer be stopped: then the model is told of it.
    fn attach_blocked(&mut self, reason: &str, command: &str) {
        let told = self.event.starts_with("PostTool").then(|| format!("{} hook objects: {reason}", self.name));
        self.attach(told, |hook_name, tool_use_id, hook_event| {
            let blocking_error = Maybe::Value(Json::of(&Blocking { blocking_error: reason, command }));
            let line = HookBlocked { blocking_error, hook_name, tool_use_id, hook_event, ..HookBlocked::default() };
            Attachment::HookBlocked(Box::new(line))
        });
    }

    fn attach_success(&mut self, ran: &Ran) {
        let told = format!("{} hook says: {}", self.name, ran.stdout.trim_end());
        self.attach(Some(told), |hook_name, tool_use_id, hook_event| {
            let line = HookSucceeded {
                hook_name,
                tool_use_id,
                hook_event,
                content: Maybe::Value(Json::of(ran.stdout.trim_end())),
                stdout: Maybe::Value(ran.stdout.clone()),
                stderr: Maybe::Value(ran.stderr.clone()),
                exit_code: ran.exit_code.map(serde_json::Number::from).into(),
                command: Maybe::Value(ran.command.clone()),
                ..HookSucceeded::default()
            };
            Attachment::HookSucceeded(Box::new(line))
        });
    }

    fn attach_failure(&mut self, ran: &Ran) {
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

    /// Keeps an attachment; what the model is told of it goes in the person's voice.
    fn attach(
        &mut self,
        told: Option<String>,
        make: impl FnOnce(Maybe<String>, Maybe<ToolUseId>, Maybe<String>) -> Attachment,
    ) {
        let attachment =
            make(Maybe::Value(self.name.clone()), Maybe::Value(self.call.clone()), Maybe::Value(self.event.clone()));
        let rendered =
            told.map(|text| vec![Rendered { content: Maybe::Value(Content::Text(text)), ..Rendered::default() }]);
        let role = rendered.as_ref().map(|_| "user".to_owned());
        let line =
            AttachmentLine { rendered: rendered.into(), rendered_role: role.into(), ..stamped_attachment(attachment) };
        self.attachments.push(Entry::Attachment(Box::new(line)));
    }
}
