//! The judge: may this call run, now?

use std::path::PathBuf;

use quipu_message::control::PermissionUpdate;
use quipu_message::control::permission::{AddRules, RuleValue};
use quipu_message::synthetic;
use quipu_message::tool::WEB_SEARCH;
use serde_json::Value;

use super::rules::Sourced;
use super::{Behavior, Mode, Rule, Rules, Source, bash, files, web};
use crate::sandbox::Profile;
use crate::tool::{Place, Target};

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It may run.
    Allow {
        /// Why.
        reason: Reason,
        /// What the kernel lets it do. Only commands have a profile other than
        /// [`Profile::None`].
        profile: Profile,
    },
    /// It may not run.
    Deny {
        /// What the model is told.
        message: String,
        /// Why.
        reason: Reason,
    },
    /// A person must say.
    Ask(Box<Question>),
}

impl Verdict {
    /// It may run, without a sandbox.
    pub(crate) fn allow(reason: Reason) -> Self {
        Self::Allow { reason, profile: Profile::None }
    }
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What the model is told when nobody can be asked.
    pub message: String,
    /// Why it is asked.
    pub reason: Reason,
    /// The path that is the matter.
    pub blocked_path: Option<PathBuf>,
    /// Changes of the rules after which it would not be asked again.
    pub suggestions: Vec<PermissionUpdate>,
}

/// Why a verdict is what it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// A rule says so.
    Rule {
        /// The rule.
        rule: Rule,
        /// Where it comes from.
        source: Source,
    },
    /// The mode says so.
    Mode(Mode),
    /// Every command of a shell text was judged by itself.
    Parts,
    /// Nothing says so: this is what is done without rules.
    Unspoken,
    /// The call is not understood; why, in words.
    NotUnderstood(String),
    /// It would be allowed in a sandbox only.
    Sandbox,
}

impl Reason {
    /// The word of the wire; `None` where the wire has none.
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Rule { .. } => Some("rule"),
            Self::Mode(_) => Some("mode"),
            Self::Parts => Some("subcommandResults"),
            Self::NotUnderstood(_) | Self::Sandbox => Some("other"),
            Self::Unspoken => None,
        }
    }

    pub(super) fn rule(rule: &Sourced) -> Self {
        Self::Rule { rule: rule.rule.clone(), source: rule.source }
    }
}

/// Tools that change nothing outside the conversation, or whose own calls are judged.
const FREE: [&str; 7] = ["TodoWrite", "TaskOutput", "TaskStop", "Task", "Agent", "StructuredOutput", "ToolSearch"];

/// Tools that are questions to a person, whatever the mode.
const QUESTIONS: [&str; 2] = ["AskUserQuestion", "ExitPlanMode"];

/// Judges a call. Deny rules come first, then ask rules, the mode, and allow rules;
/// what nothing speaks of is asked.
pub fn judge(mode: Mode, rules: &Rules, tool: &str, input: &Value, place: &Place) -> Verdict {
    judge_at(mode, rules, tool, input, place, files::target(tool, input, place).as_ref())
}

/// The same for a file that was resolved before ([`target`](super::target)): who opens
/// just that file opens what was judged.
pub fn judge_at(
    mode: Mode,
    rules: &Rules,
    tool: &str,
    input: &Value,
    place: &Place,
    target: Option<&Target>,
) -> Verdict {
    let court = Court { mode, rules, tool, place };
    let verdict = match (tool, target) {
        ("Bash", _) => bash::judge(&court, input),
        ("WebFetch", _) => web::judge(&court, input["url"].as_str().unwrap_or_default()),
        (_, Some(target)) => files::judge(&court, input, target),
        _ => court.other(input),
    };
    match verdict {
        Verdict::Ask(question) if mode == Mode::DontAsk => {
            let message = synthetic::automatic_denial(&question.message);
            Verdict::Deny { message, reason: Reason::Mode(mode) }
        }
        verdict => verdict,
    }
}

