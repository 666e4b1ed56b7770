//! Shell commands: every command in the text must be allowed, and one refused is enough.

use std::path::{Path, PathBuf};

use super::decision::{
    ApprovalRequest, Decision, DecisionReason, PermissionContext, ask_decision, deny_by_rule, suggest_rules,
};
use super::file_tools::is_covered_by_rule;
use super::path_pattern::PathPattern;
use super::rules::SourcedRule;
use super::shell::{self, Redirect, Script, ShellParseError, SimpleCommand, Word};
use super::{Behavior, PermissionMode, Rule, RuleSource, file_tools};
use crate::guarded_paths::is_guarded;
use crate::path::{TargetPath, resolve, without_dots};
use crate::sandbox::SandboxProfile;
use crate::tool::Workspace;
use known_commands::CommandEffect;
use pattern::CommandPattern;
pub(super) use pattern::matches_wildcards;
use possible_commands::PossibleCommands;
use serde_json::Value;

mod known_commands;
mod pattern;
mod possible_commands;

/// Longer names cannot be opened.
const MAX_PATH_BYTES: usize = 4096;

/// Judges a call of Bash.
pub(super) fn evaluate(court: &PermissionContext<'_>, input: &Value) -> Decision {
    let command = input["command"].as_str().unwrap_or_default();
    let settings = court.workspace.sandbox().settings();
    let outside = input["dangerouslyDisableSandbox"] == true && settings.allow_unsandboxed_commands != Some(false);
    match evaluate_command(court, command) {
        Decision::Allow { profile, .. } if outside && profile != SandboxProfile::None => ask_decision(
            "The command asks to run without the sandbox, which needs approval.".to_owned(),
            DecisionReason::Sandbox,
        ),
        Decision::Ask(question) if !outside && is_approved_by_sandbox(court, command, &question.reason) => {
            let reason = if court.mode == PermissionMode::Auto {
                DecisionReason::Mode(court.mode)
            } else {
                DecisionReason::Sandbox
            };
            Decision::Allow { reason, profile: SandboxProfile::Workspace }
        }
        Decision::Allow { profile: SandboxProfile::Workspace, .. } if court.mode == PermissionMode::Auto => {
            Decision::Allow { reason: DecisionReason::Mode(court.mode), profile: SandboxProfile::Workspace }
        }
        verdict => verdict,
    }
}

/// Whether the `sandbox` settings or mode `auto` approve what would be asked about. Ask
/// rules stand, and so do deny rules that the command cannot be compared with.
fn is_approved_by_sandbox(court: &PermissionContext<'_>, command: &str, reason: &DecisionReason) -> bool {
    let sandbox = court.workspace.sandbox();
    let approves = match court.mode {
        PermissionMode::Auto => sandbox.settings().auto_allow_bash_if_sandboxed != Some(false),
        _ => sandbox.settings().approves_sandboxed(),
    };
    if !approves || court.mode == PermissionMode::Plan || matches!(reason, DecisionReason::Rule { .. }) {
        return false;
    }
    let script = shell::parse(command).ok();
    if ask_if_deny_rules_unclear(court, script.as_ref().and_then(PossibleCommands::from_script).as_ref()).is_some() {
        return false;
    }
    let parts = script.iter().flat_map(|script| &script.commands);
    let texts: Vec<String> = parts.map(|part| shell::format_words(strip_wrappers(&part.words))).collect();
    let is_excluded = |content: &String| {
        let pattern = CommandPattern::parse(content);
        texts.iter().any(|text| pattern.matches(text) || text.split(' ').next() == Some(content))
    };
    !sandbox.settings().excluded_commands.iter().any(is_excluded)
        && sandbox.check_available(SandboxProfile::Workspace, &court.workspace.command_context()).is_ok()
}

