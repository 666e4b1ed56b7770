//! Whether a call may run: hooks first, then the rules, then the host. Whatever is
//! not clearly an allowance is a refusal.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use quipu_message::control::permission::PermissionUpdate;
use quipu_message::control::{RequestBody, Verdict as Answer, request};
use quipu_message::hook::{HookBase, HookEvent, PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse};
use quipu_message::system::{System, live};
use quipu_message::tool::ReadInput;
use quipu_message::turn::PermissionDecision;
use quipu_message::{Json, Maybe, ToolUse, synthetic};
use tokio::time::timeout;

use crate::hooks::Effects;
use crate::host::HostError;
use crate::permission::{Behavior, Question, Reason, Rule, Source, Verdict, enforce, judge_at, target};
use crate::sandbox::Profile;
use crate::talk::Talk;
use crate::tool::{Call, Output, Target, Tool};

/// Whether a call may run.
pub(crate) enum Permit {
    /// It may, with this input, on this file when it names one; a command in this profile
    /// of the sandbox.
    Allowed {
        input: Json,
        target: Option<Target>,
        decision: Option<PermissionDecision>,
        hooks: Effects,
        profile: Profile,
    },
    /// It may not.
    Refused(Refusal),
}

/// Why a call may not run.
pub(crate) struct Refusal {
    /// What the model is told.
    pub(crate) text: String,
    /// The wire's word for who refused; `None` for a file that may not be read, which is
    /// a mistake of the call.
    pub(crate) kind: Option<&'static str>,
    pub(crate) decision: Option<PermissionDecision>,
    pub(crate) hooks: Effects,
    /// Whether the turn ends too.
    pub(crate) interrupt: bool,
}

/// The target of events for `--debug`.
const DEBUG: &str = "quipu::permission";

/// How long after its questions a turn that is broken off ends.
const SOON: Duration = Duration::from_secs(1);

/// Tools whose whole point is the host's answer.
const QUESTIONS: [&str; 2] = ["AskUserQuestion", "ExitPlanMode"];

