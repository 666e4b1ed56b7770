//! Shell commands: every command in the text must be allowed, and one refused is enough.

use std::path::{Path, PathBuf};

use super::judge::{Court, Question, Reason, Verdict, ask, denied_by, suggest_rules};
use super::rules::Sourced;
use super::shell::{self, Confusion, Part, Redirect, Script, Word};
use super::{Behavior, Mode, Rule, Source, files};
use crate::sandbox::Profile;
use known::Does;
use pattern::Pattern;
use serde_json::Value;
use views::Views;

mod known;
mod pattern;
mod views;

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
            Verdict::Allow { reason: Reason::Sandbox, profile: Profile::Workspace }
        }
        verdict => verdict,
    }
}

/// Whether the `sandbox` settings approve what would be asked about. Ask rules stand, and
/// so do deny rules that the command cannot be compared with.
fn is_approved_by_sandbox(court: &Court<'_>, command: &str, reason: &Reason) -> bool {
    let sandbox = court.place.sandbox();
    if !sandbox.settings().approves() || court.mode == Mode::Plan || matches!(reason, Reason::Rule { .. }) {
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
    let names = |rule: &Sourced| names(rule, command, views);
    let touches = |rule: &Sourced| script.is_ok_and(|script| touches(rule, script, court));
    if let Some(rule) = court.rule(Behavior::Deny, |rule| names(rule) || touches(rule)) {
        return denied_by(rule);
    }
    let unclear = unclear(court, views);
    if court.mode == Mode::BypassPermissions {
        return unclear.unwrap_or(Verdict::allow(Reason::Mode(court.mode)));
    }
    if let Some(rule) = court.rule(Behavior::Ask, names) {
        return ask(format!("The rule {} says that this command needs approval.", rule.rule), Reason::rule(rule));
    }
    // What a person wrote down word for word needs no understanding.
    let whole = |rule: &Sourced| {
        let content = rule.rule.content.as_deref();
        rule.rule.is_about("Bash") && content.is_none_or(|text| !text.contains('*') && text == command.trim())
    };
    if let Some(rule) = court.rule(Behavior::Allow, whole).filter(|_| court.mode != Mode::Plan) {
        let unclear = unclear.filter(|_| rule.rule.content.is_none());
        return unclear.unwrap_or(Verdict::allow(Reason::rule(rule)));
    }
    match script {
        Ok(script) => match in_parts(court, script, command) {
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

/// Whether a command names a file that a rule about files refuses.
fn touches(rule: &Sourced, script: &Script, court: &Court<'_>) -> bool {
    let tool = match (rule.rule.tool.as_str(), &rule.rule.content) {
        ("Read", Some(_)) => "Read",
        (tool @ ("Edit" | "Write"), Some(_)) => tool,
        _ => return false,
    };
    let place = court.place;
    let is_file = |text: &str| {
        let value = text.split_once('=').map_or(text, |(_, value)| value);
        [text, value].iter().any(|text| files::matches(rule, tool, &place.absolute(text), place))
    };
    let named = |part: &Part| {
        let reads = known::does(&part.words) == Some(Does::Reads);
        // What only reads cannot break a rule about changes.
        let words = part.words.iter().skip(1).filter(|_| tool == "Read" || !reads);
        let files = part.redirects.iter().filter(|file| tool == "Read" || file.writes);
        words.map(|word| &word.text).chain(files.map(|file| &file.target.text)).any(|text| is_file(text))
    };
    script.parts.iter().any(named)
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

fn in_parts(court: &Court<'_>, script: &Script, text: &str) -> Verdict {
    let folders = Folders::of(script, court.place.cwd());
    let findings: Vec<(&Part, Finding<'_>)> =
        script.parts.iter().map(|part| (part, look(court, part, &folders))).collect();
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

/// The profile that a text runs in; none when no single one fits all its parts.
///
/// A part that a rule allows needs [`Profile::None`]. There the kernel does not correct
/// a mistake of this reader, so the other parts must be such that none is likely: they
/// only read, and the text holds nothing that bash would still have to expand or join.
fn profile(findings: &[(&Part, Finding<'_>)], text: &str) -> Option<Profile> {
    let any = |is: fn(&Finding<'_>) -> bool| findings.iter().any(|(_, finding)| is(finding));
    let changes = any(|finding| matches!(finding, Finding::Changes));
    if !any(|finding| matches!(finding, Finding::Rule(_))) {
        return Some(if changes { Profile::Workspace } else { Profile::Read });
    }
    let reads = any(|finding| matches!(finding, Finding::Reads));
    let expands = ["$", "`", "\\\n", "<<", "<(", ">("].iter().any(|mark| text.contains(mark));
    (!changes && !(reads && expands)).then_some(Profile::None)
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
    if let Some((path, _)) = path.as_ref().filter(|(path, _)| !files::is_guarded(path)) {
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
        let vague = words.iter().skip(1).any(|word| !word.plain) && guards_files(court);
        return if vague { Finding::Nothing { path: None } } else { Finding::Rule(rule) };
    }
    let Some((first, rest)) = inner.split_first() else { return Finding::Reads };
    if first.plain && first.text == "cd" {
        let target = rest.first().filter(|word| rest.len() == 1 && word.plain && word.text != "-");
        let inside = target.is_some_and(|word| folders.hold(court, &word.text));
        return if inside { Finding::Reads } else { Finding::Nothing { path: None } };
    }
    let Some(does) = known::does(inner) else { return Finding::Nothing { path: None } };
    let names: Vec<&str> = rest.iter().map(|word| word.text.as_str()).filter(|text| !text.starts_with('-')).collect();
    let first_path = |inside: bool| names.first().map(|name| (court.place.absolute(name), inside));
    match does {
        Does::Reads => match names.iter().find(|name| !folders.hold(court, name)) {
            Some(name) => Finding::Nothing { path: Some((court.place.absolute(name), false)) },
            None if known::descends(inner) && hides_files(court) => Finding::Nothing { path: None },
            None => Finding::Reads,
        },
        Does::Changes => match names.iter().find(|name| !folders.hold(court, name)) {
            Some(name) => Finding::Nothing { path: Some((court.place.absolute(name), false)) },
            None if court.mode == Mode::AcceptEdits && names.iter().all(|name| folders.may_change(court, name)) => {
                Finding::Changes
            }
            None => Finding::Nothing { path: first_path(true) },
        },
    }
}

/// Whether some files may not be read, so that searching whole folders is not harmless.
fn hides_files(court: &Court<'_>) -> bool {
    court.rule(Behavior::Deny, |rule| rule.rule.tool == "Read" && rule.rule.content.is_some()).is_some()
}

/// Whether some files may not be read or changed.
fn guards_files(court: &Court<'_>) -> bool {
    let about = |rule: &Sourced| matches!(rule.rule.tool.as_str(), "Read" | "Edit" | "Write");
    court.rule(Behavior::Deny, |rule| about(rule) && rule.rule.content.is_some()).is_some()
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
    let path = court.place.absolute(name);
    let tool = if file.writes { "Edit" } else { "Read" };
    let allows = |rule: &Sourced| files::matches(rule, tool, &path, court.place) && folders.is_one();
    if let Some(rule) = court.rule(Behavior::Allow, allows) {
        return Finding::Rule(rule);
    }
    let inside = folders.hold(court, name);
    match file.writes {
        false if inside => Finding::Reads,
        true if court.mode == Mode::AcceptEdits && folders.may_change(court, name) => Finding::Changes,
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

/// The folders a command may run in, as `cd` in the same text may have changed it.
struct Folders(Option<Vec<PathBuf>>);

impl Folders {
    fn of(script: &Script, cwd: PathBuf) -> Self {
        let is =
            |part: &&Part, names: &[&str]| part.words.first().is_some_and(|word| names.contains(&word.text.as_str()));
        let moves: Vec<&Part> = script.parts.iter().filter(|part| is(part, &["cd", "pushd", "popd"])).collect();
        match moves.as_slice() {
            [] => Self(Some(vec![cwd])),
            [part] if !script.repeats && is(part, &["cd"]) => match part.words.as_slice() {
                [_, target] if target.plain && target.text != "-" => {
                    let there = cwd.join(&target.text);
                    Self(Some(vec![cwd, there]))
                }
                _ => Self(None),
            },
            _ => Self(None),
        }
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
            !is_folder && !files::is_guarded(&path)
        };
        self.hold(court, name) && self.0.as_ref().is_some_and(|folders| folders.iter().all(open))
    }
}

/// Whether a command only reads, as far as its words tell. Where it may run is another question.
pub(crate) fn only_reads(command: &str) -> bool {
    let reads = |part: &Part| {
        let files = part.redirects.iter().all(|file| !file.writes || file.target.text == "/dev/null");
        files && part.assignments.is_empty() && known::does(unwrapped(&part.words)) == Some(Does::Reads)
    };
    shell::parse(command).is_ok_and(|script| !script.parts.is_empty() && script.parts.iter().all(reads))
}

/// The programs a command names, in order; none when it is not understood.
pub(crate) fn programs(command: &str) -> Vec<String> {
    let script = shell::parse(command).unwrap_or_default();
    script.parts.iter().filter_map(|part| unwrapped(&part.words).first()).map(|word| word.text.clone()).collect()
}