fn evaluate_command(court: &PermissionContext<'_>, command: &str) -> Decision {
    let understood = shell::parse(command).and_then(|script| {
        let views = PossibleCommands::from_script(&script).ok_or(ShellParseError("it is too long"))?;
        Ok((script, views))
    });
    let (script, views) = match &understood {
        Ok((script, views)) => (Ok(script), Some(views)),
        Err(confusion) => (Err(confusion), None),
    };
    let folders = script.map_or(PossibleCwds(None), |script| PossibleCwds::from_script(script, court.workspace));
    let concerns = |rule: &SourcedRule| {
        rule_names_command(rule, command, views)
            || views.is_some_and(|views| rule_names_file(rule, views, court, &folders))
    };
    if let Some(rule) = court.find_rule(Behavior::Deny, concerns) {
        return deny_by_rule(rule);
    }
    let unclear = ask_if_deny_rules_unclear(court, views);
    if court.mode == PermissionMode::BypassPermissions {
        return unclear.unwrap_or(Decision::allow_unsandboxed(DecisionReason::Mode(court.mode)));
    }
    if let Some(rule) = court.find_rule(Behavior::Ask, concerns) {
        return ask_decision(
            format!("The rule {} says that this command needs approval.", rule.rule),
            DecisionReason::from_rule(rule),
        );
    }
    // What a person wrote down word for word needs no understanding.
    let whole = |rule: &SourcedRule| {
        let content = rule.rule.content.as_deref();
        rule.rule.applies_to("Bash") && content.is_none_or(|text| !text.contains('*') && text == command.trim())
    };
    if let Some(rule) = court.find_rule(Behavior::Allow, whole).filter(|_| court.mode != PermissionMode::Plan) {
        let unclear = unclear.or_else(|| ask_if_files_unclear(court, views, &folders));
        let unclear = unclear.filter(|_| rule.rule.content.is_none());
        return unclear.unwrap_or(Decision::allow_unsandboxed(DecisionReason::from_rule(rule)));
    }
    match script {
        Ok(script) => match evaluate_commands(court, script, &folders, command) {
            // No sandbox corrects what is not seen of a command that a rule allows.
            allowed @ Decision::Allow { profile: SandboxProfile::None, .. } => {
                unclear.or_else(|| ask_if_files_unclear(court, views, &folders)).unwrap_or(allowed)
            }
            allowed @ Decision::Allow { .. } => unclear.unwrap_or(allowed),
            verdict => verdict,
        },
        Err(confusion) => decide_unparsed(court, confusion),
    }
}

/// The question about a command that cannot be compared with the deny rules: where
/// everything else is allowed, these still hold.
fn ask_if_deny_rules_unclear(court: &PermissionContext<'_>, views: Option<&PossibleCommands>) -> Option<Decision> {
    let may_be = |content: &String| {
        let pattern = CommandPattern::parse(content);
        views.is_none_or(|views| {
            views.runs_unknown || views.known_prefixes.iter().any(|known| pattern.could_match(known))
        })
    };
    let about = |rule: &SourcedRule| rule.rule.tool == "Bash" && rule.rule.content.as_ref().is_some_and(may_be);
    let rule = court.find_rule(Behavior::Deny, about)?;
    let message = format!("It cannot be told whether the rule {} refuses this command.", rule.rule);
    Some(ask_decision(message, DecisionReason::NotParsed("the command hides what it runs".into())))
}

/// The question about a command that may use a file that rules speak of: a word that only
/// the shell knows, or a folder that the command goes to in a way that is not followed.
fn ask_if_files_unclear(
    court: &PermissionContext<'_>,
    views: Option<&PossibleCommands>,
    folders: &PossibleCwds,
) -> Option<Decision> {
    let searches = |command: &Vec<Word>| {
        let reads =
            has_read_restrictions(court) && known_commands::may_search_files(command, |name| folders.is_folder(name));
        reads || keeps_files(court) && known_commands::may_move_links(command, |name| folders.is_file(name))
    };
    let is_clear = views.is_some_and(|views| {
        let words = views.commands.iter().flat_map(|command| command.iter().skip(1));
        words.chain(&views.redirect_files).all(|word| word.is_literal)
            && !views.changes_folder
            && !views.commands.iter().any(searches)
    });
    if (is_clear && folders.0.is_some()) || !has_file_restrictions(court) {
        return None;
    }
    let message = "It cannot be told whether this command uses a file that a rule refuses.".to_owned();
    Some(ask_decision(message, DecisionReason::NotParsed("the command hides which files it uses".into())))
}

fn decide_unparsed(court: &PermissionContext<'_>, confusion: &ShellParseError) -> Decision {
    let message = format!("This command needs approval: {confusion}, so it is not clear what it does.");
    match court.mode {
        PermissionMode::Plan => Decision::Deny { message, reason: DecisionReason::Mode(court.mode) },
        _ => ask_decision(message, DecisionReason::NotParsed(confusion.to_string())),
    }
}

