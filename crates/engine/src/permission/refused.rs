//! What rules keep from commands, for the sandbox to hold back.

use std::sync::Arc;

use super::path::PathPattern;
use super::rules::Sourced;
use super::{Behavior, Rules, files};
use crate::sandbox::{Matcher, Refused};
use crate::tool::{Place, Target};

/// The files that deny rules keep from being read or changed, and whether a rule opens the
/// network. To be made again when the rules change.
pub fn refused(rules: &Rules, place: &Place) -> Refused {
    let of = |tool: fn(&str) -> bool| matcher(rules.saying(Behavior::Deny).filter(|rule| tool(&rule.rule.tool)), place);
    let anywhere = |rule: &Sourced| {
        rule.rule.tool == "WebFetch" && rule.rule.content.as_deref().is_none_or(|what| what == "domain:*")
    };
    let network = rules.saying(Behavior::Allow).any(anywhere);
    Refused { network, reads: of(|tool| tool == "Read"), writes: of(files::changes) }
}

fn matcher<'a>(rules: impl Iterator<Item = &'a Sourced>, place: &Place) -> Matcher {
    let patterns: Vec<PathPattern> = rules.filter_map(|rule| PathPattern::of(rule, place)).collect();
    let roots = patterns.iter().flat_map(|pattern| pattern.starts.iter().cloned()).collect();
    let names = move |path: &std::path::Path| {
        let target = Target::resolved(path);
        patterns.iter().any(|pattern| pattern.matches(&target))
    };
    Matcher { roots, matches: Arc::new(names) }
}
