//! Files with a JSON value in each line.

use std::io::{self, Read};

use quipu_message::line::replace_lone_surrogates;
use quipu_transcript::{LineReader, RawLine};

use crate::builder::TraceBuilder;

/// Reads a file line by line, one of them in memory at a time. What `import_line` returns as
/// an error is a problem of that line.
pub(super) fn import(
    input: impl Read,
    builder: &mut TraceBuilder,
    import_line: impl Fn(&str, u64, &mut TraceBuilder) -> Result<(), serde_json::Error>,
) -> io::Result<()> {
    let mut lines = LineReader::new(input);
    while let Some(line) = lines.next()? {
        match line {
            RawLine::TooLong { number, len, .. } => builder.push_problem(number, format!("a line of {len} bytes")),
            RawLine::Line { bytes, .. } if bytes.trim_ascii().is_empty() => {}
            RawLine::Line { number, bytes, .. } => match std::str::from_utf8(bytes) {
                Err(error) => {
                    builder.push_problem(number, format!("not UTF-8 after byte {} of the line", error.valid_up_to()));
                }
                Ok(text) => {
                    if let Err(error) = import_line(&replace_lone_surrogates(text), number, builder) {
                        builder.push_problem(number, error.to_string());
                    }
                }
            },
        }
    }
    Ok(())
}
