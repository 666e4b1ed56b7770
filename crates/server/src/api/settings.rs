//! `/api/settings`: language and theme of the page, in `config.toml`.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml_edit::value;

use crate::app::App;
use crate::config_file::{read_document, write_document};
use crate::error::ApiError;
use crate::json::{Json, JsonBody};

/// Settings of the page.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Settings {
    #[serde(flatten)]
    page: PageSettings,
    /// Folders whose sessions are shown; `--claude-dir` and `CLAUDE_CONFIG_DIR` name others.
    claude_dirs: Vec<String>,
    /// Path of the settings file; `None` without a home folder.
    config: Option<String>,
    /// Path of the user's own prices, which need not exist.
    prices: Option<String>,
}

/// What the page may change.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PageSettings {
    /// `en` or `zh`; that of the browser if `None`.
    pub(crate) language: Option<String>,
    /// `light` or `dark`; that of the system if `None`.
    pub(crate) theme: Option<String>,
}

pub(crate) async fn read(State(app): State<Arc<App>>) -> Result<Json, ApiError> {
    app.blocking(|app| {
        Ok(Json::new(&Settings {
            page: PageSettings::load(app)?,
            claude_dirs: app.claude_dirs.iter().map(|dir| dir.display().to_string()).collect(),
            config: app.config_file.as_ref().map(|path| path.display().to_string()),
            prices: app.config_file.as_ref().map(|path| path.with_file_name("prices.toml").display().to_string()),
        }))
    })
    .await
}

pub(crate) async fn write(
    State(app): State<Arc<App>>,
    JsonBody(changes): JsonBody<PageSettings>,
) -> Result<Json, ApiError> {
    app.blocking(move |app| {
        let Some(path) = &app.config_file else {
            return Err(ApiError::internal("there is no home folder for settings"));
        };
        let mut document = read_document(path)?;
        let choices = [("language", &changes.language, ["en", "zh"]), ("theme", &changes.theme, ["light", "dark"])];
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
        write_document(path, &document)?;
        Ok(Json::new(&PageSettings::load(app)?))
    })
    .await
}

impl PageSettings {
    /// Reads the settings; all `None` without a file.
    pub(crate) fn load(app: &App) -> Result<Self, ApiError> {
        let Some(path) = &app.config_file else { return Ok(Self::default()) };
        let document = read_document(path)?;
        let text = |name: &str| document.get(name).and_then(|item| item.as_str()).map(str::to_owned);
        Ok(Self { language: text("language"), theme: text("theme") })
    }
}
