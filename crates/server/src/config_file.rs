//! The settings of quipu, `config.toml`, changed with its comments kept.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use quipu_transcript::error_chain;
use toml_edit::{Array, DocumentMut, Item};

use crate::error::ApiError;

/// The setting with the folders that are trusted.
pub(crate) const TRUSTED: &str = "trusted";

/// Why the settings of quipu could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read or written.
    #[error("cannot read or write {}", path.display())]
    File {
        /// The file of settings.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is not valid TOML, or a setting has another type.
    #[error("{}: {message}", path.display())]
    Invalid {
        /// The file of settings.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The name of a folder cannot be written to the file.
    #[error("the name of {} is not Unicode", .0.display())]
    NotUnicode(PathBuf),
}

/// Adds a folder to those that the user trusts; comments of the file are kept.
pub fn trust_folder(config: &Path, folder: &Path) -> Result<(), ConfigError> {
    let name = folder.to_str().ok_or_else(|| ConfigError::NotUnicode(folder.to_owned()))?;
    let mut document = read_document(config)?;
    let list = document.entry(TRUSTED).or_insert_with(|| Item::Value(Array::new().into()));
    let Some(list) = list.as_array_mut() else {
        return Err(ConfigError::Invalid { path: config.to_owned(), message: format!("`{TRUSTED}` is not a list") });
    };
    list.push(name);
    write_settings(config, &document.to_string())
}

/// Reads the settings; empty without a file. Fails if the file is not valid.
pub(crate) fn read_document(path: &Path) -> Result<DocumentMut, ConfigError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.map_err(|source| ConfigError::File { path: path.to_owned(), source })?,
    };
    text.parse().map_err(|error: toml_edit::TomlError| ConfigError::Invalid {
        path: path.to_owned(),
        message: error.message().to_owned(),
    })
}

/// Writes a file of settings with mode 0600, whole or not at all.
pub(crate) fn write_settings(path: &Path, text: &str) -> Result<(), ConfigError> {
    let write = || {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map(drop).map_err(|failed| failed.error)
    };
    write().map_err(|source| ConfigError::File { path: path.to_owned(), source })
}

impl From<ConfigError> for ApiError {
    fn from(error: ConfigError) -> Self {
        let message = error_chain(&error);
        match error {
            ConfigError::File { .. } => Self::internal(message),
            ConfigError::Invalid { .. } => Self::internal(message).with_hint("correct the file"),
            ConfigError::NotUnicode(_) => Self::bad_request("folder.name", message),
        }
    }
}
