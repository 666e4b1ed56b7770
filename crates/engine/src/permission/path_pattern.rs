//! Patterns of rules about files. All comparisons of paths with rules are made here.

use std::path::{Component, Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::rules::SourcedRule;
use super::{Behavior, RuleSource};
use crate::path::{TargetPath, resolve, without_dots};
use crate::tool::Workspace;

/// Characters with a meaning in patterns.
const WILDCARDS: [char; 4] = ['*', '?', '[', '\\'];

/// A compiled pattern of a rule about files.
///
/// An allow rule must match the resolved path. For a deny or ask rule it is enough if the
/// path as given, the resolved path, a link between them, or the pattern with its own links
/// resolved matches, and upper and lower case are the same, as they are to some file systems.
#[derive(Debug)]
pub(super) struct PathPattern {
    matchers: Vec<(PathBuf, Gitignore)>,
    /// Folders (or files) that contain everything the pattern can match.
    pub(super) literal_prefixes: Vec<PathBuf>,
    is_allow_rule: bool,
}

impl PathPattern {
    /// Compiles the pattern of a rule; `None` if the rule has no content or an invalid one.
    pub(super) fn from_rule(rule: &SourcedRule, workspace: &Workspace) -> Option<Self> {
        Self::compile(rule.rule.content.as_deref()?, rule.source, rule.behavior == Behavior::Allow, workspace)
    }

    /// Compiles a path of the `sandbox` settings, which is absolute, below `~` or relative to the
    /// session's folder, and may contain the wildcards of rules. A path with wildcards also names
    /// the file that has them in its name.
    pub(super) fn from_setting(path: &str, workspace: &Workspace) -> Vec<Self> {
        let path = path.trim_end_matches("/**").trim_end_matches('/');
        let path = match path.split_at_checked(1) {
            None | Some(("/", "")) => "//".to_owned(),
            Some(("~", "")) => "~/".to_owned(),
            Some(("/", rest)) => format!("//{}", rest.trim_start_matches('/')),
            Some(("~", rest)) if rest.starts_with('/') => path.to_owned(),
            Some(_) => format!("./{}", path.trim_start_matches("./")),
        };
        let mut patterns = vec![escape_wildcards(&path)];
        patterns.extend(path.contains(WILDCARDS).then_some(path));
        patterns
            .iter()
            .filter_map(|pattern| Self::compile(pattern, RuleSource::FlagSettings, false, workspace))
            .collect()
    }

    fn compile(content: &str, source: RuleSource, allows: bool, workspace: &Workspace) -> Option<Self> {
        let mut anchors = Vec::new();
        for session_root in workspace.rule_roots() {
            let (root, pattern) = resolve_anchor(content, source, allows, &session_root, workspace)?;
            let mut found = vec![(root.clone(), pattern.clone())];
            if !allows {
                found.extend(resolve(&root).map(|root| (root, pattern.clone())));
                found.extend(resolve_literal_prefix(&root, &pattern));
                found.extend(resolve_link(&root, &pattern));
            }
            found.retain(|anchor| !anchors.contains(anchor));
            anchors.append(&mut found);
        }
        let mut starts: Vec<PathBuf> = anchors.iter().map(|(root, pattern)| literal_prefix(root, pattern)).collect();
        // A worktree contains copies of the files that an absolute pattern names.
        starts.extend(workspace.rule_roots().into_iter().skip(1));
        let compiled =
            |(root, pattern): (PathBuf, String)| Some((root.clone(), build_matcher(&root, &pattern, !allows)?));
        Some(Self {
            matchers: anchors.into_iter().filter_map(compiled).collect(),
            literal_prefixes: starts,
            is_allow_rule: allows,
        })
    }

    /// Whether the pattern matches the path or one of its parent folders.
    pub(super) fn matches(&self, target: &TargetPath) -> bool {
        // A cycle of links is never allowed and always denied or asked about.
        let Some(real) = &target.real else { return !self.is_allow_rule };
        let names = |path: &Path| {
            self.matchers.iter().any(|(root, matcher)| {
                let inside = strip_root(path, root, !self.is_allow_rule);
                inside.is_some_and(|inside| matcher.matched_path_or_any_parents(inside, path.is_dir()).is_ignore())
            })
        };
        if self.is_allow_rule {
            return names(real);
        }
        target.names().any(|path| {
            let path = without_dots(path);
            names(&path) || original_path(&path).is_some_and(|original| names(&original))
        })
    }
}

/// Returns the path that a file in a git worktree of the agent has in the repository; `None` for
/// other files.
fn original_path(path: &Path) -> Option<PathBuf> {
    let names: Vec<_> = path.iter().collect();
    let at = names.windows(2).position(|pair| pair[0] == ".claude" && pair[1] == "worktrees")?;
    Some(names[..at].iter().chain(names.get(at + 3..)?).collect())
}

/// Returns the part of a path below a folder; `None` if the path is not inside it.
fn strip_root<'a>(path: &'a Path, root: &Path, ignores_case: bool) -> Option<&'a Path> {
    let lower = |part: Component<'_>| part.as_os_str().to_string_lossy().to_lowercase();
    let is_same = |a: Component<'_>, b: Component<'_>| a == b || (ignores_case && lower(a) == lower(b));
    let mut rest = path.components();
    let is_inside = root.components().all(|part| rest.next().is_some_and(|name| is_same(name, part)));
    is_inside.then_some(rest.as_path())
}

