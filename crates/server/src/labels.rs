//! Stars of sessions. Titles and tags are in the session files; stars are the page's own.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// The sessions that the user starred, in `stars.json` in the data folder.
#[derive(Debug, Default)]
pub(crate) struct Stars {
    /// `None` if stars are not kept.
    file: Option<PathBuf>,
    starred: Mutex<BTreeSet<String>>,
}

impl Stars {
    /// Reads the stars of a data folder. A file that cannot be read counts as empty.
    pub(crate) fn load(data_folder: Option<&Path>) -> Self {
        let file = data_folder.map(|folder| folder.join("stars.json"));
        let text = file.as_deref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        Self { file, starred: Mutex::new(serde_json::from_str(&text).unwrap_or_default()) }
    }

    /// Whether a session has a star; sessions are named by project and id.
    pub(crate) fn contains(&self, project: &str, id: &str) -> bool {
        self.starred.lock().contains(&name(project, id))
    }

    /// Gives or removes a star and writes the file.
    pub(crate) fn set(&self, project: &str, id: &str, is_starred: bool) -> io::Result<()> {
        let mut starred = self.starred.lock();
        match is_starred {
            true => starred.insert(name(project, id)),
            false => starred.remove(&name(project, id)),
        };
        let Some(file) = &self.file else { return Ok(()) };
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        // A new file with mode 0600 that is renamed.
        let mut written = tempfile::NamedTempFile::new_in(folder)?;
        written.write_all(&serde_json::to_vec(&*starred)?)?;
        written.persist(file)?;
        Ok(())
    }
}

fn name(project: &str, id: &str) -> String {
    format!("{project}/{id}")
}
