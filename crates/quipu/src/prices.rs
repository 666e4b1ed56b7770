//! The price table: the bundled one, with the user's own prices over it.

use std::path::PathBuf;

use anyhow::Result;
use quipu_conversation::price::Prices;

/// `<config>/quipu/prices.toml` over the bundled prices.
pub(crate) fn load() -> Result<Prices> {
    match path().map(|path| (std::fs::read_to_string(&path), path)) {
        Some((Ok(text), path)) => Ok(Prices::with_overrides(&text, &path.display().to_string())?),
        _ => Ok(Prices::bundled()),
    }
}

/// The file of the user's own prices; `None` without a home folder.
pub(crate) fn path() -> Option<PathBuf> {
    let home = || std::env::home_dir().map(|home| home.join(".config"));
    let config = std::env::var_os("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from).or_else(home)?;
    Some(config.join("quipu/prices.toml"))
}
