//! Patterns of rules about files. All comparisons of paths with rules are made here.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use quipu_files::has_too_many_braces;

use super::rules::SourcedRule;
use super::{Behavior, RuleSource};
use crate::path::{TargetPath, original_paths, resolve, without_dots};
use crate::tool::{Anchor, LinkTargets, Workspace};
use brackets::Meaning;

mod brackets;

/// Characters with a meaning in patterns.
const WILDCARDS: [char; 6] = ['*', '?', '[', '\\', '{', '}'];

/// Stand for braces that are a part of a name while others are expanded.
const KEPT_OPEN: char = '\u{1}';
const KEPT_CLOSE: char = '\u{2}';

/// Most patterns that the braces of a rule may mean, and their length together.
const MAX_ALTERNATIVES: usize = 1024;
const MAX_ALTERNATIVE_BYTES: usize = 64 << 10;

/// Maximum length of a pattern; a path is not longer.
const MAX_PATTERN_BYTES: usize = 4096;
/// How many wildcards count as one pattern for [`pattern_count`].
const USUAL_WILDCARDS: usize = 8;

/// Whether a path, taken as a pattern, would match other paths too.
pub(super) fn has_wildcards(path: &str) -> bool {
    path.contains(WILDCARDS)
}

/// The folders that patterns of rules are relative to.
#[derive(Debug, Clone)]
pub(super) struct PatternFolders {
    /// The session's root, and its worktrees.
    session_roots: Vec<PathBuf>,
    /// Further folders of the session, for deny and ask rules.
    further: Vec<PathBuf>,
    /// If the session works in a git worktree of an agent, the same folders in the repository, for deny and ask rules.
    originals: Vec<PathBuf>,
    home: Option<PathBuf>,
    /// Folder of the user's settings.
    config: Option<PathBuf>,
    targets: LinkTargets,
}

impl PatternFolders {
    pub(super) fn new(workspace: &Workspace) -> Self {
        let session_roots = workspace.rule_roots();
        let is_further = |folder: &PathBuf| !session_roots.contains(folder);
        Self {
            further: workspace.folders().into_iter().filter(is_further).collect(),
            originals: original_paths(workspace.root()),
            session_roots,
            home: workspace.home().filter(|home| home.is_absolute()),
            config: workspace.config_folder(),
            targets: workspace.link_targets(),
        }
    }
}

/// A compiled pattern of a rule about files, or of several.
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
    /// Compiles the pattern of a rule, with links as they are now; `None` if the rule has no content.
    pub(super) fn from_rule(rule: &SourcedRule, folders: &PatternFolders) -> Option<Self> {
        let allows = rule.behavior == Behavior::Allow;
        let anchors = find_anchors(rule.rule.content.as_deref()?, rule.source, allows, folders)?;
        Some(Self::compile(anchors, allows, folders))
    }

    /// Compiles the patterns of deny and ask rules, and paths of the `sandbox` settings, as one. To compare paths with
    /// many rules is much quicker so.
    pub(super) fn from_restrictions<'a>(
        rules: impl Iterator<Item = &'a SourcedRule>,
        settings: &[String],
        folders: &PatternFolders,
    ) -> Self {
        let of_rule = |rule: &SourcedRule| find_anchors(rule.rule.content.as_deref()?, rule.source, false, folders);
        let of_setting = |pattern: String| find_anchors(&pattern, RuleSource::FlagSettings, false, folders);
        let settings = settings.iter().flat_map(|path| setting_patterns(path)).filter_map(of_setting);
        Self::compile(rules.filter_map(of_rule).chain(settings).flatten().collect(), false, folders)
    }

    fn compile(anchors: Vec<Anchor>, allows: bool, folders: &PatternFolders) -> Self {
        let mut starts: Vec<PathBuf> = anchors.iter().map(|(root, pattern)| literal_prefix(root, pattern)).collect();
        if !anchors.is_empty() {
            // A worktree contains copies of the files that an absolute pattern names.
            starts.extend(folders.session_roots.iter().skip(1).cloned());
        }
        let mut by_root: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
        for (root, pattern) in anchors {
            by_root.entry(root).or_default().push(pattern);
        }
        let mut matchers = Vec::new();
        for (root, patterns) in by_root {
            build_matchers(&root, &patterns, !allows, &mut matchers);
        }
        Self { matchers, literal_prefixes: starts, is_allow_rule: allows }
    }

    /// Whether the pattern matches the path or one of its parent folders.
    pub(super) fn matches(&self, target: &TargetPath) -> bool {
        // A cycle of links is never allowed and always denied or asked about.
        let Some(real) = &target.real else { return !self.is_allow_rule && !self.matchers.is_empty() };
        let names = |path: &Path| {
            self.matchers.iter().any(|(root, matcher)| {
                let is_match = |inside: &Path| match self.is_allow_rule {
                    true => matches_path_or_parent(matcher, inside, path.is_dir()),
                    false => matcher.matched_path_or_any_parents(inside, path.is_dir()).is_ignore(),
                };
                let inside = strip_root(path, root, !self.is_allow_rule);
                // The matcher itself ignores the case of ASCII letters only.
                let lower = inside.filter(|_| !self.is_allow_rule).and_then(lowercase_path);
                inside.is_some_and(is_match) || lower.is_some_and(|lower| is_match(&lower))
            })
        };
        if self.is_allow_rule {
            return names(real);
        }
        target.names().any(|path| {
            let path = without_dots(path);
            names(&path) || original_paths(&path).iter().any(|original| names(original))
        })
    }
}

