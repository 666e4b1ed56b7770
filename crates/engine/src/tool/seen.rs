//! What the model has seen of files, and which of them have changed since.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use similar::{Algorithm, capture_diff_slices_deadline, group_diff_ops};

use super::{Hides, Knows, Target, open, resolve};

/// The longest file whose lines are compared, in bytes.
const MAX_COMPARED_BYTES: u64 = 1 << 20;
/// How long comparing may take; a rougher answer will do then.
const COMPARE_TIME: Duration = Duration::from_millis(100);
/// Unchanged lines shown around a change.
const AROUND: usize = 4;
/// How much of what changed is shown, in bytes.
const MAX_SNIPPET_BYTES: usize = 8 << 10;

/// What the model has seen of files.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<BTreeMap<PathBuf, Version>>);

/// A file as the model has seen it.
#[derive(Debug)]
struct Version {
    fingerprint: u64,
    /// Time and length that the file had then.
    stamp: Option<(SystemTime, u64)>,
    /// A hash of each line; `None` if it is not text, or long.
    lines: Option<Vec<u64>>,
}

/// A text file that has changed since the model saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The file.
    pub(crate) path: PathBuf,
    /// The lines that changed with some around them, numbered.
    pub(crate) snippet: String,
}

impl Seen {
    /// Remembers that the model has seen a file as it is.
    pub(super) fn remember(&self, path: &Path, bytes: &[u8]) {
        let path = key(path);
        let version = Version::new(&path, bytes);
        self.lock().insert(path, version);
    }

    /// What the model knows of a file that holds `bytes`.
    pub(super) fn knows(&self, path: &Path, bytes: &[u8]) -> Knows {
        match self.lock().get(&key(path)) {
            None => Knows::Nothing,
            Some(seen) if seen.fingerprint == fingerprint(bytes) => Knows::AsItIs,
            Some(_) => Knows::AsItWas,
        }
    }

    /// The text files that have changed since the model saw them, each once: they count as seen
    /// from then on. Files that are gone, and those that `hides` names, are left out.
    pub(super) fn changed(&self, hides: &Hides) -> Vec<Changed> {
        let mut found = Vec::new();
        for (path, version) in self.lock().iter_mut() {
            let stamp = stamp(path);
            if stamp.is_none() || stamp == version.stamp || hides(&Target::new(path)) {
                continue;
            }
            let Ok(bytes) = open::read(path, MAX_COMPARED_BYTES) else { continue };
            let fresh = Version::new(path, &bytes);
            if fresh.fingerprint != version.fingerprint
                && let (Some(old), Some(new)) = (&version.lines, &fresh.lines)
            {
                found.push(Changed { path: path.clone(), snippet: snippet(old, new, &bytes) });
            }
            // Of what was told nothing, an edit still says that it has changed.
            if fresh.lines.is_some() {
                *version = fresh;
            }
        }
        found
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Version>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Version {
    fn new(path: &Path, bytes: &[u8]) -> Self {
        let is_text = bytes.len() as u64 <= MAX_COMPARED_BYTES && !bytes.iter().take(8192).any(|byte| *byte == 0);
        let lines = is_text.then(|| bytes.split(|byte| *byte == b'\n').map(fingerprint).collect());
        Self { fingerprint: fingerprint(bytes), stamp: stamp(path), lines }
    }
}

/// The lines of `new`, the text of `bytes`, that differ from those of `old`.
fn snippet(old: &[u64], new: &[u64], bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.split('\n').collect();
    let ops = capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(Instant::now() + COMPARE_TIME));
    let mut parts = Vec::new();
    for group in group_diff_ops(ops, AROUND) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let mut range = first.new_range().start..last.new_range().end.min(lines.len());
        // What follows the last line end is no line.
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

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

fn key(path: &Path) -> PathBuf {
    resolve(path).unwrap_or_else(|| path.to_owned())
}

fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn nothing_hidden() -> Hides {
        Arc::new(|_| false)
    }

    #[test]
    fn a_change_is_told_once_with_the_lines_around_it() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().canonicalize().unwrap().join("a.txt");
        let lines: Vec<String> = (1..=40).map(|n| format!("line {n}")).collect();
        let text = lines.join("\n") + "\n";
        fs::write(&file, &text).unwrap();
        let seen = Seen::default();
        seen.remember(&file, text.as_bytes());
        assert_eq!(seen.changed(&nothing_hidden()), []);
        let changed = text.replace("line 20\n", "twenty\nand more\n");
        fs::write(&file, &changed).unwrap();
        let snippet = "16\tline 16\n17\tline 17\n18\tline 18\n19\tline 19\n20\ttwenty\n21\tand more\n22\tline 21\n23\t\
                       line 22\n24\tline 23\n25\tline 24";
        assert_eq!(seen.changed(&nothing_hidden()), [Changed { path: file.clone(), snippet: snippet.to_owned() }]);
        assert_eq!(seen.changed(&nothing_hidden()), []);
        assert_eq!(seen.knows(&file, changed.as_bytes()), Knows::AsItIs);
    }

    #[test]
    fn hidden_binary_and_deleted_files_are_not_told() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let seen = Seen::default();
        for (name, before) in [("hidden", "a"), ("binary", "a\0"), ("gone", "a")] {
            fs::write(root.join(name), before).unwrap();
            seen.remember(&root.join(name), before.as_bytes());
        }
        fs::write(root.join("hidden"), "secret").unwrap();
        fs::write(root.join("binary"), "b\0b").unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        let hides: Hides = Arc::new(|target| target.given.ends_with("hidden"));
        assert_eq!(seen.changed(&hides), []);
        assert_eq!(seen.knows(&root.join("binary"), b"b\0b"), Knows::AsItWas);
    }

    #[test]
    fn a_long_change_is_cut() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().canonicalize().unwrap().join("a.txt");
        fs::write(&file, "short").unwrap();
        let seen = Seen::default();
        seen.remember(&file, b"short");
        fs::write(&file, "é long line\n".repeat(5000)).unwrap();
        let told = seen.changed(&nothing_hidden());
        assert!(told[0].snippet.ends_with("[There is more; read the file.]"));
        assert!(told[0].snippet.len() < MAX_SNIPPET_BYTES + 100);
    }
}
