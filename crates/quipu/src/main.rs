//! The command `quipu`: arguments in, text or JSON out.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_methods))]

mod answer;
mod args;
#[cfg(feature = "capture")]
mod capture;
mod catalogue;
mod chat;
mod chat_args;
mod check;
mod child_command;
mod claude_dirs;
mod cleanup;
mod completions;
mod config;
mod contexts;
mod credentials;
mod diff;
mod doctor;
mod environment;
mod error;
mod explain;
mod export;
mod filter;
mod follow;
mod global;
mod live_view;
mod log;
mod log_subscriber;
mod ls;
mod manage;
mod output;
mod output_file;
mod overview;
mod parallel;
mod part_args;
mod prices;
mod project_filter;
mod raw_lines;
mod replay;
mod resume;
mod search;
mod secrets;
mod serve;
mod session_table;
mod sessions;
mod shell;
mod show;
mod skeleton;
mod stats;
mod statusline;
mod table;
mod time;
mod token_limit;
mod trace;
mod usage;

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use quipu_render::format;

use crate::args::{Args, Command};
use crate::output::Output;

fn main() -> ExitCode {
    let args = match Args::try_parse_from(search::mark_dashed_words(std::env::args_os())) {
        Ok(args) => args,
        Err(error) => return error::report_usage_error(&error),
    };
    log::install(args.global.verbose);
    let output = Output::new(&args.global);
    let started = Instant::now();
    let code = match run(&args, &output) {
        Ok(code) => code,
        Err(error) => error::report(&error, args.global.json),
    };
    if args.global.verbose {
        let dirs = claude_dirs::claude_dirs(&args.global);
        let dirs = dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
        let took = started.elapsed().as_secs_f64() * 1e3;
        let _ = writeln!(anstream::stderr(), "sessions in {}; took {took:.1} ms", quipu_render::sanitize(&dirs));
    }
    code
}

fn run(args: &Args, output: &Output) -> Result<ExitCode> {
    let command = args.command.as_ref();
    if command.is_none_or(Command::uses_sessions) {
        claude_dirs::require_claude_dirs(&args.global, command.is_some_and(Command::uses_all_sessions))?;
    }
    let Some(command) = &args.command else { return overview::run(&args.global, output) };
    match command {
        Command::Check(check) => check::run(check, &args.global, output),
        Command::Show(show) => show::run(show, &args.global, output),
        Command::Ls(ls) => ls::run(ls, &args.global, output),
        Command::Usage(usage) => usage::run(usage, &args.global, output),
        Command::Stats(stats) => stats::run(stats, &args.global, output),
        Command::Contexts(contexts) => contexts::run(contexts, &args.global, output),
        Command::Statusline => statusline::run(&args.global, output),
        Command::Search(search) => search::run(search, &args.global, output),
        Command::Export(export) => export::run(export, &args.global, output),
        Command::Diff(diff) => diff::run(diff, &args.global, output),
        Command::Explain(explain) => explain::run(explain, &args.global, output),
        Command::Secrets(secrets) => secrets::run(secrets, &args.global, output),
        Command::Follow(follow) => follow::run(follow, &args.global, output),
        Command::Trace(trace) => trace::run(trace, &args.global, output),
        Command::Answer(answer) => answer::run(answer, &args.global, output),
        #[cfg(feature = "capture")]
        Command::Capture(capture) => capture::run(capture, &args.global, output),
        Command::Serve(serve) => serve::run(serve, &args.global, output),
        Command::Replay(replay) => replay::run(replay, &args.global, output),
        Command::Chat(chat) => chat::run(chat, &args.global, output),
        Command::Resume(resume) => resume::run(resume, &args.global, output),
        Command::Rename(rename) => manage::rename(rename, &args.global, output),
        Command::Tag(tag) => manage::tag(tag, &args.global, output),
        Command::Rm(rm) => manage::rm(rm, &args.global, output),
        Command::Doctor => doctor::run(&args.global, output),
        Command::Completions { shell } => {
            completions::print_script(*shell, output)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::CompleteSessions => {
            completions::print_sessions(&args.global, output)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Help { command } => {
            let help = command_named(command.as_deref())?.render_help();
            output.print_text(&if output.color { help.ansi().to_string() } else { help.to_string() })?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { command } => {
            let page = command_named(command.as_deref())?;
            let page = match command {
                Some(name) => page.display_name(format!("quipu-{name}")),
                None => page,
            };
            let mut text = Vec::new();
            clap_mangen::Man::new(page).render(&mut text)?;
            output.print_bytes(&text)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The program, or one of its commands.
fn command_named(name: Option<&str>) -> Result<clap::Command> {
    let mut program = Args::command();
    program.build();
    match name {
        None => Ok(program),
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| error::Failure::no_such_command(name)),
    }
}
