//! Evaluates Bash calls: every simple command must be allowed, one denied command denies all.
//!
//! The text is parsed twice over: `shell` finds the simple commands that run, and
//! `possible_commands` everything they might run in turn (wrappers, interpreters, git
//! aliases). Allow rules look only at the first, deny and ask rules at both, so that a
//! mistake of the parser can lead to a question but not to a permission. Commands that
//! are allowed because they only read still run in a read-only sandbox.

use std::cell::LazyCell;
use std::ffi::OsStr;
use std::path::PathBuf;

use quipu_message::ToolName;
use serde_json::Value;

use super::decision::{
    ApprovalRequest, Decision, DecisionReason, PermissionContext, ask_decision, deny_by_rule, suggest_rules,
};
use super::file_tools::is_covered_by_rule;
use super::rules::SourcedRule;
use super::shell::{self, Redirect, Script, ShellParseError, SimpleCommand, Word};
use super::{Behavior, EffectiveMode, Rule, RuleSource, file_tools};
use crate::path::TargetPath;
use crate::sandbox::{NameUse, SandboxProfile};
use file_names::{NamedFiles, possible_file_names};
use guarded_names::{ChangedFile, changed_file};
use known_commands::CommandEffect;
use pattern::CommandPattern;
pub(super) use pattern::matches_wildcards;
use possible_commands::PossibleCommands;
use possible_cwds::PossibleCwds;
use profile::{choose_profile, is_below_git_root, is_naming_command, may_write_names, unsandboxed_profile};

mod encoding;
mod expanded_words;
mod file_names;
mod guarded_names;
mod known_commands;
mod pattern;
mod possible_commands;
mod possible_cwds;
mod profile;

/// Characters that bash ignores around a command. Others that Unicode calls white space belong to words.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// Evaluates a Bash call.
pub(super) fn evaluate(ctx: &PermissionContext<'_>, input: &Value) -> Decision {
    let command = input["command"].as_str().unwrap_or_default();
    let settings = ctx.workspace.sandbox().settings();
    let outside = input["dangerouslyDisableSandbox"] == true && settings.allow_unsandboxed_commands != Some(false);
    match evaluate_command(ctx, command) {
        Decision::Allow { profile, .. } if outside && profile.is_sandboxed() => ask_decision(
            "The command asks to run without the sandbox, which needs approval.".to_owned(),
            DecisionReason::Sandbox,
        ),
        Decision::Ask(approval) if !outside && is_approved_by_sandbox(ctx, command, &approval.reason) => {
            let reason =
                if ctx.mode == EffectiveMode::Auto { DecisionReason::Mode(ctx.mode) } else { DecisionReason::Sandbox };
            Decision::Allow { reason, profile: SandboxProfile::Workspace }
        }
        Decision::Allow { profile: SandboxProfile::Workspace, .. } if ctx.mode == EffectiveMode::Auto => {
            Decision::Allow { reason: DecisionReason::Mode(ctx.mode), profile: SandboxProfile::Workspace }
        }
        decision => decision,
    }
}

/// Whether the `sandbox` settings or mode `auto` approve a command that would be asked about.
/// Ask rules still apply, and so do deny rules that cannot be compared with the command.
fn is_approved_by_sandbox(ctx: &PermissionContext<'_>, command: &str, reason: &DecisionReason) -> bool {
    let sandbox = ctx.workspace.sandbox();
    let approves = match ctx.mode {
        EffectiveMode::Auto => sandbox.settings().auto_allow_bash_if_sandboxed != Some(false),
        _ => sandbox.settings().approves_sandboxed(),
    };
    if !approves || ctx.mode == EffectiveMode::Plan || matches!(reason, DecisionReason::Rule { .. }) {
        return false;
    }
    let possible = parse(ctx, command).ok().as_ref().and_then(PossibleCommands::from_script);
    if ask_if_rules_unclear(ctx, possible.as_ref()).is_some() {
        return false;
    }
    let is_excluded = |content: &String| {
        let pattern = CommandPattern::parse(content);
        let begins =
            |text: &String| text.strip_prefix(content).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let is_named = |text: &String| pattern.matches(text) || begins(text);
        let in_code = |code: &String| pattern.occurs_in(code);
        possible.as_ref().map_or_else(
            || pattern.occurs_in(command),
            |possible| possible.texts.iter().any(is_named) || possible.foreign_code.iter().any(in_code),
        )
    };
    !sandbox.settings().excluded_commands.iter().any(is_excluded)
        && sandbox.check_available(SandboxProfile::Workspace, &ctx.workspace.command_context()).is_ok()
}

