//! Maps a working directory to the name of its project folder.

use std::fs;
use std::path::{Path, PathBuf};

/// Longer names are cut here and end in a hash.
const MAX_FOLDER_NAME_LEN: usize = 200;

/// Name of the folder under `projects/` that holds the sessions of a directory. Every UTF-16
/// unit that is not an ASCII letter or digit becomes a dash; a name longer than 200 units is cut
/// and ends in a hash of the whole path.
///
/// The path must be absolute and free of symbolic links: the agent resolves it first.
///
/// ```
/// use quipu_transcript::find::project_folder_name;
/// assert_eq!(project_folder_name("/home/dev/My_App.v2"), "-home-dev-My-App-v2");
/// ```
pub fn project_folder_name(path: &str) -> String {
    let dash = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    let name: String = path.encode_utf16().map(dash).collect();
    if name.len() <= MAX_FOLDER_NAME_LEN {
        return name;
    }
    let hash = path.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{}-{}", &name[..MAX_FOLDER_NAME_LEN], to_base36(hash.unsigned_abs()))
}

/// Path of the folder that holds the sessions of a directory; `None` if there is none. Programs
/// do not agree on the hash of a long name, so a folder with another hash is accepted, too.
pub fn find_project_folder(config_dir: &Path, directory: &Path) -> Option<PathBuf> {
    let projects = config_dir.join("projects");
    let name = project_folder_name(&directory.to_string_lossy());
    let exact = projects.join(&name);
    if exact.is_dir() {
        return Some(exact);
    }
    let prefix = name.get(..=MAX_FOLDER_NAME_LEN)?;
    let entries = fs::read_dir(projects).into_iter().flatten().flatten();
    let has_same_prefix = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix));
    entries.map(|entry| entry.path()).filter(has_same_prefix).filter(|path| path.is_dir()).min()
}

fn to_base36(mut n: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(n % 36, 36).unwrap_or('0'));
        n /= 36;
        if n == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, folder: &str) {
        assert_eq!(project_folder_name(path), folder);
    }

    #[test]
    fn names_agree_with_folders_the_real_program_made() {
        check("/home/dev/naïve", "-home-dev-na-ve");
        check("/home/dev/项目", "-home-dev---");
        check("/home/dev/a😀b", "-home-dev-a--b");
        let deep = format!("/home/dev/{}end", "deep/".repeat(45));
        check(&deep, &format!("{}-nqqp9p", &deep.replace('/', "-")[..200]));
        check(&format!("/home/dev/{}", "文".repeat(210)), &format!("-home-dev-{}-uqrhyz", "-".repeat(190)));
    }
}