/// Returns the folder that a pattern is relative to, and the rest of the pattern: `//` is the
/// file system root, `~/` home, `./` the session's folder, `/` the folder of the settings file
/// that contains the rule, otherwise the session's folder. In deny and ask rules `name/**`
/// matches a folder of that name at any depth. Slashes in a row count as one, and `.` is `./`.
fn resolve_anchor(
    pattern: &str,
    source: RuleSource,
    allows: bool,
    session_root: &Path,
    workspace: &Workspace,
) -> Option<(PathBuf, String)> {
    let home = || workspace.home().map(|home| resolve(&home).unwrap_or(home));
    let is_absolute = pattern.starts_with("//");
    let pattern = single_slashes(pattern);
    if is_absolute {
        return Some((PathBuf::from("/"), pattern));
    }
    if let Some(rest) = pattern.strip_prefix("~/") {
        return Some((home()?, format!("/{rest}")));
    }
    if let Some(rest) = pattern.strip_prefix("./").or((pattern == ".").then_some("")) {
        return Some((session_root.to_owned(), format!("/{rest}")));
    }
    if pattern.starts_with('/') && source == RuleSource::User {
        return Some((workspace.config_folder()?, pattern));
    }
    let any_depth = !allows && pattern.strip_suffix("/**").is_some_and(|name| !name.is_empty() && !name.contains('/'));
    let pattern = if any_depth { format!("**/{pattern}") } else { pattern };
    Some((session_root.to_owned(), pattern))
}

/// Replaces slashes in a row by one.
fn single_slashes(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    for c in pattern.chars() {
        if c != '/' || !plain.ends_with('/') {
            plain.push(c);
        }
    }
    plain
}

/// Resolves links in the leading components of a pattern that contain no wildcard.
fn resolve_literal_prefix(root: &Path, pattern: &str) -> Option<(PathBuf, String)> {
    let names: Vec<&str> = pattern.strip_prefix('/')?.split('/').collect();
    let plain = names.iter().take_while(|name| !name.contains(WILDCARDS)).count().min(names.len() - 1);
    let folder = names[..plain].iter().fold(root.to_owned(), |path, name| path.join(name));
    Some((resolve(&folder)?, format!("/{}", names[plain..].join("/"))))
}

/// Returns the pattern for the target of a link that a pattern without wildcards, or with a
/// final `/**`, names in the folder.
fn resolve_link(root: &Path, pattern: &str) -> Option<(PathBuf, String)> {
    let (name, below) = pattern.strip_suffix("/**").map_or((pattern, ""), |name| (name, "/**"));
    let name = name.trim_start_matches("**/").trim_matches('/');
    if name.is_empty() || name.contains(WILDCARDS) {
        return None;
    }
    let link = root.join(name);
    let real = resolve(&link).filter(|real| *real != link)?;
    let target = escape_wildcards(real.file_name()?.to_str()?);
    Some((real.parent()?.to_owned(), format!("/{target}{below}")))
}

/// Returns the pattern that matches only this text.
fn escape_wildcards(text: &str) -> String {
    let escaped = |c: char| WILDCARDS.contains(&c).then_some('\\').into_iter().chain([c]);
    text.chars().flat_map(escaped).collect()
}

/// Joins the leading components without wildcards to the folder. A pattern without a leading
/// slash may match at any depth, so nothing is joined.
fn literal_prefix(root: &Path, pattern: &str) -> PathBuf {
    let names = pattern.strip_prefix('/').into_iter().flat_map(|names| names.split('/'));
    root.join(names.take_while(|name| !name.is_empty() && !name.contains(WILDCARDS)).collect::<PathBuf>())
}

fn build_matcher(root: &Path, pattern: &str, ignores_case: bool) -> Option<Gitignore> {
    // `!` and `#` are part of the name here, not negation or comment as in ignore files.
    let pattern = if pattern.starts_with(['!', '#']) { format!("\\{pattern}") } else { pattern.to_owned() };
    let mut builder = GitignoreBuilder::new(root);
    builder.case_insensitive(ignores_case).ok()?.add_line(None, &pattern).ok()?.build().ok()
}