/// Parses a command of the session.
fn parse(ctx: &PermissionContext<'_>, command: &str) -> Result<Script, ShellParseError> {
    if !command.is_ascii() && !encoding::is_known(ctx.workspace.env()) {
        return Err(ShellParseError("it has characters that are others in the encoding of the session"));
    }
    shell::parse(command)
}

fn evaluate_command(ctx: &PermissionContext<'_>, command: &str) -> Decision {
    let last_command = ctx.workspace.sandbox().last_command();
    let understood = parse(ctx, command).and_then(|script| {
        let possible = PossibleCommands::from_script(&script).ok_or(ShellParseError("it is too long"))?;
        Ok((script, possible))
    });
    let (script, possible) = match &understood {
        Ok((script, possible)) => (Ok(script), Some(possible)),
        Err(error) => (Err(error), None),
    };
    let folders = script.map_or(PossibleCwds(None), |script| PossibleCwds::from_script(script, ctx.workspace));
    // A text that cannot be parsed is compared as code.
    let as_code = PossibleCommands::from_code(command);
    let files = LazyCell::new(|| NamedFiles::new(possible.unwrap_or(&as_code), ctx, &folders));
    let concerns = |rule: &SourcedRule| rule_names_command(rule, command, possible) || files.match_rule(rule);
    if let Some(rule) = ctx.find_rule(Behavior::Deny, concerns) {
        return deny_by_rule(rule);
    }
    let unclear = ask_if_rules_unclear(ctx, possible);
    if ctx.mode == EffectiveMode::BypassPermissions {
        return unclear.unwrap_or(Decision::allow_unsandboxed(DecisionReason::Mode(ctx.mode)));
    }
    if let Some(rule) = ctx.find_rule(Behavior::Ask, concerns) {
        return ask_decision(
            format!("The rule {} says that this command needs approval.", rule.rule),
            DecisionReason::from_rule(rule),
        );
    }
    // A rule that contains the whole command literally needs no parsing.
    let whole = |rule: &SourcedRule| {
        let content = rule.rule.content.as_deref();
        rule.rule.applies_to(&ToolName::Bash)
            && content.is_none_or(|text| !text.contains('*') && text == command.trim_matches(BLANKS))
    };
    if let Some(rule) = ctx.find_rule(Behavior::Allow, whole).filter(|_| ctx.mode != EffectiveMode::Plan) {
        let unclear = unclear.or_else(|| ask_if_files_unclear(ctx, possible, &folders));
        let unclear = unclear.filter(|_| rule.rule.content.is_none());
        let allowed = match rule.rule.content {
            Some(_) => allow_literally(ctx, command, (script.ok(), possible), &folders, rule, last_command),
            None => Decision::allow_unsandboxed(DecisionReason::from_rule(rule)),
        };
        return unclear.unwrap_or(allowed);
    }
    match script {
        Ok(script) => match evaluate_with_or_without_rules(ctx, script, &folders, command, last_command) {
            // Without a sandbox nothing limits the parts of the command that were not understood.
            allowed @ Decision::Allow { profile, .. } if !profile.is_sandboxed() => {
                unclear.or_else(|| ask_if_files_unclear(ctx, possible, &folders)).unwrap_or(allowed)
            }
            allowed @ Decision::Allow { .. } => unclear.unwrap_or(allowed),
            decision => decision,
        },
        Err(error) => decide_unparsed(ctx, error),
    }
}

/// Evaluates the commands of a script, and if they are not allowed, also without the allow rules: a rule for one of
/// them excludes the sandbox, in which all of them may be allowed without a rule.
fn evaluate_with_or_without_rules(
    ctx: &PermissionContext<'_>,
    script: &Script,
    folders: &PossibleCwds,
    text: &str,
    last_command: u64,
) -> Decision {
    let decision = evaluate_commands(ctx, script, folders, text, last_command);
    if matches!(decision, Decision::Allow { .. }) || ctx.find_rule(Behavior::Allow, |_| true).is_none() {
        return decision;
    }
    let rules = ctx.rules.without(Behavior::Allow);
    let without = evaluate_commands(&PermissionContext { rules: &rules, ..*ctx }, script, folders, text, last_command);
    if matches!(without, Decision::Allow { .. }) { without } else { decision }
}