impl Talk<'_> {
    /// Asks whoever has a say, in turn.
    pub(crate) async fn permit(&self, call: &ToolUse) -> Permit {
        let permit = self.decide(call).await;
        let tool = &call.name;
        match &permit {
            Permit::Allowed { decision, profile, .. } => {
                let source = decision.as_ref().and_then(|decision| decision.source.text());
                tracing::debug!(target: DEBUG, %tool, ?source, ?profile, "allowed");
            }
            Permit::Refused(refusal) => tracing::debug!(target: DEBUG, %tool, text = %refusal.text, "refused"),
        }
        permit
    }

    async fn decide(&self, call: &ToolUse) -> Permit {
        let hooks = self.before_hooks(call).await;
        if let Some(why) = &hooks.deny {
            let text = format!("{} hook error: {why}", hooks.name());
            let decision = decided("reject", "hook", Some("hook"), Some("hook:PreToolUse"));
            let interrupt = false;
            return Permit::Refused(Refusal { text, kind: Some("permission-rule"), decision, hooks, interrupt });
        }
        let input = hooks.updated_input.clone().unwrap_or_else(|| call.input.clone());
        let target = target(&call.name, &input.value(), self.place);
        match self.verdict(&call.name, &input, target.as_ref()) {
            Verdict::Deny { message, reason: Reason::Rule { rule, source } } => {
                self.denied_by_rule(call, message, (&rule, source), hooks)
            }
            Verdict::Deny { message, reason } => self.denied(call, message, &reason, hooks),
            Verdict::Allow { reason, profile } if !hooks.ask => {
                let decision = if hooks.allow { from_hook() } else { by_rule(call, &reason) };
                Permit::Allowed { input, target, decision, hooks, profile }
            }
            // A hook may allow what a person would be asked; a rule that asks stands.
            Verdict::Ask(question) if hooks.allow && !hooks.ask && !is_rule(&question.reason) => {
                Permit::Allowed { input, target, decision: from_hook(), hooks, profile: Profile::None }
            }
            Verdict::Ask(question) => self.asked(call, (input, target), *question, hooks).await,
            Verdict::Allow { reason, .. } => {
                let message = format!("A hook wants {} to be approved.", call.name);
                let question = Question { message, reason, blocked_path: None, suggestions: Vec::new() };
                self.asked(call, (input, target), question, hooks).await
            }
        }
    }

    /// The result of a call that cannot succeed, whoever permits it; `None` if it may succeed, or if
    /// reading its file is not permitted without asking.
    pub(crate) async fn precheck(&self, tool: &Arc<dyn Tool>, call: &ToolUse) -> Option<Output> {
        let input = call.input.value();
        let target = target(&call.name, &input, self.place)?;
        let read = Json::of(&ReadInput { file_path: target.given.display().to_string(), ..ReadInput::default() });
        if !matches!(self.verdict("Read", &read, Some(&target)), Verdict::Allow { .. }) {
            return None;
        }
        let running = Call { target: Some(target), ..Call::new(call.id.clone()) };
        tool.precheck(&input, self.place, &running).await
    }

    fn verdict(&self, name: &str, input: &Json, target: Option<&Target>) -> Verdict {
        let state = self.session.state();
        match judge_at(state.mode, &state.rules, name, &input.value(), self.place, target) {
            // It only tells the model what the person wrote down.
            Verdict::Ask(question) if name == "Skill" && !is_rule(&question.reason) => Verdict::allow(Reason::Unspoken),
            verdict => verdict,
        }
    }

    /// Somebody must be asked: a hook, then the host.
    async fn asked(
        &self,
        call: &ToolUse,
        (input, target): (Json, Option<Target>),
        question: Question,
        hooks: Effects,
    ) -> Permit {
        let Question { message, reason, blocked_path, suggestions } = question;
        let suggestions = Some(suggestions).filter(|some| !some.is_empty());
        if let Some(permit) = self.permission_hooks(call, &input, suggestions.clone()).await {
            let permit = permit.with(hooks, &input);
            return self.aimed(permit, call, (&input, target));
        }
        match self.session.options.permission_prompt.as_deref() {
            _ if self.session.options.no_permission_prompts => return self.nobody_asked(call, &message, hooks),
            Some("stdio") => {}
            Some(tool) => {
                let answer = self.ask_tool(tool, call, &input).await;
                let permit = self.heard(answer, input.clone(), hooks);
                return self.aimed(permit, call, (&input, target));
            }
            None => return self.denied(call, message, &reason, hooks),
        }
        let question = request::CanUseTool {
            tool_name: call.name.clone(),
            display_name: Maybe::Value(self.session.mcp.display_name(&call.name)),
            input: input.clone(),
            tool_use_id: Maybe::Value(call.id.clone()),
            description: describe(&call.name, &input).into(),
            permission_suggestions: suggestions.as_ref().map(Json::of).into(),
            blocked_path: blocked_path.map(|path| path.display().to_string()).into(),
            decision_reason_type: reason.kind().map(str::to_owned).into(),
            agent_id: self.sub().map(|sub| sub.id.clone()).into(),
            requires_user_interaction: QUESTIONS.contains(&call.name.as_str()).then_some(true).into(),
            ..request::CanUseTool::default()
        };
        self.asking.lock().unwrap_or_else(PoisonError::into_inner).push(call.id.clone());
        self.session.now_doing("requires_action");
        let answer = self.session.host.ask(RequestBody::CanUseTool(Box::new(question)), &self.cancel).await;
        let broken = async { timeout(SOON, self.cancel.cancelled()).await.is_ok() };
        if answer == Err(HostError::Withdrawn) && broken.await {
            // Who broke the turn off will answer the call. In the background no turn is broken
            // off: there it is a refusal.
            std::future::pending::<()>().await;
        }
        self.asking.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| *id != call.id);
        let permit = self.heard(answer, input.clone(), hooks);
        self.session.now_doing("running");
        self.aimed(permit, call, (&input, target))
    }

    /// An allowance for the file that was asked about, or for the one that a changed input names.
    fn aimed(&self, permit: Permit, call: &ToolUse, (asked, resolved): (&Json, Option<Target>)) -> Permit {
        match permit {
            Permit::Allowed { input, decision, hooks, profile, .. } => {
                let same = input == *asked;
                let target = if same { resolved } else { target(&call.name, &input.value(), self.place) };
                Permit::Allowed { input, target, decision, hooks, profile }
            }
            refused => refused,
        }
    }

    /// Asks a tool of an MCP server, which answers like a host.
    async fn ask_tool(&self, name: &str, call: &ToolUse, input: &Json) -> Result<Json, HostError> {
        let found = self.session.mcp.tools().into_iter().find(|tool| tool.definition().name == name);
        let Some(tool) = found else { return Err(HostError::Refused(format!("there is no tool {name}"))) };
        let question = request::CanUseTool {
            tool_name: call.name.clone(),
            input: input.clone(),
            tool_use_id: Maybe::Value(call.id.clone()),
            ..request::CanUseTool::default()
        };
        let running = Call { cancel: self.cancel.child_token(), ..Call::new(call.id.clone()) };
        let output = tool.run(Json::of(&question).value(), self.place, &running).await;
        let text = output.content.to_text();
        if output.is_error {
            return Err(HostError::Refused(text));
        }
        Json::parse(&text).map_err(|error| HostError::Refused(format!("the answer is not JSON: {error}")))
    }

    /// What the host's answer means.
    fn heard(&self, answer: Result<Json, HostError>, input: Json, hooks: Effects) -> Permit {
        let refuse = |text: String, decision, hooks, interrupt| {
            let kind = if interrupt { "user-rejected" } else { "permission-rule" };
            Permit::Refused(Refusal { text, kind: Some(kind), decision, hooks, interrupt })
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let text = format!("Tool permission request failed: Error: {error}");
                return refuse(text, decided("reject", "config", Some("other"), None), hooks, false);
            }
        };
        match Answer::of(&answer) {
            Answer::Allow(allow) => {
                if let Some(updates) = allow.updated_permissions.get() {
                    self.update_permissions(updates);
                }
                let input = allow.updated_input.into_option().unwrap_or(input);
                let decision = decided("accept", "user_temporary", None, None);
                Permit::Allowed { input, target: None, decision, hooks, profile: Profile::None }
            }
            Answer::Deny(deny) => {
                let interrupt = deny.interrupt.is_true();
                let text = match (deny.message.into_option().filter(|text| !text.is_empty()), self.is_main()) {
                    (Some(text), _) => text,
                    (None, true) => synthetic::reject(None),
                    (None, false) => synthetic::subagent_reject(),
                };
                refuse(text, decided("reject", "user_reject", None, None), hooks, interrupt)
            }
            Answer::Invalid { reason } => {
                let text = format!(
                    "Tool permission request failed: the answer must be {{behavior: 'allow', updatedInput?}} or \
                     {{behavior: 'deny', message}}, and {reason}"
                );
                refuse(text, decided("reject", "config", Some("other"), None), hooks, false)
            }
        }
    }

    /// Takes changes of the rules that the host sent along.
    pub(crate) fn update_permissions(&self, updates: &Json) {
        let Ok(updates) = updates.read::<Vec<PermissionUpdate>>() else { return };
        let only_managed = self.session.state().settings.only_managed_rules();
        for update in updates.into_iter().filter(|update| may_apply(update, only_managed)) {
            // A change that cannot be read changes nothing.
            let mode = {
                let mut state = self.session.state();
                let mode = state.rules.apply(&update, self.place);
                enforce(&state.rules, self.place);
                state.path_rules = None;
                mode
            };
            if let Ok(Some(mode)) = mode
                && self.session.may_use(mode)
            {
                self.session.set_mode(mode);
            }
        }
    }

    /// Permission would have to be requested, and no host answers requests.
    fn nobody_asked(&self, call: &ToolUse, message: &str, hooks: Effects) -> Permit {
        let why = "nobody can approve it in this session, so the request was denied";
        let message = format!("{message} Permission was denied: {why}. Continue without it.");
        self.say_denied(call, &message, Some("asyncAgent"), Some(why));
        let decision = decided("reject", "config", Some("asyncAgent"), Some("unknown"));
        let kind = Some("permission-rule");
        Permit::Refused(Refusal { text: message, kind, decision, hooks, interrupt: false })
    }

    fn say_denied(&self, call: &ToolUse, message: &str, kind: Option<&str>, reason: Option<&str>) {
        if self.is_main() {
            self.session.say(System::PermissionDenied(Box::new(live::PermissionDenied {
                tool_name: Maybe::Value(call.name.clone()),
                tool_use_id: Maybe::Value(call.id.clone()),
                message: Maybe::Value(message.to_owned()),
                decision_reason_type: kind.map(str::to_owned).into(),
                decision_reason: reason.map(str::to_owned).into(),
                envelope: self.session.output.envelope(),
                ..live::PermissionDenied::default()
            })));
        }
    }

    /// A rule refuses.
    fn denied_by_rule(&self, call: &ToolUse, message: String, by: (&Rule, Source), hooks: Effects) -> Permit {
        let (rule, source) = by;
        let kind = rule_kind(call, rule);
        let decision = |from: &str| decided("reject", from, Some(kind), Some("rule"));
        if call.name == "Read" {
            let decision = decision(if source == Source::User { "user_reject" } else { "config" });
            return Permit::Refused(Refusal { text: message, kind: None, decision, hooks, interrupt: false });
        }
        self.say_denied(call, &message, Some(kind), None);
        let (kind, decision) = (Some("permission-rule"), decision("config"));
        Permit::Refused(Refusal { text: message, kind, decision, hooks, interrupt: false })
    }

    /// A mode or the want of anybody to ask refuses.
    fn denied(&self, call: &ToolUse, message: String, reason: &Reason, hooks: Effects) -> Permit {
        self.say_denied(call, &message, reason.kind(), None);
        let decision = decided("reject", "config", None, Some(&code(reason)));
        let kind = Some("user-rejected");
        Permit::Refused(Refusal { text: message, kind, decision, hooks, interrupt: false })
    }

    async fn before_hooks(&self, call: &ToolUse) -> Effects {
        let input = PreToolUse {
            tool_name: call.name.clone(),
            tool_input: call.input.clone(),
            tool_use_id: Maybe::Value(call.id.clone()),
            base: self.hook_base(),
            ..PreToolUse::default()
        };
        self.session.hook(input, Some(&call.name), Some(&call.id), &self.cancel).await
    }

    pub(crate) async fn after_hooks(&self, call: &ToolUse, input: &Json, output: &Output, time: Duration) -> Effects {
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
            self.session.hook(said, Some(&call.name), Some(&call.id), &self.cancel).await
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
            self.session.hook(said, Some(&call.name), Some(&call.id), &self.cancel).await
        }
    }

    async fn permission_hooks(
        &self,
        call: &ToolUse,
        input: &Json,
        suggestions: Option<Vec<PermissionUpdate>>,
    ) -> Option<HookSaid> {
        if !self.session.hooks.listen(PermissionRequest::NAME) {
            return None;
        }
        let said = PermissionRequest {
            tool_name: call.name.clone(),
            tool_input: input.clone(),
            permission_suggestions: suggestions.into(),
            base: self.hook_base(),
            ..PermissionRequest::default()
        };
        let effects = self.session.hook(said, Some(&call.name), Some(&call.id), &self.cancel).await;
        if let Some(why) = effects.deny {
            return Some(HookSaid::Deny(why));
        }
        match effects.answer.as_ref().map(Answer::of) {
            Some(Answer::Allow(allow)) => Some(HookSaid::Allow(allow.updated_input.into_option())),
            Some(Answer::Deny(deny)) => Some(HookSaid::Deny(deny.message.into_option().unwrap_or_default())),
            // An answer that cannot be read decides nothing; the next one is asked.
            Some(Answer::Invalid { .. }) | None => None,
        }
    }

    /// What every hook of this talk is told.
    pub(crate) fn hook_base(&self) -> HookBase {
        let sub = self.sub();
        HookBase {
            agent_id: sub.map(|sub| sub.id.clone()).into(),
            agent_type: sub.map(|sub| sub.kind.clone()).into(),
            ..self.session.hook_base()
        }
    }
}

