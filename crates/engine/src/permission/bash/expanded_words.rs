//! Words that the shell expands, in commands that only read.
//!
//! Such a command runs in the sandbox for reading, so an expansion can make it neither write nor connect. It must not
//! show files outside the session's folders either, so only wildcards are accepted whose folder contains no links out
//! of the session's folders. `echo` and `printf` show names at most.

use super::known_commands;
use super::possible_cwds::PossibleCwds;
use crate::permission::decision::PermissionContext;
use crate::permission::shell::Word;

/// Maximum number of entries of a folder whose links are checked.
const MAX_ENTRIES: usize = 2000;

/// Returns the words of a command with those that the shell expands as literal ones, for
/// [`command_effect`](known_commands::command_effect); `None` if they may become anything.
pub(super) fn as_literal_words(
    ctx: &PermissionContext<'_>,
    words: &[Word],
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
        true => Some(word.clone()),
        false if prints => Some(Word { text: "_".to_owned(), is_literal: true }),
        false => is_safe_wildcard(ctx, &word.text, folders).then(|| Word { text: word.text.clone(), is_literal: true }),
    };
    [first.clone()].into_iter().map(Some).chain(rest.iter().map(as_literal)).collect()
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
