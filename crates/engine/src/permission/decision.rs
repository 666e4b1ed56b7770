//! The judge: may this call run, now?

use std::path::PathBuf;

use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::{AddRules, PermissionRuleValue};
use quipu_message::synthetic;
use quipu_message::tool::WEB_SEARCH_TOOL;
use quipu_message::values::DecisionReasonType;
use serde_json::Value;

use super::rules::SourcedRule;
use super::{Behavior, PermissionMode, Rule, RuleSet, RuleSource, bash, file_tools, web};
use crate::path::TargetPath;
use crate::sandbox::SandboxProfile;
use crate::tool::Workspace;

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It may run.
    Allow {
        /// Why.
        reason: DecisionReason,
        /// What the kernel lets it do. Only commands have a profile other than
        /// [`SandboxProfile::None`].
        profile: SandboxProfile,
    },
    /// It may not run.
    Deny {
        /// What the model is told.
        message: String,
        /// Why.
        reason: DecisionReason,
    },
    /// A person must say.
    Ask(Box<ApprovalRequest>),
}

impl Decision {
    /// It may run, without a sandbox.
    pub(crate) fn allow_unsandboxed(reason: DecisionReason) -> Self {
        Self::Allow { reason, profile: SandboxProfile::None }
    }
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    /// What the model is told when nobody can be asked.
    pub message: String,
    /// Why it is asked.
    pub reason: DecisionReason,
    /// The path that is the matter.
    pub blocked_path: Option<PathBuf>,
    /// Changes of the rules after which it would not be asked again.
    pub suggestions: Vec<PermissionUpdate>,
}

/// Why a verdict is what it is.
#[derive(Debug, Clone, PartialEq)]
pub enum DecisionReason {
    /// A rule says so.
    Rule {
        /// The rule.
        rule: Rule,
        /// Where it comes from.
        source: RuleSource,
    },
    /// The mode says so.
    Mode(PermissionMode),
    /// Every command of a shell text was judged by itself.
    Subcommands,
    /// Nothing says so: this is what is done without rules.
    NoRule,
    /// The call is not understood; why, in words.
    NotParsed(String),
    /// It would be allowed in a sandbox only.
    Sandbox,
}

impl DecisionReason {
    /// The word of the wire; `None` where the wire has none.
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

/// Tools that change nothing outside the conversation, or whose own calls are judged.
const ALWAYS_ALLOWED_TOOLS: [&str; 7] =
    ["TodoWrite", "TaskOutput", "TaskStop", "Task", "Agent", "StructuredOutput", "ToolSearch"];

/// Tools that are questions to a person, whatever the mode.
const USER_INTERACTION_TOOLS: [&str; 2] = ["AskUserQuestion", "ExitPlanMode"];

/// Judges a call. Deny rules come first, then ask rules, the mode, and allow rules;
/// what nothing speaks of is asked.
pub fn evaluate(mode: PermissionMode, rules: &RuleSet, tool: &str, input: &Value, place: &Workspace) -> Decision {
    evaluate_target(mode, rules, tool, input, place, file_tools::file_target(tool, input, place).as_ref())
}

/// The same for a file that was resolved before ([`target`](super::file_target)): who opens
/// just that file opens what was judged.
pub fn evaluate_target(
    mode: PermissionMode,
    rules: &RuleSet,
    tool: &str,
    input: &Value,
    place: &Workspace,
    target: Option<&TargetPath>,
) -> Decision {
    let court = PermissionContext { mode, rules, tool, workspace: place };
    let verdict = match (tool, target) {
        ("Bash", _) => bash::evaluate(&court, input),
        ("WebFetch", _) => web::evaluate(&court, input["url"].as_str().unwrap_or_default()),
        (_, Some(target)) => file_tools::evaluate(&court, input, target),
        _ => court.evaluate_other_tool(input),
    };
    match verdict {
        Decision::Ask(question) if mode == PermissionMode::DontAsk => {
            let message = synthetic::automatic_denial_text(&question.message);
            Decision::Deny { message, reason: DecisionReason::Mode(mode) }
        }
        verdict => verdict,
    }
}

/// What every judgement looks at.
pub(super) struct PermissionContext<'a> {
    pub(super) mode: PermissionMode,
    pub(super) rules: &'a RuleSet,
    pub(super) tool: &'a str,
    pub(super) workspace: &'a Workspace,
}

