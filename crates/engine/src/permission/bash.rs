//! Shell commands: every command in the text must be allowed, and one refused is enough.

use std::path::{Path, PathBuf};

use super::guarded::{is_covered, is_guarded};
use super::judge::{Court, Question, Reason, Verdict, ask, denied_by, suggest_rules};
use super::path::PathPattern;
use super::rules::Sourced;
use super::shell::{self, Confusion, Part, Redirect, Script, Word};
use super::{Behavior, Mode, Rule, Source, files};
use crate::sandbox::Profile;
use crate::tool::{Place, Target, resolve, without_dots};
use known::Does;
use pattern::Pattern;
pub(super) use pattern::wild;
use serde_json::Value;
use views::Views;

mod known;
mod pattern;
mod views;

/// Longer names cannot be opened.
const MAX_PATH_BYTES: usize = 4096;

/// Judges a call of Bash.
pub(super) fn judge(court: &Court<'_>, input: &Value) -> Verdict {
    let command = input["command"].as_str().unwrap_or_default();
    let settings = court.place.sandbox().settings();
    let outside = input["dangerouslyDisableSandbox"] == true && settings.allow_unsandboxed_commands != Some(false);
    match judge_text(court, command) {
        Verdict::Allow { profile, .. } if outside && profile != Profile::None => {
            ask("The command asks to run without the sandbox, which needs approval.".to_owned(), Reason::Sandbox)
        }
        Verdict::Ask(question) if !outside && is_approved_by_sandbox(court, command, &question.reason) => {
            let reason = if court.mode == Mode::Auto { Reason::Mode(court.mode) } else { Reason::Sandbox };
            Verdict::Allow { reason, profile: Profile::Workspace }
        }
        Verdict::Allow { profile: Profile::Workspace, .. } if court.mode == Mode::Auto => {
            Verdict::Allow { reason: Reason::Mode(court.mode), profile: Profile::Workspace }
        }
        verdict => verdict,
    }
}

/// Whether the `sandbox` settings or mode `auto` approve what would be asked about. Ask
/// rules stand, and so do deny rules that the command cannot be compared with.
fn is_approved_by_sandbox(court: &Court<'_>, command: &str, reason: &Reason) -> bool {
    let sandbox = court.place.sandbox();
    let approves = match court.mode {
        Mode::Auto => sandbox.settings().auto_allow_bash_if_sandboxed != Some(false),
        _ => sandbox.settings().approves(),
    };
    if !approves || court.mode == Mode::Plan || matches!(reason, Reason::Rule { .. }) {
        return false;
    }
    let script = shell::parse(command).ok();
    if unclear(court, script.as_ref().and_then(Views::of).as_ref()).is_some() {
        return false;
    }
    let parts = script.iter().flat_map(|script| &script.parts);
    let texts: Vec<String> = parts.map(|part| shell::text(unwrapped(&part.words))).collect();
    let is_excluded = |content: &String| {
        let pattern = Pattern::read(content);
        texts.iter().any(|text| pattern.matches(text) || text.split(' ').next() == Some(content))
    };
    !sandbox.settings().excluded_commands.iter().any(is_excluded)
        && sandbox.can_hold(Profile::Workspace, court.place).is_ok()
}

