//! Pages of PDF files: how many there are, and a PDF of some of them.
//!
//! A PDF file can be made so that reading it needs any amount of memory or time. It is therefore
//! read by a second role of the agent's program, started with [`PDF_FLAG`], under limits of the
//! kernel: a file that exceeds them ends that process, not the session.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::str::FromStr;
use std::time::Duration;

use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

mod page_copy;
#[cfg(test)]
mod tests;

/// Flag that starts a program as the reader of a PDF file ([`serve`]).
const PDF_FLAG: &str = "--internal-pdf-reader";
/// Maximum number of pages in one call.
const MAX_PAGES: usize = 20;
/// Maximum size of a PDF that the API accepts.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 24 << 20;
/// Maximum memory of the reader, in bytes.
const MAX_MEMORY_BYTES: u64 = 512 << 20;
/// Maximum CPU time of the reader, in seconds.
const MAX_CPU_SECONDS: u64 = 20;
/// How long to wait for the reader.
const READER_TIMEOUT: Duration = Duration::from_secs(60);

/// Pages of a document, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRange {
    first: usize,
    last: usize,
}

impl FromStr for PageRange {
    type Err = String;

    /// Parses `3` or `1-5`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(format!("`{text}` is not a page or a range of pages, such as 3 or 1-5"));
        };
        match last {
            _ if last < first => Err(format!("the pages {text} end before they begin")),
            _ if last - first >= MAX_PAGES => Err(format!("at most {MAX_PAGES} pages can be read in one call")),
            _ => Ok(Self { first, last }),
        }
    }
}

impl fmt::Display for PageRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// What [`read_pages`] returns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PdfPages {
    /// Number of pages of the whole document.
    pub(crate) page_count: usize,
    /// A PDF of the pages in the range; empty if no range was given.
    pub(crate) document: Vec<u8>,
}

/// Counts the pages of a PDF, and copies those in `range` to a new PDF. `reader` is a program that
/// calls [`serve`] first. The error is a sentence without a full stop.
pub(crate) async fn read_pages(reader: &Path, bytes: &[u8], range: Option<PageRange>) -> Result<PdfPages, String> {
    #[expect(clippy::disallowed_methods, reason = "killed when the call is dropped")]
    let mut command = Command::new(reader);
    command.arg(PDF_FLAG).args(range.map(|range| range.to_string())).env_clear().current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = async {
        let mut child = command.spawn()?;
        let mut stdin = child.stdin.take();
        let write = async {
            if let Some(mut stdin) = stdin.take() {
                // A reader that has ended early reports why by itself.
                let _ = stdin.write_all(bytes).await;
            }
        };
        tokio::join!(write, child.wait_with_output()).1
    };
    let output = match timeout(READER_TIMEOUT, run).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(format!("the reader of PDF files cannot be run: {error}")),
        Err(_) => return Err("it takes too long to read".to_owned()),
    };
    match output.status.code() {
        Some(0) => parse_answer(output.stdout).ok_or_else(|| "the reader of PDF files gave no answer".to_owned()),
        Some(1) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        _ => Err("it needs more memory or time than is allowed, or is broken".to_owned()),
    }
}

/// Splits the answer of the reader: the number of pages, a newline and the new PDF.
fn parse_answer(mut answer: Vec<u8>) -> Option<PdfPages> {
    let newline = answer.iter().position(|byte| *byte == b'\n')?;
    let document = answer.split_off(newline + 1);
    let page_count = str::from_utf8(&answer).ok()?.trim_end().parse().ok()?;
    Some(PdfPages { page_count, document })
}

/// Reads the PDF on stdin if the process was started with [`PDF_FLAG`]; returns `None` otherwise.
pub(crate) fn serve() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next()? != PDF_FLAG {
        return None;
    }
    // Not every system knows every limit; the time limit of the caller is left.
    let limits = [(Resource::As, MAX_MEMORY_BYTES), (Resource::Cpu, MAX_CPU_SECONDS), (Resource::Core, 0)];
    for (resource, limit) in limits {
        let _ = setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) });
    }
    let run = |range: Option<String>| -> Result<(), String> {
        let range = range.map(|range| range.parse()).transpose()?;
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let pages = extract_pages(bytes, range)?;
        let mut out = io::stdout().lock();
        let written = writeln!(out, "{}", pages.page_count).and_then(|()| out.write_all(&pages.document));
        written.and_then(|()| out.flush()).map_err(|error| error.to_string())
    };
    Some(run(args.next()).map_or_else(
        |error| {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(1)
        },
        |()| ExitCode::SUCCESS,
    ))
}

/// Counts the pages of a PDF, and copies those in `range`.
fn extract_pages(bytes: Vec<u8>, range: Option<PageRange>) -> Result<PdfPages, String> {
    let pdf = Pdf::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => "it is protected by a password".to_owned(),
        LoadPdfError::Decryption(_) => "its encryption is not supported".to_owned(),
        LoadPdfError::Invalid => "it is not a valid PDF file".to_owned(),
    })?;
    let page_count = pdf.pages().len();
    let Some(range) = range else { return Ok(PdfPages { page_count, document: Vec::new() }) };
    if range.last > page_count {
        let pages = if page_count == 1 { "1 page" } else { &format!("{page_count} pages") };
        return Err(format!("it has {pages}, so there is no page {}", range.last));
    }
    let document = page_copy::copy_pages(&pdf, range.first - 1..range.last, MAX_DOCUMENT_BYTES)
        .ok_or_else(|| format!("the pages {range} hold more than can be shown; read fewer pages"))?;
    Ok(PdfPages { page_count, document })
}