/// Whether a path or one of its parent folders matches, without the folder that the pattern is relative to: it is none of
/// the folders that `*/` means.
fn matches_path_or_parent(matcher: &Gitignore, path: &Path, is_folder: bool) -> bool {
    let mut parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    matcher.matched(path, is_folder).is_ignore() || parents.any(|parent| matcher.matched(parent, true).is_ignore())
}

/// Returns a path in lower case; `None` if it has only ASCII characters or is not UTF-8.
fn lowercase_path(path: &Path) -> Option<PathBuf> {
    path.to_str().filter(|text| !text.is_ascii()).map(|text| text.to_lowercase().into())
}

/// Returns the part of a path below a folder; `None` if the path is not inside it.
fn strip_root<'a>(path: &'a Path, root: &Path, ignores_case: bool) -> Option<&'a Path> {
    let lower = |part: Component<'_>| part.as_os_str().to_string_lossy().to_lowercase();
    let is_same = |a: Component<'_>, b: Component<'_>| a == b || (ignores_case && lower(a) == lower(b));
    let mut rest = path.components();
    let is_inside = root.components().all(|part| rest.next().is_some_and(|name| is_same(name, part)));
    is_inside.then_some(rest.as_path())
}

/// Returns the folders and patterns that a rule means, with links as they are now; `None` if an allow rule means none.
fn find_anchors(content: &str, source: RuleSource, allows: bool, folders: &PatternFolders) -> Option<Vec<Anchor>> {
    let mut anchors = Vec::new();
    for alternative in alternatives(content, allows) {
        let Some(content) = alternative else {
            // It is not known which files the rule names, so every file counts as named.
            anchors.push(every_file());
            continue;
        };
        let further = folders.further.iter().filter(|_| !allows && holds_in_all_folders(&content));
        let originals = folders.originals.iter().filter(|_| !allows);
        for session_root in folders.session_roots.iter().chain(further).chain(originals) {
            let anchor = resolve_anchor(&content, source, allows, session_root, folders);
            let (root, pattern) = anchor.or_else(|| (!allows).then(every_file))?;
            let pattern = without_dot_parts(&pattern);
            let mut found = vec![(root.clone(), pattern.clone())];
            if !allows {
                found.extend(resolve(&root).map(|root| (root, pattern.clone())));
                found.extend(resolve_literal_prefix(&root, &pattern));
                found.extend(resolve_link(&root, &pattern));
            }
            found.retain(|anchor| !anchors.contains(anchor));
            anchors.append(&mut found);
        }
    }
    // A command may have removed the link that a rule names, to get at what it led to.
    Some(if allows { anchors } else { folders.targets.remember((source.as_str(), content), anchors) })
}

