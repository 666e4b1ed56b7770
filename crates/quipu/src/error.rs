//! Prints errors, warnings and notes: a message and a hint for users, a code for scripts.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use quipu_api::mock::ScriptError;
use quipu_console::ChatError;
use quipu_conversation::price::PriceError;
use quipu_index::IndexError;
use quipu_server::ServerError;
use quipu_trace::ImportError;
use quipu_transcript::find::ResolveError;
use quipu_transcript::{
    DeleteError, FileError, LabelError, RepairError, ResumeCommand, ResumeCommandError, error_chain,
};
use serde_json::json;

use crate::global::GlobalArgs;

/// An error of the command itself, with its code and hint.
#[derive(Debug)]
pub(crate) struct Failure {
    code: &'static str,
    message: String,
    hint: String,
    /// Lines under the message; not part of the JSON.
    listing: String,
    exit_code: u8,
}

impl Failure {
    /// An error that ends the command with exit code 1.
    pub(crate) fn error(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { code, message: message.into(), hint: hint.into(), listing: String::new(), exit_code: 1 }.into()
    }

    /// A usage error, which ends the command with exit code 2.
    pub(crate) fn usage(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { code, message: message.into(), hint: hint.into(), listing: String::new(), exit_code: 2 }.into()
    }

    /// An error with a table under its message; with `--json` the hint replaces the table.
    pub(crate) fn listing(code: &'static str, message: String, listing: String, hint: String) -> anyhow::Error {
        Self { code, message, hint, listing, exit_code: 1 }.into()
    }

    pub(crate) fn no_such_command(name: &str) -> anyhow::Error {
        Self::usage("usage.no_such_command", format!("no command '{name}'"), "`quipu --help` lists them")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Prints an error and returns the exit code. A broken pipe counts as success.
pub(crate) fn report(error: &anyhow::Error, as_json: bool) -> ExitCode {
    let broken_pipe = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    if error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken_pipe)) {
        return ExitCode::SUCCESS;
    }
    let (code, hint) = code_and_hint(error);
    let message = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    let mut stderr = anstream::stderr().lock();
    let _ = if as_json {
        writeln!(stderr, "{}", json!({"error": {"code": code, "message": message, "hint": hint}}))
    } else {
        let red = anstyle::AnsiColor::Red.on_default().bold();
        let listing = error.downcast_ref::<Failure>().map_or("", |failure| &failure.listing);
        let below = match (listing, hint.as_str()) {
            ("", "") => String::new(),
            ("", hint) => format!("\nhint: {hint}"),
            (listing, _) => format!(":{}", listing.lines().map(|line| format!("\n  {line}")).collect::<String>()),
        };
        writeln!(stderr, "{red}error:{red:#} {}{below}", quipu_render::sanitize(&message))
    };
    ExitCode::from(error.downcast_ref::<Failure>().map_or(1, |failure| failure.exit_code))
}

