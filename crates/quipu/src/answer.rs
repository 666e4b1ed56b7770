//! `quipu answer`

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use quipu_api::mock::{MockServer, ReceivedRequest, Script};
use serde_json::json;

use crate::args::AnswerArgs;
use crate::error::Failure;
use crate::global::GlobalArgs;
use crate::output::Output;

pub(crate) fn run(args: &AnswerArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let script = Script::read(&args.script)?;
    let quiet = global.quiet;
    let observer = move |request: &ReceivedRequest| {
        if !quiet {
            let _ = writeln!(anstream::stderr().lock(), "{}", request_line(request));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let started = MockServer::listen(script, args.listen, observer).await;
        let server = started.map_err(|error| {
            let message = format!("cannot listen on {}: {error}", args.listen);
            Failure::error("answer.cannot_listen", message, "--listen 127.0.0.1:0 takes a free port")
        })?;
        // Install the handler first: a script may send SIGINT as soon as it reads the address.
        let ended = tokio::spawn(tokio::signal::ctrl_c());
        tokio::task::yield_now().await;
        let url = server.url();
        if global.json {
            output.print_json(&json!({"address": server.address().to_string(), "url": url}))?;
        } else {
            let example_command = format!("ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any claude -p hi");
            output.print_bytes(format!("listening on {url}; Ctrl-C ends\n  {example_command}\n").as_bytes())?;
        }
        ended.await??;
        Ok(ExitCode::SUCCESS)
    })
}

/// A received request as one line of the log.
fn request_line(request: &ReceivedRequest) -> String {
    let rule = request.matched_rule.as_deref().unwrap_or("no rule matches");
    let about = if request.summary.is_empty() { String::new() } else { format!(" ({})", request.summary) };
    let text = format!("{} {} {} -> {} {rule}{about}", request.number, request.method, request.path, request.status);
    quipu_render::sanitize(&text).replace('\n', " ")
}