/// What every judgement looks at.
pub(super) struct Court<'a> {
    pub(super) mode: Mode,
    pub(super) rules: &'a Rules,
    pub(super) tool: &'a str,
    pub(super) place: &'a Place,
}

impl<'a> Court<'a> {
    /// The first rule of a behavior that `matches`, among those about the tool.
    pub(super) fn rule(&self, behavior: Behavior, matches: impl Fn(&Sourced) -> bool) -> Option<&'a Sourced> {
        self.rules.saying(behavior).find(|rule| matches(rule))
    }

    /// The verdict of deny rules, ask rules and the mode that needs no rules: the same for all tools.
    pub(super) fn before_allowing(&self, matches: impl Fn(&Sourced) -> bool) -> Option<Verdict> {
        if let Some(rule) = self.rule(Behavior::Deny, &matches) {
            return Some(denied_by(rule));
        }
        if self.mode == Mode::BypassPermissions {
            return Some(Verdict::allow(Reason::Mode(self.mode)));
        }
        let rule = self.rule(Behavior::Ask, &matches)?;
        let message = format!("The rule {} says that {} needs approval.", rule.rule, self.tool);
        Some(ask(message, Reason::rule(rule)))
    }

    /// The verdict on a tool nothing special is known of.
    fn other(&self, input: &Value) -> Verdict {
        let about = |rule: &Sourced| {
            let named = match rule.behavior {
                Behavior::Allow => rule.rule.is_about(self.tool),
                Behavior::Deny | Behavior::Ask => rule.rule.restricts(self.tool),
            };
            named && speaks_of(rule, input)
        };
        if QUESTIONS.contains(&self.tool) {
            let denied = self.rule(Behavior::Deny, about).map(denied_by);
            return denied
                .unwrap_or_else(|| ask(format!("{} is for a person to answer.", self.tool), Reason::Unspoken));
        }
        if let Some(verdict) = self.before_allowing(about) {
            return verdict;
        }
        // A search changes nothing, also while a plan is made.
        let may_run = self.mode != Mode::Plan || self.tool == WEB_SEARCH;
        if let Some(rule) = self.rule(Behavior::Allow, about).filter(|_| may_run) {
            return Verdict::allow(Reason::rule(rule));
        }
        if FREE.contains(&self.tool) {
            return Verdict::allow(Reason::Unspoken);
        }
        let mut verdict = ask(format!("{} needs approval.", self.tool), Reason::Unspoken);
        let has_rule = self.tool.starts_with("mcp__") || self.tool == WEB_SEARCH;
        if let (Verdict::Ask(question), true) = (&mut verdict, has_rule) {
            question.suggestions.push(suggest_rules([Rule::new(self.tool, None)], Source::Local));
        }
        verdict
    }
}

/// Whether the content of a rule speaks of a call: of a subagent or a skill by its name.
/// Content that cannot be understood allows nothing, and refuses all.
fn speaks_of(rule: &Sourced, input: &Value) -> bool {
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
pub(super) fn denied_by(rule: &Sourced) -> Verdict {
    let why = format!("the rule {} of {} refuses it", rule.rule, rule.source.as_str());
    Verdict::Deny { message: synthetic::automatic_denial(&why), reason: Reason::rule(rule) }
}

/// A question without suggestions.
pub(super) fn ask(message: String, reason: Reason) -> Verdict {
    Verdict::Ask(Box::new(Question { message, reason, blocked_path: None, suggestions: Vec::new() }))
}

/// The suggestion to allow what `rules` match.
pub(super) fn suggest_rules(rules: impl IntoIterator<Item = Rule>, destination: Source) -> PermissionUpdate {
    PermissionUpdate::AddRules(Box::new(AddRules {
        rules: rules.into_iter().map(|rule| RuleValue::from(&rule)).collect(),
        behavior: "allow".into(),
        destination: destination.as_str().into(),
        ..AddRules::default()
    }))
}
