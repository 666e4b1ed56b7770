//! `--debug`: a log of events, one per line, on stderr or in a file.

use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use quipu_engine::EngineError;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::flags::DebugFlags;

/// Prefix of the targets of our own events. Events of other crates are not printed, because they may contain
/// keys.
const TARGET_PREFIX: &str = "quipu::";

/// Installs the log if a flag requests it.
pub(crate) fn install_log(flags: &DebugFlags) -> Result<(), EngineError> {
    if flags.debug.is_none() && flags.debug_file.is_none() && !flags.debug_to_stderr {
        return Ok(());
    }
    let out: Box<dyn Write + Send> = match &flags.debug_file {
        Some(path) => {
            let bad = |error| EngineError::InvalidFlag {
                flag: "--debug-file",
                reason: format!("{}: {error}", path.display()),
            };
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            folder.map_or(Ok(()), std::fs::create_dir_all).map_err(bad)?;
            let mut open = OpenOptions::new();
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut open, 0o600);
            Box::new(open.create(true).append(true).open(path).map_err(bad)?)
        }
        None => Box::new(std::io::stderr()),
    };
    let log =
        DebugLog { filter: CategoryFilter::parse(flags.debug.as_deref().unwrap_or_default()), out: Mutex::new(out) };
    // It is set only here.
    let _ = tracing::subscriber::set_global_default(log);
    Ok(())
}

/// The categories that are printed.
#[derive(Debug, PartialEq, Eq)]
struct CategoryFilter {
    /// Only these categories; all if empty.
    included: Vec<String>,
    /// Never these categories.
    excluded: Vec<String>,
}

impl CategoryFilter {
    /// Parses `api,hooks` or `!mcp,!sandbox`.
    fn parse(text: &str) -> Self {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let (without, only): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with('!'));
        let owned = |words: Vec<&str>| words.into_iter().map(|word| word.trim_start_matches('!').to_owned()).collect();
        Self { included: owned(only), excluded: owned(without) }
    }

    fn includes(&self, category: &str) -> bool {
        let named = |words: &[String]| words.iter().any(|word| word == category);
        (self.included.is_empty() || named(&self.included)) && !named(&self.excluded)
    }
}

/// Writes each event as one line.
struct DebugLog {
    filter: CategoryFilter,
    out: Mutex<Box<dyn Write + Send>>,
}

impl Subscriber for DebugLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().strip_prefix(TARGET_PREFIX).is_some_and(|category| self.filter.includes(category))
    }

    fn event(&self, event: &Event<'_>) {
        let category = event.metadata().target().trim_start_matches(TARGET_PREFIX);
        let mut line = LogLine(format!("{:.3} [{category}]", jiff::Timestamp::now()));
        event.record(&mut line);
        line.0.push('\n');
        // A log that cannot be written does not stop the agent.
        let _ = self.out.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.0.as_bytes());
    }

    // Spans are not used.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A line of the log: the message, then the fields.
struct LogLine(String);

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = match field.name() {
            "message" => format!("{value:?}"),
            name => format!("{name}={value:?}"),
        };
        // Control characters in the text could start a line or move the cursor.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = write!(self.0, " {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_categories_or_leaves_some_out() {
        let shown = |text: &str| {
            let filter = CategoryFilter::parse(text);
            ["api", "hooks", "mcp"].into_iter().filter(|name| filter.includes(name)).collect::<Vec<_>>()
        };
        assert_eq!(shown(""), ["api", "hooks", "mcp"]);
        assert_eq!(shown("api, mcp"), ["api", "mcp"]);
        assert_eq!(shown("!api"), ["hooks", "mcp"]);
        assert_eq!(shown("api,hooks,!api"), ["hooks"]);
    }
}
