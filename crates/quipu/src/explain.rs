//! `quipu explain`: where time, tokens and money of a session went, and what would have been
//! cheaper.

mod html;
mod text;

use std::process::ExitCode;

use anyhow::Result;
use quipu_trace::capture::CaptureFolder;
use quipu_trace::explain::{ExplainBuilder, Report, Timeline};
use quipu_trace::{CallSource, Trace};

use crate::args::{ExplainArgs, ExplainFormat};
use crate::catalogue::data_folder;
use crate::error::print_note;
use crate::global::GlobalArgs;
use crate::output::Output;
use crate::{prices, sessions};

/// What all forms of the output show.
struct Explained {
    title: String,
    report: Report,
    timeline: Timeline,
}

pub(crate) fn run(args: &ExplainArgs, global: &GlobalArgs, output: &Output) -> Result<ExitCode> {
    let path = sessions::resolve_session(&args.session, global)?;
    let prices = prices::load()?;
    let explanation = ExplainBuilder::read(&path)?.finish(&prices);
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let trace = match &args.capture {
        Some(capture) => Trace::open(&[capture])?.keep_session(&id),
        None => {
            let captures = data_folder().as_deref().map(CaptureFolder::in_data_folder);
            Trace::open_session(&path, captures.as_ref(), CallSource::Complete)?
        }
    };
    let report = Report::new(&explanation, &trace, &prices);
    let title = explanation.headline.unwrap_or_else(|| "(no prompt)".to_owned());
    let explained = Explained { title, report, timeline: explanation.timeline };
    match args.form.unwrap_or(if global.json { ExplainFormat::Json } else { ExplainFormat::Text }) {
        ExplainFormat::Json => output.print_json(&explained.report)?,
        ExplainFormat::Html => output.print_text(&html::render(&explained))?,
        ExplainFormat::Text => {
            output.print_text(&text::render(&explained, output))?;
            if explained.report.is_reconstructed {
                print_note(
                    global,
                    &"the file does not record its API calls, so they were derived from its entries; what the prompt \
                      cache did is an estimate",
                );
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
