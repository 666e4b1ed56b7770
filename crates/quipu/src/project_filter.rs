//! Selects projects by `--project TEXT` or by the PROJECT in `PROJECT/ID`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use quipu_transcript::find::project_folder_name;

/// Selects projects by a part of their path, or by a folder above them.
#[derive(Debug)]
pub(crate) enum ProjectFilter {
    /// Projects whose working directory or folder name contains this, in lower case.
    Contains(String),
    /// Projects in this folder or below it.
    Within(PathBuf),
}

impl ProjectFilter {
    pub(crate) fn new(text: &str) -> Result<Self> {
        let relative = text == "." || text == ".." || text.starts_with("./") || text.starts_with("../");
        Ok(if relative {
            let path = std::path::absolute(text)?;
            Self::Within(path.canonicalize().unwrap_or(path))
        } else {
            Self::Contains(text.to_lowercase())
        })
    }

    /// Whether a project is selected, given the name of its folder and its path, if known.
    pub(crate) fn matches(&self, folder: &str, cwd: Option<&str>) -> bool {
        match self {
            Self::Contains(part) => {
                folder.to_lowercase().contains(part) || cwd.is_some_and(|cwd| cwd.to_lowercase().contains(part))
            }
            Self::Within(path) => match cwd {
                Some(cwd) => Path::new(cwd).starts_with(path),
                None => folder == project_folder_name(&path.to_string_lossy()),
            },
        }
    }
}
