//! `/api/settings`: language and theme of the page, in `config.toml`.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, value};

use crate::app::App;
use crate::error::ApiError;
use crate::json::{Json, read_body};

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

pub(crate) async fn write(State(app): State<Arc<App>>, body: Bytes) -> Result<Json, ApiError> {
    let changes: PageSettings = read_body(&body)?;
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
        write_file(path, &document.to_string())
            .map_err(|error| ApiError::internal(format!("cannot write {}: {error}", path.display())))?;
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

fn read_document(path: &Path) -> Result<DocumentMut, ApiError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(ApiError::internal(format!("cannot read {}: {error}", path.display()))),
    };
    text.parse().map_err(|error: toml_edit::TomlError| {
        ApiError::internal(format!("{}: {}", path.display(), error.message())).with_hint("correct the file")
    })
}

/// Writes a file with mode 0600, whole or not at all.
fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}
