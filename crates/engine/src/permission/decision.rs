//! Evaluates one tool call against mode and rules.

use std::path::PathBuf;

use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::{AddRules, PermissionRuleValue};
use quipu_message::values::{DecisionReasonType, RuleBehavior};
use quipu_message::{ToolName, synthetic};
use serde_json::Value;

use super::rules::SourcedRule;
use super::{Behavior, EffectiveMode, Rule, RuleSet, RuleSource, bash, file_tools, web};
use crate::path::TargetPath;
use crate::sandbox::SandboxProfile;
use crate::tool::{DEFAULT_SUBAGENT, Workspace};

/// Result of evaluating a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The call may run.
    Allow {
        /// What allowed the call.
        reason: DecisionReason,
        /// Sandbox to run in. Only shell commands have a profile other than
        /// [`SandboxProfile::None`].
        profile: SandboxProfile,
    },
    /// The call must not run.
    Deny {
        /// Text of the tool result that the model gets.
        message: String,
        /// What denied the call.
        reason: DecisionReason,
    },
    /// The user has to decide.
    Ask(Box<ApprovalRequest>),
}

impl Decision {
    /// Allows the call without a sandbox.
    pub(crate) fn allow_unsandboxed(reason: DecisionReason) -> Self {
        Self::Allow { reason, profile: SandboxProfile::None }
    }
}

/// A decision that is left to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    /// Text of the tool result if there is no way to ask the user.
    pub message: String,
    /// Why the call was not decided by rules and mode.
    pub reason: DecisionReason,
    /// Path outside the session's folders that made approval necessary, if any.
    pub blocked_path: Option<PathBuf>,
    /// Permission updates after which such a call would be allowed.
    pub suggestions: Vec<PermissionUpdate>,
}

/// Reason for a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum DecisionReason {
    /// A rule matched.
    Rule {
        /// The rule that matched.
        rule: Rule,
        /// Settings file or flag that contains the rule.
        source: RuleSource,
    },
    /// The permission mode decided.
    Mode(EffectiveMode),
    /// Each simple command of a shell script was evaluated separately.
    Subcommands,
    /// No rule matched; this is the default for the tool.
    NoRule,
    /// The call could not be parsed; the text says why.
    NotParsed(String),
    /// Decided by whether a sandbox is available.
    Sandbox,
}

impl DecisionReason {
    /// Returns the value used in JSON; `None` if the protocol has no value for it.
    pub fn wire_type(&self) -> Option<DecisionReasonType> {
        match self {
            Self::Rule { .. } => Some(DecisionReasonType::Rule),
            Self::Mode(_) => Some(DecisionReasonType::Mode),
            Self::Subcommands => Some(DecisionReasonType::SubcommandResults),
            Self::NotParsed(_) | Self::Sandbox => Some(DecisionReasonType::OtherReason),
            Self::NoRule => None,
        }
    }

    pub(super) fn from_rule(rule: &SourcedRule) -> Self {
        Self::Rule { rule: rule.rule.clone(), source: rule.source }
    }
}

/// Whether a tool changes nothing outside the conversation, or its own tool calls are evaluated.
fn is_always_allowed(tool: &ToolName) -> bool {
    use ToolName::{Agent, StructuredOutput, Task, TaskOutput, TaskStop, TodoWrite, ToolSearch};
    matches!(tool, TodoWrite | TaskOutput | TaskStop | Task | Agent | StructuredOutput | ToolSearch)
}

/// Whether a tool always needs the user, whatever the mode: the permission response completes
/// its input.
pub(crate) fn needs_user_interaction(tool: &ToolName) -> bool {
    matches!(tool, ToolName::AskUserQuestion | ToolName::ExitPlanMode)
}

/// Evaluates a tool call. Deny rules come first, then ask rules, the mode and allow rules;
/// without a match the user is asked.
pub fn evaluate(mode: EffectiveMode, rules: &RuleSet, tool: &str, input: &Value, workspace: &Workspace) -> Decision {
    let tool = ToolName::from(tool);
    evaluate_target(mode, rules, &tool, input, workspace, file_tools::file_target(&tool, input, workspace).as_ref())
}

/// As [`evaluate`], for a file that was resolved before ([`file_target`](super::file_target)).
/// The tool must open this same resolved path, so that a link that changes in between does
/// not lead to another file than the one evaluated.
pub fn evaluate_target(
    mode: EffectiveMode,
    rules: &RuleSet,
    tool: &ToolName,
    input: &Value,
    workspace: &Workspace,
    target: Option<&TargetPath>,
) -> Decision {
    let ctx = PermissionContext { mode, rules, tool, workspace };
    let decision = match (tool, target) {
        (ToolName::Bash, _) => bash::evaluate(&ctx, input),
        (ToolName::WebFetch, _) => web::evaluate(&ctx, input["url"].as_str().unwrap_or_default()),
        (_, Some(target)) => file_tools::evaluate(&ctx, input, target),
        _ => ctx.evaluate_other_tool(input),
    };
    match decision {
        Decision::Ask(approval) if mode == EffectiveMode::DontAsk => {
            let message = synthetic::automatic_denial_text(&approval.message);
            Decision::Deny { message, reason: DecisionReason::Mode(mode) }
        }
        decision => decision,
    }
}