/// Whether a deny or ask rule names a command.
fn rule_names_command(rule: &SourcedRule, command: &str, views: Option<&PossibleCommands>) -> bool {
    if !rule.rule.applies_to("Bash") {
        return false;
    }
    let Some(content) = rule.rule.content.as_deref() else { return true };
    let pattern = CommandPattern::parse(content);
    match views {
        Some(views) => {
            views.texts.iter().any(|text| pattern.matches(text))
                || views.foreign_code.iter().any(|code| pattern.occurs_in(code))
                || content == command.trim()
        }
        None => pattern.occurs_in(command),
    }
}

/// Whether a command names a file that a rule about files speaks of, wherever it may run.
fn rule_names_file(
    rule: &SourcedRule,
    views: &PossibleCommands,
    court: &PermissionContext<'_>,
    folders: &PossibleCwds,
) -> bool {
    let tool = match (rule.rule.tool.as_str(), &rule.rule.content) {
        ("Read", Some(_)) => "Read",
        (name, Some(_)) if file_tools::is_edit_tool(name) => "Edit",
        _ => return false,
    };
    let Some(pattern) = PathPattern::from_rule(rule, court.workspace) else { return false };
    let elsewhere = court.workspace.cwd();
    let folders = folders.0.as_deref().unwrap_or(std::slice::from_ref(&elsewhere));
    let is_file = |name: &str| {
        if name.is_empty() {
            return false;
        }
        let home = name.starts_with('~').then(|| court.workspace.absolute(name));
        let paths = folders.iter().map(|folder| folder.join(name)).chain(home);
        paths.into_iter().any(|path| pattern.matches(&TargetPath::new(path)))
    };
    let named = |word: &Word| possible_file_names(&word.text).into_iter().any(is_file);
    let command = |words: &Vec<Word>| {
        // What only reads cannot break a rule about changes.
        let reads = known_commands::command_effect(words) == Some(CommandEffect::ReadOnly);
        (tool == "Read" || !reads) && words.iter().skip(1).any(named)
    };
    let written = |word: &Word| tool == "Read" || views.written_files.contains(word);
    // In code for other programs a name stands between quotes or brackets.
    let in_code =
        |code: &String| code.split(|c: char| c.is_whitespace() || "'\"`()[]{},;=<>|&".contains(c)).any(is_file);
    views.commands.iter().any(command)
        || views.redirect_files.iter().filter(|word| written(word)).any(named)
        || views.foreign_code.iter().any(in_code)
}

/// What in a word may be the name of a file: the word, what follows a sign that separates
/// and what stands between two of them, and what follows the letters of options.
fn possible_file_names(word: &str) -> Vec<&str> {
    let separates = |c: char| "=:@<>,;{}".contains(c);
    let mut names = vec![word];
    names.extend(word.match_indices(separates).map(|(at, sign)| &word[at + sign.len()..]));
    names.extend(word.split(separates));
    if word.starts_with('-') && !word.starts_with("--") {
        names.extend(word.char_indices().skip(2).take(64).map(|(at, _)| &word[at..]));
    }
    names.retain(|name| !name.is_empty() && name.len() <= MAX_PATH_BYTES);
    names
}

/// What is found about one command.
enum CommandFinding<'a> {
    /// It only reads.
    ReadOnly,
    /// It changes files that may be changed.
    AllowedChange,
    /// A rule allows it.
    AllowedByRule(&'a SourcedRule),
    /// Nothing allows it.
    NotAllowed {
        /// The path that is the matter, and whether it is inside the folders.
        path: Option<(PathBuf, bool)>,
    },
}

