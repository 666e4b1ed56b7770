//! Permission for a tool call: hooks decide first, then the rules, then the host. Every response that
//! does not clearly allow denies.

use std::sync::Arc;
use std::time::Duration;

use quipu_message::control::permission::PermissionUpdate;
use quipu_message::control::{HostDecision as Answer, RequestBody, request};
use quipu_message::hook::{HookEvent, PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse};
use quipu_message::system::{System, stream_only};
use quipu_message::tool::{ReadInput, ToolInput};
use quipu_message::user_assistant::PermissionDecisionRecord;
use quipu_message::values::{
    DecisionOutcome, DecisionReasonType, DecisionSource, NonExecutionKind, RuleBehavior, SessionActivity,
    SettingsLocation,
};
use quipu_message::{Json, Maybe, ToolName, ToolUse, synthetic};
use tokio::time::timeout;

use crate::agent_context::AgentContext;
use crate::hooks::HookOutcome;
use crate::host::HostError;
use crate::path::TargetPath;
use crate::permission::{
    ApprovalRequest, Decision, DecisionReason, Rule, RuleSource, apply_rules, evaluate_target, file_target,
    needs_user_interaction,
};
use crate::permission_store::store_update;
use crate::sandbox::SandboxProfile;
use crate::tool::{CallContext, Tool, ToolEffect, ToolOutput};

/// Whether a call may run.
pub(crate) enum PermissionOutcome {
    /// It may run with `input`, on the file `target` if it names one; a command in the sandbox `profile`.
    Allowed {
        input: Json,
        target: Option<TargetPath>,
        decision: Option<PermissionDecisionRecord>,
        hook_outcome: HookOutcome,
        profile: SandboxProfile,
    },
    /// It may not run.
    Denied(DeniedCall),
}

/// Why a call may not run.
pub(crate) struct DeniedCall {
    /// The reason, for the model.
    pub(crate) message: String,
    /// Name on the wire of what denied it; `None` for a file that may not be read, which counts as an
    /// error of the call.
    pub(crate) denial_kind: Option<NonExecutionKind>,
    pub(crate) decision: Option<PermissionDecisionRecord>,
    pub(crate) hook_outcome: HookOutcome,
    /// Whether the turn is interrupted too.
    pub(crate) interrupt: bool,
}

/// The target of tracing events, for `--debug`.
const TRACING_TARGET: &str = "quipu::permission";

/// How long a cancelled permission request waits for its turn to be interrupted.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(1);

