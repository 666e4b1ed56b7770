//! The command `quipu`: arguments in, text or JSON out.

// Unwrapping is how a test says what must hold.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod about;
mod answer;
mod args;
mod catalogue;
mod check;
mod cleanup;
mod completions;
mod diff;
mod doctor;
mod error;
mod export;
mod filter;
mod follow;
mod format;
mod housekeeping;
mod live;
mod ls;
mod output;
mod overview;
mod parallel;
mod prices;
mod raw;
mod resume;
mod search;
mod secrets;
mod select;
mod sessions;
mod show;
mod statusline;
mod table;
mod time;
mod usage;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use crate::args::{Args, Command};
use crate::output::Output;

fn main() -> ExitCode {
    let args = match Args::try_parse_from(search::with_dashed_words(std::env::args_os())) {
        Ok(args) => args,
        Err(error) => return error::usage(&error),
    };
    let output = Output::new(&args.global);
    match run(&args, &output) {
        Ok(code) => code,
        Err(error) => error::report(&error, args.global.json),
    }
}

fn run(args: &Args, output: &Output) -> Result<ExitCode> {
    sessions::require_dirs(args.command.as_ref(), &args.global)?;
    let Some(command) = &args.command else { return overview::run(&args.global, output) };
    match command {
        Command::Check(check) => check::run(check, &args.global, output),
        Command::Show(show) => show::run(show, &args.global, output),
        Command::Ls(ls) => ls::run(ls, &args.global, output),
        Command::Usage(usage) => usage::run(usage, &args.global, output),
        Command::Statusline => statusline::run(&args.global, output),
        Command::Search(search) => search::run(search, &args.global, output),
        Command::Export(export) => export::run(export, &args.global, output),
        Command::Diff(diff) => diff::run(diff, &args.global, output),
        Command::Secrets(secrets) => secrets::run(secrets, &args.global, output),
        Command::Follow(follow) => follow::run(follow, &args.global, output),
        Command::Answer(answer) => answer::run(answer, &args.global, output),
        Command::Resume(resume) => resume::run(resume, &args.global, output),
        Command::Rename(rename) => housekeeping::rename(rename, &args.global, output),
        Command::Tag(tag) => housekeeping::tag(tag, &args.global, output),
        Command::Rm(rm) => housekeeping::rm(rm, &args.global, output),
        Command::Doctor => doctor::run(&args.global, output),
        Command::Completions { shell } => {
            completions::script(*shell, output)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::CompleteSessions => {
            completions::sessions(&args.global, output)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { command } => {
            let page = man(command.as_deref())?;
            output.bytes(&page)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The manual page of the program or of one of its commands.
fn man(command: Option<&str>) -> Result<Vec<u8>> {
    let mut whole = Args::command();
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => {
            let found = whole.find_subcommand(name).cloned();
            found.ok_or_else(|| error::Failure::no_such_command(name))?.display_name(format!("quipu-{name}"))
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(text)
}
