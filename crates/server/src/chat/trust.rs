//! Whether the user trusts a folder, and how that is recorded.

use std::path::{Path, PathBuf};

use quipu_transcript::trust::{TrustSources, is_trusted_folder};
use toml_edit::{Array, DocumentMut, Item, Value};

use crate::app::App;
use crate::config_file::{read_document, write_settings};
use crate::error::ApiError;

/// The setting with the folders that are trusted.
const SETTING: &str = "trusted";

/// Whether the user trusts a folder: as `quipu-agent` decides it.
pub(crate) fn is_trusted(app: &App, folder: &Path) -> Result<bool, ApiError> {
    let document = match &app.config_file {
        Some(path) => read_document(path)?,
        None => DocumentMut::new(),
    };
    let listed = document.get(SETTING).and_then(Item::as_array).into_iter().flatten();
    let listed: Vec<PathBuf> = listed
        .filter_map(Value::as_str)
        .map(|text| match (text.strip_prefix("~/"), &app.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        })
        .collect();
    let config_dirs: Vec<&Path> = app.claude_dirs.iter().map(PathBuf::as_path).collect();
    let sources = TrustSources { listed: &listed, home: app.home.as_deref(), config_dirs: &config_dirs };
    Ok(is_trusted_folder(folder, &sources))
}

/// Records that the user trusts a folder, in the settings of quipu.
pub(crate) fn trust_folder(app: &App, folder: &Path) -> Result<(), ApiError> {
    let Some(path) = &app.config_file else {
        return Err(ApiError::internal("there is no home folder for settings"));
    };
    let Some(name) = folder.to_str() else {
        return Err(ApiError::bad_request("folder.name", "the name of the folder is not Unicode"));
    };
    let mut document = read_document(path)?;
    let list = document.entry(SETTING).or_insert_with(|| Item::Value(Array::new().into()));
    let Some(list) = list.as_array_mut() else {
        return Err(ApiError::internal(format!("{}: `{SETTING}` is not a list", path.display())));
    };
    list.push(name);
    write_settings(path, &document.to_string())
}