/// Decides about a command that a rule contains literally. Git in it is the session's repository, as for other
/// rules.
fn allow_literally(
    ctx: &PermissionContext<'_>,
    command: &str,
    (script, possible): (Option<&Script>, Option<&PossibleCommands>),
    folders: &PossibleCwds,
    rule: &SourcedRule,
    last_command: u64,
) -> Decision {
    let uses_git = possible.map_or_else(|| command.contains("git"), PossibleCommands::may_run_git);
    // The folder of a command that cannot be parsed is the current one, as far as is known.
    let cwd = PossibleCwds(Some(vec![ctx.workspace.cwd()]));
    let folders = if script.is_some() { folders } else { &cwd };
    let is_elsewhere =
        uses_git && !folders.are_of_session_repository(ctx.workspace, possible.or(Some(&PossibleCommands::default())));
    let redirects: Vec<&Redirect> =
        script.iter().flat_map(|script| &script.commands).flat_map(|part| &part.redirects).collect();
    let mut files = redirects.into_iter().filter(|file| !is_standard_file(&file.target.text)).peekable();
    let folders_named: Vec<&Word> = script.map(changed_folders).unwrap_or_default();
    let parts = script.map(|script| script.commands.as_slice()).unwrap_or_default();
    let names_git = is_below_git_root(ctx) && parts.iter().any(|part| is_naming_command(strip_wrappers(&part.words)));
    let writes = |part: &SimpleCommand| may_write_names(strip_wrappers(&part.words), folders);
    let uses_names = files.peek().is_some() || !folders_named.is_empty() || names_git || parts.iter().any(writes);
    let names_file = has_file_restrictions(ctx) && parts.iter().any(|part| folders.may_name_file(&part.words));
    let name_use = match (uses_names, uses_git || names_file) {
        (true, _) => NameUse::Throughout,
        (false, true) => NameUse::Repository,
        (false, false) => NameUse::Never,
    };
    // The rule does not say where a link leads.
    let is_linked = files.map(|file| &file.target).chain(folders_named).any(|word| folders.leads_elsewhere(ctx, word));
    if is_elsewhere || is_linked || !ctx.workspace.sandbox().allows_unsandboxed(name_use) {
        return ask_for_commands(ctx, parts.iter().collect(), None);
    }
    let profile = SandboxProfile::ByRule { name_use, last_command, uses_git };
    Decision::Allow { reason: DecisionReason::from_rule(rule), profile }
}

/// Returns the folders that a script changes to.
fn changed_folders(script: &Script) -> Vec<&Word> {
    let changes = script.commands.iter().filter(|part| part.words.first().is_some_and(|word| word.text == "cd"));
    changes.filter_map(|part| part.words.get(1)).collect()
}

fn runs_git(part: &SimpleCommand) -> bool {
    is_git(strip_wrappers(&part.words))
}

/// Asks about a command that cannot be compared with a deny or ask rule; `None` if all can. Deny
/// rules must hold even in `bypassPermissions`.
fn ask_if_rules_unclear(ctx: &PermissionContext<'_>, possible: Option<&PossibleCommands>) -> Option<Decision> {
    let may_match = |possible: &PossibleCommands, content: &str| {
        let pattern = CommandPattern::parse(content);
        possible.runs_unknown || possible.known_prefixes.iter().any(|known| pattern.could_match(known))
    };
    let is_unclear = |rule: &SourcedRule| {
        let content = rule.rule.content.as_deref().filter(|_| rule.rule.tool == ToolName::Bash);
        content.is_some_and(|content| possible.is_none_or(|possible| may_match(possible, content)))
    };
    let asks = ctx.mode != EffectiveMode::BypassPermissions;
    let rule = ctx.find_rule(Behavior::Deny, is_unclear);
    let rule = rule.or_else(|| ctx.find_rule(Behavior::Ask, is_unclear).filter(|_| asks))?;
    let message = format!("It cannot be told whether the rule {} applies to this command.", rule.rule);
    Some(ask_decision(message, DecisionReason::NotParsed("the command hides what it runs".into())))
}