/// Returns the patterns that a path of the `sandbox` settings means. The path is absolute, below `~` or relative to the
/// session's folder, and may contain the wildcards of rules; then it also names the file that has them in its name.
fn setting_patterns(path: &str) -> Vec<String> {
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
}

/// The folder and the pattern that match every file.
fn every_file() -> Anchor {
    (PathBuf::from("/"), "**".to_owned())
}

/// Whether a pattern of a deny or ask rule holds in every folder of the session: it begins with a name.
fn holds_in_all_folders(pattern: &str) -> bool {
    let first = pattern.split('/').next().unwrap_or_default();
    !["", ".", "..", "~"].contains(&first)
}

/// Returns the folder that a pattern is relative to, and the rest of the pattern: `//` is the
/// file system root, `~/` home, `./` the session's folder, `../` the one above it, `/` the folder of
/// the settings file that contains the rule, otherwise the session's folder. In deny and ask rules
/// `name/**` matches a folder of that name at any depth. Slashes in a row count as one, and `.` is
/// `./`. `None` if the folder is not known.
fn resolve_anchor(
    pattern: &str,
    source: RuleSource,
    allows: bool,
    session_root: &Path,
    folders: &PatternFolders,
) -> Option<(PathBuf, String)> {
    let home = || folders.home.clone().map(|home| resolve(&home).unwrap_or(home));
    let is_absolute = pattern.starts_with("//");
    let pattern = single_slashes(pattern);
    if is_absolute {
        return Some((PathBuf::from("/"), pattern));
    }
    if let Some(rest) = pattern.strip_prefix("~/").or((pattern == "~" && !allows).then_some("")) {
        return Some((home()?, format!("/{rest}")));
    }
    if let Some(rest) = pattern.strip_prefix("./").or((pattern == ".").then_some("")) {
        return Some((session_root.to_owned(), format!("/{rest}")));
    }
    if let Some(rest) = pattern.strip_prefix("..").filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        return Some(resolve_parents(session_root, rest));
    }
    if pattern.starts_with('/') && source == RuleSource::User {
        return Some((folders.config.clone()?, pattern));
    }
    let any_depth = !allows && pattern.strip_suffix("/**").is_some_and(|name| !name.is_empty() && !name.contains('/'));
    let pattern = if any_depth { format!("**/{pattern}") } else { pattern };
    Some((session_root.to_owned(), pattern))
}

/// Returns the folder above `folder`, or the one that further `..` at the start of the pattern lead to, and the
/// rest of the pattern.
fn resolve_parents(folder: &Path, rest: &str) -> (PathBuf, String) {
    let folder = folder.parent().unwrap_or(folder);
    match rest.strip_prefix("/..").filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => resolve_parents(folder, rest),
        None => (folder.to_owned(), if rest.is_empty() { "/".to_owned() } else { rest.to_owned() }),
    }
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

/// Removes the components `.` of a pattern, and `..` after a name with wildcards, which cannot be
/// resolved.
fn without_dot_parts(pattern: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in pattern.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| has_wildcards(last)) => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    if parts == [""] { "/".to_owned() } else { parts.join("/") }
}

/// Resolves links in the leading components of a pattern that contain no wildcard; `None` if the pattern
/// matches at any depth.
fn resolve_literal_prefix(root: &Path, pattern: &str) -> Option<(PathBuf, String)> {
    let names: Vec<&str> = pattern.strip_prefix('/').unwrap_or(pattern).split('/').collect();
    if !pattern.starts_with('/') && names.len() == 1 {
        return None;
    }
    let literal: Vec<String> = names[..names.len() - 1].iter().map_while(|name| literal_text(name)).collect();
    let folder = literal.iter().fold(root.to_owned(), |path, name| path.join(name));
    Some((resolve(&folder)?, format!("/{}", names[literal.len()..].join("/"))))
}

