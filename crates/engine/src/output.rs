//! The one way out: everything the agent says goes through one ordered channel.

use std::io::{ErrorKind, Write};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use quipu_message::stream::TurnResult;
use quipu_message::system::System;
use quipu_message::{Entry, Envelope, Line, Maybe, SessionId, Spelling};
use serde_json::Number;
use tokio_util::sync::CancellationToken;

use crate::clock::{fresh, now};
use crate::options::Format;

/// Says lines, in the order of the calls.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    lines: mpsc::Sender<Said>,
    session: Arc<Mutex<SessionId>>,
}

#[derive(Debug)]
enum Said {
    Line(Box<Entry>),
    Lines(Vec<Entry>),
    /// For whoever reads stderr, whatever the format.
    Note(String),
    End,
}

/// What was printed in the end.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    /// The last result.
    pub(crate) last: Option<TurnResult>,
    /// Why not all could be printed; a reader who left is no reason.
    pub(crate) failed: Option<std::io::Error>,
}

/// Prints what is said, until the end is.
#[derive(Debug)]
pub(crate) struct Printer {
    thread: Option<JoinHandle<Printed>>,
}

impl Output {
    /// Prints to `out` in the given form; what a form for people leaves out and they
    /// should know goes to `err`. When nobody reads any more, `gone` is told.
    pub(crate) fn to(
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
        format: Format,
        verbose: bool,
        session: SessionId,
        gone: CancellationToken,
    ) -> std::io::Result<(Self, Printer)> {
        let (lines, said) = mpsc::channel();
        let print = move || {
            let mut press = Press { out, err, format, verbose, all: Vec::new(), last: None, failed: None, gone };
            for said in said {
                match said {
                    Said::Line(entry) => press.take(*entry),
                    Said::Lines(entries) => entries.into_iter().for_each(|entry| press.take(entry)),
                    Said::Note(text) => press.note(&text),
                    Said::End => break,
                }
            }
            press.finish()
        };
        let thread = std::thread::Builder::new().name("quipu-output".to_owned()).spawn(print)?;
        Ok((Self { lines, session: Arc::new(Mutex::new(session)) }, Printer { thread: Some(thread) }))
    }

    /// Says a line as it is.
    pub(crate) fn say(&self, entry: Entry) {
        // Nobody listens only while the process ends.
        let _ = self.lines.send(Said::Line(Box::new(entry)));
    }

    /// Says lines as they are, with nothing between them.
    pub(crate) fn say_all(&self, entries: Vec<Entry>) {
        let _ = self.lines.send(Said::Lines(entries));
    }

    /// Says a warning on stderr, whatever the format.
    pub(crate) fn note(&self, text: String) {
        let _ = self.lines.send(Said::Note(text));
    }

    /// Nothing more will be said.
    pub(crate) fn end(&self) {
        let _ = self.lines.send(Said::End);
    }

    /// The envelope of a live line: session and a fresh id.
    pub(crate) fn envelope(&self) -> Envelope {
        Envelope {
            session_id: Maybe::Value(self.session()),
            uuid: Maybe::Value(fresh()),
            spelling: Spelling::STREAM,
            ..Envelope::default()
        }
    }

    /// The same with the time, as `user` and `assistant` lines have it.
    pub(crate) fn stamped(&self) -> Envelope {
        Envelope { timestamp: Maybe::Value(now()), parent_tool_use_id: Maybe::Null, ..self.envelope() }
    }

    /// The session that lines name.
    pub(crate) fn session(&self) -> SessionId {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Names another session from now on.
    pub(crate) fn set_session(&self, id: SessionId) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }
}

impl Printer {
    /// Waits until all is printed.
    pub(crate) fn finish(mut self) -> Printed {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// Brings lines into the form that was asked for.
struct Press<W, E> {
    out: W,
    err: E,
    format: Format,
    verbose: bool,
    all: Vec<Entry>,
    last: Option<TurnResult>,
    failed: Option<std::io::Error>,
    gone: CancellationToken,
}

impl<W: Write, E: Write> Press<W, E> {
    fn take(&mut self, entry: Entry) {
        if let Entry::Result(result) = &entry {
            self.last = Some((**result).clone());
        }
        match self.format {
            Format::StreamJson => {
                if let Ok(line) = Line::of(&entry) {
                    self.print_json(line.as_str());
                }
            }
            Format::Json if self.verbose => self.all.push(entry),
            Format::Json | Format::Text => {
                if let Some(text) = warning(&entry) {
                    self.note(&text);
                }
            }
        }
    }

    fn note(&mut self, text: &str) {
        // Who does not read it does not need it.
        let _ = writeln!(self.err, "warning: {text}");
    }

    fn finish(mut self) -> Printed {
        match self.format {
            Format::StreamJson => {}
            Format::Json if self.verbose => {
                let text = serde_json::to_string(&self.all).unwrap_or_default();
                self.print_json(&text);
            }
            Format::Json => {
                if let Some(Ok(line)) = self.last.as_ref().map(Line::of) {
                    self.print_json(line.as_str());
                }
            }
            Format::Text => {
                if let Some(text) = self.last.as_ref().map(words) {
                    self.print(&text);
                }
            }
        }
        Printed { last: self.last, failed: self.failed }
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
        let written = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.gone.cancel();
            if error.kind() != ErrorKind::BrokenPipe {
                self.failed.get_or_insert(error);
            }
        }
    }
}

/// What people should know before there is a result.
fn warning(entry: &Entry) -> Option<String> {
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

/// What a person reads of a result.
fn words(result: &TurnResult) -> String {
    match (result.result.text(), result.errors.get()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(errors)) => {
            // Scripts look for these words.
            format!("Error: {}", errors.words().replace("Reached maximum number of turns", "Reached max turns"))
        }
        (None, None) => format!("Error: {}", result.subtype),
    }
}