fn judge_text(court: &Court<'_>, command: &str) -> Verdict {
    let understood = shell::parse(command).and_then(|script| {
        let views = Views::of(&script).ok_or(Confusion("it is too long"))?;
        Ok((script, views))
    });
    let (script, views) = match &understood {
        Ok((script, views)) => (Ok(script), Some(views)),
        Err(confusion) => (Err(confusion), None),
    };
    let folders = script.map_or(Folders(None), |script| Folders::of(script, court.place));
    let concerns = |rule: &Sourced| {
        names(rule, command, views) || views.is_some_and(|views| touches(rule, views, court, &folders))
    };
    if let Some(rule) = court.rule(Behavior::Deny, concerns) {
        return denied_by(rule);
    }
    let unclear = unclear(court, views);
    if court.mode == Mode::BypassPermissions {
        return unclear.unwrap_or(Verdict::allow(Reason::Mode(court.mode)));
    }
    if let Some(rule) = court.rule(Behavior::Ask, concerns) {
        return ask(format!("The rule {} says that this command needs approval.", rule.rule), Reason::rule(rule));
    }
    // What a person wrote down word for word needs no understanding.
    let whole = |rule: &Sourced| {
        let content = rule.rule.content.as_deref();
        rule.rule.is_about("Bash") && content.is_none_or(|text| !text.contains('*') && text == command.trim())
    };
    if let Some(rule) = court.rule(Behavior::Allow, whole).filter(|_| court.mode != Mode::Plan) {
        let unclear = unclear.or_else(|| unclear_files(court, views, &folders));
        let unclear = unclear.filter(|_| rule.rule.content.is_none());
        return unclear.unwrap_or(Verdict::allow(Reason::rule(rule)));
    }
    match script {
        Ok(script) => match in_parts(court, script, &folders, command) {
            // No sandbox corrects what is not seen of a command that a rule allows.
            allowed @ Verdict::Allow { profile: Profile::None, .. } => {
                unclear.or_else(|| unclear_files(court, views, &folders)).unwrap_or(allowed)
            }
            allowed @ Verdict::Allow { .. } => unclear.unwrap_or(allowed),
            verdict => verdict,
        },
        Err(confusion) => not_understood(court, confusion),
    }
}

/// The question about a command that cannot be compared with the deny rules: where
/// everything else is allowed, these still hold.
fn unclear(court: &Court<'_>, views: Option<&Views>) -> Option<Verdict> {
    let may_be = |content: &String| {
        let pattern = Pattern::read(content);
        views.is_none_or(|views| views.open || views.vague.iter().any(|known| pattern.may_be(known)))
    };
    let about = |rule: &Sourced| rule.rule.tool == "Bash" && rule.rule.content.as_ref().is_some_and(may_be);
    let rule = court.rule(Behavior::Deny, about)?;
    let message = format!("It cannot be told whether the rule {} refuses this command.", rule.rule);
    Some(ask(message, Reason::NotUnderstood("the command hides what it runs".into())))
}

/// The question about a command that may use a file that rules speak of: a word that only
/// the shell knows, or a folder that the command goes to in a way that is not followed.
fn unclear_files(court: &Court<'_>, views: Option<&Views>, folders: &Folders) -> Option<Verdict> {
    let searches = |command: &Vec<Word>| {
        let reads = hides_files(court) && known::searches(command, |name| folders.is_folder(name));
        reads || keeps_files(court) && known::moves_links(command, |name| folders.is_file(name))
    };
    let is_clear = views.is_some_and(|views| {
        let words = views.commands.iter().flat_map(|command| command.iter().skip(1));
        words.chain(&views.files).all(|word| word.plain) && !views.moves && !views.commands.iter().any(searches)
    });
    if (is_clear && folders.0.is_some()) || !guards_files(court) {
        return None;
    }
    let message = "It cannot be told whether this command uses a file that a rule refuses.".to_owned();
    Some(ask(message, Reason::NotUnderstood("the command hides which files it uses".into())))
}

fn not_understood(court: &Court<'_>, confusion: &Confusion) -> Verdict {
    let message = format!("This command needs approval: {confusion}, so it is not clear what it does.");
    match court.mode {
        Mode::Plan => Verdict::Deny { message, reason: Reason::Mode(court.mode) },
        _ => ask(message, Reason::NotUnderstood(confusion.to_string())),
    }
}

/// Whether a deny or ask rule names a command.
fn names(rule: &Sourced, command: &str, views: Option<&Views>) -> bool {
    if !rule.rule.is_about("Bash") {
        return false;
    }
    let Some(content) = rule.rule.content.as_deref() else { return true };
    let pattern = Pattern::read(content);
    match views {
        Some(views) => {
            views.texts.iter().any(|text| pattern.matches(text))
                || views.code.iter().any(|code| pattern.is_somewhere_in(code))
                || content == command.trim()
        }
        None => pattern.is_somewhere_in(command),
    }
}