/// Asks about a command that may use a file with a deny or ask rule in a way that cannot be
/// seen: a word that the shell expands, or a change of folder that is not followed.
fn ask_if_files_unclear(
    ctx: &PermissionContext<'_>,
    possible: Option<&PossibleCommands>,
    folders: &PossibleCwds,
) -> Option<Decision> {
    let searches = |command: &Vec<Word>| {
        let reads =
            has_read_restrictions(ctx) && known_commands::may_search_files(command, |name| folders.is_folder(name));
        reads
            || known_commands::may_move_links(command, |name| folders.is_file(name))
            || known_commands::removes_folders(command, |name| folders.is_folder(name))
    };
    let is_clear = possible.is_some_and(|possible| {
        let words = possible.commands.iter().flat_map(|command| command.iter().skip(1));
        words.chain(&possible.redirect_files).all(|word| word.is_literal && !folders.has_process_path(word))
            && !possible.runs_hidden_code
            && !possible.changes_folder
            && !possible.commands.iter().any(searches)
    });
    if (is_clear && folders.0.is_some()) || !has_file_restrictions(ctx) {
        return None;
    }
    let message = "It cannot be told whether this command uses a file that a rule refuses.".to_owned();
    Some(ask_decision(message, DecisionReason::NotParsed("the command hides which files it uses".into())))
}

fn decide_unparsed(ctx: &PermissionContext<'_>, error: &ShellParseError) -> Decision {
    let message = format!("This command needs approval: {error}, so it is not clear what it does.");
    match ctx.mode {
        EffectiveMode::Plan => Decision::Deny { message, reason: DecisionReason::Mode(ctx.mode) },
        _ => ask_decision(message, DecisionReason::NotParsed(error.to_string())),
    }
}

/// Whether a deny or ask rule matches the command or something it may run.
fn rule_names_command(rule: &SourcedRule, command: &str, possible: Option<&PossibleCommands>) -> bool {
    if !rule.rule.applies_to(&ToolName::Bash) {
        return false;
    }
    let Some(content) = rule.rule.content.as_deref() else { return true };
    let pattern = CommandPattern::parse(content);
    let by_name = without_folder(content).map(|content| CommandPattern::parse(&content));
    match possible {
        Some(possible) => {
            possible.texts.iter().any(|text| pattern.matches(text))
                || by_name.is_some_and(|pattern| possible.texts.iter().any(|text| pattern.matches(text)))
                || possible.foreign_code.iter().any(|code| pattern.occurs_in(code))
                || content == command.trim_matches(BLANKS)
        }
        None => pattern.occurs_in(command),
    }
}

/// Returns the text of a rule without the folder of its program: `./deploy.sh` can be run as `bash deploy.sh`. `None` if
/// it has none.
fn without_folder(content: &str) -> Option<String> {
    let program = content.split(' ').next().unwrap_or_default();
    let (_, name) = program.rsplit_once('/')?;
    (!name.is_empty() && !name.starts_with(['*', ':'])).then(|| format!("{name}{}", &content[program.len()..]))
}

/// Result of inspecting one simple command.
enum CommandFinding<'a> {
    /// The command only reads.
    ReadOnly,
    /// The command only reads, but the shell expands some of its words, so it must run in the sandbox.
    ReadsExpandedWords,
    /// The command changes files that the mode allows to change.
    AllowedChange,
    /// An allow rule matches.
    AllowedByRule(&'a SourcedRule),
    /// Nothing allows the command.
    NotAllowed {
        /// Path that caused it, and whether it is inside the session's folders.
        path: Option<(PathBuf, bool)>,
    },
}