impl AgentContext<'_> {
    /// Decides whether a tool call may run: by hooks, rules, and a permission request if needed.
    pub(crate) async fn request_permission(&self, call: &ToolUse) -> PermissionOutcome {
        let outcome = self.decide_permission(call).await;
        let tool = &call.name;
        match &outcome {
            PermissionOutcome::Allowed { decision, profile, .. } => {
                let source = decision.as_ref().and_then(|decision| decision.source.text());
                tracing::debug!(target: TRACING_TARGET, %tool, ?source, ?profile, "allowed");
            }
            PermissionOutcome::Denied(denied) => {
                tracing::debug!(target: TRACING_TARGET, %tool, text = %denied.message, "refused")
            }
        }
        outcome
    }

    async fn decide_permission(&self, call: &ToolUse) -> PermissionOutcome {
        let hook_outcome = self.run_pre_tool_hooks(call).await;
        if let Some(reason) = &hook_outcome.deny_reason {
            let text = format!("{} hook error: {reason}", hook_outcome.name());
            let decision = decision_record(
                DecisionOutcome::Reject,
                DecisionSource::Hook,
                Some(DecisionReasonType::Hook),
                Some("hook:PreToolUse"),
            );
            let interrupt = false;
            return PermissionOutcome::Denied(DeniedCall {
                message: text,
                denial_kind: Some(NonExecutionKind::PermissionRule),
                decision,
                hook_outcome,
                interrupt,
            });
        }
        let input = hook_outcome.updated_input.clone().unwrap_or_else(|| call.input.clone());
        let target = file_target(&call.name, &input.to_value(), self.workspace);
        match self.evaluate_rules(&call.name, &input, target.as_ref()) {
            Decision::Deny { message, reason: DecisionReason::Rule { rule, source } } => {
                self.deny_by_rule(call, message, (&rule, source), hook_outcome)
            }
            Decision::Deny { message, reason } => self.deny_by_mode(call, message, &reason, hook_outcome),
            Decision::Allow { reason, profile } if !hook_outcome.ask => {
                let decision = if hook_outcome.allow { hook_decision() } else { rule_decision(call, &reason) };
                PermissionOutcome::Allowed { input, target, decision, hook_outcome, profile }
            }
            // A hook may replace the permission request, unless a rule demands it.
            Decision::Ask(question) if hook_outcome.allow && !hook_outcome.ask && !is_rule_reason(&question.reason) => {
                PermissionOutcome::Allowed {
                    input,
                    target,
                    decision: hook_decision(),
                    hook_outcome,
                    profile: SandboxProfile::None,
                }
            }
            Decision::Ask(question) => self.ask_for_permission(call, (input, target), *question, hook_outcome).await,
            Decision::Allow { reason, .. } => {
                let message = format!("A hook wants {} to be approved.", call.name);
                let question = ApprovalRequest { message, reason, blocked_path: None, suggestions: Vec::new() };
                self.ask_for_permission(call, (input, target), question, hook_outcome).await
            }
        }
    }

    /// The result of a call that would fail even with permission; `None` if it may succeed, or if
    /// reading its file needs permission.
    pub(crate) async fn precheck(&self, tool: &Arc<dyn Tool>, call: &ToolUse) -> Option<ToolOutput> {
        let input = call.input.to_value();
        if tool.effect(&input) == ToolEffect::ReadOnly {
            return None;
        }
        let target = file_target(&call.name, &input, self.workspace)?;
        if !self.may_read(&target) {
            return None;
        }
        let running = CallContext { target: Some(target), ..CallContext::new(call.id.clone()) };
        tool.precheck(&input, self.workspace, &running).await
    }

    /// Whether a file may be read without asking.
    pub(crate) fn may_read(&self, target: &TargetPath) -> bool {
        let read = ReadInput { file_path: target.given.display().to_string(), ..ReadInput::default() };
        let decision = self.evaluate_rules(&ToolName::Read, &Json::from_serialize(&read), Some(target));
        matches!(decision, Decision::Allow { .. })
    }

    fn evaluate_rules(&self, name: &ToolName, input: &Json, target: Option<&TargetPath>) -> Decision {
        let input = input.to_value();
        let decision = self
            .session
            .permissions
            .read(|mode, rules| evaluate_target(mode, rules, name, &input, self.workspace, target));
        match decision {
            // A skill only gives the model a text from the user.
            Decision::Ask(question) if *name == ToolName::Skill && !is_rule_reason(&question.reason) => {
                Decision::allow_unsandboxed(DecisionReason::NoRule)
            }
            decision => decision,
        }
    }

    /// Requests permission from hooks, then from the host or the permission tool.
    async fn ask_for_permission(
        &self,
        call: &ToolUse,
        (input, target): (Json, Option<TargetPath>),
        question: ApprovalRequest,
        hook_outcome: HookOutcome,
    ) -> PermissionOutcome {
        let ApprovalRequest { message, reason, blocked_path, suggestions } = question;
        let suggestions = Some(suggestions).filter(|some| !some.is_empty());
        if let Some(outcome) = self.run_permission_hooks(call, &input, suggestions.clone()).await {
            let outcome = outcome.into_outcome(hook_outcome, &input);
            return self.with_target(outcome, call, (&input, target));
        }
        match self.session.options.permission_prompt_tool.as_deref() {
            _ if self.session.options.no_permission_prompts => {
                return self.deny_without_prompt(call, &message, hook_outcome);
            }
            Some("stdio") => {}
            Some(tool) => {
                let answer = self.ask_permission_tool(tool, call, &input).await;
                let outcome = self.apply_response(answer, input.clone(), hook_outcome);
                return self.with_target(outcome, call, (&input, target));
            }
            None => return self.deny_by_mode(call, message, &reason, hook_outcome),
        }
        let question = request::CanUseTool {
            tool_name: call.name.clone(),
            display_name: Maybe::Value(self.session.mcp.display_name(&call.name)),
            input: input.clone(),
            tool_use_id: Maybe::Value(call.id.clone()),
            description: describe_call(&call.name, &input).into(),
            permission_suggestions: suggestions.as_ref().map(Json::from_serialize).into(),
            blocked_path: blocked_path.map(|path| path.display().to_string()).into(),
            decision_reason_type: reason.wire_type().into(),
            agent_id: self.subagent().map(|subagent| subagent.id.clone()).into(),
            requires_user_interaction: needs_user_interaction(&call.name).then_some(true).into(),
            ..request::CanUseTool::default()
        };
        self.awaiting_permission.lock().push(call.id.clone());
        self.session.set_activity(SessionActivity::RequiresAction);
        let answer = self.session.host.send_request(RequestBody::CanUseTool(Box::new(question)), &self.cancel).await;
        let broken = async { timeout(INTERRUPT_TIMEOUT, self.cancel.cancelled()).await.is_ok() };
        if answer == Err(HostError::Cancelled) && broken.await {
            // The interrupted turn records a result for the call. A background subagent is not
            // interrupted with the turn: there the request counts as denied.
            std::future::pending::<()>().await;
        }
        self.awaiting_permission.lock().retain(|id| *id != call.id);
        let outcome = self.apply_response(answer, input.clone(), hook_outcome);
        self.session.set_activity(SessionActivity::Running);
        self.with_target(outcome, call, (&input, target))
    }

    /// Sets the target of an allowed call, the file of the request or of the changed input, and applies the deny rules
    /// and limits of the session as they are now.
    fn with_target(
        &self,
        outcome: PermissionOutcome,
        call: &ToolUse,
        (asked, resolved): (&Json, Option<TargetPath>),
    ) -> PermissionOutcome {
        let PermissionOutcome::Allowed { input, decision, hook_outcome, profile, .. } = outcome else { return outcome };
        // The file that was shown was approved, not where its name leads by now.
        let is_shown = |target: &TargetPath| resolved.as_ref().is_some_and(|resolved| resolved.given == target.given);
        let target = match file_target(&call.name, &input.to_value(), self.workspace) {
            _ if input == *asked => resolved,
            Some(target) if is_shown(&target) => resolved,
            target => target,
        };
        // Rules and mode may have changed since the request.
        match self.evaluate_rules(&call.name, &input, target.as_ref()) {
            Decision::Deny { message, reason: DecisionReason::Rule { rule, source } } => {
                self.deny_by_rule(call, message, (&rule, source), hook_outcome)
            }
            Decision::Deny { message, reason } => self.deny_by_mode(call, message, &reason, hook_outcome),
            _ => PermissionOutcome::Allowed { input, target, decision, hook_outcome, profile },
        }
    }

    /// Sends a permission request to an MCP tool, which responds like a host.
    async fn ask_permission_tool(&self, name: &str, call: &ToolUse, input: &Json) -> Result<Json, HostError> {
        let found = self.session.mcp.tools().into_iter().find(|tool| tool.name() == name);
        let Some(tool) = found else { return Err(HostError::Failed(format!("there is no tool {name}"))) };
        let question = request::CanUseTool {
            tool_name: call.name.clone(),
            input: input.clone(),
            tool_use_id: Maybe::Value(call.id.clone()),
            ..request::CanUseTool::default()
        };
        let running = CallContext { cancel: self.cancel.child_token(), ..CallContext::new(call.id.clone()) };
        let output = tool.run(Json::from_serialize(&question).to_value(), self.workspace, &running).await;
        let text = output.content.to_text();
        if output.is_error {
            return Err(HostError::Failed(text));
        }
        Json::parse(&text).map_err(|error| HostError::Failed(format!("the answer is not JSON: {error}")))
    }

    /// Turns the response of the host into an outcome, and applies its rule updates.
    fn apply_response(
        &self,
        answer: Result<Json, HostError>,
        input: Json,
        hook_outcome: HookOutcome,
    ) -> PermissionOutcome {
        let refuse = |text: String, decision, hook_outcome, interrupt| {
            let kind = if interrupt { NonExecutionKind::UserRejected } else { NonExecutionKind::PermissionRule };
            PermissionOutcome::Denied(DeniedCall {
                message: text,
                denial_kind: Some(kind),
                decision,
                hook_outcome,
                interrupt,
            })
        };
        let fail = |text: String, hook_outcome| {
            let reason = Some(DecisionReasonType::OtherReason);
            let decision = decision_record(DecisionOutcome::Reject, DecisionSource::Config, reason, None);
            refuse(text, decision, hook_outcome, false)
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return fail(format!("Tool permission request failed: Error: {error}"), hook_outcome),
        };
        match Answer::from_json(&answer) {
            Answer::Allow(allow) => {
                if let Some(updates) = allow.updated_permissions.get() {
                    self.apply_permission_updates(updates);
                }
                let input = allow.updated_input.into_option().unwrap_or(input);
                let decision = decision_record(DecisionOutcome::Accept, DecisionSource::UserTemporary, None, None);
                PermissionOutcome::Allowed {
                    input,
                    target: None,
                    decision,
                    hook_outcome,
                    profile: SandboxProfile::None,
                }
            }
            Answer::Deny(deny) => {
                let interrupt = deny.interrupt.is_true();
                let text = match (deny.message.into_option().filter(|text| !text.is_empty()), self.is_main()) {
                    (Some(text), _) => text,
                    (None, true) => synthetic::reject_text(None),
                    (None, false) => synthetic::subagent_reject_text(),
                };
                refuse(
                    text,
                    decision_record(DecisionOutcome::Reject, DecisionSource::UserReject, None, None),
                    hook_outcome,
                    interrupt,
                )
            }
            Answer::Invalid { reason } => {
                let text = format!(
                    "Tool permission request failed: the answer must be {{behavior: 'allow', updatedInput?}} or \
                     {{behavior: 'deny', message}}, and {reason}"
                );
                fail(text, hook_outcome)
            }
        }
    }

    /// Applies the rule updates of a permission response, as far as settings allow them, and stores them
    /// where they belong.
    pub(crate) fn apply_permission_updates(&self, updates: &Json) {
        let Ok(updates) = updates.read::<Vec<PermissionUpdate>>() else { return };
        let only_managed = self.session.settings().has_only_managed_rules();
        let is_confined = self.workspace.is_confined();
        for update in updates.into_iter().filter(|update| may_apply(update, only_managed, is_confined)) {
            let applied = self.session.permissions.change_rules(|rules| {
                let mode = rules.apply(&update, self.workspace);
                apply_rules(rules, self.workspace);
                mode
            });
            self.session.memory.clear_path_rules();
            match applied {
                Ok(None) => {}
                Ok(Some(mode)) if self.session.can_use_mode(mode) => self.session.set_mode(mode),
                // An invalid update changes nothing.
                Ok(Some(_)) | Err(_) => continue,
            }
            if let Err(warning) = store_update(self.session, &update) {
                self.session.output.warn_on_stderr(warning);
            }
        }
    }

    /// Permission would have to be requested, and no host answers requests.
    fn deny_without_prompt(&self, call: &ToolUse, message: &str, hook_outcome: HookOutcome) -> PermissionOutcome {
        let reason = "nobody can approve it in this session, so the request was denied";
        let message = format!("{message} Permission was denied: {reason}. Continue without it.");
        self.emit_denied(call, &message, Some(DecisionReasonType::AsyncAgent), Some(reason));
        let decision = decision_record(
            DecisionOutcome::Reject,
            DecisionSource::Config,
            Some(DecisionReasonType::AsyncAgent),
            Some("unknown"),
        );
        let kind = Some(NonExecutionKind::PermissionRule);
        PermissionOutcome::Denied(DeniedCall { message, denial_kind: kind, decision, hook_outcome, interrupt: false })
    }

    fn emit_denied(&self, call: &ToolUse, message: &str, kind: Option<DecisionReasonType>, reason: Option<&str>) {
        if self.is_main() {
            self.session.emit_system(System::PermissionDenied(Box::new(stream_only::SystemPermissionDenied {
                tool_name: Maybe::Value(call.name.clone()),
                tool_use_id: Maybe::Value(call.id.clone()),
                message: Maybe::Value(message.to_owned()),
                decision_reason_type: kind.into(),
                decision_reason: reason.map(str::to_owned).into(),
                envelope: self.session.output.envelope(),
                ..stream_only::SystemPermissionDenied::default()
            })));
        }
    }

    /// A rule refuses.
    fn deny_by_rule(
        &self,
        call: &ToolUse,
        message: String,
        by: (&Rule, RuleSource),
        hook_outcome: HookOutcome,
    ) -> PermissionOutcome {
        let (rule, source) = by;
        let kind = rule_reason_type(call, rule);
        let decision =
            |from: DecisionSource| decision_record(DecisionOutcome::Reject, from, Some(kind.clone()), Some("rule"));
        if call.name == ToolName::Read {
            let decision =
                decision(if source == RuleSource::User { DecisionSource::UserReject } else { DecisionSource::Config });
            return PermissionOutcome::Denied(DeniedCall {
                message,
                denial_kind: None,
                decision,
                hook_outcome,
                interrupt: false,
            });
        }
        self.emit_denied(call, &message, Some(kind.clone()), None);
        let (kind, decision) = (Some(NonExecutionKind::PermissionRule), decision(DecisionSource::Config));
        PermissionOutcome::Denied(DeniedCall { message, denial_kind: kind, decision, hook_outcome, interrupt: false })
    }

    /// Denies a call because of the permission mode, or because no host can be asked.
    fn deny_by_mode(
        &self,
        call: &ToolUse,
        message: String,
        reason: &DecisionReason,
        hook_outcome: HookOutcome,
    ) -> PermissionOutcome {
        self.emit_denied(call, &message, reason.wire_type(), None);
        let decision =
            decision_record(DecisionOutcome::Reject, DecisionSource::Config, None, Some(&reason_code(reason)));
        let kind = Some(NonExecutionKind::UserRejected);
        PermissionOutcome::Denied(DeniedCall { message, denial_kind: kind, decision, hook_outcome, interrupt: false })
    }

    async fn run_pre_tool_hooks(&self, call: &ToolUse) -> HookOutcome {
        let input = PreToolUse {
            tool_name: call.name.clone(),
            tool_input: call.input.clone(),
            tool_use_id: Maybe::Value(call.id.clone()),
            base: self.hook_base(),
            ..PreToolUse::default()
        };
        self.session.run_hooks(input, Some(call.name.as_str()), Some(&call.id), &self.cancel).await
    }

    pub(crate) async fn run_post_tool_hooks(
        &self,
        call: &ToolUse,
        input: &Json,
        output: &ToolOutput,
        time: Duration,
    ) -> HookOutcome {
        let (tool_name, tool_input) = (call.name.clone(), input.clone());
        let tool_use_id = Maybe::Value(call.id.clone());
        let duration_ms = Maybe::Value(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into());
        let base = self.hook_base();
        if output.is_error {
            let said = PostToolUseFailure {
                tool_name,
                tool_input,
                tool_use_id,
                error: output.content.to_text(),
                is_interrupt: Maybe::Value(self.cancel.is_cancelled()),
                duration_ms,
                base,
                ..PostToolUseFailure::default()
            };
            self.session.run_hooks(said, Some(call.name.as_str()), Some(&call.id), &self.cancel).await
        } else {
            let said = PostToolUse {
                tool_name,
                tool_input,
                tool_response: output.raw.clone().map(Json::from).into(),
                tool_use_id,
                duration_ms,
                base,
                ..PostToolUse::default()
            };
            self.session.run_hooks(said, Some(call.name.as_str()), Some(&call.id), &self.cancel).await
        }
    }

    async fn run_permission_hooks(
        &self,
        call: &ToolUse,
        input: &Json,
        suggestions: Option<Vec<PermissionUpdate>>,
    ) -> Option<HookDecision> {
        if !self.session.hooks.has_hooks_for(PermissionRequest::NAME) {
            return None;
        }
        let said = PermissionRequest {
            tool_name: call.name.clone(),
            tool_input: input.clone(),
            permission_suggestions: suggestions.into(),
            base: self.hook_base(),
            ..PermissionRequest::default()
        };
        let hook_outcome = self.session.run_hooks(said, Some(call.name.as_str()), Some(&call.id), &self.cancel).await;
        if let Some(reason) = hook_outcome.deny_reason {
            return Some(HookDecision::Deny(reason));
        }
        match hook_outcome.permission_response.as_ref().map(Answer::from_json) {
            Some(Answer::Allow(allow)) => Some(HookDecision::Allow(allow.updated_input.into_option())),
            Some(Answer::Deny(deny)) => Some(HookDecision::Deny(deny.message.into_option().unwrap_or_default())),
            // An invalid output decides nothing; the host decides then.
            Some(Answer::Invalid { .. }) | None => None,
        }
    }
}