/// Whether a command names a file that a rule about files speaks of, wherever it may run.
fn touches(rule: &Sourced, views: &Views, court: &Court<'_>, folders: &Folders) -> bool {
    let tool = match (rule.rule.tool.as_str(), &rule.rule.content) {
        ("Read", Some(_)) => "Read",
        (name, Some(_)) if files::changes(name) => "Edit",
        _ => return false,
    };
    let Some(pattern) = PathPattern::of(rule, court.place) else { return false };
    let elsewhere = court.place.cwd();
    let folders = folders.0.as_deref().unwrap_or(std::slice::from_ref(&elsewhere));
    let is_file = |name: &str| {
        if name.is_empty() {
            return false;
        }
        let home = name.starts_with('~').then(|| court.place.absolute(name));
        let paths = folders.iter().map(|folder| folder.join(name)).chain(home);
        paths.into_iter().any(|path| pattern.matches(&Target::new(path)))
    };
    let named = |word: &Word| may_name(&word.text).into_iter().any(is_file);
    let command = |words: &Vec<Word>| {
        // What only reads cannot break a rule about changes.
        let reads = known::does(words) == Some(Does::Reads);
        (tool == "Read" || !reads) && words.iter().skip(1).any(named)
    };
    let written = |word: &Word| tool == "Read" || views.written.contains(word);
    // In code for other programs a name stands between quotes or brackets.
    let in_code =
        |code: &String| code.split(|c: char| c.is_whitespace() || "'\"`()[]{},;=<>|&".contains(c)).any(is_file);
    views.commands.iter().any(command)
        || views.files.iter().filter(|word| written(word)).any(named)
        || views.code.iter().any(in_code)
}

