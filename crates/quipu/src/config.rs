//! quipu's own settings, in `<config>/quipu/config.toml`. Both commands read them here.

use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;

use crate::prices;

/// quipu's own settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    /// The folders whose settings may give permission; `~/` is filled in.
    pub(crate) trusted: Vec<PathBuf>,
}

/// Reads the settings; `None` if there is no file. A file that cannot be read, or holds
/// something else, is an error that names it.
pub(crate) fn load() -> Result<Option<Config>> {
    let Some(path) = config_path() else { return Ok(None) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let mut config: Config =
        toml::from_str(&text).map_err(|error| anyhow!("{}: {}", path.display(), error.message()))?;
    if let Some(home) = std::env::home_dir() {
        for folder in &mut config.trusted {
            if let Ok(rest) = folder.strip_prefix("~") {
                *folder = home.join(rest);
            }
        }
    }
    Ok(Some(config))
}

/// The file, beside the user's prices; `None` without a home folder.
pub(crate) fn config_path() -> Option<PathBuf> {
    prices::prices_path().map(|path| path.with_file_name("config.toml"))
}
