//! `quipu show --view raw`: prints the lines of a file unchanged.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Result;
use quipu_message::Json;
use quipu_render::{Html, Markdown, SessionDetails, sanitize};
use quipu_transcript::{FileError, LineEnding, LineReader, RawLine};

use crate::args::ShowFormat;
use crate::error::print_warning;
use crate::output::Output;

/// Which lines to show.
pub(crate) struct LineSelection {
    /// Line numbers, counted from 1.
    pub(crate) lines: RangeInclusive<u64>,
    /// Show only the last ones of these, at most this many.
    pub(crate) tail: Option<usize>,
}

/// Prints the selected lines, sanitized if stdout is a terminal. As text without `tail`, each
/// line is printed as soon as it is read.
pub(crate) fn print_raw_lines(path: &Path, format: ShowFormat, output: &Output, wanted: &LineSelection) -> Result<()> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?)
    };
    let mut lines = LineReader::new(input);
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let mut print = |bytes: &[u8], ending: LineEnding| match output.is_terminal {
        true => writeln!(stdout, "{}", sanitize(&String::from_utf8_lossy(bytes))),
        false => stdout.write_all(bytes).and_then(|()| stdout.write_all(ending.bytes())),
    };
    let is_streamed = format == ShowFormat::Text && wanted.tail.is_none();
    let mut kept: VecDeque<(Vec<u8>, LineEnding)> = VecDeque::new();
    loop {
        let offset = lines.offset();
        let raw_line = lines.next().map_err(|source| FileError::Read { path: path.to_owned(), offset, source })?;
        match raw_line {
            None => break,
            Some(RawLine::Line { number, .. } | RawLine::TooLong { number, .. }) if !wanted.lines.contains(&number) => {
            }
            Some(RawLine::TooLong { number, len, .. }) => {
                print_warning(&format!("line {number} of {len} bytes is left out"))
            }
            Some(RawLine::Line { bytes, ending, .. }) if is_streamed => print(bytes, ending)?,
            Some(RawLine::Line { bytes, ending, .. }) => {
                kept.push_back((bytes.to_vec(), ending));
                if wanted.tail.is_some_and(|tail| kept.len() > tail) {
                    kept.pop_front();
                }
            }
        }
    }
    if format == ShowFormat::Text {
        kept.iter().try_for_each(|(bytes, ending)| print(bytes, *ending))?;
        return Ok(stdout.flush()?);
    }
    let texts: Vec<_> = kept.iter().map(|(bytes, _)| String::from_utf8_lossy(bytes)).collect();
    let texts = texts.iter().map(|text| &**text).filter(|text| !text.trim().is_empty());
    let details = SessionDetails { title: Some(path.display().to_string()), ..SessionDetails::default() };
    match format {
        ShowFormat::Markdown => {
            output.print_bytes(Markdown { details, ..Markdown::default() }.render_lines(texts).as_bytes())
        }
        ShowFormat::Html => output.print_bytes(Html { details, ..Html::default() }.render_lines(texts).as_bytes()),
        ShowFormat::Json | ShowFormat::Text => {
            // JSON lines are printed unchanged; any other line becomes a string in an object.
            let line = |line| {
                Json::parse(line).unwrap_or_else(|_| Json::from_serialize(&serde_json::json!({ "problem": line })))
            };
            output.print_json(&texts.map(line).collect::<Vec<_>>())
        }
    }
}
