//! `quipu trace`: API calls in capture files and session files.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use quipu_trace::{Call, Trace};

use crate::error::{Failure, print_warning};
use crate::format::count;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::sessions::resolve_session;

mod cache;
mod diff;
mod export;
mod ls;
mod show;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quipu trace ls latest                     API calls of the latest session
  quipu trace ls .claude-trace/log.jsonl    those that claude-trace recorded
  quipu trace show latest                   their branches and turns
  quipu trace diff latest                   what changed from call to call
  quipu trace ls --json flows.mitm | jq '.[].cost_usd'
  quipu trace cache latest --what-if all    what other cache settings would have cost
  quipu trace export latest --to calls.har  requests and responses for other tools

FILE is a capture of quipu, claude-trace, claude-tap (JSON lines or database), cc-viewer or \
mitmproxy, an HTTP archive (HAR), a folder of OTEL_LOG_RAW_API_BODIES, a session file, or the name \
of a session as in `quipu show`. The format is recognised by content.";

#[derive(Debug, ClapArgs)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    /// List API calls: when, model, status, tokens, cost and session
    #[command(after_help = ls::EXAMPLES, visible_alias = "list")]
    Ls(FileArgs),
    /// Show what calls read from the prompt cache, why they missed, and what other settings cost
    #[command(after_help = cache::EXAMPLES)]
    Cache(cache::CacheArgs),
    /// Show sessions, branches and turns, or one request in its parts
    #[command(after_help = show::EXAMPLES)]
    Show(show::ShowArgs),
    /// Show what changed from call to call
    #[command(after_help = diff::EXAMPLES)]
    Diff(diff::DiffArgs),
    /// Export API calls: spans to a collector of OpenTelemetry, an HTTP archive, or JSON
    #[command(after_help = export::EXAMPLES)]
    Export(export::ExportArgs),
}

/// The files that a command reads.
#[derive(Debug, ClapArgs)]
pub(crate) struct FileArgs {
    /// Capture files, session files or sessions
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
}

pub(crate) fn run(args: &TraceArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    match &args.command {
        TraceCommand::Ls(args) => ls::run(args, global, output),
        TraceCommand::Cache(args) => cache::run(args, global, output),
        TraceCommand::Show(args) => show::run(args, global, output),
        TraceCommand::Diff(args) => diff::run(args, global, output),
        TraceCommand::Export(args) => export::run(args, global, output),
    }
}

/// The call with an id, or a unique beginning of one.
fn find_call<'a>(trace: &'a Trace, id: &str) -> Result<&'a Call> {
    let exact = trace.calls.iter().find(|call| call.id == id);
    let mut matches = trace.calls.iter().filter(|call| call.id.starts_with(id));
    match (exact, matches.next(), matches.next()) {
        (Some(call), _, _) | (None, Some(call), None) => Ok(call),
        (None, None, _) => {
            Err(Failure::error("call.not_found", format!("no call {id}"), "`quipu trace ls FILE` lists the calls"))
        }
        (None, Some(a), Some(b)) => {
            let message = format!("several calls begin with {id}: {}, {} …", a.id, b.id);
            Err(Failure::error("call.ambiguous", message, "give more characters of the id"))
        }
    }
}

/// Problems that are printed; the others are counted.
const MAX_PROBLEMS_SHOWN: usize = 5;

impl FileArgs {
    /// Imports the files. What could not be read is printed on stderr.
    pub(crate) fn open(&self, global: &GlobalArgs) -> Result<Trace> {
        let trace = Trace::open(&self.paths(global)?)?;
        print_problems(&trace);
        Ok(trace)
    }

    /// Paths of the files and sessions.
    fn paths(&self, global: &GlobalArgs) -> Result<Vec<PathBuf>> {
        let path = |spec: &String| {
            let path = PathBuf::from(spec);
            if path.exists() { Ok(path) } else { resolve_session(spec, global) }
        };
        self.files.iter().map(path).collect()
    }
}

/// Prints what could not be read on stderr.
fn print_problems(trace: &Trace) {
    for problem in trace.problems.iter().take(MAX_PROBLEMS_SHOWN) {
        let path = trace.sources.get(problem.source).map(|source| source.path.display().to_string());
        let path = path.unwrap_or_default();
        match problem.line {
            0 => print_warning(&format!("{path}: {}", problem.message)),
            line => print_warning(&format!("{path}:{line}: {}", problem.message)),
        }
    }
    let hidden = trace.problems.len().saturating_sub(MAX_PROBLEMS_SHOWN);
    if hidden > 0 {
        print_warning(&format!("and {}", count(hidden, "more problem")));
    }
}
