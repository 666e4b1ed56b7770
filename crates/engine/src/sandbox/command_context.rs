//! The state of a workspace that the sandbox needs for one command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::guarded_paths::config_paths::ConfigPaths;
use crate::path;

/// The values that decide what a command in the sandbox may do.
#[derive(Debug, Clone)]
pub(crate) struct CommandContext<'a> {
    /// Folder the command starts in.
    pub(crate) cwd: PathBuf,
    /// Folders of the session, resolved; the first is the one it works in.
    pub(crate) folders: Vec<PathBuf>,
    /// Folders whose `.claude` has settings of the session, resolved.
    pub(crate) settings_folders: &'a [PathBuf],
    /// Home folder of the user; `None` if `HOME` is not set.
    pub(crate) home: Option<PathBuf>,
    /// Environment of the session's commands.
    pub(crate) env: &'a BTreeMap<OsString, OsString>,
    /// Paths that decide which programs run later.
    pub(crate) config_paths: ConfigPaths,
}

impl CommandContext<'_> {
    /// Makes a path of the settings absolute ([`path::absolute`]). A relative one starts in the
    /// session's folder, wherever the command does.
    pub(super) fn absolute(&self, path: &str) -> PathBuf {
        path::absolute(path, self.home.as_deref(), self.folders.first().unwrap_or(&self.cwd))
    }

    /// Returns the home folder with its links resolved.
    pub(super) fn resolved_home(&self) -> Option<PathBuf> {
        self.home.clone().map(|home| path::resolve(&home).unwrap_or(home))
    }
}
