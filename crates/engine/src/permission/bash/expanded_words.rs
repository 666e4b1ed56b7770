//! Words that the shell expands, in commands that only read.
//!
//! Such a command runs in the sandbox for reading, so an expansion can make it neither write nor connect. It must not
//! show files outside the session's folders either, so only wildcards are accepted whose folder contains no links out
//! of the session's folders, and variables of loops over such words. `echo` shows names at most.

use super::known_commands;
use super::possible_cwds::PossibleCwds;
use crate::permission::decision::PermissionContext;
use crate::permission::path_pattern::expand_braces;
use crate::permission::shell::{Script, Word};

/// Maximum number of entries of a folder whose links are checked.
const MAX_ENTRIES: usize = 2000;

/// Maximum number of digits in a range in braces, such as `{1..1000}`.
const MAX_RANGE_DIGITS: usize = 4;

/// Returns the words of a command of a script with those that the shell expands as literal ones, for
/// [`command_effect`](known_commands::command_effect); `None` if they may become anything.
pub(super) fn as_literal_words(
    ctx: &PermissionContext<'_>,
    (script, words): (&Script, &[Word]),
    folders: &PossibleCwds,
    may_show_contents: bool,
) -> Option<Vec<Word>> {
    let (first, rest) = words.split_first().filter(|(first, _)| first.is_literal)?;
    let prints = first.text == "echo";
    let takes_files = known_commands::takes_files(&first.text);
    if !prints && (!takes_files || !may_show_contents && !known_commands::shows_attributes_only(&first.text)) {
        return None;
    }
    let as_literal = |word: &Word| match word.is_literal {
        true => Some(vec![word.clone()]),
        false if prints => (!is_long_list(&word.text)).then(|| vec![literal("_")]),
        false if is_loop_variable(script, &word.text) => loop_values(ctx, script, folders),
        false if known_commands::is_search_pattern(&first.text, &word.text) => Some(vec![literal(&word.text)]),
        false => is_safe_wildcard(ctx, &word.text, folders).then(|| vec![literal(&word.text)]),
    };
    let rest: Option<Vec<Vec<Word>>> = rest.iter().map(as_literal).collect();
    Some([first.clone()].into_iter().chain(rest?.into_iter().flatten()).collect())
}

/// Whether braces in a word may mean so many words that the shell runs out of memory: `{a,b}{a,b}…`, `{1..10000000}`.
fn is_long_list(text: &str) -> bool {
    // `${a}..${b}` has variables, not ranges.
    let text = &text.replace("${", "");
    let groups = text.matches('{').count();
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let has_long_range = text.contains("..") && (groups > 1 || numbers.any(|number| number.len() > MAX_RANGE_DIGITS));
    groups > 0 && (has_long_range || expand_braces(text).is_none())
}

fn literal(text: &str) -> Word {
    Word { text: text.to_owned(), is_literal: true }
}

/// Whether a word is a variable of a loop in quotes: `"$file"`. Without them a name with a space would be several
/// words.
fn is_loop_variable(script: &Script, text: &str) -> bool {
    let name = text.strip_prefix("\"$").and_then(|text| text.strip_suffix('"')).unwrap_or_default();
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    script.loop_variables.iter().any(|variable| variable == name)
}

/// Returns the words that the loops of a script go over; `None` if they may become anything or are options.
fn loop_values(ctx: &PermissionContext<'_>, script: &Script, folders: &PossibleCwds) -> Option<Vec<Word>> {
    let is_known = |word: &Word| match word.is_literal {
        true => !word.text.starts_with('-'),
        false => is_safe_wildcard(ctx, &word.text, folders),
    };
    script.loop_words.iter().map(|word| is_known(word).then(|| literal(&word.text))).collect()
}

/// Whether a word is a pattern for the names in one folder of the session, none of which leads out of the session's
/// folders or is an option.
fn is_safe_wildcard(ctx: &PermissionContext<'_>, text: &str, folders: &PossibleCwds) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    let (folder, pattern) = text.rsplit_once('/').map_or((None, text), |(folder, name)| (Some(folder), name));
    if text.starts_with(['/', '-'])
        || !folder.unwrap_or_default().chars().all(is_plain)
        || !pattern.chars().all(|c| is_plain(c) || "*?".contains(c))
        || !folders.is_inside_workspace(ctx, folder.unwrap_or("."))
    {
        return false;
    }
    let is_safe = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            let is_option = folder.is_none() && entry.file_name().as_encoded_bytes().starts_with(b"-");
            let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
            !is_option && (!is_link || ctx.workspace.contains(&entry.path()))
        })
    };
    folders.0.iter().flatten().all(|cwd| match cwd.join(folder.unwrap_or(".")).read_dir() {
        Ok(entries) => entries.enumerate().all(|(at, entry)| at < MAX_ENTRIES && is_safe(entry)),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    })
}
