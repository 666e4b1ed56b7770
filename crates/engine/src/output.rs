//! Output of the agent: one ordered channel for everything it emits.

use std::io::{ErrorKind, Write};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use quipu_message::stream::TurnResult;
use quipu_message::system::System;
use quipu_message::{Entry, Envelope, Line, Maybe, SessionId, Spelling};
use serde_json::Number;
use tokio_util::sync::CancellationToken;

use crate::clock::{new_id, now};
use crate::options::Format;

/// Emits lines, in the order of the calls.
#[derive(Debug, Clone)]
pub(crate) struct OutputStream {
    messages: mpsc::Sender<OutputMessage>,
    session_id: Arc<Mutex<SessionId>>,
}

#[derive(Debug)]
enum OutputMessage {
    Entry(Box<Entry>),
    Entries(Vec<Entry>),
    /// A warning for stderr, in every format.
    Warning(String),
    Close,
}

/// What a printer has printed, once it is done.
#[derive(Debug, Default)]
pub(crate) struct PrintSummary {
    /// The last `result` line.
    pub(crate) last_result: Option<TurnResult>,
    /// Why output could not be written; `None` also if the reader closed the pipe.
    pub(crate) write_error: Option<std::io::Error>,
}

/// The thread that prints emitted lines until the stream is closed.
#[derive(Debug)]
pub(crate) struct PrinterThread {
    thread: Option<JoinHandle<PrintSummary>>,
}

impl OutputStream {
    /// Starts a thread that prints to `out` in the given format. With text output, notes for users go
    /// to `err`. When the reader of `out` has closed it, `reader_gone` is cancelled.
    pub(crate) fn start(
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
        format: Format,
        verbose: bool,
        session: SessionId,
        reader_gone: CancellationToken,
    ) -> std::io::Result<(Self, PrinterThread)> {
        let (lines, said) = mpsc::channel();
        let print = move || {
            let mut press = Printer {
                out,
                err,
                format,
                verbose,
                entries: Vec::new(),
                last_result: None,
                write_error: None,
                reader_gone,
            };
            for said in said {
                match said {
                    OutputMessage::Entry(entry) => press.print_entry(*entry),
                    OutputMessage::Entries(entries) => entries.into_iter().for_each(|entry| press.print_entry(entry)),
                    OutputMessage::Warning(text) => press.print_warning(&text),
                    OutputMessage::Close => break,
                }
            }
            press.finish()
        };
        let thread = std::thread::Builder::new().name("quipu-output".to_owned()).spawn(print)?;
        Ok((
            Self { messages: lines, session_id: Arc::new(Mutex::new(session)) },
            PrinterThread { thread: Some(thread) },
        ))
    }

    /// Emits an entry.
    pub(crate) fn emit(&self, entry: Entry) {
        // The receiver is dropped only when the process ends.
        let _ = self.messages.send(OutputMessage::Entry(Box::new(entry)));
    }

    /// Emits entries with nothing between them.
    pub(crate) fn emit_all(&self, entries: Vec<Entry>) {
        let _ = self.messages.send(OutputMessage::Entries(entries));
    }

    /// Prints a warning on stderr, in every format.
    pub(crate) fn warn_on_stderr(&self, text: String) {
        let _ = self.messages.send(OutputMessage::Warning(text));
    }

    /// Ends the output; the printer finishes.
    pub(crate) fn close(&self) {
        let _ = self.messages.send(OutputMessage::Close);
    }

    /// The envelope of a stream line: the session and a new id.
    pub(crate) fn envelope(&self) -> Envelope {
        Envelope {
            session_id: Maybe::Value(self.session_id()),
            uuid: Maybe::Value(new_id()),
            spelling: Spelling::STREAM,
            ..Envelope::default()
        }
    }

    /// As [`envelope`](Self::envelope), with the current time, for `user` and `assistant` lines.
    pub(crate) fn timestamped_envelope(&self) -> Envelope {
        Envelope { timestamp: Maybe::Value(now()), parent_tool_use_id: Maybe::Null, ..self.envelope() }
    }

