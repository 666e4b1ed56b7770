//! WebFetch and rules about domains.

use std::sync::Arc;

use quipu_message::ToolName;
use url::{Host, Url};

use super::decision::{Decision, DecisionReason, PermissionContext, ask_decision, suggest_rules};
use super::rules::SourcedRule;
use super::{Behavior, EffectiveMode, Rule, RuleSet, RuleSource};
use crate::tool::DeniedHostFilter;

/// Returns a test of whether a rule denies or asks about the host of a URL. Redirects are
/// tested with it, because no permission was requested for their targets.
pub(super) fn denied_host_filter(rules: &RuleSet) -> DeniedHostFilter {
    let kept: Vec<SourcedRule> = rules.iter().filter(|rule| rule.behavior != Behavior::Allow).cloned().collect();
    Arc::new(move |url| {
        let host = normalised_host(Some(url));
        kept.iter().any(|rule| rule_matches_host(rule, &host))
    })
}

fn normalised_host(url: Option<&Url>) -> String {
    let host = url.and_then(|url| url.host_str().map(str::to_lowercase)).unwrap_or_default();
    host.trim_end_matches('.').to_owned()
}

/// Evaluates a WebFetch call.
pub(super) fn evaluate(ctx: &PermissionContext<'_>, url: &str) -> Decision {
    let host = normalised_host(Url::parse(url).ok().as_ref());
    let host = host.as_str();
    if let Some(decision) = ctx.decide_before_allow_rules(|rule| rule_matches_host(rule, host)) {
        return decision;
    }
    if let Some(rule) = ctx.find_rule(Behavior::Allow, |rule| rule_matches_host(rule, host)) {
        return Decision::allow_unsandboxed(DecisionReason::from_rule(rule));
    }
    let mut decision = ask_decision(format!("WebFetch of {url} needs approval."), DecisionReason::NoRule);
    if let Decision::Ask(approval) = &mut decision
        && is_plain_host(host)
        && ctx.mode != EffectiveMode::Plan
    {
        let rule = Rule::new(ToolName::WebFetch, Some(&format!("domain:{host}")));
        approval.suggestions.push(suggest_rules([rule], RuleSource::Local));
    }
    decision
}

/// Whether a host is a name or an address without characters that have a meaning in rules.
fn is_plain_host(host: &str) -> bool {
    !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c))
}

/// Whether a rule names a host: `domain:host`, or `domain:*.host` for all below it.
/// In deny and ask rules a domain also matches its subdomains.
fn rule_matches_host(rule: &SourcedRule, host: &str) -> bool {
    if !rule.rule.applies_to(&ToolName::WebFetch) {
        return false;
    }
    let Some(content) = rule.rule.content.as_deref() else { return true };
    let protects = rule.behavior != Behavior::Allow;
    let domain = content.strip_prefix("domain:").map(str::trim);
    if domain == Some("*") {
        return true;
    }
    let below = domain.and_then(|domain| domain.strip_prefix("*."));
    // Content that is not a domain never allows, and always denies or asks.
    let Some(domain) = below.or(domain).and_then(parse_domain) else { return protects };
    let is_below = host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'));
    is_below && (protects || below.is_some()) || host == domain && below.is_none()
}

/// Returns the domain of a rule in the form of hosts in URLs; `None` if it is not a host.
fn parse_domain(domain: &str) -> Option<String> {
    let host = Host::parse(domain).ok().filter(|_| !domain.contains('*'))?;
    Some(host.to_string().trim_end_matches('.').to_owned())
}