impl<'a> PermissionContext<'a> {
    /// The first rule of a behavior that `matches`, among those about the tool.
    pub(super) fn find_rule(
        &self,
        behavior: Behavior,
        matches: impl Fn(&SourcedRule) -> bool,
    ) -> Option<&'a SourcedRule> {
        self.rules.with_behavior(behavior).find(|rule| matches(rule))
    }

    /// The verdict of deny rules, ask rules and the mode that needs no rules: the same for all tools.
    pub(super) fn decide_before_allow_rules(&self, matches: impl Fn(&SourcedRule) -> bool) -> Option<Decision> {
        if let Some(rule) = self.find_rule(Behavior::Deny, &matches) {
            return Some(deny_by_rule(rule));
        }
        if self.mode == PermissionMode::BypassPermissions {
            return Some(Decision::allow_unsandboxed(DecisionReason::Mode(self.mode)));
        }
        let rule = self.find_rule(Behavior::Ask, &matches)?;
        let message = format!("The rule {} says that {} needs approval.", rule.rule, self.tool);
        Some(ask_decision(message, DecisionReason::from_rule(rule)))
    }

    /// The verdict on a tool nothing special is known of.
    fn evaluate_other_tool(&self, input: &Value) -> Decision {
        let about = |rule: &SourcedRule| {
            let named = match rule.behavior {
                Behavior::Allow => rule.rule.applies_to(self.tool),
                Behavior::Deny | Behavior::Ask => rule.rule.restricts(self.tool),
            };
            named && content_matches(rule, input)
        };
        if USER_INTERACTION_TOOLS.contains(&self.tool) {
            let denied = self.find_rule(Behavior::Deny, about).map(deny_by_rule);
            return denied.unwrap_or_else(|| {
                ask_decision(format!("{} is for a person to answer.", self.tool), DecisionReason::NoRule)
            });
        }
        if let Some(verdict) = self.decide_before_allow_rules(about) {
            return verdict;
        }
        // A search changes nothing, also while a plan is made.
        let may_run = self.mode != PermissionMode::Plan || self.tool == WEB_SEARCH_TOOL;
        if let Some(rule) = self.find_rule(Behavior::Allow, about).filter(|_| may_run) {
            return Decision::allow_unsandboxed(DecisionReason::from_rule(rule));
        }
        if ALWAYS_ALLOWED_TOOLS.contains(&self.tool) {
            return Decision::allow_unsandboxed(DecisionReason::NoRule);
        }
        let mut verdict = ask_decision(format!("{} needs approval.", self.tool), DecisionReason::NoRule);
        let has_rule = self.tool.starts_with("mcp__") || self.tool == WEB_SEARCH_TOOL;
        if let (Decision::Ask(question), true) = (&mut verdict, has_rule) {
            question.suggestions.push(suggest_rules([Rule::new(self.tool, None)], RuleSource::Local));
        }
        verdict
    }
}

/// Whether the content of a rule speaks of a call: of a subagent or a skill by its name.
/// Content that cannot be understood allows nothing, and refuses all.
fn content_matches(rule: &SourcedRule, input: &Value) -> bool {
    let Some(content) = rule.rule.content.as_deref() else { return true };
    let name = ["subagent_type", "skill"].iter().find_map(|key| input[*key].as_str());
    // A skill may be named as a person types it: `/name`.
    let name = name.map(|name| name.strip_prefix('/').unwrap_or(name));
    match name {
        Some(name) => content == name || content.strip_suffix(":*").is_some_and(|start| name.starts_with(start)),
        None => rule.behavior != Behavior::Allow,
    }
}

/// A refusal by a rule.
pub(super) fn deny_by_rule(rule: &SourcedRule) -> Decision {
    let why = format!("the rule {} of {} refuses it", rule.rule, rule.source.as_str());
    Decision::Deny { message: synthetic::automatic_denial_text(&why), reason: DecisionReason::from_rule(rule) }
}

/// A question without suggestions.
pub(super) fn ask_decision(message: String, reason: DecisionReason) -> Decision {
    Decision::Ask(Box::new(ApprovalRequest { message, reason, blocked_path: None, suggestions: Vec::new() }))
}

/// The suggestion to allow what `rules` match.
pub(super) fn suggest_rules(rules: impl IntoIterator<Item = Rule>, destination: RuleSource) -> PermissionUpdate {
    PermissionUpdate::AddRules(Box::new(AddRules {
        rules: rules.into_iter().map(|rule| PermissionRuleValue::from(&rule)).collect(),
        behavior: "allow".into(),
        destination: destination.as_str().into(),
        ..AddRules::default()
    }))
}