/// Evaluates the commands of a script one by one. `last_command` is the id of the last command that had started
/// before names were checked.
fn evaluate_commands(
    ctx: &PermissionContext<'_>,
    script: &Script,
    folders: &PossibleCwds,
    text: &str,
    last_command: u64,
) -> Decision {
    // If links may be moved, a name may refer to another file than when it was checked; and
    // a moved folder may contain files with deny rules.
    let moves = |part: &SimpleCommand| {
        known_commands::may_move_links(strip_wrappers(&part.words), |name| folders.is_file(name))
    };
    let is_longer = script.commands.len() > 1 || script.has_loop;
    let links_may_move = script.commands.iter().any(moves) && (is_longer || has_file_restrictions(ctx));
    // Programs get the value of a variable that is in the environment.
    let env_script = ctx.workspace.env_script();
    let exports = |name: &String| env_script.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    let changes_env =
        (script.loop_variables.iter()).any(|name| ctx.workspace.env().contains_key(OsStr::new(name)) || exports(name));
    let changes_shell =
        is_longer && script.commands.iter().any(|part| changes_shell_state(strip_wrappers(&part.words)));
    // The program would be another one than a rule means.
    let is_loop_program = |part: &SimpleCommand| {
        script.has_loop && strip_wrappers(&part.words).first().is_some_and(|word| !word.is_literal)
    };
    let inspect = |part| match inspect_command(ctx, script, part, folders) {
        _ if changes_env || changes_shell || is_loop_program(part) => CommandFinding::NotAllowed { path: None },
        CommandFinding::ReadOnly | CommandFinding::ReadsExpandedWords | CommandFinding::AllowedChange
            if links_may_move =>
        {
            CommandFinding::NotAllowed { path: None }
        }
        finding => finding,
    };
    let findings: Vec<(&SimpleCommand, CommandFinding<'_>)> =
        script.commands.iter().map(|part| (part, inspect(part))).collect();
    let only_reads =
        |finding: &CommandFinding<'_>| matches!(finding, CommandFinding::ReadOnly | CommandFinding::ReadsExpandedWords);
    if ctx.mode == EffectiveMode::Plan && !findings.iter().all(|(_, finding)| only_reads(finding)) {
        let message = "Cannot run this command while in plan mode: it may change things.".to_owned();
        return Decision::Deny { message, reason: DecisionReason::Mode(ctx.mode) };
    }
    let open: Vec<&(&SimpleCommand, CommandFinding<'_>)> =
        findings.iter().filter(|(_, finding)| matches!(finding, CommandFinding::NotAllowed { .. })).collect();
    if open.is_empty() {
        let reason = match findings.as_slice() {
            [(_, CommandFinding::AllowedByRule(rule))] => DecisionReason::from_rule(rule),
            _ => DecisionReason::Subcommands,
        };
        let profile = choose_profile(&findings, text, folders).and_then(|profile| match profile {
            SandboxProfile::None => unsandboxed_profile(ctx, &findings, (script, text), folders, last_command),
            profile => Some(profile),
        });
        return match profile {
            Some(profile) => match ctx.workspace.sandbox().check_available(profile, &ctx.workspace.command_context()) {
                Ok(()) => Decision::Allow { reason, profile },
                Err(reason) => ask_without_sandbox(ctx, findings.iter().map(|(part, _)| *part).collect(), &reason),
            },
            None => {
                let rest = findings.iter().filter(|(_, finding)| !matches!(finding, CommandFinding::AllowedByRule(_)));
                ask_for_commands(ctx, rest.map(|(part, _)| *part).collect(), None)
            }
        };
    }
    let path = open.iter().find_map(|(_, finding)| match finding {
        CommandFinding::NotAllowed { path } => path.clone(),
        _ => None,
    });
    let parts = open.iter().map(|(part, _)| *part);
    ask_for_commands(ctx, parts.collect(), path)
}

/// Asks about a command that would be allowed if a sandbox were available.
fn ask_without_sandbox(ctx: &PermissionContext<'_>, parts: Vec<&SimpleCommand>, reason: &str) -> Decision {
    let Decision::Ask(approval) = ask_for_commands(ctx, parts, None) else { unreachable!("it asks") };
    let message =
        format!("{} It would run by itself in a sandbox, but there is none for it: {reason}.", approval.message);
    Decision::Ask(Box::new(ApprovalRequest { message, reason: DecisionReason::Sandbox, ..*approval }))
}

fn ask_for_commands(
    ctx: &PermissionContext<'_>,
    parts: Vec<&SimpleCommand>,
    path: Option<(PathBuf, bool)>,
) -> Decision {
    let program = parts.iter().find_map(|part| part.words.first()).map_or("The command", |word| &word.text);
    let message = match &path {
        Some((path, false)) => file_tools::outside_message(program, path, ctx.workspace),
        _ => format!("{program} needs approval."),
    };
    let mut suggestions = Vec::new();
    let rules: Option<Vec<Rule>> = parts.iter().map(|part| suggest_rule(part)).collect();
    if let Some(rules) = rules.filter(|rules| !rules.is_empty()) {
        suggestions.push(suggest_rules(rules, RuleSource::Local));
    }
    if let Some((path, _)) = path.as_ref().filter(|(path, _)| !ctx.workspace.is_guarded(path)) {
        suggestions.extend(file_tools::suggest_accept_edits(path, false));
    }
    let blocked_path = path.map(|(path, _)| path);
    Decision::Ask(Box::new(ApprovalRequest { message, reason: DecisionReason::NoRule, blocked_path, suggestions }))
}

/// Suggests a rule for a command: its first words followed by anything.
fn suggest_rule(part: &SimpleCommand) -> Option<Rule> {
    let simple = part.assignments.is_empty() && part.redirects.is_empty();
    let (first, rest) = part.words.split_first().filter(|(first, _)| simple && first.is_literal)?;
    let possible = PossibleCommands::from_script(&Script { commands: vec![part.clone()], ..Script::default() })?;
    let runs_anything = possible.texts.len() > 1;
    let text = match rest.first() {
        _ if runs_anything => shell::format_words(&part.words),
        Some(second) if second.is_literal && !second.text.starts_with('-') => {
            format!("{} *", shell::format_words(&[first.clone(), second.clone()]))
        }
        _ => format!("{} *", shell::format_words(std::slice::from_ref(first))),
    };
    // In a rule `*` matches anything.
    let stars = usize::from(!runs_anything);
    (!text.contains('\n') && text.matches('*').count() == stars).then(|| Rule::new(ToolName::Bash, Some(&text)))
}

/// Inspects one simple command.
fn inspect_command<'a>(
    ctx: &PermissionContext<'a>,
    script: &Script,
    part: &SimpleCommand,
    folders: &PossibleCwds,
) -> CommandFinding<'a> {
    let mut changes = false;
    for file in &part.redirects {
        match inspect_redirect(ctx, file, folders) {
            CommandFinding::ReadOnly => {}
            CommandFinding::NotAllowed { path } => return CommandFinding::NotAllowed { path },
            _ => changes = true,
        }
    }
    // Variables that the shell keeps may change what later commands mean.
    let sets_shell_variables = part.words.is_empty() && !part.assignments.is_empty()
        || known_commands::sets_variables(strip_wrappers(&part.words));
    if sets_shell_variables || !part.assignments.iter().all(|assignment| is_harmless_assignment(assignment)) {
        return CommandFinding::NotAllowed { path: None };
    }
    match inspect_words(ctx, script, &part.words, folders) {
        CommandFinding::ReadOnly if changes => CommandFinding::AllowedChange,
        CommandFinding::ReadsExpandedWords if changes => CommandFinding::NotAllowed { path: None },
        finding => finding,
    }
}

