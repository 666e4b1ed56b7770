//! The `tracing` subscriber of both commands: one line for each event, and one for each span
//! when it ends, with the time it took.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Prefix of the targets that are shown. Those of other crates are not: they may contain keys.
pub(crate) const TARGET_PREFIX: &str = "quipu::";

/// Writes events and finished spans as lines.
pub(crate) struct LogSubscriber<F> {
    /// Whether a category (a target without its prefix) is shown at a level.
    shows: F,
    /// Whether each line begins with the time of day.
    has_times: bool,
    out: Mutex<Box<dyn Write + Send>>,
    next_id: AtomicU64,
    spans: Mutex<HashMap<u64, OpenSpan>>,
}

struct OpenSpan {
    line: LogLine,
    started_at: Instant,
    /// Handles on the span; it ends when the last is dropped.
    handles: usize,
}

impl<F: Fn(&str, Level) -> bool + Send + Sync + 'static> LogSubscriber<F> {
    /// Shows events and spans from now on, in the whole process.
    pub(crate) fn install(shows: F, has_times: bool, out: Box<dyn Write + Send>) {
        let (next_id, spans) = (AtomicU64::new(1), Mutex::default());
        let subscriber = Self { shows, has_times, out: Mutex::new(out), next_id, spans };
        // Fails only if a log is installed already, and this is called once.
        let _ = tracing::subscriber::set_global_default(subscriber);
    }

    #[expect(clippy::disallowed_methods, reason = "the time of an event")]
    fn write(&self, line: &LogLine, end: &str) {
        let time = if self.has_times { format!("{:.3} ", jiff::Timestamp::now()) } else { String::new() };
        // Control characters in the text could start a line or move the cursor.
        let text: String = line.0.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = format!("{time}{}{end}\n", quipu_render::sanitize(&text));
        // A log that cannot be written does not stop the program.
        let _ = self.out.lock().write_all(text.as_bytes());
    }
}

impl<F: Fn(&str, Level) -> bool + Send + Sync + 'static> Subscriber for LogSubscriber<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let category = metadata.target().strip_prefix(TARGET_PREFIX);
        category.is_some_and(|category| (self.shows)(category, *metadata.level()))
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine::new(event.metadata());
        event.record(&mut line);
        self.write(&line, "");
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut line = LogLine::new(attributes.metadata());
        let _ = write!(line.0, " {}", attributes.metadata().name());
        attributes.record(&mut line);
        self.spans.lock().insert(id, OpenSpan { line, started_at: Instant::now(), handles: 1 });
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        if let Some(span) = self.spans.lock().get_mut(&id.into_u64()) {
            values.record(&mut span.line);
        }
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(span) = self.spans.lock().get_mut(&id.into_u64()) {
            span.handles += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut spans = self.spans.lock();
        let Some(span) = spans.get_mut(&id.into_u64()) else { return false };
        span.handles -= 1;
        if span.handles > 0 {
            return false;
        }
        let span = spans.remove(&id.into_u64());
        drop(spans);
        if let Some(span) = span {
            self.write(&span.line, &format!(" took {:.1} ms", span.started_at.elapsed().as_secs_f64() * 1e3));
        }
        true
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// One line of the log: category, message or name, fields.
struct LogLine(String);

impl LogLine {
    fn new(metadata: &Metadata<'_>) -> Self {
        Self(format!("[{}]", metadata.target().trim_start_matches(TARGET_PREFIX)))
    }
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
