//! The files that settings are read from and written to.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::SettingSource;
use crate::json_file::edit_object;
use crate::text_file;

/// The folders whose settings files a session reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingsFolders<'a> {
    /// The user's folder of settings.
    pub config: &'a Path,
    /// Folder whose `.claude` has the project's settings.
    pub project: &'a Path,
    /// Folders whose `.claude` has local settings, lowest precedence first. New settings are written to
    /// the last.
    pub local: &'a [ProjectFolder],
}

/// A folder with settings of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Whether its settings may grant permissions.
    pub is_trusted: bool,
}

/// A settings file, which need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingsFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The folder whose `.claude` it is in: links must not lead out of it. `None` for the user's file.
    pub folder: Option<PathBuf>,
}

impl SettingsFolders<'_> {
    /// Returns the files of a source, lowest precedence first; empty for sources that are not files.
    pub(crate) fn files(self, source: SettingSource) -> Vec<SettingsFile> {
        let of_project = |folder: &Path, name: &str| SettingsFile {
            path: folder.join(".claude").join(name),
            folder: Some(folder.to_owned()),
        };
        match source {
            SettingSource::User => vec![SettingsFile { path: self.config.join("settings.json"), folder: None }],
            SettingSource::Project => vec![of_project(self.project, "settings.json")],
            SettingSource::Local => {
                self.local.iter().map(|folder| of_project(&folder.path, "settings.local.json")).collect()
            }
            SettingSource::Flag | SettingSource::Managed => Vec::new(),
        }
    }
}

impl SettingsFile {
    /// Reads the file.
    pub(crate) fn read(&self) -> io::Result<String> {
        text_file::read(&self.path, self.folder.as_deref(), text_file::MAX_BYTES)
    }

    /// Changes the file as [`edit_object`] does.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
        edit_object(&self.path, self.folder.as_deref(), change)
    }
}
