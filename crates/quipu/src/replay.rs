//! `quipu replay`

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;
use quipu_api::mock::{MatchMode, MockServer, ReceivedRequest, RequestDifference, Script};
use quipu_trace::read_recorded_calls;
use serde_json::json;

use crate::args::ReplayArgs;
use crate::child_command::run_command;
use crate::error::Failure;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::shell;

pub(crate) fn run(args: &ReplayArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let calls = read_recorded_calls(&args.file)?;
    if calls.is_empty() {
        let message = format!("there is no call in {}", args.file.display());
        return Err(Failure::error("replay.no_calls", message, "record calls with `quipu capture`"));
    }
    let mode = if args.lenient { MatchMode::Lenient } else { MatchMode::Strict };
    let script = Script::from_recorded(calls, mode);
    // The first request that differs decides about --check.
    let first_difference: Arc<Mutex<Option<String>>> = Arc::default();
    let observer = {
        let (first_difference, quiet) = (Arc::clone(&first_difference), global.quiet);
        move |request: &ReceivedRequest| {
            let line = request_line(request);
            if !quiet && (request.difference.is_some() || request.matched_rule.is_none()) {
                print_error_line(&line);
            }
            if request.difference.is_some() || request.matched_rule.is_none() && !request.summary.is_empty() {
                first_difference.lock().get_or_insert(line);
            }
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let started = MockServer::listen(script, args.listen, observer).await;
        let server = started.map_err(|error| {
            let message = format!("cannot listen on {}: {error}", args.listen);
            Failure::error("replay.cannot_listen", message, "--listen 127.0.0.1:0 takes a free port")
        })?;
        let code = if args.command.is_empty() {
            wait_for_end(&server, global, output).await?;
            0
        } else {
            run_command(&args.command, &server.url()).await?
        };
        let unplayed = server.unplayed_calls();
        let difference = first_difference.lock().take();
        if args.check {
            check(difference, &unplayed)?;
        } else if let Some(first) = unplayed.first().filter(|_| !global.quiet) {
            print_error_line(&format!(
                "{} of the recorded calls were not requested, the first is {first}",
                unplayed.len()
            ));
        }
        Ok(ExitCode::from(code))
    })
}

/// Fails with the first difference between the recorded run and this one.
fn check(difference: Option<String>, unplayed: &[String]) -> Result<()> {
    let hint = "`quipu replay --lenient` continues after differences";
    match (difference, unplayed.first()) {
        (Some(difference), _) => Err(Failure::error("replay.difference", difference, hint)),
        (None, Some(call)) => {
            let message = format!("{call} was not requested, and {} after it", unplayed.len() - 1);
            Err(Failure::error("replay.not_requested", message, "the run ended earlier than the recorded one"))
        }
        (None, None) => Ok(()),
    }
}

async fn wait_for_end(server: &MockServer, global: &GlobalArgs, output: &Output) -> Result<()> {
    // Install the handlers first: a script may send a signal as soon as it reads the address.
    let ended = shell::ended_by_signal()?;
    let url = server.url();
    if global.json {
        output.print_json(&json!({"address": server.address().to_string(), "url": url}))?;
    } else {
        let example = format!("ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any claude");
        output.print_bytes(format!("replaying on {url}; Ctrl-C ends\n  {example}\n").as_bytes())?;
    }
    ended.await;
    Ok(())
}

/// A request that differs, as one line.
fn request_line(request: &ReceivedRequest) -> String {
    let (number, summary) = (request.number, &request.summary);
    let text = match &request.difference {
        Some(RequestDifference { call, at, recorded, received }) => {
            format!(
                "request {number} ({summary}) differs from {call} at {at}: recorded {recorded:?}, received {received:?}"
            )
        }
        None if summary.is_empty() => {
            format!("request {number} ({} {}) was not recorded", request.method, request.path)
        }
        None => format!("request {number} ({summary}) comes after the last recorded call of its kind"),
    };
    quipu_render::sanitize(&text).replace('\n', " ")
}

fn print_error_line(line: &str) {
    // Without stderr there is no place to report to.
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