fn evaluate_commands(court: &PermissionContext<'_>, script: &Script, folders: &PossibleCwds, text: &str) -> Decision {
    // Where links may have moved, names no longer mean what they meant when they were looked
    // at; and which files a folder brings along is not known, though rules may refuse one.
    let moves = |part: &SimpleCommand| {
        known_commands::may_move_links(strip_wrappers(&part.words), |name| folders.is_file(name))
    };
    let is_longer = script.commands.len() > 1 || script.has_loop;
    let unsure = script.commands.iter().any(moves) && (is_longer || keeps_files(court));
    let inspect = |part| match inspect_command(court, part, folders) {
        CommandFinding::ReadOnly | CommandFinding::AllowedChange if unsure => CommandFinding::NotAllowed { path: None },
        finding => finding,
    };
    let findings: Vec<(&SimpleCommand, CommandFinding<'_>)> =
        script.commands.iter().map(|part| (part, inspect(part))).collect();
    if court.mode == PermissionMode::Plan
        && findings.iter().any(|(_, finding)| !matches!(finding, CommandFinding::ReadOnly))
    {
        let message = "Cannot run this command while in plan mode: it may change things.".to_owned();
        return Decision::Deny { message, reason: DecisionReason::Mode(court.mode) };
    }
    let open: Vec<&(&SimpleCommand, CommandFinding<'_>)> =
        findings.iter().filter(|(_, finding)| matches!(finding, CommandFinding::NotAllowed { .. })).collect();
    if open.is_empty() {
        let reason = match findings.as_slice() {
            [(_, CommandFinding::AllowedByRule(rule))] => DecisionReason::from_rule(rule),
            _ => DecisionReason::Subcommands,
        };
        return match choose_profile(&findings, text) {
            Some(profile) => {
                match court.workspace.sandbox().check_available(profile, &court.workspace.command_context()) {
                    Ok(()) => Decision::Allow { reason, profile },
                    Err(why) => ask_without_sandbox(court, findings.iter().map(|(part, _)| *part).collect(), &why),
                }
            }
            None => {
                let rest = findings.iter().filter(|(_, finding)| !matches!(finding, CommandFinding::AllowedByRule(_)));
                ask_for_commands(court, rest.map(|(part, _)| *part).collect(), None)
            }
        };
    }
    let path = open.iter().find_map(|(_, finding)| match finding {
        CommandFinding::NotAllowed { path } => path.clone(),
        _ => None,
    });
    let parts = open.iter().map(|(part, _)| *part);
    ask_for_commands(court, parts.collect(), path)
}

/// The profile that a text runs in; `None` if no single one fits all its parts.
///
/// A part that a rule allows needs [`SandboxProfile::None`]. There the kernel does not correct
/// a mistake of this reader, so the other parts must be such that none is likely: they
/// only read, and the text holds nothing that bash would still have to expand or join.
/// Nor is git among them, which runs programs that the settings of a repository name,
/// unless a rule allows git in the same text.
fn choose_profile(findings: &[(&SimpleCommand, CommandFinding<'_>)], text: &str) -> Option<SandboxProfile> {
    let any = |is: fn(&CommandFinding<'_>) -> bool| findings.iter().any(|(_, finding)| is(finding));
    let changes = any(|finding| matches!(finding, CommandFinding::AllowedChange));
    if !any(|finding| matches!(finding, CommandFinding::AllowedByRule(_))) {
        return Some(if changes { SandboxProfile::Workspace } else { SandboxProfile::Read });
    }
    let reads = any(|finding| matches!(finding, CommandFinding::ReadOnly));
    let expands = ["$", "`", "\\\n", "<<", "<(", ">("].iter().any(|mark| text.contains(mark));
    let has_git = |by_rule: bool| {
        let mut parts =
            findings.iter().filter(|(_, finding)| matches!(finding, CommandFinding::AllowedByRule(_)) == by_rule);
        parts.any(|(part, _)| is_git(strip_wrappers(&part.words)))
    };
    let runs_git = has_git(false) && !has_git(true);
    (!changes && (!reads || !(expands || runs_git))).then_some(SandboxProfile::None)
}

/// The question about a command that would be allowed if a sandbox could hold it.
fn ask_without_sandbox(court: &PermissionContext<'_>, parts: Vec<&SimpleCommand>, why: &str) -> Decision {
    let Decision::Ask(question) = ask_for_commands(court, parts, None) else { unreachable!("it is a question") };
    let message = format!("{} It would run by itself in a sandbox, but there is none for it: {why}.", question.message);
    Decision::Ask(Box::new(ApprovalRequest { message, reason: DecisionReason::Sandbox, ..*question }))
}

fn ask_for_commands(
    court: &PermissionContext<'_>,
    parts: Vec<&SimpleCommand>,
    path: Option<(PathBuf, bool)>,
) -> Decision {
    let program = parts.iter().find_map(|part| part.words.first()).map_or("The command", |word| &word.text);
    let message = match &path {
        Some((path, false)) => file_tools::outside_message(program, path, court.workspace),
        _ => format!("{program} needs approval."),
    };
    let mut suggestions = Vec::new();
    let rules: Option<Vec<Rule>> = parts.iter().map(|part| suggest_rule(part)).collect();
    if let Some(rules) = rules.filter(|rules| !rules.is_empty()) {
        suggestions.push(suggest_rules(rules, RuleSource::Local));
    }
    if let Some((path, _)) = path.as_ref().filter(|(path, _)| !is_guarded(path)) {
        suggestions.extend(file_tools::suggest_accept_edits(path, false));
    }
    let blocked_path = path.map(|(path, _)| path);
    Decision::Ask(Box::new(ApprovalRequest { message, reason: DecisionReason::NoRule, blocked_path, suggestions }))
}

/// The rule that would have allowed a command: its first words, and anything after them.
fn suggest_rule(part: &SimpleCommand) -> Option<Rule> {
    let simple = part.assignments.is_empty() && part.redirects.is_empty();
    let (first, rest) = part.words.split_first().filter(|(first, _)| simple && first.is_literal)?;
    let views = PossibleCommands::from_script(&Script { commands: vec![part.clone()], ..Script::default() })?;
    let runs_anything = views.texts.len() > 1;
    let text = match rest.first() {
        _ if runs_anything => shell::format_words(&part.words),
        Some(second) if second.is_literal && !second.text.starts_with('-') => {
            format!("{} *", shell::format_words(&[first.clone(), second.clone()]))
        }
        _ => format!("{} *", shell::format_words(std::slice::from_ref(first))),
    };
    (!text.contains('\n') && text.matches('*').count() <= 1).then(|| Rule::new("Bash", Some(&text)))
}

/// Looks at one command.
fn inspect_command<'a>(
    court: &PermissionContext<'a>,
    part: &SimpleCommand,
    folders: &PossibleCwds,
) -> CommandFinding<'a> {
    let mut changes = false;
    for file in &part.redirects {
        match inspect_redirect(court, file, folders) {
            CommandFinding::ReadOnly => {}
            CommandFinding::NotAllowed { path } => return CommandFinding::NotAllowed { path },
            _ => changes = true,
        }
    }
    if !part.assignments.iter().all(|assignment| is_harmless_assignment(assignment)) {
        return CommandFinding::NotAllowed { path: None };
    }
    match inspect_words(court, &part.words, folders) {
        CommandFinding::ReadOnly if changes => CommandFinding::AllowedChange,
        finding => finding,
    }
}

fn inspect_words<'a>(court: &PermissionContext<'a>, words: &[Word], folders: &PossibleCwds) -> CommandFinding<'a> {
    let inner = strip_wrappers(words);
    let texts = [shell::format_words(words), shell::format_words(inner)];
    let allows = |rule: &SourcedRule| {
        let pattern = rule.rule.content.as_deref().filter(|_| rule.rule.applies_to("Bash")).map(CommandPattern::parse);
        pattern.is_some_and(|pattern| texts.iter().any(|text| pattern.matches(text)))
    };
    if let Some(rule) = court.find_rule(Behavior::Allow, allows) {
        // What the shell puts in place of a word may be a file that is refused.
        let unknown = words.iter().skip(1).any(|word| !word.is_literal) && has_file_restrictions(court);
        let vague = unknown
            || has_read_restrictions(court) && known_commands::may_search_files(inner, |name| folders.is_folder(name));
        // The user meant git in the session's repository, and not in one that runs programs.
        let elsewhere = is_git(inner) && !folders.is_session_repository(court.workspace);
        return if vague || elsewhere {
            CommandFinding::NotAllowed { path: None }
        } else {
            CommandFinding::AllowedByRule(rule)
        };
    }
    let Some((first, rest)) = inner.split_first() else { return CommandFinding::ReadOnly };
    if first.is_literal && first.text == "cd" {
        let inside = rest.len() == 1 && folders.is_inside_workspace(court, ".");
        return if inside { CommandFinding::ReadOnly } else { CommandFinding::NotAllowed { path: None } };
    }
    let Some(does) = known_commands::command_effect(inner) else { return CommandFinding::NotAllowed { path: None } };
    if is_git(inner) && !folders.is_session_repository(court.workspace) {
        return CommandFinding::NotAllowed { path: None };
    }
    let names = known_commands::operands(rest);
    let first_path = |inside: bool| names.first().map(|name| (court.workspace.absolute(name), inside));
    match does {
        CommandEffect::ReadOnly => match names.iter().find(|name| !folders.is_inside_workspace(court, name)) {
            Some(name) => CommandFinding::NotAllowed { path: Some((court.workspace.absolute(name), false)) },
            None if has_read_restrictions(court)
                && known_commands::may_search_files(inner, |name| folders.is_folder(name)) =>
            {
                CommandFinding::NotAllowed { path: None }
            }
            None => CommandFinding::ReadOnly,
        },
        CommandEffect::ChangesFiles => match names.iter().find(|name| !folders.is_inside_workspace(court, name)) {
            Some(name) => CommandFinding::NotAllowed { path: Some((court.workspace.absolute(name), false)) },
            None if court.mode.accepts_edits() && names.iter().all(|name| folders.can_change(court, name)) => {
                CommandFinding::AllowedChange
            }
            None => CommandFinding::NotAllowed { path: first_path(true) },
        },
    }
}

/// Whether a command is git.
fn is_git(words: &[Word]) -> bool {
    words.first().is_some_and(|first| first.text.rsplit('/').next() == Some("git"))
}

/// Whether some files may not be read unasked, so that searching whole folders is not harmless.
fn has_read_restrictions(court: &PermissionContext<'_>) -> bool {
    has_path_rule(court, |tool| tool == "Read")
}

/// Whether some files may not be changed unasked.
fn keeps_files(court: &PermissionContext<'_>) -> bool {
    has_path_rule(court, file_tools::is_edit_tool)
}

/// Whether some files may not be read or changed unasked.
fn has_file_restrictions(court: &PermissionContext<'_>) -> bool {
    has_path_rule(court, |tool| tool == "Read" || file_tools::is_edit_tool(tool))
}

fn has_path_rule(court: &PermissionContext<'_>, about: impl Fn(&str) -> bool) -> bool {
    let speaks = |rule: &SourcedRule| about(&rule.rule.tool) && rule.rule.content.is_some();
    [Behavior::Deny, Behavior::Ask].into_iter().any(|behavior| court.find_rule(behavior, speaks).is_some())
}

/// Looks at a file that the shell reads or writes for a command.
fn inspect_redirect<'a>(court: &PermissionContext<'a>, file: &Redirect, folders: &PossibleCwds) -> CommandFinding<'a> {
    if !file.target.is_literal {
        return CommandFinding::NotAllowed { path: None };
    }
    let name = file.target.text.as_str();
    if ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"].contains(&name) {
        return CommandFinding::ReadOnly;
    }
    let target = TargetPath::new(court.workspace.cwd().join(name));
    let path = target.given.clone();
    let tool = if file.is_write { "Edit" } else { "Read" };
    let covers = |rule: &SourcedRule| !file.is_write || is_covered_by_rule(rule, &path);
    let allows = |rule: &SourcedRule| {
        folders.is_single() && file_tools::rule_matches(rule, tool, &target, court.workspace) && covers(rule)
    };
    if let Some(rule) = court.find_rule(Behavior::Allow, allows) {
        return CommandFinding::AllowedByRule(rule);
    }
    let inside = folders.is_inside_workspace(court, name);
    match file.is_write {
        false if inside => CommandFinding::ReadOnly,
        true if court.mode.accepts_edits() && folders.can_change(court, name) => CommandFinding::AllowedChange,
        _ => CommandFinding::NotAllowed { path: Some((path, inside)) },
    }
}