/// What in a word may be the name of a file: the word, what follows a sign that separates
/// and what stands between two of them, and what follows the letters of options.
fn may_name(word: &str) -> Vec<&str> {
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
enum Finding<'a> {
    /// It only reads.
    Reads,
    /// It changes files that may be changed.
    Changes,
    /// A rule allows it.
    Rule(&'a Sourced),
    /// Nothing allows it.
    Nothing {
        /// The path that is the matter, and whether it is inside the folders.
        path: Option<(PathBuf, bool)>,
    },
}

fn in_parts(court: &Court<'_>, script: &Script, folders: &Folders, text: &str) -> Verdict {
    // Where links may have moved, names no longer mean what they meant when they were looked
    // at; and which files a folder brings along is not known, though rules may refuse one.
    let moves = |part: &Part| known::moves_links(unwrapped(&part.words), |name| folders.is_file(name));
    let is_longer = script.parts.len() > 1 || script.repeats;
    let unsure = script.parts.iter().any(moves) && (is_longer || keeps_files(court));
    let look = |part| match look(court, part, folders) {
        Finding::Reads | Finding::Changes if unsure => Finding::Nothing { path: None },
        finding => finding,
    };
    let findings: Vec<(&Part, Finding<'_>)> = script.parts.iter().map(|part| (part, look(part))).collect();
    if court.mode == Mode::Plan && findings.iter().any(|(_, finding)| !matches!(finding, Finding::Reads)) {
        let message = "Cannot run this command while in plan mode: it may change things.".to_owned();
        return Verdict::Deny { message, reason: Reason::Mode(court.mode) };
    }
    let open: Vec<&(&Part, Finding<'_>)> =
        findings.iter().filter(|(_, finding)| matches!(finding, Finding::Nothing { .. })).collect();
    if open.is_empty() {
        let reason = match findings.as_slice() {
            [(_, Finding::Rule(rule))] => Reason::rule(rule),
            _ => Reason::Parts,
        };
        return match profile(&findings, text) {
            Some(profile) => match court.place.sandbox().can_hold(profile, court.place) {
                Ok(()) => Verdict::Allow { reason, profile },
                Err(why) => not_held(court, findings.iter().map(|(part, _)| *part).collect(), &why),
            },
            None => {
                let rest = findings.iter().filter(|(_, finding)| !matches!(finding, Finding::Rule(_)));
                question(court, rest.map(|(part, _)| *part).collect(), None)
            }
        };
    }
    let path = open.iter().find_map(|(_, finding)| match finding {
        Finding::Nothing { path } => path.clone(),
        _ => None,
    });
    let parts = open.iter().map(|(part, _)| *part);
    question(court, parts.collect(), path)
}

/// The profile that a text runs in; `None` if no single one fits all its parts.
///
/// A part that a rule allows needs [`Profile::None`]. There the kernel does not correct
/// a mistake of this reader, so the other parts must be such that none is likely: they
/// only read, and the text holds nothing that bash would still have to expand or join.
/// Nor is git among them, which runs programs that the settings of a repository name,
/// unless a rule allows git in the same text.
fn profile(findings: &[(&Part, Finding<'_>)], text: &str) -> Option<Profile> {
    let any = |is: fn(&Finding<'_>) -> bool| findings.iter().any(|(_, finding)| is(finding));
    let changes = any(|finding| matches!(finding, Finding::Changes));
    if !any(|finding| matches!(finding, Finding::Rule(_))) {
        return Some(if changes { Profile::Workspace } else { Profile::Read });
    }
    let reads = any(|finding| matches!(finding, Finding::Reads));
    let expands = ["$", "`", "\\\n", "<<", "<(", ">("].iter().any(|mark| text.contains(mark));
    let has_git = |by_rule: bool| {
        let mut parts = findings.iter().filter(|(_, finding)| matches!(finding, Finding::Rule(_)) == by_rule);
        parts.any(|(part, _)| is_git(unwrapped(&part.words)))
    };
    let runs_git = has_git(false) && !has_git(true);
    (!changes && (!reads || !(expands || runs_git))).then_some(Profile::None)
}

/// The question about a command that would be allowed if a sandbox could hold it.
fn not_held(court: &Court<'_>, parts: Vec<&Part>, why: &str) -> Verdict {
    let Verdict::Ask(question) = question(court, parts, None) else { unreachable!("it is a question") };
    let message = format!("{} It would run by itself in a sandbox, but there is none for it: {why}.", question.message);
    Verdict::Ask(Box::new(Question { message, reason: Reason::Sandbox, ..*question }))
}

fn question(court: &Court<'_>, parts: Vec<&Part>, path: Option<(PathBuf, bool)>) -> Verdict {
    let program = parts.iter().find_map(|part| part.words.first()).map_or("The command", |word| &word.text);
    let message = match &path {
        Some((path, false)) => files::outside(program, path, court.place),
        _ => format!("{program} needs approval."),
    };
    let mut suggestions = Vec::new();
    let rules: Option<Vec<Rule>> = parts.iter().map(|part| suggested(part)).collect();
    if let Some(rules) = rules.filter(|rules| !rules.is_empty()) {
        suggestions.push(suggest_rules(rules, Source::Local));
    }
    if let Some((path, _)) = path.as_ref().filter(|(path, _)| !is_guarded(path)) {
        suggestions.extend(files::suggest_edits(path, false));
    }
    let blocked_path = path.map(|(path, _)| path);
    Verdict::Ask(Box::new(Question { message, reason: Reason::Unspoken, blocked_path, suggestions }))
}

/// The rule that would have allowed a command: its first words, and anything after them.
fn suggested(part: &Part) -> Option<Rule> {
    let simple = part.assignments.is_empty() && part.redirects.is_empty();
    let (first, rest) = part.words.split_first().filter(|(first, _)| simple && first.plain)?;
    let views = Views::of(&Script { parts: vec![part.clone()], ..Script::default() })?;
    let runs_anything = views.texts.len() > 1;
    let text = match rest.first() {
        _ if runs_anything => shell::text(&part.words),
        Some(second) if second.plain && !second.text.starts_with('-') => {
            format!("{} *", shell::text(&[first.clone(), second.clone()]))
        }
        _ => format!("{} *", shell::text(std::slice::from_ref(first))),
    };
    (!text.contains('\n') && text.matches('*').count() <= 1).then(|| Rule::new("Bash", Some(&text)))
}

/// Looks at one command.
fn look<'a>(court: &Court<'a>, part: &Part, folders: &Folders) -> Finding<'a> {
    let mut changes = false;
    for file in &part.redirects {
        match redirect(court, file, folders) {
            Finding::Reads => {}
            Finding::Nothing { path } => return Finding::Nothing { path },
            _ => changes = true,
        }
    }
    if !part.assignments.iter().all(|assignment| is_harmless(assignment)) {
        return Finding::Nothing { path: None };
    }
    match command(court, &part.words, folders) {
        Finding::Reads if changes => Finding::Changes,
        finding => finding,
    }
}

fn command<'a>(court: &Court<'a>, words: &[Word], folders: &Folders) -> Finding<'a> {
    let inner = unwrapped(words);
    let texts = [shell::text(words), shell::text(inner)];
    let allows = |rule: &Sourced| {
        let pattern = rule.rule.content.as_deref().filter(|_| rule.rule.is_about("Bash")).map(Pattern::read);
        pattern.is_some_and(|pattern| texts.iter().any(|text| pattern.matches(text)))
    };
    if let Some(rule) = court.rule(Behavior::Allow, allows) {
        // What the shell puts in place of a word may be a file that is refused.
        let unknown = words.iter().skip(1).any(|word| !word.plain) && guards_files(court);
        let vague = unknown || hides_files(court) && known::searches(inner, |name| folders.is_folder(name));
        // The user meant git in the session's repository, and not in one that runs programs.
        let elsewhere = is_git(inner) && !folders.is_home_of_git(court.place);
        return if vague || elsewhere { Finding::Nothing { path: None } } else { Finding::Rule(rule) };
    }
    let Some((first, rest)) = inner.split_first() else { return Finding::Reads };
    if first.plain && first.text == "cd" {
        let inside = rest.len() == 1 && folders.hold(court, ".");
        return if inside { Finding::Reads } else { Finding::Nothing { path: None } };
    }
    let Some(does) = known::does(inner) else { return Finding::Nothing { path: None } };
    if is_git(inner) && !folders.is_home_of_git(court.place) {
        return Finding::Nothing { path: None };
    }
    let names = known::operands(rest);
    let first_path = |inside: bool| names.first().map(|name| (court.place.absolute(name), inside));
    match does {
        Does::Reads => match names.iter().find(|name| !folders.hold(court, name)) {
            Some(name) => Finding::Nothing { path: Some((court.place.absolute(name), false)) },
            None if hides_files(court) && known::searches(inner, |name| folders.is_folder(name)) => {
                Finding::Nothing { path: None }
            }
            None => Finding::Reads,
        },
        Does::Changes => match names.iter().find(|name| !folders.hold(court, name)) {
            Some(name) => Finding::Nothing { path: Some((court.place.absolute(name), false)) },
            None if court.mode.accepts_edits() && names.iter().all(|name| folders.may_change(court, name)) => {
                Finding::Changes
            }
            None => Finding::Nothing { path: first_path(true) },
        },
    }
}

/// Whether a command is git.
fn is_git(words: &[Word]) -> bool {
    words.first().is_some_and(|first| first.text.rsplit('/').next() == Some("git"))
}

/// Whether some files may not be read unasked, so that searching whole folders is not harmless.
fn hides_files(court: &Court<'_>) -> bool {
    speaks_of_files(court, |tool| tool == "Read")
}

/// Whether some files may not be changed unasked.
fn keeps_files(court: &Court<'_>) -> bool {
    speaks_of_files(court, files::changes)
}

/// Whether some files may not be read or changed unasked.
fn guards_files(court: &Court<'_>) -> bool {
    speaks_of_files(court, |tool| tool == "Read" || files::changes(tool))
}

fn speaks_of_files(court: &Court<'_>, about: impl Fn(&str) -> bool) -> bool {
    let speaks = |rule: &Sourced| about(&rule.rule.tool) && rule.rule.content.is_some();
    [Behavior::Deny, Behavior::Ask].into_iter().any(|behavior| court.rule(behavior, speaks).is_some())
}

/// Looks at a file that the shell reads or writes for a command.
fn redirect<'a>(court: &Court<'a>, file: &Redirect, folders: &Folders) -> Finding<'a> {
    if !file.target.plain {
        return Finding::Nothing { path: None };
    }
    let name = file.target.text.as_str();
    if ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"].contains(&name) {
        return Finding::Reads;
    }
    let target = Target::new(court.place.cwd().join(name));
    let path = target.given.clone();
    let tool = if file.writes { "Edit" } else { "Read" };
    let covers = |rule: &Sourced| !file.writes || is_covered(rule, &path);
    let allows = |rule: &Sourced| folders.is_one() && files::matches(rule, tool, &target, court.place) && covers(rule);
    if let Some(rule) = court.rule(Behavior::Allow, allows) {
        return Finding::Rule(rule);
    }
    let inside = folders.hold(court, name);
    match file.writes {
        false if inside => Finding::Reads,
        true if court.mode.accepts_edits() && folders.may_change(court, name) => Finding::Changes,
        _ => Finding::Nothing { path: Some((path, inside)) },
    }
}