/// Whether a host may make an update. It may not change managed rules; if only those may allow, it may
/// only restrict. It may not add folders to a session that is confined to its own.
fn may_apply(update: &PermissionUpdate, only_managed: bool, is_confined: bool) -> bool {
    let may_change = |source: &SettingsLocation| *source != SettingsLocation::PolicySettings;
    match update {
        PermissionUpdate::AddRules(body) => {
            let allows = body.behavior == RuleBehavior::Allow;
            may_change(&body.destination) && !(only_managed && allows)
        }
        PermissionUpdate::ReplaceRules(body) => may_change(&body.destination) && !only_managed,
        PermissionUpdate::RemoveRules(body) => {
            let allows = body.behavior == RuleBehavior::Allow;
            may_change(&body.destination) && (allows || !only_managed)
        }
        PermissionUpdate::RemoveDirectories(_) => true,
        PermissionUpdate::SetMode(body) => may_change(&body.destination) && !only_managed,
        PermissionUpdate::AddDirectories(body) => may_change(&body.destination) && !only_managed && !is_confined,
        _ => !only_managed,
    }
}

/// The decision of a permission hook.
enum HookDecision {
    Allow(Option<Json>),
    Deny(String),
}

impl HookDecision {
    fn into_outcome(self, hook_outcome: HookOutcome, input: &Json) -> PermissionOutcome {
        match self {
            Self::Allow(updated) => {
                let input = updated.unwrap_or_else(|| input.clone());
                PermissionOutcome::Allowed {
                    input,
                    target: None,
                    decision: hook_decision(),
                    hook_outcome,
                    profile: SandboxProfile::None,
                }
            }
            Self::Deny(reason) => {
                let text = if reason.is_empty() { "A hook refused this call".to_owned() } else { reason };
                let decision = decision_record(
                    DecisionOutcome::Reject,
                    DecisionSource::Hook,
                    Some(DecisionReasonType::Hook),
                    Some("hook:PermissionRequest"),
                );
                PermissionOutcome::Denied(DeniedCall {
                    message: text,
                    denial_kind: Some(NonExecutionKind::PermissionRule),
                    decision,
                    hook_outcome,
                    interrupt: false,
                })
            }
        }
    }
}

