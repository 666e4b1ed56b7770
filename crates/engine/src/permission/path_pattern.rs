//! What the pattern of a rule about files names: the one place where paths meet rules.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::rules::SourcedRule;
use super::{Behavior, RuleSource};
use crate::path::{TargetPath, resolve, without_dots};
use crate::tool::Workspace;

/// The pattern of a rule about files, ready to be compared with paths.
///
/// To allow, the place a path really leads to must match. To refuse or ask, any way to
/// the file is enough: as it was written, as it is, and through links in the pattern.
#[derive(Debug)]
pub(super) struct PathPattern {
    matchers: Vec<(PathBuf, Gitignore)>,
    /// The files and folders below which everything is that the pattern can name.
    pub(super) literal_prefixes: Vec<PathBuf>,
    is_allow_rule: bool,
}

impl PathPattern {
    /// Reads the pattern of a rule; `None` if the rule has none or it cannot be read.
    pub(super) fn from_rule(rule: &SourcedRule, place: &Workspace) -> Option<Self> {
        let allows = rule.behavior == Behavior::Allow;
        let (root, pattern) = resolve_anchor(rule.rule.content.as_deref()?, rule.source, allows, place)?;
        let mut anchors = vec![(root.clone(), pattern.clone())];
        if !allows {
            anchors.extend(resolve(&root).map(|root| (root, pattern.clone())));
            anchors.extend(resolve_literal_prefix(&root, &pattern));
            anchors.dedup();
        }
        let starts = anchors.iter().map(|(root, pattern)| literal_prefix(root, pattern)).collect();
        let compiled = |(root, pattern): (PathBuf, String)| Some((root.clone(), build_matcher(&root, &pattern)?));
        Some(Self {
            matchers: anchors.into_iter().filter_map(compiled).collect(),
            literal_prefixes: starts,
            is_allow_rule: allows,
        })
    }

    /// Whether the pattern names a path, or a folder above it.
    pub(super) fn matches(&self, target: &TargetPath) -> bool {
        // Nothing is known of a ring of links.
        let Some(real) = &target.real else { return !self.is_allow_rule };
        let names = |path: &Path| {
            self.matchers.iter().any(|(root, matcher)| {
                path.starts_with(root) && matcher.matched_path_or_any_parents(path, path.is_dir()).is_ignore()
            })
        };
        names(real) || (!self.is_allow_rule && *real != target.given && names(&without_dots(&target.given)))
    }
}

/// Where a pattern starts: `//` the root of the system, `~/` home, `./` the session's
/// folder, `/` the folder of the settings that hold the rule, otherwise the session's
/// folder. To refuse or ask, `name/**` means a folder of that name at any depth.
fn resolve_anchor(pattern: &str, source: RuleSource, allows: bool, place: &Workspace) -> Option<(PathBuf, String)> {
    let home = || place.home().map(|home| resolve(&home).unwrap_or(home));
    if let Some(rest) = pattern.strip_prefix("//") {
        return Some((PathBuf::from("/"), format!("/{rest}")));
    }
    if let Some(rest) = pattern.strip_prefix("~/") {
        return Some((home()?, format!("/{rest}")));
    }
    if let Some(rest) = pattern.strip_prefix("./") {
        return Some((place.root().to_owned(), format!("/{rest}")));
    }
    if pattern.starts_with('/') && source == RuleSource::User {
        return Some((place.config_folder()?, pattern.to_owned()));
    }
    let any_depth = !allows && pattern.strip_suffix("/**").is_some_and(|name| !name.contains('/'));
    let pattern = if any_depth { format!("**/{pattern}") } else { pattern.to_owned() };
    Some((place.root().to_owned(), pattern))
}

/// A pattern with its leading plain names followed through links.
fn resolve_literal_prefix(root: &Path, pattern: &str) -> Option<(PathBuf, String)> {
    let names: Vec<&str> = pattern.strip_prefix('/')?.split('/').collect();
    let plain = names.iter().take_while(|name| !name.contains(['*', '?', '[', '\\'])).count().min(names.len() - 1);
    let folder = names[..plain].iter().fold(root.to_owned(), |path, name| path.join(name));
    Some((resolve(&folder)?, format!("/{}", names[plain..].join("/"))))
}

/// A folder with the leading plain names of a pattern; without a slash in front a pattern
/// may match at any depth.
fn literal_prefix(root: &Path, pattern: &str) -> PathBuf {
    let names = pattern.strip_prefix('/').into_iter().flat_map(|names| names.split('/'));
    root.join(names.take_while(|name| !name.is_empty() && !name.contains(['*', '?', '[', '\\'])).collect::<PathBuf>())
}

fn build_matcher(root: &Path, pattern: &str) -> Option<Gitignore> {
    // A pattern cannot take back what it says, and is no comment.
    let pattern = if pattern.starts_with(['!', '#']) { format!("\\{pattern}") } else { pattern.to_owned() };
    let mut builder = GitignoreBuilder::new(root);
    builder.add_line(None, &pattern).ok()?.build().ok()
}