/// Variables that change no meaning.
fn is_harmless(assignment: &str) -> bool {
    let names = ["CI", "FORCE_COLOR", "LANG", "LC_ALL", "NODE_ENV", "NO_COLOR", "RUST_BACKTRACE", "RUST_LOG", "TZ"];
    let (name, value) = assignment.split_once('=').unwrap_or_default();
    names.contains(&name) && value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,=:/".contains(c))
}

/// A command without the wrappers that only change how long or how politely it runs.
fn unwrapped(mut words: &[Word]) -> &[Word] {
    let plain =
        |word: &Word, of: &str| word.plain && !word.text.is_empty() && word.text.chars().all(|c| of.contains(c));
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
        if !words[0].plain || inner.first().is_none_or(|word| word.text.starts_with('-')) {
            return words;
        }
        words = inner;
    }
}

/// The folders a command may run in, as `cd` in the same text may have changed it; none
/// when that is not followed. All but the first are resolved.
struct Folders(Option<Vec<PathBuf>>);

impl Folders {
    fn of(script: &Script, place: &Place) -> Self {
        let cwd = place.cwd();
        let is = |part: &&Part, names: &[&str]| {
            unwrapped(&part.words).first().is_some_and(|word| names.contains(&word.text.as_str()))
        };
        let moves: Vec<&Part> = script.parts.iter().filter(|part| is(part, &["cd", "pushd", "popd"])).collect();
        match moves.as_slice() {
            [] => Self(Some(vec![cwd])),
            [part] if !script.repeats => match part.words.as_slice() {
                [command, target] if command.text == "cd" && leads_somewhere(target) => {
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
    fn is_home_of_git(&self, place: &Place) -> bool {
        self.is_one() && known::git::is_at_home(&place.cwd(), place.root())
    }

    fn is_one(&self) -> bool {
        self.0.as_ref().is_some_and(|folders| folders.len() == 1)
    }

    /// Whether a name is inside the session's folders, wherever the command runs.
    fn hold(&self, court: &Court<'_>, name: &str) -> bool {
        let inside = |folder: &PathBuf| court.place.holds(&folder.join(name));
        match &self.0 {
            Some(folders) => folders.iter().all(inside),
            None => Path::new(name).is_absolute() && court.place.holds(Path::new(name)),
        }
    }

    /// Whether a name is below the session's folders and not guarded, wherever the command runs.
    fn may_change(&self, court: &Court<'_>, name: &str) -> bool {
        let open = |folder: &PathBuf| {
            let path = folder.join(name);
            let real = crate::tool::resolve(&path);
            let is_folder = real.is_none_or(|real| court.place.folders().iter().any(|open| open.starts_with(&real)));
            !is_folder && !is_guarded(&path)
        };
        self.hold(court, name) && self.0.as_ref().is_some_and(|folders| folders.iter().all(open))
    }
}

/// Whether a word names a folder for `cd`: an option or an empty word leads home or back.
fn leads_somewhere(word: &Word) -> bool {
    word.plain && !word.text.is_empty() && !word.text.starts_with('-')
}

/// Whether a command only reads, as far as its words tell. Where it may run is another question.
pub(crate) fn only_reads(command: &str) -> bool {
    let reads = |part: &Part| {
        let files = part.redirects.iter().all(|file| !file.writes || file.target.text == "/dev/null");
        files && part.assignments.is_empty() && known::does(unwrapped(&part.words)) == Some(Does::Reads)
    };
    shell::parse(command).is_ok_and(|script| !script.parts.is_empty() && script.parts.iter().all(reads))
}

/// The programs a command names, in order; empty if it is not understood.
pub(crate) fn programs(command: &str) -> Vec<String> {
    let script = shell::parse(command).unwrap_or_default();
    script.parts.iter().filter_map(|part| unwrapped(&part.words).first()).map(|word| word.text.clone()).collect()
}
