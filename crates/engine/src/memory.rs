//! Instruction files: what the person and the project tell every session.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::settings::Source;

/// How deep files may name further files.
const DEEPEST: usize = 5;

/// One instruction file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Instructions {
    /// The file.
    pub path: PathBuf,
    /// Whose instructions: `User`, `Project` or `Local`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What it says.
    pub content: String,
}

/// Finds the instruction files, outermost first: the person's, then those of every
/// folder from the root down to `cwd`, those of `roots`, each followed by the files it
/// names.
pub(crate) fn find(config: &Path, cwd: &Path, roots: &[PathBuf], sources: &[Source]) -> Vec<Instructions> {
    let mut found = Found::default();
    if sources.contains(&Source::User) {
        found.take(&config.join("CLAUDE.md"), "User", 0);
        found.rules(&config.join("rules"), "User");
    }
    let folders: Vec<&Path> = cwd.ancestors().collect();
    for folder in folders.into_iter().rev().chain(roots.iter().map(PathBuf::as_path)) {
        if sources.contains(&Source::Project) {
            found.take(&folder.join("CLAUDE.md"), "Project", 0);
            found.take(&folder.join(".claude/CLAUDE.md"), "Project", 0);
            found.rules(&folder.join(".claude/rules"), "Project");
        }
        if sources.contains(&Source::Local) {
            found.take(&folder.join("CLAUDE.local.md"), "Local", 0);
        }
    }
    found.files
}

/// What the model is told of the files.
pub(crate) fn render(files: &[Instructions]) -> String {
    let mut text = "The person and the project give these instructions. Follow them; where they differ, the later \
                    one wins.\n"
        .to_owned();
    for file in files {
        let whose = match file.kind {
            "User" => "the person's own, for all projects",
            "Local" => "the person's own, for this project",
            _ => "the project's",
        };
        text.push_str(&format!("\nContents of {} ({whose}):\n\n{}\n", file.path.display(), file.content.trim_end()));
    }
    text
}

#[derive(Default)]
struct Found {
    files: Vec<Instructions>,
    seen: BTreeSet<PathBuf>,
}

impl Found {
    fn take(&mut self, path: &Path, kind: &'static str, depth: usize) {
        let Ok(real) = fs::canonicalize(path) else { return };
        if depth > DEEPEST || !real.is_file() || !self.seen.insert(real) {
            return;
        }
        let Ok(bytes) = fs::read(path) else { return };
        let content = match String::from_utf8(bytes) {
            Ok(content) => content,
            // What a file only names may be a picture.
            Err(_) if depth > 0 => return,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        let named = imports(&content, path.parent().unwrap_or(Path::new("/")));
        self.files.push(Instructions { path: path.to_owned(), kind, content });
        named.iter().for_each(|path| self.take(path, kind, depth + 1));
    }

    /// All Markdown files of a folder, by name.
    fn rules(&mut self, folder: &Path, kind: &'static str) {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.rules(&path, kind);
            } else if path.extension().is_some_and(|ext| ext == "md") {
                self.take(&path, kind, 0);
            }
        }
    }
}

/// The files that a text names with `@path`, outside of code.
fn imports(text: &str, folder: &Path) -> Vec<PathBuf> {
    let mut fenced = false;
    let mut named = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let outside_code = line.split('`').step_by(2);
        let words = outside_code.flat_map(str::split_whitespace);
        named.extend(words.filter_map(|word| word.strip_prefix('@')).filter(|path| !path.is_empty()).map(|path| {
            match path.strip_prefix("~/").zip(std::env::home_dir()) {
                Some((rest, home)) => home.join(rest),
                None => folder.join(path),
            }
        }));
    }
    named
}

#[cfg(test)]
mod tests;
