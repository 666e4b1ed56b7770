//! `quipu trace export`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use quipu_trace::{Structure, Trace, TraceRows, write_har};
use serde_json::json;

use super::FileArgs;
use crate::error::{Failure, print_note};
use crate::format::count;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::output_file::write_file;
use crate::prices;

pub(super) const EXAMPLES: &str = "\
Examples:
  quipu trace export latest --to otlp:http://localhost:4318   spans for a collector of OpenTelemetry
  quipu trace export run.capture --to run.har                 requests and responses for HTTP tools
  quipu trace export latest --to calls.json                   what `quipu trace show --json` prints

Spans have names, times and token counts, and no text of the conversation: a trace for each turn, \
with the names of the GenAI conventions. They are sent to the given address and nowhere else; \
headers for it are read from OTEL_EXPORTER_OTLP_HEADERS. Archives contain the whole conversation; \
headers with credentials are written as hashes.";

/// Arguments of `quipu trace export`.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    files: FileArgs,
    /// Where to: otlp:URL, FILE.har or FILE.json
    #[arg(long, value_name = "TARGET")]
    to: String,
}

/// Where calls are exported to.
enum Target {
    Collector(String),
    Har(PathBuf),
    Json(PathBuf),
}

impl Target {
    fn parse(text: &str) -> Result<Self> {
        if let Some(url) = text.strip_prefix("otlp:") {
            return Ok(Self::Collector(url.to_owned()));
        }
        let path = PathBuf::from(text);
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("har") => Ok(Self::Har(path)),
            Some("json") => Ok(Self::Json(path)),
            _ => {
                let message = format!("cannot tell what to export from '{text}'");
                let hint = "give otlp:URL, or a file whose name ends in .har or .json";
                Err(Failure::usage("usage.export_target", message, hint))
            }
        }
    }
}

pub(super) fn run(args: &ExportArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    match Target::parse(&args.to)? {
        Target::Collector(url) => send_spans(&args.files.open(global)?, &url, global, output)?,
        Target::Har(path) => {
            let (trace, raw_calls) = Trace::open_with_raw_calls(&args.files.paths(global)?)?;
            super::print_problems(&trace);
            let mut archive = Vec::new();
            write_har(&trace, &raw_calls, &mut archive)?;
            write(&path, &archive, trace.calls.len(), global, output)?;
        }
        Target::Json(path) => {
            let trace = args.files.open(global)?;
            let structure = Structure::new(&trace);
            let mut text = serde_json::to_vec(&TraceRows::new(&trace, &structure, &prices::load()?))?;
            text.push(b'\n');
            write(&path, &text, trace.calls.len(), global, output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, bytes: &[u8], calls: usize, global: &GlobalArgs, output: &Output) -> Result<()> {
    write_file(path, bytes)?;
    if global.json {
        return output.print_json(&json!({"path": path.to_string_lossy(), "calls": calls}));
    }
    print_note(global, &format!("wrote {} to {}", count(calls, "call"), path.display()));
    Ok(())
}

/// Most spans in one request to a collector.
#[cfg(feature = "capture")]
const MAX_SPANS_PER_REQUEST: usize = 512;

#[cfg(feature = "capture")]
fn send_spans(trace: &Trace, url: &str, global: &GlobalArgs, output: &Output) -> Result<()> {
    use quipu_otlp::{Collector, Resource};

    let exported = quipu_trace::export_spans(trace, &Structure::new(trace));
    let headers = crate::environment::text_var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let service = crate::environment::text_var("OTEL_SERVICE_NAME").filter(|name| !name.is_empty());
    let resource = Resource {
        service_name: service.unwrap_or_else(|| "quipu".to_owned()),
        service_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let collector = Collector::new(url, &headers, resource)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for spans in exported.spans.chunks(MAX_SPANS_PER_REQUEST) {
            collector.send(spans).await?;
        }
        anyhow::Ok(())
    })?;
    if exported.untimed_calls > 0 {
        let calls = count(exported.untimed_calls, "call");
        crate::error::print_warning(&format!("{calls} without a time left out"));
    }
    if global.json {
        return output.print_json(&json!({"spans": exported.spans.len(), "untimed_calls": exported.untimed_calls}));
    }
    print_note(global, &format!("sent {}", count(exported.spans.len(), "span")));
    Ok(())
}

#[cfg(not(feature = "capture"))]
fn send_spans(_: &Trace, _: &str, _: &GlobalArgs, _: &Output) -> Result<()> {
    let hint = "build it with the feature `capture`";
    Err(Failure::usage("usage.no_http_client", "this build of quipu has no HTTP client", hint))
}
