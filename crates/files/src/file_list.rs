//! Files and folders of a working folder, found by some characters of their path.

use std::path::Path;

use nucleo_matcher::Config;

use crate::fuzzy::rank;
use crate::walk::walk_unignored;

/// Files and folders of a list at most; the rest of a larger folder is not found.
const MAX_ENTRIES: usize = 400_000;

/// A file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// A regular file, or a link to one.
    File,
    /// A folder, without the working folder itself.
    Folder,
}

/// A file or folder whose path matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMatch {
    /// Whether it is a file or a folder.
    pub kind: FileKind,
    /// Path relative to the working folder, with `/`.
    pub path: String,
    /// Characters of the path that matched, as ascending indices.
    pub positions: Vec<u32>,
}

/// The files and folders of a working folder that no ignore file names, at the time of the scan.
#[derive(Debug, Default)]
pub struct FileList {
    entries: Vec<(String, FileKind)>,
    is_complete: bool,
}

impl FileList {
    /// Reads the names of all files and folders, on several threads. A folder that cannot be read is
    /// empty. Hidden files are included, `.git` is not.
    pub fn scan(root: &Path) -> Self {
        let (sender, receiver) = std::sync::mpsc::sync_channel(4096);
        let walk = walk_unignored(root, |entry| entry.file_name() != ".git").hidden(false).build_parallel();
        let mut list = Self { entries: Vec::new(), is_complete: true };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                walk.run(|| {
                    let sender = sender.clone();
                    Box::new(move |entry| {
                        let found = entry.ok().and_then(|entry| describe(root, &entry));
                        let is_open = found.is_none_or(|found| sender.send(found).is_ok());
                        if is_open { ignore::WalkState::Continue } else { ignore::WalkState::Quit }
                    })
                });
            });
            for entry in receiver {
                if list.entries.len() == MAX_ENTRIES {
                    list.is_complete = false;
                    // Dropping the receiver ends the walk.
                    break;
                }
                list.entries.push(entry);
            }
        });
        list.entries.sort_unstable();
        list
    }

    /// The best `limit` matches, best first. The characters of the query must occur in this order;
    /// without a query, the files and folders at the top come first.
    pub fn find(&self, query: &str, limit: usize) -> Vec<FileMatch> {
        if query.trim().is_empty() {
            return self.first(limit);
        }
        let ranked = rank(query, &self.entries, |(path, _)| path.as_str(), limit, Config::DEFAULT.match_paths());
        ranked.into_iter().map(|row| self.to_match(row.index, row.positions)).collect()
    }

    /// Number of files inside a folder of the list.
    pub fn count_files_in(&self, folder: &str) -> usize {
        let is_inside = |path: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.files().filter(|path| is_inside(path)).count()
    }

    /// Paths of the files, sorted.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|(_, kind)| *kind == FileKind::File).map(|(path, _)| path.as_str())
    }

    /// Whether the folder had no more files than a list holds.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Number of files and folders.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the folder is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn first(&self, limit: usize) -> Vec<FileMatch> {
        let mut indices: Vec<usize> = (0..self.entries.len()).collect();
        let depth = |index: &usize| self.entries[*index].0.matches('/').count();
        indices.sort_by_cached_key(|index| (depth(index), self.entries[*index].0.starts_with('.')));
        indices.into_iter().take(limit).map(|index| self.to_match(index, Vec::new())).collect()
    }

    fn to_match(&self, index: usize, positions: Vec<u32>) -> FileMatch {
        let (path, kind) = &self.entries[index];
        FileMatch { kind: *kind, path: path.clone(), positions }
    }
}

/// The relative path and kind of an entry; `None` for the folder itself, devices, pipes and names
/// that are no text.
fn describe(root: &Path, entry: &ignore::DirEntry) -> Option<(String, FileKind)> {
    let path = entry.path().strip_prefix(root).ok()?.to_str().filter(|path| !path.is_empty())?;
    let kind = entry.file_type()?;
    let kind = if kind.is_dir() {
        FileKind::Folder
    } else if kind.is_file() || kind.is_symlink() && entry.path().is_file() {
        FileKind::File
    } else {
        return None;
    };
    Some((path.to_owned(), kind))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn paths(found: &[FileMatch]) -> Vec<&str> {
        found.iter().map(|one| one.path.as_str()).collect()
    }

    #[test]
    fn characters_in_order_find_a_path_and_ignored_files_are_left_out() {
        let temp = tempfile::tempdir().unwrap();
        for path in ["src/server/main.rs", "src/message.rs", "target/main.rs", ".git/main", ".github/ci.yml", "文档.md"]
        {
            let path = temp.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(temp.path().join(".gitignore"), "/target\n").unwrap();
        let list = FileList::scan(temp.path());
        assert!(list.is_complete());
        assert_eq!(paths(&list.find("srvmain", 10)), ["src/server/main.rs"]);
        assert_eq!(list.find("main", 10)[0].positions, [11, 12, 13, 14]);
        assert_eq!(paths(&list.find("文", 10)), ["文档.md"]);
        assert_eq!(paths(&list.find("", 4)), ["src", "文档.md", ".github", ".gitignore"]);
        assert_eq!(paths(&list.find("src", 1)), ["src"]);
        assert_eq!(list.count_files_in("src"), 2);
        assert_eq!(paths(&list.find("zzz", 10)), [""; 0]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_empty() {
        let list = FileList::scan(Path::new("/nonexistent/folder"));
        assert!(list.is_empty() && list.is_complete());
    }
}
