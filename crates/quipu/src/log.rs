//! The log of the command on stderr, for `--verbose` and `QUIPU_LOG`.
//!
//! One line for each event, and one for each span when it ends, with the time it took.
//! Only our own targets (`quipu::…`) are shown: those of other crates may contain keys.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Prefix of the targets that are shown.
const TARGET_PREFIX: &str = "quipu::";

/// Shows events and spans from now on: as `QUIPU_LOG` says, else at level debug with
/// `--verbose`, else none.
pub(crate) fn install(verbose: bool) {
    let setting = std::env::var("QUIPU_LOG").ok().filter(|setting| !setting.trim().is_empty());
    let filter = match setting {
        Some(setting) => LogFilter::parse(&setting),
        None if verbose => LogFilter { default: LevelFilter::DEBUG, by_target: Vec::new() },
        None => return,
    };
    // Fails only if a log is installed already, and this is called once.
    let _ = tracing::subscriber::set_global_default(StderrLog {
        filter,
        next_id: AtomicU64::new(1),
        spans: Mutex::default(),
    });
}

/// Lowest level that is shown, in general and for single targets.
#[derive(Debug, PartialEq)]
struct LogFilter {
    default: LevelFilter,
    /// Target without its prefix, such as `index`, and its level. The last entry wins.
    by_target: Vec<(String, LevelFilter)>,
}

impl LogFilter {
    /// Reads `debug`, `index=trace` or a list of both with commas. An unknown level counts
    /// as `debug`: a typing error shows too much rather than nothing.
    fn parse(text: &str) -> Self {
        let mut filter = Self { default: LevelFilter::OFF, by_target: Vec::new() };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let level = |text: &str| text.trim().parse().unwrap_or(LevelFilter::DEBUG);
            match part.split_once('=') {
                Some((target, text)) => {
                    let target = target.trim().trim_start_matches(TARGET_PREFIX).to_owned();
                    filter.by_target.push((target, level(text)));
                }
                None => filter.default = level(part),
            }
        }
        filter
    }

    fn shows(&self, target: &str, level: tracing::Level) -> bool {
        let Some(name) = target.strip_prefix(TARGET_PREFIX) else { return false };
        let own = self.by_target.iter().rev().find(|(target, _)| target == name).map(|(_, level)| *level);
        level <= own.unwrap_or(self.default)
    }
}

/// Writes events and finished spans to stderr.
struct StderrLog {
    filter: LogFilter,
    next_id: AtomicU64,
    spans: Mutex<HashMap<u64, OpenSpan>>,
}

struct OpenSpan {
    line: LogLine,
    started: Instant,
    /// Handles on the span; it ends when the last is dropped.
    handles: usize,
}

impl Subscriber for StderrLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.filter.shows(metadata.target(), *metadata.level())
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = LogLine::new(event.metadata());
        event.record(&mut line);
        line.write("");
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut line = LogLine::new(attributes.metadata());
        let _ = write!(line.0, " {}", attributes.metadata().name());
        attributes.record(&mut line);
        self.spans.lock().insert(id, OpenSpan { line, started: Instant::now(), handles: 1 });
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
            span.line.write(&format!(" took {:.1} ms", span.started.elapsed().as_secs_f64() * 1e3));
        }
        true
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// One line of the log: target, message, fields.
struct LogLine(String);

impl LogLine {
    fn new(metadata: &Metadata<'_>) -> Self {
        Self(format!("[{}]", metadata.target().trim_start_matches(TARGET_PREFIX)))
    }

    fn write(&self, end: &str) {
        // A log that cannot be written is no reason to stop.
        let _ = writeln!(anstream::stderr(), "{}{end}", quipu_render::sanitize(&self.0));
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

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_has_a_default_and_levels_for_targets() {
        let shows = |filter: &str, target: &str, level| LogFilter::parse(filter).shows(target, level);
        assert!(shows("debug", "quipu::index", Level::DEBUG));
        assert!(!shows("debug", "quipu::index", Level::TRACE));
        assert!(!shows("trace", "hyper::client", Level::ERROR));
        assert!(shows("index=trace", "quipu::index", Level::TRACE));
        assert!(!shows("index=trace", "quipu::api", Level::ERROR));
        assert!(!shows("debug, quipu::index=off", "quipu::index", Level::ERROR));
        assert!(shows("everything", "quipu::api", Level::DEBUG));
    }
}