/// Whether a host may make a change. Managed rules are not the host's; where they alone
/// may allow, a change must restrict.
fn may_apply(update: &PermissionUpdate, only_managed: bool) -> bool {
    let may_change = |source: &str| source != Source::Policy.as_str();
    match update {
        PermissionUpdate::AddRules(body) => {
            let allows = Behavior::read(&body.behavior) == Some(Behavior::Allow);
            may_change(&body.destination) && !(only_managed && allows)
        }
        PermissionUpdate::ReplaceRules(body) => may_change(&body.destination) && !only_managed,
        PermissionUpdate::RemoveRules(body) => {
            let allows = Behavior::read(&body.behavior) == Some(Behavior::Allow);
            may_change(&body.destination) && (allows || !only_managed)
        }
        PermissionUpdate::RemoveDirectories(_) => true,
        PermissionUpdate::SetMode(_) | PermissionUpdate::AddDirectories(_) | PermissionUpdate::Unknown(_) => {
            !only_managed
        }
    }
}

/// What a permission hook decided.
enum HookSaid {
    Allow(Option<Json>),
    Deny(String),
}

impl HookSaid {
    fn with(self, hooks: Effects, input: &Json) -> Permit {
        match self {
            Self::Allow(updated) => {
                let input = updated.unwrap_or_else(|| input.clone());
                Permit::Allowed { input, target: None, decision: from_hook(), hooks, profile: Profile::None }
            }
            Self::Deny(why) => {
                let text = if why.is_empty() { "A hook refused this call".to_owned() } else { why };
                let decision = decided("reject", "hook", Some("hook"), Some("hook:PermissionRequest"));
                Permit::Refused(Refusal { text, kind: Some("permission-rule"), decision, hooks, interrupt: false })
            }
        }
    }
}

