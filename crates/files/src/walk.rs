//! Walks of folders that leave out what ignore files name.

use std::fs;
use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

/// Ignore files larger than this are not read.
pub const MAX_IGNORE_FILE_BYTES: u64 = 1 << 20;

/// Maximum number of opening braces in a pattern. The parser of patterns recurses into braces, and far more of them
/// would overflow the stack.
const MAX_PATTERN_BRACES: usize = 200;

/// Whether a pattern has too many braces to be compiled.
pub fn has_too_many_braces(pattern: &str) -> bool {
    pattern.matches('{').count() > MAX_PATTERN_BRACES
}

/// Files with patterns that a walk reads in every folder.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// Builds a walk of the entries that `keep` holds for, without those that ignore files name.
///
/// A cloned repository may contain an ignore file that leads to a device and never ends, or to a file outside
/// the repository, whose lines the result would show, or one with a pattern that cannot be compiled. A folder with
/// such a file is left out; if it is in the folder itself or above, no ignore file is read.
pub fn walk_unignored(folder: &Path, keep: impl Fn(&DirEntry) -> bool + Send + Sync + 'static) -> WalkBuilder {
    let git_root = folder.ancestors().find(|folder| folder.join(".git").exists());
    let top = git_root.unwrap_or(folder);
    let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    let reads_patterns = folder.ancestors().all(|folder| has_plain_ignore_files(folder, &top));
    let mut walk = WalkBuilder::new(folder);
    // The crate would follow a `.git` file to wherever it leads.
    walk.parents(reads_patterns).ignore(reads_patterns).git_ignore(reads_patterns).git_exclude(false);
    let exclude = git_root.map(|root| root.join(".git/info/exclude"));
    if let Some(exclude) = exclude.filter(|exclude| reads_patterns && exclude.is_file() && is_plain(exclude, &top)) {
        walk.add_ignore(exclude);
    }
    walk.filter_entry(move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        keep(entry) && !(reads_patterns && is_folder && !has_plain_ignore_files(entry.path(), &top))
    });
    walk
}

fn has_plain_ignore_files(folder: &Path, top: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| is_plain(&folder.join(name), top))
}

/// Whether reading a file ends soon, its patterns can be compiled, and no link leads out of its folder and `top`: it
/// does not exist, is a folder, or a small regular file.
fn is_plain(path: &Path, top: &Path) -> bool {
    let Ok(data) = path.symlink_metadata() else { return true };
    // Resolving a path takes time in deep folders, and needs to be done for links only.
    let real = if data.is_symlink() { path.canonicalize() } else { Ok(path.to_owned()) };
    let Ok(real) = real else { return true };
    let is_own =
        || path.parent().and_then(|folder| folder.canonicalize().ok()).is_some_and(|own| real.starts_with(own));
    let is_kernel_file = ["/proc", "/sys", "/dev"].iter().any(|folder| real.starts_with(folder));
    let is_small = |data: fs::Metadata| data.is_dir() || data.is_file() && data.len() <= MAX_IGNORE_FILE_BYTES;
    let has_usual_patterns = || {
        let content = fs::read(&real).unwrap_or_default();
        !String::from_utf8_lossy(&content).lines().any(has_too_many_braces)
    };
    !is_kernel_file
        && (real.starts_with(top) || is_own())
        && fs::metadata(&real).is_ok_and(is_small)
        && has_usual_patterns()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_ignore_file_that_never_ends_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let names = || -> Vec<String> {
            let walk = walk_unignored(&root, |entry| entry.file_name() != ".git").require_git(false).build();
            let files = walk.map(Result::unwrap).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
            let mut names: Vec<String> =
                files.map(|entry| entry.path().strip_prefix(&root).unwrap().display().to_string()).collect();
            names.sort();
            names
        };
        for folder in ["a", "b", ".git/info"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (name, text) in [("a/x", ""), ("a/skip", ""), ("b/x", ""), ("b/local", ""), ("z", "")] {
            fs::write(root.join(name), text).unwrap();
        }
        fs::write(root.join(".gitignore"), "skip\n").unwrap();
        fs::write(root.join(".git/info/exclude"), "local\n").unwrap();
        assert_eq!(names(), ["a/x", "b/x", "z"]);
        symlink("/dev/zero", root.join("b/.ignore")).unwrap();
        assert_eq!(names(), ["a/x", "z"]);
        // The names that are left out would show what is in a file elsewhere.
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x\n").unwrap();
        fs::remove_file(root.join("b/.ignore")).unwrap();
        symlink(outside.path().join("secret"), root.join("b/.ignore")).unwrap();
        assert_eq!(names(), ["a/x", "z"]);
        fs::remove_file(root.join("b/.ignore")).unwrap();
        symlink("../.gitignore", root.join("b/.ignore")).unwrap();
        assert_eq!(names(), ["a/x", "b/x", "z"]);
        fs::remove_file(root.join(".gitignore")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join(".gitignore"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(names(), ["a/skip", "a/x", "b/local", "b/x", "z"]);
    }

    #[test]
    fn an_ignore_file_with_too_many_braces_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("a")).unwrap();
        for file in ["a/x", "skip"] {
            fs::write(temp.path().join(file), "").unwrap();
        }
        let names = || -> Vec<String> {
            let walk = walk_unignored(temp.path(), |_| true).require_git(false).sort_by_file_name(Ord::cmp).build();
            let files = walk.map(Result::unwrap).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
            files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let nested = format!("{}{}\n", "{".repeat(100_000), "}".repeat(100_000));
        fs::write(temp.path().join("a/.gitignore"), &nested).unwrap();
        fs::write(temp.path().join(".gitignore"), "skip\n").unwrap();
        assert_eq!(names(), [""; 0]);
        fs::write(temp.path().join(".gitignore"), format!("skip\n{nested}")).unwrap();
        assert_eq!(names(), ["x", "skip"]);
    }
}
