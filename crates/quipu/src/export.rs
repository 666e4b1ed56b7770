//! `quipu export`

use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use quipu_conversation::{Conversation, Metrics, UiOptions};
use quipu_render::{ExportedSession, SessionDetails, hidden_summary};
use quipu_transcript::{load_reader, load_session, measure, measure_reader};

use crate::args::{ExportArgs, ExportFormat};
use crate::error::{Failure, print_note};
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::output_file::write_file;
use crate::time::{format_local_time, local_time_with_zone};
use crate::{format, prices, sessions};

mod archive;

pub(crate) fn run(args: &ExportArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let Some(session) = &args.session else { return archive::run(args, global, output) };
    if !args.filters.is_empty() {
        return Err(Failure::usage("usage.filters", "filters need --all", "leave out the SESSION and pass --all"));
    }
    let format = export_format(args, global)?;
    let (conversation, metrics) = open_session(session, global)?;
    let document = export(&conversation, &metrics, args, format)?;
    if args.to == Path::new("-") {
        output.print_bytes(document.text.as_bytes())?;
    } else {
        write_file(&args.to, document.text.as_bytes())?;
        let (items, masked) = (document.item_count, document.redactor.counts());
        if global.json {
            output.print_json(&serde_json::json!({ "path": args.to, "items": items, "masked": masked }))?;
        }
        print_note(global, &format!("{} written to {}", format::count(items, "item"), args.to.display()));
    }
    if let Some(hidden) = document.details.not_shown {
        print_note(global, &format!("left out: {hidden}; `quipu show --full` shows all"));
    }
    if args.redact {
        print_note(global, &masked_note(document.redactor.counts()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The note about masked values.
fn masked_note<'a>(counts: impl IntoIterator<Item = (&'a &'static str, &'a u64)>) -> String {
    let list: Vec<String> = counts.into_iter().map(|(kind, n)| format!("{n} × {kind}")).collect();
    let list = if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
    format!("masked: {list}; read the result before you share it")
}

/// Renders the part of a conversation that the options select.
fn export(
    conversation: &Conversation,
    metrics: &Metrics,
    args: &ExportArgs,
    format: ExportFormat,
) -> Result<ExportedSession> {
    let (mut items, left_out) = conversation.for_ui_and_left_out(UiOptions::default());
    let mut details = SessionDetails::new(conversation, Some(metrics), local_time_with_zone);
    details.not_shown = hidden_summary(left_out).filter(|_| !args.parts.is_partial());
    args.parts.select(&mut items, conversation)?;
    Ok(ExportedSession::new(items, details, format.into(), args.redact, format_local_time))
}

/// The format of `--as`, or else of the file extension.
fn export_format(args: &ExportArgs, global: &GlobalArgs) -> Result<ExportFormat> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    if args.to == Path::new("-") {
        return Ok(if global.json { ExportFormat::Json } else { ExportFormat::Markdown });
    }
    let extension = args.to.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("html" | "htm") => Ok(ExportFormat::Html),
        Some("md" | "markdown") => Ok(ExportFormat::Markdown),
        Some("json") => Ok(ExportFormat::Json),
        _ => {
            let message = format!("cannot tell the format of '{}'", args.to.display());
            let hint = "end its name in .html, .md or .json, or choose with --as";
            Err(Failure::usage("usage.export_form", message, hint))
        }
    }
}

fn open_session(session: &str, global: &GlobalArgs) -> Result<(Conversation, Metrics)> {
    let prices = prices::load()?;
    if session == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok((load_reader(&*bytes), measure_reader(&*bytes)?.finish(&prices)));
    }
    let path = sessions::resolve_session(session, global)?;
    Ok((load_session(&path)?, measure(&path)?.finish(&prices)))
}
