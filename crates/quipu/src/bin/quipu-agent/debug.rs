//! `--debug`: events and finished spans, a line each, on stderr or in a file.

use std::fs::OpenOptions;
use std::io::Write;

use quipu_engine::EngineError;
use tracing::Level;

use crate::flags::DebugFlags;
use crate::log_subscriber::LogSubscriber;

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
    let filter = CategoryFilter::parse(flags.debug.as_deref().unwrap_or_default());
    let shows = move |category: &str, level| level <= Level::DEBUG && filter.includes(category);
    LogSubscriber::install(shows, true, out);
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
