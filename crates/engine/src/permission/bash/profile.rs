//! Chooses the sandbox profile of a script whose commands are all allowed.

use super::known_commands::CommandEffect;
use super::possible_commands::PossibleCommands;
use super::possible_cwds::PossibleCwds;
use super::{
    CommandFinding, has_file_restrictions, is_git, is_standard_file, known_commands, possible_commands, runs_git,
    strip_wrappers,
};
use crate::git::git_root;
use crate::permission::decision::PermissionContext;
use crate::permission::shell::{self, Redirect, Script, SimpleCommand, Word};
use crate::sandbox::{NameUse, SandboxProfile};

/// Chooses the sandbox profile for a script; `None` if no single profile fits all commands.
///
/// A command that a rule allows needs [`SandboxProfile::None`], and then the kernel cannot
/// limit the effect of a parser mistake on the other commands. So these must be simple:
/// they only read, [their options show what they do](known_commands::is_plain), and the text contains
/// nothing that bash would expand or join. A search that follows links out of the session's folders is
/// excluded, and so is git unless a rule allows it, because it runs programs that a repository configures.
pub(super) fn choose_profile(
    findings: &[(&SimpleCommand, CommandFinding<'_>)],
    text: &str,
    folders: &PossibleCwds,
) -> Option<SandboxProfile> {
    let any = |is: fn(&CommandFinding<'_>) -> bool| findings.iter().any(|(_, finding)| is(finding));
    let changes = any(|finding| matches!(finding, CommandFinding::AllowedChange));
    let expands = any(|finding| matches!(finding, CommandFinding::ReadsExpandedWords));
    if expands && any(|finding| matches!(finding, CommandFinding::AllowedByRule(_) | CommandFinding::AllowedChange)) {
        return None;
    }
    if !any(|finding| matches!(finding, CommandFinding::AllowedByRule(_))) {
        return Some(if changes { SandboxProfile::Workspace } else { SandboxProfile::Read });
    }
    let reads = any(|finding| matches!(finding, CommandFinding::ReadOnly));
    let expands = ["$", "`", "\\\n", "<<", "<(", ">("].iter().any(|mark| text.contains(mark));
    let by_rule = |finding: &CommandFinding<'_>| matches!(finding, CommandFinding::AllowedByRule(_));
    let allows_git = findings.iter().any(|(part, finding)| by_rule(finding) && runs_git(part));
    let mut reading = findings.iter().filter(|(_, finding)| matches!(finding, CommandFinding::ReadOnly));
    let is_safe = reading.all(|(part, _)| {
        let words = strip_wrappers(&part.words);
        known_commands::is_plain(words, allows_git)
            && !known_commands::may_follow_links(words, |name| folders.is_folder(name))
    });
    (!changes && (!reads || is_safe && !expands)).then_some(SandboxProfile::None)
}

/// Returns the profile of a script without a sandbox; `None` if it is not [plain](shell::is_plain_text), or if its
/// names cannot be relied on: it uses a path
/// after a command that a rule allows has started, or beside a command that can write. Such a command may
/// have replaced the path by a link out of the session's folders (`git checkout`, `tar`), so it may lead
/// elsewhere than when it was checked.
pub(super) fn unsandboxed_profile(
    ctx: &PermissionContext<'_>,
    findings: &[(&SimpleCommand, CommandFinding<'_>)],
    (script, text): (&Script, &str),
    folders: &PossibleCwds,
    last_command: u64,
) -> Option<SandboxProfile> {
    if !shell::is_plain_text(text) {
        return None;
    }
    let by_rule = |finding: &CommandFinding<'_>| matches!(finding, CommandFinding::AllowedByRule(_));
    let reads = |part: &SimpleCommand| {
        let words = strip_wrappers(&part.words);
        let is_read_only = known_commands::command_effect(words) == Some(CommandEffect::ReadOnly);
        is_read_only && !known_commands::is_version_query(words)
    };
    let changes_folder = |part: &SimpleCommand| part.words.first().is_some_and(|word| word.text == "cd");
    let first = findings.iter().position(|(part, _)| !changes_folder(part)).unwrap_or_default();
    let changing = findings.iter().position(|(part, finding)| by_rule(finding) && !reads(part));
    let mut name_uses = Vec::new();
    for (at, (part, finding)) in findings.iter().enumerate() {
        let words = strip_wrappers(&part.words);
        // A rule that allows reading a path does not allow what a deny rule protects.
        let is_checked = !by_rule(finding) || reads(part) && has_file_restrictions(ctx);
        let files = part.redirects.iter().filter(|file| !is_standard_file(&file.target.text));
        let compares = is_git(words) && known_commands::git::may_compare_files(words, ctx.workspace.root());
        let uses_file = is_checked && (known_commands::may_show_named_files(words) || compares);
        if files.clone().next().is_some() || uses_file {
            let is_after = |changing: usize| {
                // In a loop a command runs after itself.
                let may_overlap = script.concurrency.allows(part, findings[changing].0);
                script.has_loop || findings.len() > 1 && (at > changing || may_overlap)
            };
            if changing.is_some_and(is_after) || script.concurrency.has_background {
                return None;
            }
            // Opening a pipe waits for its other end.
            let may_wait = |file: &Redirect| !folders.is_regular_or_missing(&file.target.text);
            // The shell opens files after it has expanded the words, which may take long.
            let expands = !part.words.iter().all(|word| word.is_literal);
            let starts = at <= first && !script.has_loop && !expands && (!uses_file || changes_folder(part));
            let is_brief = starts && !files.clone().any(may_wait);
            name_uses.push(if is_brief { NameUse::AtStart } else { NameUse::Throughout });
        }
        if is_git(words) {
            name_uses.push(NameUse::Repository);
        }
        // A command in the sandbox could make it a link to a file with a deny rule.
        if has_file_restrictions(ctx) && folders.may_name_file(words) {
            name_uses.push(NameUse::Repository);
        }
        // A command in the sandbox could make it a link to a guarded file.
        if may_write_names(words, folders) {
            name_uses.push(NameUse::Throughout);
        }
        // It may make a `.git` for another command's git.
        if is_naming_command(words) && is_below_git_root(ctx) {
            name_uses.push(NameUse::Throughout);
        }
    }
    let name_use = name_uses.into_iter().max().unwrap_or(NameUse::Never);
    let uses_git = findings.iter().any(|(part, _)| runs_git(part));
    if uses_git && may_make_git_file(ctx, findings.iter().map(|(part, _)| *part)) {
        return None;
    }
    let is_free = ctx.workspace.sandbox().allows_unsandboxed(name_use);
    is_free.then_some(SandboxProfile::ByRule { name_use, last_command, uses_git })
}

/// Whether a command writes files that its words may name, or starts a program that does: `env cp a b`.
pub(super) fn may_write_names(words: &[Word], folders: &PossibleCwds) -> bool {
    let alone = SimpleCommand { words: words.to_vec(), ..SimpleCommand::default() };
    let possible = PossibleCommands::from_script(&Script { commands: vec![alone], ..Script::default() });
    let writes = |possible: PossibleCommands| {
        let mut commands = possible.commands.iter();
        commands.any(|words| known_commands::may_write_files(words) && folders.may_name_file(words))
    };
    possible.is_none_or(writes)
}

/// Programs that give files other names.
const NAMING_COMMANDS: [&str; 9] = ["bsdtar", "cp", "install", "ln", "mv", "rsync", "tar", "tee", "unzip"];

/// Whether a command beside git may make a file `.git` in the folder that git starts in, which then is another repository
/// than the one that was checked.
fn may_make_git_file<'a>(ctx: &PermissionContext<'_>, parts: impl Iterator<Item = &'a SimpleCommand>) -> bool {
    let commands: Vec<&[Word]> = parts.map(|part| strip_wrappers(&part.words)).collect();
    let is_elsewhere = |words: &&[Word]| is_git(words) && words.iter().any(|word| word.text == "-C");
    (is_below_git_root(ctx) || commands.iter().any(is_elsewhere))
        && commands.iter().any(|words| is_naming_command(words))
}

/// Whether git finds its repository in a folder above the current one.
pub(super) fn is_below_git_root(ctx: &PermissionContext<'_>) -> bool {
    let cwd = ctx.workspace.cwd();
    git_root(&cwd).is_some_and(|root| root != cwd)
}

/// Whether a command gives files other names.
pub(super) fn is_naming_command(words: &[Word]) -> bool {
    words.first().is_some_and(|first| NAMING_COMMANDS.contains(&possible_commands::program_name(first).as_str()))
}