/// Variables that change no meaning.
fn is_harmless_assignment(assignment: &str) -> bool {
    let names = ["CI", "FORCE_COLOR", "LANG", "LC_ALL", "NODE_ENV", "NO_COLOR", "RUST_BACKTRACE", "RUST_LOG", "TZ"];
    let (name, value) = assignment.split_once('=').unwrap_or_default();
    names.contains(&name) && value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,=:/".contains(c))
}

/// A command without the wrappers that only change how long or how politely it runs.
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

/// The folders a command may run in, as `cd` in the same text may have changed it; none
/// when that is not followed. All but the first are resolved.
struct PossibleCwds(Option<Vec<PathBuf>>);

impl PossibleCwds {
    fn from_script(script: &Script, place: &Workspace) -> Self {
        let cwd = place.cwd();
        let is = |part: &&SimpleCommand, names: &[&str]| {
            strip_wrappers(&part.words).first().is_some_and(|word| names.contains(&word.text.as_str()))
        };
        let moves: Vec<&SimpleCommand> =
            script.commands.iter().filter(|part| is(part, &["cd", "pushd", "popd"])).collect();
        match moves.as_slice() {
            [] => Self(Some(vec![cwd])),
            [part] if !script.has_loop => match part.words.as_slice() {
                [command, target] if command.text == "cd" && is_cd_target(target) => {
                    // Bash goes by the names, the system by where links lead; it may also fail.
                    let there = cwd.join(&target.text);
                    let both = [resolve(&there), resolve(&without_dots(&there))];
                    let both = both.into_iter().collect::<Option<Vec<_>>>();
                    Self(both.map(|both| {
                        let mut all = [vec![cwd], both].concat();
                        all.dedup();
                        all
                    }))
                }
                _ => Self(None),
            },
            _ => Self(None),
        }
    }