/// Returns the pattern for the target of a link that a pattern without wildcards, or with a
/// final `/**`, names in the folder.
fn resolve_link(root: &Path, pattern: &str) -> Option<(PathBuf, String)> {
    let (name, below) = pattern.strip_suffix("/**").map_or((pattern, ""), |name| (name, "/**"));
    let name = literal_text(name.trim_start_matches("**/").trim_matches('/')).filter(|name| !name.is_empty())?;
    let link = root.join(name);
    let real = resolve(&link).filter(|real| *real != link)?;
    // Bytes that are not UTF-8 cannot be written in a pattern.
    let target = escape_wildcards(&real.file_name()?.to_string_lossy()).replace(char::REPLACEMENT_CHARACTER, "*");
    Some((real.parent()?.to_owned(), format!("/{target}{below}")))
}

/// Returns the only text that a pattern matches: `[id]` for `[[]id]` and `\[id]`; `None` if it may match others.
fn literal_text(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(chars.next()?),
            '[' => {
                let first = chars.next().filter(|c| !"!^".contains(*c))?;
                text.push(if first == '\\' { chars.next()? } else { first });
                chars.next().filter(|c| *c == ']')?;
            }
            c if WILDCARDS.contains(&c) => return None,
            c => text.push(c),
        }
    }
    Some(text)
}

/// Returns the patterns that a rule with braces means, and for deny and ask rules also the pattern itself, because
/// names may contain braces. `None` is one that is not known, because there are too many.
fn alternatives(pattern: &str, allows: bool) -> Vec<Option<String>> {
    let longest = if pattern.contains('{') { MAX_ALTERNATIVE_BYTES } else { MAX_PATTERN_BYTES };
    if has_too_many_braces(pattern) || pattern.len() > longest {
        return if allows { Vec::new() } else { vec![None] };
    }
    let is_plain = !pattern.contains(['\\', '[']);
    let mut patterns = vec![Some(pattern.to_owned())];
    if !pattern.contains('{') || (allows && !is_plain) {
        return patterns;
    }
    match expand_braces(pattern) {
        // In an allow rule an empty alternative does not mean the whole folder.
        Some(expanded) => {
            let is_named =
                |pattern: &String| !allows || !pattern.is_empty() && !pattern.ends_with('/') && !pattern.contains('{');
            // `{.env, key}`
            let trimmed = expanded.iter().map(|pattern| pattern.trim()).filter(|_| !allows).map(str::to_owned);
            let trimmed: Vec<String> = trimmed.filter(|pattern| !expanded.contains(pattern)).collect();
            patterns.extend(expanded.into_iter().chain(trimmed).filter(is_named).map(Some));
        }
        None if allows => {}
        None => patterns.push(None),
    }
    patterns
}

/// Returns how many patterns with a usual number of wildcards the braces in a rule mean.
pub(crate) fn pattern_count(rule: &str) -> usize {
    let wildcards = rule.matches(['*', '?', '[']).count();
    let patterns = if has_too_many_braces(rule) { None } else { expand_braces(rule) };
    patterns.map_or(1, |patterns| patterns.len()) * (1 + wildcards / USUAL_WILDCARDS)
}

/// Returns the patterns that `{a,b}` in a pattern means, the pattern itself if it has no such braces; `None` if
/// there are more than [`MAX_ALTERNATIVES`].
pub(super) fn expand_braces(pattern: &str) -> Option<Vec<String>> {
    let mut expanded = Vec::new();
    let mut open = vec![pattern.to_owned()];
    let mut bytes = 0;
    while let Some(pattern) = open.pop() {
        bytes += pattern.len();
        if bytes > MAX_ALTERNATIVE_BYTES {
            return None;
        }
        // The first brace that closes ends a group that contains no other.
        let close = pattern.find('}').filter(|close| pattern[..*close].contains('{'));
        let open_at = close.and_then(|close| pattern[..close].rfind('{'));
        match open_at.zip(close) {
            Some((start, end)) => {
                let inside = &pattern[start + 1..end];
                // Without a comma the shell keeps the braces.
                let kept = (!inside.contains(',')).then(|| format!("{KEPT_OPEN}{inside}{KEPT_CLOSE}"));
                let choices: Vec<&str> = inside.split(',').chain(kept.as_deref()).collect();
                if open.len() + expanded.len() + choices.len() > MAX_ALTERNATIVES {
                    return None;
                }
                let (before, after) = (&pattern[..start], &pattern[end + 1..]);
                open.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
            }
            None => expanded.push(pattern.replace(KEPT_OPEN, "{").replace(KEPT_CLOSE, "}")),
        }
    }
    Some(expanded)
}

