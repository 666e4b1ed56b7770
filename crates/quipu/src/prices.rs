//! Loads the price table, bundled prices and the user's own, for both commands.

use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use etcetera::base_strategy::{BaseStrategy, Xdg};
use quipu_conversation::price::Prices;

/// Bundled prices, overridden by `<config>/quipu/prices.toml` if it exists. Fails if that file
/// cannot be read or parsed.
pub(crate) fn load() -> Result<Prices> {
    let Some(path) = prices_path() else { return Ok(Prices::bundled()) };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Prices::with_overrides(&text, &path.display().to_string())?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Prices::bundled()),
        Err(error) => Err(error).with_context(|| format!("cannot read prices from {}", path.display())),
    }
}

/// Path of the user's own prices; `None` without a home folder.
pub(crate) fn prices_path() -> Option<PathBuf> {
    Some(Xdg::new().ok()?.config_dir().join("quipu/prices.toml"))
}
