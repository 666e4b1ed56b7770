//! The log of the command on stderr, for `--verbose` and `QUIPU_LOG`.

use tracing::Level;
use tracing::level_filters::LevelFilter;

use crate::environment;
use crate::log_subscriber::{LogSubscriber, TARGET_PREFIX};

/// Shows events and spans from now on: as `QUIPU_LOG` says, else at level debug with
/// `--verbose`, else none.
pub(crate) fn install(verbose: bool) {
    let setting = environment::text_var("QUIPU_LOG").filter(|setting| !setting.trim().is_empty());
    let filter = match setting {
        Some(setting) => LogFilter::parse(&setting),
        None if verbose => LogFilter { default: LevelFilter::DEBUG, by_target: Vec::new() },
        None => return,
    };
    let shows = move |category: &str, level| filter.shows(category, level);
    LogSubscriber::install(shows, false, Box::new(std::io::stderr()));
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

    fn shows(&self, category: &str, level: Level) -> bool {
        let own = self.by_target.iter().rev().find(|(target, _)| target == category).map(|(_, level)| *level);
        level <= own.unwrap_or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_a_default_and_levels_for_targets() {
        let shows = |filter: &str, category: &str, level| LogFilter::parse(filter).shows(category, level);
        assert!(shows("debug", "index", Level::DEBUG));
        assert!(!shows("debug", "index", Level::TRACE));
        assert!(shows("index=trace", "index", Level::TRACE));
        assert!(!shows("index=trace", "api", Level::ERROR));
        assert!(!shows("debug, quipu::index=off", "index", Level::ERROR));
        assert!(shows("everything", "api", Level::DEBUG));
    }
}