fn code_and_hint(error: &anyhow::Error) -> (&'static str, String) {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return (failure.code, failure.hint.clone());
    }
    if let Some(resolve) = error.downcast_ref::<ResolveError>() {
        let hint = match resolve {
            ResolveError::NotFound { .. } => "run `quipu ls` to list sessions, or give the path of a file",
            ResolveError::Ambiguous { .. } => "add more characters",
        };
        return (resolve.code(), hint.to_owned());
    }
    if let Some(prices) = error.downcast_ref::<PriceError>() {
        return (prices.code(), prices.hint().to_owned());
    }
    #[cfg(feature = "capture")]
    if let Some(proxy) = error.downcast_ref::<quipu_trace::capture::ProxyError>() {
        let hint = match proxy.code() {
            "capture.bad_upstream" => "name an upstream such as https://api.anthropic.com",
            "capture.cannot_listen" => "--listen 127.0.0.1:0 takes a free port",
            _ => "check the certificates of this machine",
        };
        return (proxy.code(), hint.to_owned());
    }
    if let Some(server) = error.downcast_ref::<ServerError>() {
        let hint = match server {
            ServerError::NotLoopback { .. } => {
                "use 127.0.0.1 and, from another machine, `ssh -L 4777:127.0.0.1:4777 HOST`"
            }
            ServerError::Listen { .. } => "--listen 127.0.0.1:0 takes a free port",
        };
        return (server.code(), hint.to_owned());
    }
    #[cfg(feature = "capture")]
    if let Some(collector) = error.downcast_ref::<quipu_otlp::CollectorError>() {
        let hint = match collector.code() {
            "otlp.endpoint" => "name a collector such as otlp:http://localhost:4318",
            "otlp.headers" => "OTEL_EXPORTER_OTLP_HEADERS is a list such as api-key=VALUE,team=NAME",
            "otlp.unreachable" => "check that the collector runs and takes OTLP over HTTP",
            _ => "",
        };
        return (collector.code(), hint.to_owned());
    }
    if let Some(chat) = error.downcast_ref::<ChatError>() {
        return (chat.code(), agent_hint(chat.code()).to_owned());
    }
    if let Some(agent) = error.downcast_ref::<quipu_sdk::Error>() {
        return (agent.code(), agent_hint(agent.code()).to_owned());
    }
    if let Some(script) = error.downcast_ref::<ScriptError>() {
        return (script.code(), script.hint().to_owned());
    }
    if let Some(import) = error.downcast_ref::<ImportError>() {
        let hint = match import {
            ImportError::UnknownFormat { .. } => "`quipu trace --help` lists the formats",
            _ => "",
        };
        return (import.code(), hint.to_owned());
    }
    if let Some(index) = error.downcast_ref::<IndexError>() {
        return (index.code(), "delete the file: the next command builds it again from the sessions".to_owned());
    }
    if let Some(resume) = error.downcast_ref::<ResumeCommandError>() {
        let hint = match resume {
            ResumeCommandError::Subagent { .. } => "name the session it belongs to".to_owned(),
            ResumeCommandError::NotInProjects { .. } => {
                "agents find sessions in <config folder>/projects/<project>/<session>.jsonl".to_owned()
            }
            ResumeCommandError::NoFolder { id } => format!("run `{} --resume {id}` there", ResumeCommand::PROGRAM),
            ResumeCommandError::Unsafe => "run the agent yourself".to_owned(),
            ResumeCommandError::File(_) => String::new(),
        };
        return (resume.code(), hint);
    }
    if let Some(label) = error.downcast_ref::<LabelError>() {
        return (label.code(), String::new());
    }
    if let Some(delete) = error.downcast_ref::<DeleteError>() {
        return (delete.code(), "the session's file is still there".to_owned());
    }
    if let Some(repair) = error.downcast_ref::<RepairError>() {
        return (repair.code(), "the file is as it was".to_owned());
    }
    if let Some(file) = error.downcast_ref::<FileError>() {
        let hint = match file.code() {
            "file.not_found" => "give the path of a session file, such as ~/.claude/projects/<project>/<session>.jsonl",
            "file.no_permission" => "check who may read the file",
            _ => "",
        };
        return (file.code(), hint.to_owned());
    }
    ("failed", String::new())
}

/// The hint for an error of an agent.
fn agent_hint(code: &str) -> &'static str {
    match code {
        "sdk.not_found" | "sdk.cannot_start" => "name an agent with --agent, such as `claude` or `quipu-agent`",
        "sdk.too_old" => "update the agent, or name another with --agent",
        _ => "",
    }
}

/// Prints a usage error of clap, or the help or version that was asked for.
pub(crate) fn report_usage_error(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let asked_for_json = std::env::args_os().any(|arg| arg == "--json");
    match error.kind() {
        DisplayHelp | DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        kind if asked_for_json && kind != DisplayHelpOnMissingArgumentOrSubcommand => {
            let text = error.render().to_string();
            let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let hint = "`quipu --help` lists commands and options";
            let _ = writeln!(io::stderr(), "{}", json!({"error": {"code": "usage", "message": message, "hint": hint}}));
            ExitCode::from(2)
        }
        _ => {
            let _ = error.print();
            ExitCode::from(2)
        }
    }
}

/// Prints a note on stderr; nothing with `--quiet` or `--json`.
pub(crate) fn print_note(global: &GlobalArgs, what: &dyn fmt::Display) {
    if !global.quiet && !global.json {
        let _ = writeln!(anstream::stderr().lock(), "{what}");
    }
}

/// Prints a warning on stderr.
pub(crate) fn print_warning(what: &dyn std::fmt::Display) {
    let _ = writeln!(anstream::stderr().lock(), "warning: {}", quipu_render::sanitize(&what.to_string()));
}

/// Prints a warning with its causes for each error.
pub(crate) fn print_warnings<E: std::error::Error + 'static>(errors: &[E]) {
    errors.iter().for_each(|error| print_warning(&error_chain(error)));
}