fn inspect_words<'a>(
    ctx: &PermissionContext<'a>,
    script: &Script,
    words: &[Word],
    folders: &PossibleCwds,
) -> CommandFinding<'a> {
    let inner = strip_wrappers(words);
    let texts = [shell::format_words(words), shell::format_words(inner)];
    let allows = |rule: &SourcedRule| {
        let pattern =
            rule.rule.content.as_deref().filter(|_| rule.rule.applies_to(&ToolName::Bash)).map(CommandPattern::parse);
        pattern.is_some_and(|pattern| texts.iter().any(|text| pattern.matches(text)))
    };
    if let Some(rule) = ctx.find_rule(Behavior::Allow, allows) {
        // The shell may expand a word to a file with a deny rule.
        let unknown = words.iter().skip(1).any(|word| !word.is_literal) && has_file_restrictions(ctx);
        let vague = unknown
            || has_read_restrictions(ctx) && known_commands::may_search_files(inner, |name| folders.is_folder(name));
        // A rule for git covers the session's repository, not another one that may run programs.
        let alone = Script {
            commands: vec![SimpleCommand { words: words.to_vec(), ..SimpleCommand::default() }],
            ..Script::default()
        };
        let possible = PossibleCommands::from_script(&alone);
        let uses_git = possible.as_ref().is_none_or(PossibleCommands::may_run_git);
        let elsewhere = uses_git && !folders.are_of_session_repository(ctx.workspace, possible.as_ref());
        let changed = possible.as_ref().and_then(|possible| changed_file(ctx, rule, possible, (script, folders)));
        return match changed {
            Some(ChangedFile::Guarded(path)) => CommandFinding::NotAllowed { path: Some((path, true)) },
            Some(ChangedFile::Unknown) => CommandFinding::NotAllowed { path: None },
            None if vague || elsewhere || evaluates_code(inner) => CommandFinding::NotAllowed { path: None },
            None => CommandFinding::AllowedByRule(rule),
        };
    }
    let Some((first, rest)) = inner.split_first() else { return CommandFinding::ReadOnly };
    if first.is_literal && first.text == "cd" {
        let inside = rest.len() == 1 && folders.is_inside_workspace(ctx, ".");
        return if inside { CommandFinding::ReadOnly } else { CommandFinding::NotAllowed { path: None } };
    }
    if inner.iter().any(|word| !word.is_literal) {
        let may_show_contents = !has_read_restrictions(ctx);
        let literal = expanded_words::as_literal_words(ctx, (script, inner), folders, may_show_contents);
        return match literal.map(|literal| inspect_words(ctx, script, &literal, folders)) {
            Some(CommandFinding::ReadOnly) => CommandFinding::ReadsExpandedWords,
            _ => CommandFinding::NotAllowed { path: None },
        };
    }
    let Some(does) = known_commands::command_effect(inner) else { return CommandFinding::NotAllowed { path: None } };
    if is_git(inner) && !folders.is_session_repository(ctx.workspace) {
        return CommandFinding::NotAllowed { path: None };
    }
    let names = if first.text == "echo" { Vec::new() } else { known_commands::operands(rest) };
    let first_path = |inside: bool| names.first().map(|name| (ctx.workspace.absolute(name), inside));
    match does {
        // Without a name some commands read the current folder.
        CommandEffect::ReadOnly if !folders.is_inside_workspace(ctx, ".") => CommandFinding::NotAllowed { path: None },
        CommandEffect::ReadOnly => match names.iter().find(|name| !folders.is_inside_workspace(ctx, name)) {
            Some(name) => CommandFinding::NotAllowed { path: Some((ctx.workspace.absolute(name), false)) },
            None if has_read_restrictions(ctx)
                && known_commands::may_search_files(inner, |name| folders.is_folder(name)) =>
            {
                CommandFinding::NotAllowed { path: None }
            }
            None if known_commands::may_follow_links(inner, |name| folders.is_folder(name)) => {
                CommandFinding::NotAllowed { path: None }
            }
            None => CommandFinding::ReadOnly,
        },
        CommandEffect::ChangesFiles => match names.iter().find(|name| !folders.is_inside_workspace(ctx, name)) {
            Some(name) => CommandFinding::NotAllowed { path: Some((ctx.workspace.absolute(name), false)) },
            None if ctx.mode.accepts_edits() && names.iter().all(|name| folders.can_change(ctx, name)) => {
                CommandFinding::AllowedChange
            }
            None => CommandFinding::NotAllowed { path: first_path(true) },
        },
    }
}