/// Returns the pattern that matches only this text.
fn escape_wildcards(text: &str) -> String {
    let escaped = |c: char| WILDCARDS.contains(&c).then_some('\\').into_iter().chain([c]);
    let pattern: String = text.chars().flat_map(escaped).collect();
    // White space at the end of a pattern is ignored unless it is in brackets.
    match pattern.char_indices().next_back() {
        Some((at, last)) if last.is_whitespace() => format!("{}[{last}]", &pattern[..at]),
        _ => pattern,
    }
}

/// Joins the leading components without wildcards to the folder. A pattern without a leading
/// slash may match at any depth, so nothing is joined.
fn literal_prefix(root: &Path, pattern: &str) -> PathBuf {
    let names = pattern.strip_prefix('/').into_iter().flat_map(|names| names.split('/'));
    root.join(names.take_while(|name| !name.is_empty() && !name.contains(WILDCARDS)).collect::<PathBuf>())
}

/// Adds matchers for the patterns that are relative to a folder. They are one unless that is too large; a pattern that
/// protects files and is too large alone matches every file.
fn build_matchers(root: &Path, patterns: &[String], protects: bool, matchers: &mut Vec<(PathBuf, Gitignore)>) {
    match build_matcher(root, patterns, protects) {
        Some(matcher) => matchers.push((root.to_owned(), matcher)),
        None if patterns.len() > 1 => {
            let (first, second) = patterns.split_at(patterns.len() / 2);
            build_matchers(root, first, protects, matchers);
            build_matchers(root, second, protects, matchers);
        }
        None if protects => {
            let (root, pattern) = every_file();
            matchers.extend(build_matcher(&root, &[pattern], protects).map(|matcher| (root, matcher)));
        }
        None => {}
    }
}

/// Compiles the patterns that are relative to a folder, in which `{a,b}` matches `a` and `b`. Patterns that protect files
/// also match names with these braces, and if one is not valid, the text itself. `None` if they are too large.
fn build_matcher(root: &Path, patterns: &[String], protects: bool) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(root);
    for pattern in patterns {
        // `!` and `#` are part of the name here, not negation or comment as in ignore files.
        let prefix = if pattern.starts_with(['!', '#']) { "\\" } else { "" };
        let mut add = |pattern: &str, ignores_case: bool| {
            let builder = builder.case_insensitive(ignores_case);
            builder.is_ok_and(|builder| builder.add_line(None, &format!("{prefix}{pattern}")).is_ok())
        };
        let as_written = Meaning { protects, ..Meaning::default() };
        let any_case = Meaning { ignores_case: true, ..as_written };
        // Brackets that exclude letters match less if both cases are the same.
        let excludes = pattern.contains("[!") || pattern.contains("[^");
        let mut meanings = vec![if protects { any_case } else { as_written }];
        meanings.extend((protects && excludes).then_some(as_written));
        if protects && pattern.contains(['{', '}']) {
            meanings.extend(meanings.clone().into_iter().map(|meaning| Meaning { braces_are_names: true, ..meaning }));
        }
        let mut is_valid = false;
        for meaning in meanings {
            let form = brackets::for_matcher(pattern, meaning);
            is_valid |= form.as_ref().is_some_and(|form| add(form, meaning.ignores_case));
            // The matcher itself ignores the case of ASCII letters only.
            let lower = form.filter(|form| meaning.ignores_case && !form.is_ascii()).map(|form| form.to_lowercase());
            is_valid |= lower.is_some_and(|form| add(&form, true));
        }
        if protects && !is_valid {
            add(&escape_wildcards(pattern), true);
        }
    }
    builder.build().ok()
}
