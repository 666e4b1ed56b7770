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
    /// Why the file cannot be read. It is not written then, because that would lose its stars.
    problem: Option<String>,
}

impl Stars {
    /// Reads the stars of a data folder. If the file cannot be read there are no stars, and
    /// [`set`](Self::set) fails.
    pub(crate) fn load(data_folder: Option<&Path>) -> Self {
        let Some(file) = data_folder.map(|folder| folder.join("stars.json")) else { return Self::default() };
        let read = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error.to_string()),
        };
        let problem = read.as_ref().err().map(|error| format!("{} cannot be read: {error}", file.display()));
        Self { file: Some(file), starred: Mutex::new(read.unwrap_or_default()), problem }
    }

    /// Whether a session has a star; sessions are named by project and id.
    pub(crate) fn contains(&self, project: &str, id: &str) -> bool {
        self.starred.lock().contains(&name(project, id))
    }

    /// Gives or removes a star and writes the file.
    pub(crate) fn set(&self, project: &str, id: &str, is_starred: bool) -> io::Result<()> {
        if let Some(problem) = &self.problem {
            return Err(io::Error::other(problem.clone()));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_keeps_its_content() {
        let folder = tempfile::tempdir().unwrap();
        Stars::load(Some(folder.path())).set("p", "a", true).unwrap();
        assert!(Stars::load(Some(folder.path())).contains("p", "a"));
        let file = folder.path().join("stars.json");
        fs::write(&file, "[\"p/a\"").unwrap();
        let error = Stars::load(Some(folder.path())).set("p", "b", true).unwrap_err();
        assert!(error.to_string().contains("stars.json cannot be read"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "[\"p/a\"");
    }
}