/// Whether a command is a builtin that runs code in its words: `test -v 'a[$(x)]'`.
fn evaluates_code(words: &[Word]) -> bool {
    let is_test = words.first().is_some_and(|first| first.text == "test" || first.text == "[");
    let is_code = |word: &Word| {
        let has_code = word.text.contains('[') && (word.text.contains("$(") || word.text.contains('`'));
        ["-v", "-R"].contains(&word.text.as_str()) || has_code
    };
    is_test && words.iter().skip(1).any(is_code)
}

/// Whether a command is git.
fn is_git(words: &[Word]) -> bool {
    words.first().is_some_and(|first| first.text.rsplit('/').next() == Some("git"))
}

/// Whether rules protect some files from reading, so that searching whole folders is not harmless.
fn has_read_restrictions(ctx: &PermissionContext<'_>) -> bool {
    has_path_rule(ctx, |tool| *tool == ToolName::Read)
}

/// Whether rules protect some files from reading or changes.
fn has_file_restrictions(ctx: &PermissionContext<'_>) -> bool {
    has_path_rule(ctx, |tool| *tool == ToolName::Read || file_tools::is_edit_tool(tool))
}

fn has_path_rule(ctx: &PermissionContext<'_>, about: impl Fn(&ToolName) -> bool) -> bool {
    let speaks = |rule: &SourcedRule| about(&rule.rule.tool) && rule.rule.content.is_some();
    [Behavior::Deny, Behavior::Ask].into_iter().any(|behavior| ctx.find_rule(behavior, speaks).is_some())
}

