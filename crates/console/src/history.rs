//! Earlier inputs of the user, in a private file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Inputs that are kept in the file.
const MAX_ENTRIES: usize = 1000;
/// Longer inputs, such as pasted files, are not kept.
const MAX_ENTRY_BYTES: usize = 16 << 10;

/// Earlier inputs, and which of them is shown.
#[derive(Debug, Default)]
pub(crate) struct History {
    file: Option<PathBuf>,
    entries: Vec<String>,
    /// Index of the entry that is shown, and the input that was being written before.
    browsing: Option<(usize, String)>,
}

impl History {
    /// Reads the file; without one the history starts empty. Lines that cannot be read are skipped.
    pub(crate) fn load(file: Option<PathBuf>) -> Self {
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let entries: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if entries.len() > 2 * MAX_ENTRIES
            && let Some(file) = &file
        {
            // A history that cannot be shortened is still usable.
            let _ = shorten(file, &entries[entries.len() - MAX_ENTRIES..]);
        }
        Self { file, entries, browsing: None }
    }

    /// Adds an input, and writes it to the file. One that repeats the last is not added.
    pub(crate) fn add(&mut self, text: &str) -> io::Result<()> {
        self.browsing = None;
        if text.len() > MAX_ENTRY_BYTES || self.entries.last().is_some_and(|last| last == text) {
            return Ok(());
        }
        self.entries.push(text.to_owned());
        match &self.file {
            Some(file) => append(file, text),
            None => Ok(()),
        }
    }

    /// The entry before the one that is shown; `None` at the first. `current` is kept for
    /// [`next`](Self::next) if none is shown yet.
    pub(crate) fn previous(&mut self, current: &str) -> Option<String> {
        let shown = match &self.browsing {
            Some((index, _)) => index.checked_sub(1)?,
            None => self.entries.len().checked_sub(1)?,
        };
        match &mut self.browsing {
            Some((index, _)) => *index = shown,
            None => self.browsing = Some((shown, current.to_owned())),
        }
        self.entries.get(shown).cloned()
    }

    /// The entry after the one that is shown, or what was being written before; `None` if no
    /// entry is shown.
    pub(crate) fn next(&mut self) -> Option<String> {
        let (index, draft) = self.browsing.take()?;
        match self.entries.get(index + 1) {
            Some(entry) => {
                self.browsing = Some((index + 1, draft));
                Some(entry.clone())
            }
            None => Some(draft),
        }
    }

    /// Forgets which entry is shown, after the input was edited.
    pub(crate) fn stop_browsing(&mut self) {
        self.browsing = None;
    }
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let line = serde_json::to_string(text)? + "\n";
    private_file(OpenOptions::new().create(true).append(true)).open(file)?.write_all(line.as_bytes())
}

/// Replaces the file by the given entries.
fn shorten(file: &Path, entries: &[String]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    // Temporary files have mode 0600.
    let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
    for entry in entries {
        writeln!(temporary, "{}", serde_json::to_string(entry)?)?;
    }
    temporary.persist(file)?;
    Ok(())
}

/// New files can be read by the user only.
fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_keeps_inputs_of_several_lines_for_the_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/history.jsonl");
        let mut history = History::load(Some(file.clone()));
        for text in ["one", "two\nlines", "two\nlines", "抽奖"] {
            history.add(text).unwrap();
        }
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
        let mut history = History::load(Some(file));
        let shown: Vec<_> = (0..4).map(|_| history.previous("draft")).collect();
        assert_eq!(shown, [Some("抽奖".into()), Some("two\nlines".into()), Some("one".into()), None]);
        assert_eq!(history.next().as_deref(), Some("two\nlines"));
    }

    #[test]
    fn what_was_being_written_comes_back() {
        let mut history = History::default();
        history.add("one").unwrap();
        assert_eq!(history.previous("draft").as_deref(), Some("one"));
        assert_eq!(history.next().as_deref(), Some("draft"));
        assert_eq!(history.next(), None);
        assert_eq!(History::default().previous("draft"), None);
    }

    #[test]
    fn a_long_file_is_shortened_and_bad_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.jsonl");
        let lines: String = (0..2500).map(|n| format!("\"{n}\"\n")).collect();
        fs::write(&file, format!("not json\n{lines}")).unwrap();
        assert_eq!(History::load(Some(file.clone())).entries.len(), 2500);
        let history = History::load(Some(file));
        assert_eq!((history.entries.len(), history.entries[0].as_str()), (1000, "1500"));
    }
}
