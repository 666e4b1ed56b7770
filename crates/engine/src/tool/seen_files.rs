//! Record of the files that the model has seen, and of changes since then.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use similar::{Algorithm, capture_diff_slices_deadline, group_diff_ops};

use super::FileKnowledge;
use crate::path::{TargetPath, resolve};
use crate::safe_file;

/// Maximum size of a file whose lines are compared.
const MAX_COMPARED_BYTES: u64 = 1 << 20;
/// Time limit for a comparison; beyond it the diff is less precise.
const DIFF_TIMEOUT: Duration = Duration::from_millis(100);
/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 4;
/// Maximum size of a snippet of changed lines.
const MAX_SNIPPET_BYTES: usize = 8 << 10;

/// Files that the model has seen, by resolved path.
#[derive(Debug, Default)]
pub(super) struct SeenFiles(Mutex<BTreeMap<PathBuf, SeenVersion>>);

/// A file when the model saw it.
#[derive(Debug)]
struct SeenVersion {
    fingerprint: u64,
    /// Modification time and size at that time.
    stamp: Option<(SystemTime, u64)>,
    /// Hash of each line; `None` if the file is not text or too large.
    line_hashes: Option<Vec<u64>>,
}

/// A text file that has changed since the model saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedFile {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Changed lines with context and line numbers.
    pub(crate) snippet: String,
}

impl SeenFiles {
    /// Records that the model has seen the file with this content.
    pub(super) fn mark_seen(&self, path: &Path, bytes: &[u8]) {
        let path = resolved_key(path);
        let version = SeenVersion::new(&path, bytes);
        self.lock().insert(path, version);
    }

    /// Returns whether the model has seen the file with the content `bytes`.
    pub(super) fn knowledge_of(&self, path: &Path, bytes: &[u8]) -> FileKnowledge {
        match self.lock().get(&resolved_key(path)) {
            None => FileKnowledge::Unseen,
            Some(seen) if seen.fingerprint == fingerprint(bytes) => FileKnowledge::Current,
            Some(_) => FileKnowledge::Stale,
        }
    }

    /// Returns the text files that changed since the model saw them and marks them as seen.
    /// Deleted files and those that it `may_read` no longer are left out.
    pub(super) fn take_changed(&self, may_read: impl Fn(&TargetPath) -> bool) -> Vec<ChangedFile> {
        let mut found = Vec::new();
        for (path, version) in self.lock().iter_mut() {
            let stamp = file_stamp(path);
            if stamp.is_none() || stamp == version.stamp || !may_read(&TargetPath::new(path)) {
                continue;
            }
            let Ok(bytes) = safe_file::read(path, MAX_COMPARED_BYTES) else { continue };
            let current = SeenVersion::new(path, &bytes);
            if current.fingerprint != version.fingerprint
                && let (Some(old), Some(new)) = (&version.line_hashes, &current.line_hashes)
            {
                found.push(ChangedFile { path: path.clone(), snippet: changed_snippet(old, new, &bytes) });
            }
            // Changes of other files are not shown; Edit still reports them as changed.
            if current.line_hashes.is_some() {
                *version = current;
            }
        }
        found
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, SeenVersion>> {
        self.0.lock()
    }
}

impl SeenVersion {
    fn new(path: &Path, bytes: &[u8]) -> Self {
        let is_text = bytes.len() as u64 <= MAX_COMPARED_BYTES && !bytes.iter().take(8192).any(|byte| *byte == 0);
        let lines = is_text.then(|| bytes.split(|byte| *byte == b'\n').map(fingerprint).collect());
        Self { fingerprint: fingerprint(bytes), stamp: file_stamp(path), line_hashes: lines }
    }
}

/// Formats the lines of `bytes` (with the hashes `new`) that differ from `old`.
fn changed_snippet(old: &[u64], new: &[u64], bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.split('\n').collect();
    let ops = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(Instant::now() + DIFF_TIMEOUT));
    let mut parts = Vec::new();
    for group in group_diff_ops(ops, CONTEXT_LINES) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let mut range = first.new_range().start..last.new_range().end.min(lines.len());
        // The text after the last line end is not a line.
        if range.end == lines.len() && lines.last().is_some_and(|line| line.is_empty()) {
            range.end -= 1;
        }
        let numbered = range.map(|at| format!("{}\t{}", at + 1, lines[at]));
        parts.push(numbered.collect::<Vec<_>>().join("\n"));
    }
    let mut snippet = parts.join("\n...\n");
    if snippet.len() > MAX_SNIPPET_BYTES {
        let end = (0..=MAX_SNIPPET_BYTES).rev().find(|at| snippet.is_char_boundary(*at)).unwrap_or_default();
        snippet.truncate(end);
        snippet.push_str("\n[There is more; read the file.]");
    }
    snippet
}

fn file_stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

fn resolved_key(path: &Path) -> PathBuf {
    resolve(path).unwrap_or_else(|| path.to_owned())
}

fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_announced_once_with_the_lines_around_it() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().canonicalize().unwrap().join("a.txt");
        let lines: Vec<String> = (1..=40).map(|n| format!("line {n}")).collect();
        let text = lines.join("\n") + "\n";
        fs::write(&file, &text).unwrap();
        let seen = SeenFiles::default();
        seen.mark_seen(&file, text.as_bytes());
        assert_eq!(seen.take_changed(|_| true), []);
        let changed = text.replace("line 20\n", "twenty\nand more\n");
        fs::write(&file, &changed).unwrap();
        let snippet = "16\tline 16\n17\tline 17\n18\tline 18\n19\tline 19\n20\ttwenty\n21\tand more\n22\tline 21\n23\t\
                       line 22\n24\tline 23\n25\tline 24";
        assert_eq!(seen.take_changed(|_| true), [ChangedFile { path: file.clone(), snippet: snippet.to_owned() }]);
        assert_eq!(seen.take_changed(|_| true), []);
        assert_eq!(seen.knowledge_of(&file, changed.as_bytes()), FileKnowledge::Current);
    }

    #[test]
    fn hidden_binary_and_deleted_files_are_not_announced() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let seen = SeenFiles::default();
        for (name, before) in [("hidden", "a"), ("binary", "a\0"), ("gone", "a")] {
            fs::write(root.join(name), before).unwrap();
            seen.mark_seen(&root.join(name), before.as_bytes());
        }
        fs::write(root.join("hidden"), "secret").unwrap();
        fs::write(root.join("binary"), "b\0b").unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        assert_eq!(seen.take_changed(|target| !target.given.ends_with("hidden")), []);
        assert_eq!(seen.knowledge_of(&root.join("binary"), b"b\0b"), FileKnowledge::Stale);
    }

    #[test]
    fn a_long_change_is_cut() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().canonicalize().unwrap().join("a.txt");
        fs::write(&file, "short").unwrap();
        let seen = SeenFiles::default();
        seen.mark_seen(&file, b"short");
        fs::write(&file, "é long line\n".repeat(5000)).unwrap();
        let told = seen.take_changed(|_| true);
        assert!(told[0].snippet.ends_with("[There is more; read the file.]"));
        assert!(told[0].snippet.len() < MAX_SNIPPET_BYTES + 100);
    }
}
