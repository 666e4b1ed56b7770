//! Reads the settings of quipu itself, `<config>/quipu/config.toml`, for both commands.

use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;

use crate::prices;

/// Settings of quipu itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    /// Folders whose settings files may grant permissions; a leading `~` is the home folder.
    pub(crate) trusted: Vec<PathBuf>,
    /// Config folders of the agent whose sessions are shown; a leading `~` is the home folder.
    pub(crate) claude_dirs: Vec<PathBuf>,
    /// Defaults of chats.
    pub(crate) chat: ChatDefaults,
}

/// Agent, model and permission mode of a chat that names none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChatDefaults {
    /// Path or name of the agent.
    pub(crate) agent: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) permission_mode: Option<String>,
}

/// Reads the settings; `None` if there is no file. Fails if the file cannot be read or parsed.
pub(crate) fn load() -> Result<Option<Config>> {
    let Some(path) = config_path() else { return Ok(None) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let mut config: Config =
        toml::from_str(&text).map_err(|error| anyhow!("{}: {}", path.display(), error.message()))?;
    if let Some(home) = crate::environment::home_dir() {
        for folder in config.trusted.iter_mut().chain(&mut config.claude_dirs) {
            if let Ok(rest) = folder.strip_prefix("~") {
                *folder = home.join(rest);
            }
        }
    }
    Ok(Some(config))
}

/// Path of the settings file, in the folder of `prices.toml`; `None` without a home folder.
pub(crate) fn config_path() -> Option<PathBuf> {
    prices::prices_path().map(|path| path.with_file_name("config.toml"))
}