    /// Whether a name is a regular file, and no link, wherever the command runs.
    fn is_file(&self, name: &str) -> bool {
        let is_file = |folder: &PathBuf| folder.join(name).symlink_metadata().is_ok_and(|about| about.is_file());
        self.0.as_ref().is_some_and(|folders| folders.iter().all(is_file))
    }

    /// Whether a name may be a folder.
    fn is_folder(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|folders| folders.iter().any(|folder| folder.join(name).is_dir()))
    }

    /// Whether git finds the session's own repository.
    fn is_session_repository(&self, place: &Workspace) -> bool {
        self.is_single() && known_commands::git::is_same_repository(&place.cwd(), place.root())
    }

    fn is_single(&self) -> bool {
        self.0.as_ref().is_some_and(|folders| folders.len() == 1)
    }

    /// Whether a name is inside the session's folders, wherever the command runs.
    fn is_inside_workspace(&self, court: &PermissionContext<'_>, name: &str) -> bool {
        let inside = |folder: &PathBuf| court.workspace.contains(&folder.join(name));
        match &self.0 {
            Some(folders) => folders.iter().all(inside),
            None => Path::new(name).is_absolute() && court.workspace.contains(Path::new(name)),
        }
    }

    /// Whether a name is below the session's folders and not guarded, wherever the command runs.
    fn can_change(&self, court: &PermissionContext<'_>, name: &str) -> bool {
        let open = |folder: &PathBuf| {
            let path = folder.join(name);
            let real = crate::path::resolve(&path);
            let is_folder =
                real.is_none_or(|real| court.workspace.folders().iter().any(|open| open.starts_with(&real)));
            !is_folder && !is_guarded(&path)
        };
        self.is_inside_workspace(court, name) && self.0.as_ref().is_some_and(|folders| folders.iter().all(open))
    }
}

/// Whether a word names a folder for `cd`: an option or an empty word leads home or back.
fn is_cd_target(word: &Word) -> bool {
    word.is_literal && !word.text.is_empty() && !word.text.starts_with('-')
}

/// Whether a command only reads, as far as its words tell. Where it may run is another question.
pub(crate) fn is_read_only(command: &str) -> bool {
    let reads = |part: &SimpleCommand| {
        let files = part.redirects.iter().all(|file| !file.is_write || file.target.text == "/dev/null");
        files
            && part.assignments.is_empty()
            && known_commands::command_effect(strip_wrappers(&part.words)) == Some(CommandEffect::ReadOnly)
    };
    shell::parse(command).is_ok_and(|script| !script.commands.is_empty() && script.commands.iter().all(reads))
}

/// The programs a command names, in order; empty if it is not understood.
pub(crate) fn program_names(command: &str) -> Vec<String> {
    let script = shell::parse(command).unwrap_or_default();
    script
        .commands
        .iter()
        .filter_map(|part| strip_wrappers(&part.words).first())
        .map(|word| word.text.clone())
        .collect()
}
