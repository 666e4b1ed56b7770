//! Web pages, and rules about domains.

use std::sync::Arc;

use url::Url;

use super::judge::{Court, Reason, Verdict, ask, suggest_rules};
use super::rules::Sourced;
use super::{Behavior, Mode, Rule, Rules, Source};
use crate::tool::RefusesHost;

/// Returns a test of whether a rule denies or asks about the host of a URL. Redirects are
/// tested with it, because no permission was requested for their targets.
pub(super) fn refused(rules: &Rules) -> RefusesHost {
    let kept: Vec<Sourced> = rules.iter().filter(|rule| rule.behavior != Behavior::Allow).cloned().collect();
    Arc::new(move |url| {
        let host = host(Some(url));
        kept.iter().any(|rule| matches(rule, &host))
    })
}

fn host(url: Option<&Url>) -> String {
    let host = url.and_then(|url| url.host_str().map(str::to_lowercase)).unwrap_or_default();
    host.trim_end_matches('.').to_owned()
}

/// Judges a call that reads a web page.
pub(super) fn judge(court: &Court<'_>, url: &str) -> Verdict {
    let host = host(Url::parse(url).ok().as_ref());
    let host = host.as_str();
    if let Some(verdict) = court.before_allowing(|rule| matches(rule, host)) {
        return verdict;
    }
    if let Some(rule) = court.rule(Behavior::Allow, |rule| matches(rule, host)) {
        return Verdict::allow(Reason::rule(rule));
    }
    let mut verdict = ask(format!("WebFetch of {url} needs approval."), Reason::Unspoken);
    if let Verdict::Ask(question) = &mut verdict
        && !host.is_empty()
        && court.mode != Mode::Plan
    {
        let rule = Rule::new("WebFetch", Some(&format!("domain:{host}")));
        question.suggestions.push(suggest_rules([rule], Source::Local));
    }
    verdict
}

/// Whether a rule names a host: `domain:host`, or `domain:*.host` for all below it.
/// To refuse or ask, a domain also stands for what is below it.
fn matches(rule: &Sourced, host: &str) -> bool {
    if !rule.rule.is_about("WebFetch") {
        return false;
    }
    let Some(content) = rule.rule.content.as_deref() else { return true };
    // What cannot be understood allows nothing, and refuses all.
    let Some(domain) = content.strip_prefix("domain:") else { return rule.behavior != Behavior::Allow };
    let domain = domain.trim().trim_end_matches('.').to_lowercase();
    let is_below = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    match domain.strip_prefix("*.") {
        Some(domain) => is_below(domain),
        None if domain == "*" => true,
        None => !domain.is_empty() && (host == domain || (rule.behavior != Behavior::Allow && is_below(&domain))),
    }
}
