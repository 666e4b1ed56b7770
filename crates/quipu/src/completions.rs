//! `quipu completions`: completion scripts that also complete session ids.
//!
//! The scripts come from clap. Added lines run the hidden command `complete-sessions` wherever a
//! command takes a SESSION.

use std::cmp::Reverse;

use anyhow::Result;
use clap::{Args as _, CommandFactory};
use clap_complete::Shell;
use quipu_conversation::parse_timestamp;
use quipu_render::sanitize;
use quipu_transcript::{SessionOverview, find};

use crate::args::Args;
use crate::claude_dirs::claude_dirs;
use crate::global::GlobalArgs;
use crate::output::Output;

/// Sessions that are offered, the latest first.
const MAX_CANDIDATES: usize = 50;
/// Titles are cut to this length.
const MAX_TITLE_CHARS: usize = 60;

/// Prints the script for a shell.
pub(crate) fn print_script(shell: Shell, output: &Output) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible_command(), "quipu", &mut script);
    let script = String::from_utf8(script)?;
    let script = match shell {
        Shell::Bash => script + &bash_additions(),
        Shell::Zsh => zsh_script(&script),
        Shell::Fish => script + &fish_additions(),
        _ => script,
    };
    output.print_bytes(script.as_bytes())
}

/// The program without its hidden commands, which the scripts of clap would offer.
fn visible_command() -> clap::Command {
    let whole = Args::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let version = env!("CARGO_PKG_VERSION");
    let bare = clap::Command::new("quipu").version(version).disable_help_flag(true).disable_help_subcommand(true);
    GlobalArgs::augment_args(bare).subcommands(shown)
}

/// Prints the sessions to offer, the latest first: id, tab, title.
pub(crate) fn print_sessions(global: &GlobalArgs, output: &Output) -> Result<()> {
    let (sessions, _) = find::list_sessions(&claude_dirs(global));
    let latest = sessions.into_iter().take(MAX_CANDIDATES);
    let mut sessions_with_overview: Vec<_> = latest
        .map(|session| (SessionOverview::read_both_ends(&session.path).unwrap_or_default(), session.id))
        .collect();
    sessions_with_overview
        .sort_by_cached_key(|(overview, _)| Reverse(overview.ended_at.as_deref().and_then(parse_timestamp)));
    let mut text = String::new();
    for (overview, id) in sessions_with_overview {
        let title: String = sanitize(overview.headline().unwrap_or_default()).replace('\t', " ");
        let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
        text.push_str(&format!("{}\t{title}\n", sanitize(id.as_str())));
    }
    if !text.is_empty() {
        text.push_str("latest\tthe latest session\n");
    }
    output.print_bytes(text.as_bytes())
}

/// Commands whose arguments are sessions, with their aliases.
fn session_commands() -> Vec<String> {
    let takes_session = |command: &&clap::Command| {
        let mut names = command.get_positionals().filter_map(|arg| arg.get_value_names());
        names.any(|names| names.iter().any(|name| name.starts_with("SESSION")))
    };
    let whole = visible_command();
    let commands = whole.get_subcommands().filter(takes_session);
    commands
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_visible_aliases()))
        .map(str::to_owned)
        .collect()
}

fn bash_additions() -> String {
    let commands = session_commands().join("|");
    format!(
        r#"
_quipu_with_sessions() {{
    _quipu "$@"
    local word reply=() cur="${{COMP_WORDS[COMP_CWORD]}}"
    [[ "$cur" == -* ]] && return 0
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in
            {commands}|--session)
                for word in "${{COMPREPLY[@]}}"; do
                    [[ "$word" == -* ]] || reply+=("$word")
                done
                COMPREPLY=("${{reply[@]}}" $(compgen -W "$("${{COMP_WORDS[0]}}" complete-sessions 2>/dev/null | cut -f1)" -- "$cur"))
                return 0
                ;;
        esac
    done
}}
complete -F _quipu_with_sessions -o nosort -o bashdefault -o default quipu 2>/dev/null ||
    complete -F _quipu_with_sessions -o bashdefault -o default quipu
"#
    )
}

/// Replaces the completion of SESSION arguments and of `--session`, which clap leaves to
/// `_default`.
fn zsh_script(script: &str) -> String {
    let function = r#"
_quipu_sessions() {
    local -a sessions
    local id title
    while IFS=$'\t' read -r id title; do
        sessions+=("$id:$title")
    done < <(quipu complete-sessions 2>/dev/null)
    _describe -V 'session' sessions
    _files
}
"#;
    let is_session = |line: &str| {
        (line.contains("session -- ") || line.contains("sessions -- ") || line.contains("--session="))
            && line.contains(":_default'")
    };
    let mut lines = script.lines().map(|line| match is_session(line) {
        true => line.replace(":_default'", ":_quipu_sessions'"),
        false => line.to_owned(),
    });
    // zsh expects `#compdef` on the first line.
    let first = lines.next().unwrap_or_default();
    format!("{first}\n{function}{}\n", lines.collect::<Vec<_>>().join("\n"))
}

fn fish_additions() -> String {
    let commands = session_commands().join(" ");
    let offer = "-k -a '(quipu complete-sessions 2>/dev/null)'";
    format!(
        "\ncomplete -c quipu -n '__fish_seen_subcommand_from {commands}' {offer}\n\
         complete -c quipu -l session -x {offer}\n"
    )
}
