//! What rules keep from commands, for the sandbox to hold back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::rules::Sourced;
use super::{Behavior, Rules, files};
use crate::sandbox::{Matcher, Refused};
use crate::tool::Place;

/// The files that deny rules keep from being read or changed. To be made again when the
/// rules change.
pub fn refused(rules: &Rules, place: &Place) -> Refused {
    let of = |tool: fn(&str) -> bool| matcher(rules.saying(Behavior::Deny).filter(|rule| tool(&rule.rule.tool)), place);
    Refused { reads: of(|tool| tool == "Read"), writes: of(files::changes) }
}

fn matcher<'a>(rules: impl Iterator<Item = &'a Sourced>, place: &Place) -> Matcher {
    let patterns: Vec<_> = rules.filter_map(|rule| files::matchers(rule, place)).flatten().collect();
    let roots = patterns.iter().map(|(root, pattern, _)| start(root, pattern)).collect();
    let names = move |path: &Path| {
        let mut patterns = patterns.iter();
        patterns.any(|(root, _, matcher)| {
            path.starts_with(root) && matcher.matched_path_or_any_parents(path, path.is_dir()).is_ignore()
        })
    };
    Matcher { roots, matches: Arc::new(names) }
}

/// The file or folder below which everything is that a pattern can name.
fn start(root: &Path, pattern: &str) -> PathBuf {
    // Without a slash in front it may match at any depth.
    let names = pattern.strip_prefix('/').into_iter().flat_map(|names| names.split('/'));
    root.join(names.take_while(|name| !name.is_empty() && !name.contains(['*', '?', '[', '\\'])).collect::<PathBuf>())
}
