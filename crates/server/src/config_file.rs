//! The settings of quipu, `config.toml`, changed with its comments kept.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use toml_edit::DocumentMut;

use crate::error::ApiError;

/// Reads the settings; empty without a file. Fails if the file is not valid.
pub(crate) fn read_document(path: &Path) -> Result<DocumentMut, ApiError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(ApiError::internal(format!("cannot read {}: {error}", path.display()))),
    };
    text.parse().map_err(|error: toml_edit::TomlError| {
        ApiError::internal(format!("{}: {}", path.display(), error.message())).with_hint("correct the file")
    })
}

/// Writes a file of settings with mode 0600, whole or not at all.
pub(crate) fn write_settings(path: &Path, text: &str) -> Result<(), ApiError> {
    let write = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map(drop).map_err(|failed| failed.error)
    };
    write().map_err(|error| ApiError::internal(format!("cannot write {}: {error}", path.display())))
}