/// Mode, rules, tool and workspace of one evaluation.
pub(super) struct PermissionContext<'a> {
    pub(super) mode: EffectiveMode,
    pub(super) rules: &'a RuleSet,
    pub(super) tool: &'a ToolName,
    pub(super) workspace: &'a Workspace,
}

impl<'a> PermissionContext<'a> {
    /// Returns the first rule with this behavior that `matches`.
    pub(super) fn find_rule(
        &self,
        behavior: Behavior,
        matches: impl Fn(&SourcedRule) -> bool,
    ) -> Option<&'a SourcedRule> {
        self.rules.with_behavior(behavior).find(|rule| matches(rule))
    }

    /// Decides by deny rules, `bypassPermissions` and ask rules, in this order; `None` if none applies.
    pub(super) fn decide_before_allow_rules(&self, matches: impl Fn(&SourcedRule) -> bool) -> Option<Decision> {
        if let Some(rule) = self.find_rule(Behavior::Deny, &matches) {
            return Some(deny_by_rule(rule));
        }
        if self.mode == EffectiveMode::BypassPermissions {
            return Some(Decision::allow_unsandboxed(DecisionReason::Mode(self.mode)));
        }
        let rule = self.find_rule(Behavior::Ask, &matches)?;
        let message = format!("The rule {} says that {} needs approval.", rule.rule, self.tool);
        Some(ask_decision(message, DecisionReason::from_rule(rule)))
    }

    /// Evaluates a tool that has no module of its own.
    fn evaluate_other_tool(&self, input: &Value) -> Decision {
        let about = |rule: &SourcedRule| {
            let named = match rule.behavior {
                Behavior::Allow => rule.rule.applies_to(self.tool),
                Behavior::Deny | Behavior::Ask => rule.rule.restricts(self.tool),
            };
            named && content_matches(rule, self.tool, input)
        };
        if needs_user_interaction(self.tool) {
            let denied = self.find_rule(Behavior::Deny, about).map(deny_by_rule);
            return denied.unwrap_or_else(|| {
                ask_decision(format!("{} is for a person to answer.", self.tool), DecisionReason::NoRule)
            });
        }
        if let Some(decision) = self.decide_before_allow_rules(about) {
            return decision;
        }
        // A search changes nothing, also while a plan is made.
        let may_run = self.mode != EffectiveMode::Plan || *self.tool == ToolName::WebSearch;
        if let Some(rule) = self.find_rule(Behavior::Allow, about).filter(|_| may_run) {
            return Decision::allow_unsandboxed(DecisionReason::from_rule(rule));
        }
        if is_always_allowed(self.tool) {
            return Decision::allow_unsandboxed(DecisionReason::NoRule);
        }
        let mut decision = ask_decision(format!("{} needs approval.", self.tool), DecisionReason::NoRule);
        let has_rule = self.tool.is_mcp() || *self.tool == ToolName::WebSearch;
        if let (Decision::Ask(approval), true) = (&mut decision, has_rule) {
            approval.suggestions.push(suggest_rules([Rule::new(self.tool.clone(), None)], RuleSource::Local));
        }
        decision
    }
}

/// Whether the content of a rule matches the subagent or skill that the tool takes from the input.
/// For other tools content cannot be compared: it never allows, and always denies or asks.
fn content_matches(rule: &SourcedRule, tool: &ToolName, input: &Value) -> bool {
    let Some(content) = rule.rule.content.as_deref() else { return true };
    let (name, content) = match tool {
        ToolName::Agent | ToolName::Task => {
            (Some(input["subagent_type"].as_str().unwrap_or(DEFAULT_SUBAGENT)), content)
        }
        // A skill may be written as users type it: `/name`.
        ToolName::Skill => (input["skill"].as_str().map(skill_name), skill_name(content)),
        _ => (None, content),
    };
    match name {
        Some(name) => content == name || content.strip_suffix(":*").is_some_and(|start| name.starts_with(start)),
        None => rule.behavior != Behavior::Allow,
    }
}

/// Returns the name of a skill without the slashes that users type before it.
pub(crate) fn skill_name(text: &str) -> &str {
    text.trim_start_matches('/')
}

/// Denies a call because of a rule.
pub(super) fn deny_by_rule(rule: &SourcedRule) -> Decision {
    let reason = format!("the rule {} of {} refuses it", rule.rule, rule.source.as_str());
    Decision::Deny { message: synthetic::automatic_denial_text(&reason), reason: DecisionReason::from_rule(rule) }
}

/// Asks the user, without suggestions.
pub(super) fn ask_decision(message: String, reason: DecisionReason) -> Decision {
    Decision::Ask(Box::new(ApprovalRequest { message, reason, blocked_path: None, suggestions: Vec::new() }))
}

/// The suggestion to allow what `rules` match.
pub(super) fn suggest_rules(rules: impl IntoIterator<Item = Rule>, destination: RuleSource) -> PermissionUpdate {
    PermissionUpdate::AddRules(Box::new(AddRules {
        rules: rules.into_iter().map(|rule| PermissionRuleValue::from(&rule)).collect(),
        behavior: RuleBehavior::Allow,
        destination: destination.into(),
        ..AddRules::default()
    }))
}
