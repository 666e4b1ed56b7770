//! `quipu show --view raw`: the lines of a file as they are.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Result;
use quipu_message::Json;
use quipu_render::{About, Html, Markdown, clean};
use quipu_transcript::{Ending, FileError, Lines, Piece};

use crate::args::Form;
use crate::error::warn;
use crate::output::Output;

/// Which lines to show.
pub(crate) struct Wanted {
    /// The numbers of the lines, counted from 1.
    pub(crate) lines: RangeInclusive<u64>,
    /// Only so many of them, the last ones.
    pub(crate) tail: Option<usize>,
}

/// Prints lines; as text on a terminal, without their control characters. As text without
/// `tail` each line is printed as it is read.
pub(crate) fn raw(path: &Path, form: Form, output: &Output, wanted: &Wanted) -> Result<()> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|source| FileError::Open { path: path.to_owned(), source })?)
    };
    let mut lines = Lines::new(input);
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let mut print = |bytes: &[u8], ending: Ending| match output.is_terminal {
        true => writeln!(stdout, "{}", clean(&String::from_utf8_lossy(bytes))),
        false => stdout.write_all(bytes).and_then(|()| stdout.write_all(ending.bytes())),
    };
    let is_streamed = form == Form::Text && wanted.tail.is_none();
    let mut kept: VecDeque<(Vec<u8>, Ending)> = VecDeque::new();
    loop {
        let offset = lines.offset();
        let piece = lines.next().map_err(|source| FileError::Read { path: path.to_owned(), offset, source })?;
        match piece {
            None => break,
            Some(Piece::Line { number, .. } | Piece::TooLong { number, .. }) if !wanted.lines.contains(&number) => {}
            Some(Piece::TooLong { number, len, .. }) => warn(&format!("line {number} of {len} bytes is left out")),
            Some(Piece::Line { bytes, ending, .. }) if is_streamed => print(bytes, ending)?,
            Some(Piece::Line { bytes, ending, .. }) => {
                kept.push_back((bytes.to_vec(), ending));
                if wanted.tail.is_some_and(|tail| kept.len() > tail) {
                    kept.pop_front();
                }
            }
        }
    }
    if form == Form::Text {
        kept.iter().try_for_each(|(bytes, ending)| print(bytes, *ending))?;
        return Ok(stdout.flush()?);
    }
    let texts: Vec<_> = kept.iter().map(|(bytes, _)| String::from_utf8_lossy(bytes)).collect();
    let texts = texts.iter().map(|text| &**text).filter(|text| !text.trim().is_empty());
    let about = About { title: Some(path.display().to_string()), ..About::default() };
    match form {
        Form::Markdown => output.bytes(Markdown { about, ..Markdown::default() }.lines(texts).as_bytes()),
        Form::Html => output.bytes(Html { about, ..Html::default() }.lines(texts).as_bytes()),
        Form::Json | Form::Text => {
            // The lines' own bytes; one that is no JSON becomes a string in an object.
            let line = |line| Json::parse(line).unwrap_or_else(|_| Json::of(&serde_json::json!({ "problem": line })));
            output.json(&texts.map(line).collect::<Vec<_>>())
        }
    }
}
