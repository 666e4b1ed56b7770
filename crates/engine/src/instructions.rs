//! Instruction files (`CLAUDE.md`, `.claude/rules`) of the user and the project.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_message::hook::MemoryType;
use serde::Serialize;

use crate::path::{TargetPath, resolve};
use crate::settings::SettingSource;
use crate::text_file;
use crate::tool::{HiddenFileFilter, Workspace};

mod path_rule;

pub(crate) use path_rule::PathRule;

/// The most levels of files that import files.
const MAX_IMPORT_DEPTH: usize = 5;

/// The most instruction files, and their most bytes together.
const MAX_FILES: usize = 500;
const MAX_TOTAL_BYTES: usize = 4 << 20;

/// One instruction file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InstructionFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Whose file it is.
    #[serde(rename = "type")]
    pub kind: MemoryType,
    /// Text of the file.
    pub content: String,
}

/// The rules that apply to some files only.
pub(crate) fn find_path_rules(
    config: &Path,
    place: &Workspace,
    roots: &[PathBuf],
    sources: &[SettingSource],
) -> Vec<PathRule> {
    collect_instructions(config, place, roots, sources).path_rules
}

/// Finds the instruction files in order: the user's, those of every folder from the file system root
/// down to the session's, those of `roots`; each is followed by the files it imports. Also returns a
/// sentence for each file that was left out.
///
/// Files of the user may import any file. Those of a project may import files of their own folder and
/// of the session's folders. Files that permission rules deny are never read.
pub(crate) fn find_instructions(
    config: &Path,
    place: &Workspace,
    roots: &[PathBuf],
    sources: &[SettingSource],
) -> (Vec<InstructionFile>, Vec<String>) {
    let found = collect_instructions(config, place, roots, sources);
    (found.files, found.skipped)
}

fn collect_instructions(
    config: &Path,
    place: &Workspace,
    roots: &[PathBuf],
    sources: &[SettingSource],
) -> InstructionCollector {
    let mut found = InstructionCollector {
        hidden_files: place.hidden_files(),
        folders: place.folders(),
        root: place.root().to_owned(),
        home: place.home(),
        ..InstructionCollector::new()
    };
    if sources.contains(&SettingSource::User) {
        found.add_file(&config.join("CLAUDE.md"), &MemoryType::User, None, 0);
        found.add_rules_folder(&config.join("rules"), &MemoryType::User, None);
    }
    let folders: Vec<&Path> = place.root().ancestors().collect();
    for folder in folders.into_iter().rev().chain(roots.iter().map(PathBuf::as_path)) {
        let within = Some(folder);
        if sources.contains(&SettingSource::Project) {
            found.add_file(&folder.join("CLAUDE.md"), &MemoryType::Project, within, 0);
            found.add_file(&folder.join(".claude/CLAUDE.md"), &MemoryType::Project, within, 0);
            found.add_rules_folder(&folder.join(".claude/rules"), &MemoryType::Project, within);
        }
        if sources.contains(&SettingSource::Local) {
            found.add_file(&folder.join("CLAUDE.local.md"), &MemoryType::Local, within, 0);
        }
    }
    found
}

/// The text of the files for the model.
pub(crate) fn render_instructions(files: &[InstructionFile]) -> String {
    let mut text = "The user and the project give these instructions. Follow them; where they differ, the later \
                    one wins.\n"
        .to_owned();
    for file in files {
        let whose = match file.kind {
            MemoryType::User => "the user's own, for all projects",
            MemoryType::Local => "the user's own, for this project",
            _ => "the project's",
        };
        text.push_str(&format!("\nContents of {} ({whose}):\n\n{}\n", file.path.display(), file.content.trim_end()));
    }
    text
}

struct InstructionCollector {
    files: Vec<InstructionFile>,
    path_rules: Vec<PathRule>,
    /// The working directory of the session.
    root: PathBuf,
    /// The user's home folder, for imports of `~/…`.
    home: Option<PathBuf>,
    skipped: Vec<String>,
    visited: BTreeSet<PathBuf>,
    total_bytes: usize,
    /// The files that permission rules hide.
    hidden_files: HiddenFileFilter,
    /// The session's folders.
    folders: Vec<PathBuf>,
}