/// Whether redirections to a file of this name need no check.
fn is_standard_file(name: &str) -> bool {
    ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"].contains(&name)
}

/// Inspects a redirection.
fn inspect_redirect<'a>(ctx: &PermissionContext<'a>, file: &Redirect, folders: &PossibleCwds) -> CommandFinding<'a> {
    if !file.target.is_literal {
        return CommandFinding::NotAllowed { path: None };
    }
    let name = file.target.text.as_str();
    if is_standard_file(name) {
        return CommandFinding::ReadOnly;
    }
    let target = TargetPath::new(ctx.workspace.cwd().join(name));
    let path = target.given.clone();
    let tool = if file.is_write { ToolName::Edit } else { ToolName::Read };
    let covers =
        |rule: &SourcedRule| !file.is_write || is_covered_by_rule(rule, &TargetPath::new(&path), ctx.workspace);
    let allows = |rule: &SourcedRule| {
        folders.is_single() && file_tools::rule_matches(rule, &tool, &target, ctx.workspace) && covers(rule)
    };
    if let Some(rule) = ctx.find_rule(Behavior::Allow, allows) {
        return CommandFinding::AllowedByRule(rule);
    }
    let inside = folders.is_inside_workspace(ctx, name);
    match file.is_write {
        false if inside => CommandFinding::ReadOnly,
        true if ctx.mode.accepts_edits() && folders.can_change(ctx, name) => CommandFinding::AllowedChange,
        _ => CommandFinding::NotAllowed { path: Some((path, inside)) },
    }
}

/// Whether the variable of an assignment does not change what commands do.
fn is_harmless_assignment(assignment: &str) -> bool {
    let names = ["CI", "FORCE_COLOR", "LANG", "LC_ALL", "NODE_ENV", "NO_COLOR", "RUST_BACKTRACE", "RUST_LOG", "TZ"];
    let (name, value) = assignment.split_once('=').unwrap_or_default();
    names.contains(&name) && value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,=:/".contains(c))
}

/// Strips wrappers that only change how long or with which priority a command runs.
fn strip_wrappers(mut words: &[Word]) -> &[Word] {
    let plain =
        |word: &Word, of: &str| word.is_literal && !word.text.is_empty() && word.text.chars().all(|c| of.contains(c));
    loop {
        let inner = match words {
            [first, time, rest @ ..] if first.text == "timeout" && plain(time, "0123456789.smhd") => rest,
            [first, option, number, rest @ ..]
                if first.text == "nice" && option.text == "-n" && plain(number, "-0123456789") =>
            {
                rest
            }
            [first, rest @ ..] if first.text == "nohup" || first.text == "nice" => rest,
            _ => return words,
        };
        if !words[0].is_literal || inner.first().is_none_or(|word| word.text.starts_with('-')) {
            return words;
        }
        words = inner;
    }
}

/// Whether a command changes what later commands of the shell mean.
fn changes_shell_state(words: &[Word]) -> bool {
    const BUILTINS: &str = "alias builtin command declare enable export hash local mapfile read readarray readonly set \
                            shopt source trap typeset unalias unset .";
    words.first().is_some_and(|first| BUILTINS.split(' ').any(|name| name == first.text))
        && !known_commands::finds_programs(words)
}

/// Whether a command only reads, judging by its words. Does not consider paths.
pub(crate) fn is_read_only(command: &str) -> bool {
    let reads = |part: &SimpleCommand| {
        let files = part.redirects.iter().all(|file| !file.is_write || file.target.text == "/dev/null");
        files
            && part.assignments.is_empty()
            && known_commands::command_effect(strip_wrappers(&part.words)) == Some(CommandEffect::ReadOnly)
    };
    shell::parse(command).is_ok_and(|script| !script.commands.is_empty() && script.commands.iter().all(reads))
}

/// Returns the variables that loops of a command set; empty if it cannot be parsed.
pub(crate) fn loop_variables(command: &str) -> Vec<String> {
    shell::parse(command).map(|script| script.loop_variables).unwrap_or_default()
}

/// Returns the programs that a command names, in order; empty if it cannot be parsed.
pub(crate) fn program_names(command: &str) -> Vec<String> {
    let script = shell::parse(command).unwrap_or_default();
    script
        .commands
        .iter()
        .filter_map(|part| strip_wrappers(&part.words).first())
        .map(|word| word.text.clone())
        .collect()
}
