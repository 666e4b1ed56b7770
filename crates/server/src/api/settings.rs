//! `/api/settings`: language, theme and folders in `config.toml`, and the user's own prices.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::State;
use quipu_conversation::price::Prices;
use quipu_transcript::error_chain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml_edit::{Array, DocumentMut, value};

use crate::app::App;
use crate::config_file::{read_document, write_settings};
use crate::error::ApiError;
use crate::json::{Json, JsonBody};

/// Name of the file with the user's own prices, beside `config.toml`.
const PRICES_FILE: &str = "prices.toml";

/// Settings of the page.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Settings {
    #[serde(flatten)]
    page: PageSettings,
    /// Folders whose sessions are shown, unless `--claude-dir` or `CLAUDE_CONFIG_DIR` name others;
    /// the usual ones if empty.
    claude_dirs: Vec<String>,
    /// Path of the settings file; `None` without a home folder.
    config: Option<String>,
    /// Path of the user's own prices, which need not exist.
    prices: Option<String>,
    /// Text of that file; empty if it does not exist.
    prices_text: String,
}

/// What the page may change. Fields that are missing stay as they are.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SettingsChanges {
    #[serde(flatten)]
    page: PageSettings,
    /// Folders whose sessions are shown from the next start on; the usual ones if empty.
    claude_dirs: Option<Vec<String>>,
    /// The user's own prices, from the next start on; the file is removed if it is empty.
    prices_text: Option<String>,
}

/// The settings in `config.toml`.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PageSettings {
    /// `en` or `zh`; that of the browser if `None`.
    pub(crate) language: Option<String>,
    /// `light` or `dark`; that of the system if `None`.
    pub(crate) theme: Option<String>,
}

pub(crate) async fn read(State(app): State<Arc<App>>) -> Result<Json, ApiError> {
    app.blocking(|app| Ok(Json::new(&Settings::load(app)?))).await
}

pub(crate) async fn write(
    State(app): State<Arc<App>>,
    JsonBody(changes): JsonBody<SettingsChanges>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let Some(path) = &app.config_file else {
            return Err(ApiError::internal("there is no home folder for settings"));
        };
        let mut document = read_document(path)?;
        changes.page.apply_to(&mut document)?;
        match changes.claude_dirs.as_deref() {
            None => {}
            Some([]) => _ = document.remove("claude_dirs"),
            Some(dirs) => document["claude_dirs"] = value(dirs.iter().collect::<Array>()),
        }
        if let Some(prices) = &changes.prices_text {
            write_prices(&path.with_file_name(PRICES_FILE), prices)?;
        }
        write_settings(path, &document.to_string())?;
        Ok(Json::new(&Settings::load(app)?))
    })
    .await
}

/// Writes the user's own prices. Fails if they are not valid.
fn write_prices(path: &Path, text: &str) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(ApiError::internal(format!("cannot remove {}: {error}", path.display())))
            }
            _ => Ok(()),
        };
    }
    Prices::with_overrides(text, PRICES_FILE).map_err(|error| {
        ApiError::bad_request("settings.prices", error_chain(&error)).with_hint("docs/prices.md describes the format")
    })?;
    Ok(write_settings(path, text)?)
}

fn configured_dirs(config: &Path) -> Result<Vec<String>, ApiError> {
    let document = read_document(config)?;
    let dirs = document.get("claude_dirs").and_then(|item| item.as_array());
    Ok(dirs.into_iter().flatten().filter_map(|dir| dir.as_str().map(str::to_owned)).collect())
}

impl Settings {
    fn load(app: &App) -> Result<Self, ApiError> {
        let prices = app.config_file.as_ref().map(|path| path.with_file_name(PRICES_FILE));
        let show = |path: &PathBuf| path.display().to_string();
        Ok(Self {
            page: PageSettings::load(app)?,
            claude_dirs: app.config_file.as_deref().map(configured_dirs).transpose()?.unwrap_or_default(),
            config: app.config_file.as_ref().map(show),
            prices_text: prices.as_ref().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default(),
            prices: prices.as_ref().map(show),
        })
    }
}

impl PageSettings {
    /// Reads the settings; all `None` without a file.
    pub(crate) fn load(app: &App) -> Result<Self, ApiError> {
        let Some(path) = &app.config_file else { return Ok(Self::default()) };
        let document = read_document(path)?;
        let text = |name: &str| document.get(name).and_then(|item| item.as_str()).map(str::to_owned);
        Ok(Self { language: text("language"), theme: text("theme") })
    }

    /// Changes the settings that are not `None`.
    fn apply_to(&self, document: &mut DocumentMut) -> Result<(), ApiError> {
        let choices = [("language", &self.language, ["en", "zh"]), ("theme", &self.theme, ["light", "dark"])];
        for (name, choice, allowed) in choices {
            match choice.as_deref() {
                None => {}
                Some("" | "auto" | "system") => _ = document.remove(name),
                Some(text) if allowed.contains(&text) => document[name] = value(text),
                Some(other) => {
                    return Err(ApiError::bad_request("settings.value", format!("{name} cannot be '{other}'"))
                        .with_hint(format!("use {} or {}, or auto", allowed[0], allowed[1])));
                }
            }
        }
        Ok(())
    }
}