fn decided(word: &str, source: &str, kind: Option<&str>, code: Option<&str>) -> Option<PermissionDecision> {
    Some(PermissionDecision {
        decision: word.to_owned(),
        source: Maybe::Value(source.to_owned()),
        reason_type: kind.map(str::to_owned).into(),
        reason_code: code.map(str::to_owned).into(),
        ..PermissionDecision::default()
    })
}

fn from_hook() -> Option<PermissionDecision> {
    decided("accept", "hook", Some("hook"), None)
}

fn by_rule(call: &ToolUse, reason: &Reason) -> Option<PermissionDecision> {
    let (kind, source) = match reason {
        Reason::Rule { rule, source } => (Some(rule_kind(call, rule)), Some(source.as_str().to_owned())),
        _ => (reason.kind(), None),
    };
    let decision = decided("accept", "config", kind, None)?;
    Some(PermissionDecision { rule_source: source.into(), ..decision })
}

/// The wire's word for the decision of a rule. One that looks into a command decides about
/// its parts, even where there is only one.
fn rule_kind(call: &ToolUse, rule: &Rule) -> &'static str {
    if call.name == "Bash" && rule.content.is_some() { "subcommandResults" } else { "rule" }
}

fn is_rule(reason: &Reason) -> bool {
    matches!(reason, Reason::Rule { .. })
}

/// Why a call was refused, in one word for the file.
fn code(reason: &Reason) -> String {
    match reason {
        Reason::Mode(mode) => format!("mode:{mode}"),
        Reason::Rule { .. } => "rule".to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// What a call does, in the words of its input.
fn describe(name: &str, input: &Json) -> Option<String> {
    use quipu_message::tool::ToolInput;
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match ToolInput::read(name, input) {
        ToolInput::Bash(bash) => Some(bash.description.into_option().unwrap_or(bash.command)),
        ToolInput::Write(write) => Some(file_name(&write.file_path)),
        ToolInput::Edit(edit) => Some(file_name(&edit.file_path)),
        ToolInput::WebFetch(fetch) => Some(fetch.url),
        _ => None,
    }
}