fn decision_record(
    decision: DecisionOutcome,
    source: DecisionSource,
    reason_type: Option<DecisionReasonType>,
    code: Option<&str>,
) -> Option<PermissionDecisionRecord> {
    Some(PermissionDecisionRecord {
        decision,
        source: source.into(),
        reason_type: reason_type.into(),
        reason_code: code.map(str::to_owned).into(),
        ..PermissionDecisionRecord::default()
    })
}

fn hook_decision() -> Option<PermissionDecisionRecord> {
    decision_record(DecisionOutcome::Accept, DecisionSource::Hook, Some(DecisionReasonType::Hook), None)
}

fn rule_decision(call: &ToolUse, reason: &DecisionReason) -> Option<PermissionDecisionRecord> {
    let (kind, source) = match reason {
        DecisionReason::Rule { rule, source } => {
            (Some(rule_reason_type(call, rule)), Some(SettingsLocation::from(*source)))
        }
        _ => (reason.wire_type(), None),
    };
    let decision = decision_record(DecisionOutcome::Accept, DecisionSource::Config, kind, None)?;
    Some(PermissionDecisionRecord { rule_source: source.into(), ..decision })
}

/// Name on the wire for the decision of a rule. A rule with a pattern for commands decides about the
/// subcommands, even if there is only one.
fn rule_reason_type(call: &ToolUse, rule: &Rule) -> DecisionReasonType {
    if call.name == ToolName::Bash && rule.content.is_some() {
        DecisionReasonType::SubcommandResults
    } else {
        DecisionReasonType::Rule
    }
}

fn is_rule_reason(reason: &DecisionReason) -> bool {
    matches!(reason, DecisionReason::Rule { .. })
}

/// Code of the reason of a denial, for the transcript.
fn reason_code(reason: &DecisionReason) -> String {
    match reason {
        DecisionReason::Mode(mode) => format!("mode:{mode}"),
        DecisionReason::Rule { .. } => "rule".to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// A short description of a call, from its input; `None` for tools without one.
fn describe_call(name: &ToolName, input: &Json) -> Option<String> {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match ToolInput::from_name_and_json(name, input) {
        ToolInput::Bash(bash) => Some(bash.description.into_option().unwrap_or(bash.command)),
        ToolInput::Write(write) => Some(file_name(&write.file_path)),
        ToolInput::Edit(edit) => Some(file_name(&edit.file_path)),
        ToolInput::WebFetch(fetch) => Some(fetch.url),
        _ => None,
    }
}