impl InstructionCollector {
    fn new() -> Self {
        let hides: HiddenFileFilter = Arc::new(|_| false);
        Self {
            files: Vec::new(),
            path_rules: Vec::new(),
            root: PathBuf::new(),
            home: None,
            skipped: Vec::new(),
            visited: BTreeSet::new(),
            total_bytes: 0,
            hidden_files: hides,
            folders: Vec::new(),
        }
    }

    /// Adds a file and its imports. `within` is the folder that it applies to; `None` for the user's.
    fn add_file(&mut self, path: &Path, kind: &MemoryType, within: Option<&Path>, depth: usize) {
        // Most candidates do not exist. This is one system call, following links one for each component.
        if depth == 0 && path.symlink_metadata().is_err() {
            return;
        }
        let target = TargetPath::new(path);
        let Some(real) = target.real.clone().filter(|real| real.symlink_metadata().is_ok()) else { return };
        if depth > MAX_IMPORT_DEPTH || real.is_dir() || !self.visited.insert(real.clone()) {
            return;
        }
        // The model may have written files of the session, also those that files of the user import.
        let session = self.folders.iter().find(|folder| target.names().any(|name| name.starts_with(folder))).cloned();
        let within = session.as_deref().or(within);
        let may_hold = |folder: &Path| resolve(folder).is_some_and(|folder| real.starts_with(folder));
        let inside = within.is_none_or(|folder| may_hold(folder) || self.folders.iter().any(|open| may_hold(open)));
        let read = match () {
            () if (self.hidden_files)(&target) => Err(io::Error::other("a rule refuses to read it")),
            () if !inside => Err(io::Error::other("it is outside the folders of this session")),
            () if self.files.len() == MAX_FILES || self.total_bytes > MAX_TOTAL_BYTES => {
                Err(io::Error::other("there are too many instructions"))
            }
            () => text_file::read_resolved(&real, text_file::MAX_BYTES),
        };
        let content = match read.map(String::from_utf8) {
            Ok(Ok(content)) => content,
            // An import may be an image.
            Ok(Err(_)) if depth > 0 => return,
            Ok(Err(error)) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Err(error) => return self.skipped.push(format!("{}: {error}", path.display())),
        };
        self.total_bytes += content.len();
        let named = imported_paths(&content, path.parent().unwrap_or(Path::new("/")), self.home.as_deref());
        self.files.push(InstructionFile { path: path.to_owned(), kind: kind.clone(), content });
        named.iter().for_each(|path| self.add_file(path, kind, within, depth + 1));
    }

    /// Adds all Markdown files of a folder and the folders below it, by name; each folder once.
    fn add_rules_folder(&mut self, folder: &Path, kind: &MemoryType, within: Option<&Path>) {
        if folder.symlink_metadata().is_err() {
            return;
        }
        let Some(real) = resolve(folder).filter(|real| self.visited.insert(real.clone())) else { return };
        let mut paths: Vec<PathBuf> =
            fs::read_dir(real).into_iter().flatten().flatten().take(MAX_FILES).map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.add_rules_folder(&path, kind, within);
            } else if path.extension().is_some_and(|ext| ext == "md") {
                let before = self.files.len();
                self.add_file(&path, kind, within, 0);
                let root = within.unwrap_or(&self.root);
                match PathRule::from_files(
                    self.files.split_off(before),
                    &resolve(root).unwrap_or_else(|| root.to_owned()),
                ) {
                    Ok(rule) => self.path_rules.push(rule),
                    Err(mut files) => self.files.append(&mut files),
                }
            }
        }
    }
}

/// The paths that a text in `folder` imports with `@path`, outside of code.
fn imported_paths(text: &str, folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
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
        let paths = words.filter_map(|word| word.strip_prefix('@')).filter(|path| !path.is_empty());
        named.extend(paths.map(|path| match path.strip_prefix("~/").zip(home) {
            Some((rest, home)) => home.join(rest),
            None => folder.join(path),
        }));
    }
    named
}

#[cfg(test)]
mod tests;
