//! Whether the user trusts a folder.

use std::path::{Path, PathBuf};

use quipu_transcript::trust::{TrustSources, is_trusted_folder};
use toml_edit::{DocumentMut, Item, Value};

use crate::app::App;
use crate::config_file::{TRUSTED, read_document};
use crate::error::ApiError;

/// Whether the user trusts a folder: as `quipu-agent` decides it.
pub(crate) fn is_trusted(app: &App, folder: &Path) -> Result<bool, ApiError> {
    let document = match &app.config_file {
        Some(path) => read_document(path)?,
        None => DocumentMut::new(),
    };
    let listed = document.get(TRUSTED).and_then(Item::as_array).into_iter().flatten();
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
