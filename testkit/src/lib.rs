//! Shared by the tests of all crates: fixtures, the corpus, a fake agent and a generator of
//! sessions.
//!
//! A dev-dependency only; nothing that ships depends on it.

#![allow(clippy::print_stderr, clippy::disallowed_methods, reason = "tests print to the developer's terminal")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub mod fake_agent;
pub mod generate;
pub mod generate_calls;

/// CPU time of this thread, which does not depend on the load of the machine. On systems other
/// than Unix, the elapsed time.
pub fn cpu_time() -> Duration {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
    }
    #[cfg(not(unix))]
    {
        static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }
}

/// Path of the repository.
pub fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// A file or folder under `fixtures/`.
pub fn fixture(path: &str) -> PathBuf {
    repository_root().join("fixtures").join(path)
}

/// Folder of real recordings and published sessions: `$QUIPU_SHARED`, or `../shared` from the
/// repository. Prints a notice and returns `None` if it does not exist.
pub fn shared_dir() -> Option<PathBuf> {
    let place = std::env::var_os("QUIPU_SHARED").map_or_else(|| repository_root().join("../shared"), PathBuf::from);
    if place.join("recordings").is_dir() {
        return Some(place);
    }
    eprintln!(
        "\n*** SKIPPED: no recordings and corpus at {}; set QUIPU_SHARED to run this test ***\n",
        place.display()
    );
    None
}

/// Every file under a folder, sorted, whose path the filter accepts.
pub fn files_under(under: &Path, accept: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![under.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if accept(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The stdout, transcript and subagent files of the recordings.
pub fn recorded_files(shared: &Path) -> Vec<PathBuf> {
    files_under(&shared.join("recordings"), |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == "stdout.jsonl"
            || name.starts_with("transcript")
            || name.starts_with("agent-") && name.ends_with(".jsonl")
    })
}

/// The published files whose kind starts with one of the given words.
pub fn corpus_files(shared: &Path, kinds: &[&str]) -> Vec<PathBuf> {
    let manifest = fs::read_to_string(shared.join("corpus/MANIFEST.tsv")).unwrap_or_default();
    let mut rows = manifest.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let header = rows.next().unwrap_or_default();
    let column = |name| header.iter().position(|h| *h == name).unwrap_or_default();
    let (kind, local) = (column("kind"), column("local"));
    rows.filter(|row| kinds.iter().any(|k| row[kind].starts_with(k)))
        .map(|row| shared.join("corpus/data").join(row[local]))
        .collect()
}