    /// Id of the session in envelopes.
    pub(crate) fn session_id(&self) -> SessionId {
        self.session_id.lock().clone()
    }

    /// Changes the session id in later envelopes.
    pub(crate) fn set_session_id(&self, id: SessionId) {
        *self.session_id.lock() = id;
    }
}

impl PrinterThread {
    /// Waits until everything is printed.
    pub(crate) fn finish(mut self) -> PrintSummary {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// Prints entries in a format.
struct Printer<W, E> {
    out: W,
    err: E,
    format: Format,
    verbose: bool,
    entries: Vec<Entry>,
    last_result: Option<TurnResult>,
    write_error: Option<std::io::Error>,
    reader_gone: CancellationToken,
}

impl<W: Write, E: Write> Printer<W, E> {
    fn print_entry(&mut self, entry: Entry) {
        if let Entry::Result(result) = &entry {
            self.last_result = Some((**result).clone());
        }
        match self.format {
            Format::StreamJson => {
                if let Ok(line) = Line::from_serialize(&entry) {
                    self.print_json(line.as_str());
                }
            }
            Format::Json if self.verbose => self.entries.push(entry),
            Format::Json | Format::Text => {
                if let Some(text) = warning_text(&entry) {
                    self.print_warning(&text);
                }
            }
        }
    }

    fn print_warning(&mut self, text: &str) {
        // A reader that closed stderr does not need it.
        let _ = writeln!(self.err, "warning: {text}");
    }

    fn finish(mut self) -> PrintSummary {
        match self.format {
            Format::StreamJson => {}
            Format::Json if self.verbose => {
                let text = serde_json::to_string(&self.entries).unwrap_or_default();
                self.print_json(&text);
            }
            Format::Json => {
                if let Some(Ok(line)) = self.last_result.as_ref().map(Line::from_serialize) {
                    self.print_json(line.as_str());
                }
            }
            Format::Text => {
                if let Some(text) = self.last_result.as_ref().map(result_text) {
                    self.print(&text);
                }
            }
        }
        PrintSummary { last_result: self.last_result, write_error: self.write_error }
    }

    /// Prints a line of JSON. Some readers take U+2028 and U+2029 for line ends, so they are
    /// escaped; JSON has them only inside strings.
    fn print_json(&mut self, text: &str) {
        match text.contains(['\u{2028}', '\u{2029}']) {
            true => self.print(&text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")),
            false => self.print(text),
        }
    }

    fn print(&mut self, text: &str) {
        // With one write, so that the reader is woken once.
        let written = self.out.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.reader_gone.cancel();
            if error.kind() != ErrorKind::BrokenPipe {
                self.write_error.get_or_insert(error);
            }
        }
    }
}

/// The text of an entry that users of text output should see; `None` for other entries.
fn warning_text(entry: &Entry) -> Option<String> {
    let Entry::System(system) = entry else { return None };
    match &**system {
        System::Informational(line) if line.level.text() == Some("warning") => line.content.text().map(str::to_owned),
        System::ApiRetry(line) => {
            let of = |count: &Maybe<u64>| count.get().copied().unwrap_or_default();
            let delay = line.retry_delay_ms.get().and_then(Number::as_f64).unwrap_or_default() / 1000.0;
            let why = match (line.error_status.get(), line.error.text().unwrap_or_default()) {
                (Some(status), why) => format!("{status} {why}"),
                (None, why) => why.to_owned(),
            };
            let (attempt, most) = (of(&line.attempt), of(&line.max_retries));
            Some(format!("the API did not answer ({why}); trying again in {delay:.1} s, {attempt} of {most}"))
        }
        _ => None,
    }
}

/// The text of a result for text output.
fn result_text(result: &TurnResult) -> String {
    match (result.result.text(), result.errors.get()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(errors)) => {
            // Scripts search for this text.
            format!("Error: {}", errors.extract_text().replace("Reached maximum number of turns", "Reached max turns"))
        }
        (None, None) => format!("Error: {}", result.subtype),
    }
}
