//! `quipu capture`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use quipu_trace::capture::{
    CaptureFolder, CaptureLog, CaptureProxy, DEFAULT_UPSTREAM, LogOptions, LogStats, MAX_FOLDER_BYTES,
};
use serde_json::json;

use crate::args::CaptureArgs;
use crate::child_command::run_command;
use crate::credentials::credentials;
use crate::error::Failure;
use crate::format::{bytes, count};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::time::now;
use crate::{catalogue, environment, shell};

pub(crate) fn run(args: &CaptureArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let upstream = args.upstream.clone().unwrap_or_else(default_upstream);
    let (path, options) = prepare(args, &upstream, global)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let log = CaptureLog::create(&path, &options).map_err(|error| cannot_create(&path, &error))?;
        let proxy = match CaptureProxy::start(args.listen, &upstream, log).await {
            Ok(proxy) => proxy,
            Err(error) => {
                // The capture is empty.
                let _ = std::fs::remove_file(&path);
                let _ = options.session_list.as_deref().map(std::fs::remove_file);
                return Err(error.into());
            }
        };
        if !args.listen.ip().is_loopback() && !global.quiet {
            note(&format!("warning: other machines can reach the proxy on {}", args.listen));
        }
        let code = if args.command.is_empty() {
            wait_for_end(&proxy, &path, global, output).await?;
            0
        } else {
            run_command(&args.command, &proxy.url()).await?
        };
        let stats = proxy.shut_down().await;
        report(&stats, &path, args, global, output)?;
        Ok(ExitCode::from(code))
    })
}

/// Path of the capture and how it is written. Removes old captures if there are too many.
fn prepare(args: &CaptureArgs, upstream: &str, global: &GlobalArgs) -> Result<(PathBuf, LogOptions)> {
    let secrets = credentials();
    let mut options = LogOptions { upstream: upstream.to_owned(), secrets, ..LogOptions::default() };
    if let Some(path) = &args.out {
        return Ok((path.clone(), options));
    }
    let folder = capture_folder().ok_or_else(|| {
        Failure::error("capture.no_folder", "there is no home folder for captures", "name a file with --out FILE")
    })?;
    let pruned = folder.prune(MAX_FOLDER_BYTES);
    if pruned.files > 0 && !global.quiet {
        let (files, size) = (count(pruned.files, "old capture"), bytes(pruned.bytes));
        note(&format!("removed {files} ({size}); captures are kept up to {}", bytes(MAX_FOLDER_BYTES)));
    }
    let (path, sessions) = folder.new_capture(now().timestamp()).context("cannot create the folder of captures")?;
    options.max_bytes = Some(MAX_FOLDER_BYTES);
    options.session_list = Some(sessions);
    Ok((path, options))
}

/// Folder of captures; `None` without a home folder.
pub(crate) fn capture_folder() -> Option<CaptureFolder> {
    Some(CaptureFolder::in_data_folder(&catalogue::data_folder()?))
}

fn default_upstream() -> String {
    let named = environment::text_var("ANTHROPIC_BASE_URL");
    named.filter(|url| !url.is_empty()).unwrap_or_else(|| DEFAULT_UPSTREAM.to_owned())
}

async fn wait_for_end(proxy: &CaptureProxy, path: &Path, global: &GlobalArgs, output: &Output) -> Result<()> {
    // Install the handlers first: a script may send a signal as soon as it reads the address.
    let ended = shell::ended_by_signal()?;
    let url = proxy.url();
    if global.json {
        let path = path.to_string_lossy();
        output.print_json(&json!({"address": proxy.address().to_string(), "url": url, "path": path}))?;
    } else {
        let example = format!("ANTHROPIC_BASE_URL={url} claude");
        output.print_bytes(format!("capturing on {url}; Ctrl-C ends\n  {example}\n").as_bytes())?;
    }
    ended.await;
    Ok(())
}

/// Prints where the capture is and what is missing from it.
fn report(stats: &LogStats, path: &Path, args: &CaptureArgs, global: &GlobalArgs, output: &Output) -> Result<()> {
    let path = path.to_string_lossy();
    if global.json && !args.command.is_empty() {
        return output.print_json(&json!({
            "path": path, "calls": stats.calls, "bytes": stats.bytes, "session_ids": stats.session_ids,
            "lost_requests": stats.lost_requests, "lost_bytes": stats.lost_bytes, "late_requests": stats.late_requests,
        }));
    }
    if stats.is_full {
        note(&format!("warning: the capture reached {}; later calls were not recorded", bytes(stats.bytes)));
    }
    if stats.lost_requests + stats.lost_bytes > 0 {
        let reason = stats.error.as_deref().unwrap_or("the disk was too slow");
        let (requests, lost) = (count(usize::try_from(stats.lost_requests)?, "request"), bytes(stats.lost_bytes));
        note(&format!("warning: {requests} and {lost} of responses are missing from the capture: {reason}"));
    }
    if !global.quiet {
        let (calls, size) = (count(usize::try_from(stats.calls)?, "call"), bytes(stats.bytes));
        let file = shell::quote(&path);
        note(&format!(
            "captured {calls} in {path} ({size})\n  quipu trace ls {file}\n  quipu replay {file} -- COMMAND"
        ));
    }
    Ok(())
}

fn cannot_create(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let message = format!("cannot create {}: {error}", path.display());
    let hint = match error.kind() {
        std::io::ErrorKind::AlreadyExists => "captures are not continued: choose another name, or remove the file",
        _ => "name another file with --out FILE",
    };
    Failure::error("capture.cannot_create", message, hint)
}

fn note(text: &str) {
    // Without stderr there is no place to report to.
    let _ = writeln!(anstream::stderr().lock(), "{}", quipu_render::sanitize(text));
}
