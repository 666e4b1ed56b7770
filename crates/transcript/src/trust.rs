//! Whether the user trusts a folder: by the list in quipu's settings, or because the folder or its
//! repository was accepted in Claude Code.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The file in which Claude Code keeps what it knows about every folder.
const STATE_FILE: &str = ".claude.json";
/// The largest such file that is read, in bytes: it grows with every project.
const MAX_STATE_BYTES: u64 = 64 << 20;

/// Where the user's trust is recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrustSources<'a> {
    /// Folders that quipu's settings list.
    pub listed: &'a [PathBuf],
    /// Home folder of the user.
    pub home: Option<&'a Path>,
    /// Config folders of the agent.
    pub config_dirs: &'a [&'a Path],
}

/// Whether the user trusts a folder or the git repository that it is in. `folder` is resolved already;
/// listed folders are resolved here. A file that cannot be read trusts nothing.
pub fn is_trusted_folder(folder: &Path, sources: &TrustSources<'_>) -> bool {
    let repository = folder.ancestors().find(|folder| folder.join(".git").exists());
    let folders: Vec<&Path> = [Some(folder), repository].into_iter().flatten().collect();
    // A relative path would be another folder in every place the program starts in.
    let is_listed = |listed: &PathBuf| {
        listed.is_absolute() && fs::canonicalize(listed).is_ok_and(|listed| folders.contains(&listed.as_path()))
    };
    let mut state_dirs = sources.home.into_iter().chain(sources.config_dirs.iter().copied());
    sources.listed.iter().any(is_listed) || state_dirs.any(|dir| is_accepted(&dir.join(STATE_FILE), &folders))
}

fn is_accepted(file: &Path, folders: &[&Path]) -> bool {
    let is_readable = fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_STATE_BYTES);
    let Some(text) = is_readable.then(|| fs::read_to_string(file).ok()).flatten() else { return false };
    let state: Value = serde_json::from_str(&text).unwrap_or_default();
    // A name that is not UTF-8 cannot be a key; replacing its bytes would give several folders the same one.
    let mut keys = folders.iter().filter_map(|folder| folder.to_str());
    keys.any(|key| state["projects"][key]["hasTrustDialogAccepted"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home folder with a repository and a folder in it.
    fn home_with_repository() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().canonicalize().unwrap();
        let folder = home.join("repo/sub");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir(home.join("repo/.git")).unwrap();
        (temp, home, folder)
    }

    #[test]
    fn a_listed_folder_or_repository_is_trusted() {
        let (_temp, home, folder) = home_with_repository();
        let check =
            |listed: &[PathBuf]| is_trusted_folder(&folder, &TrustSources { listed, ..TrustSources::default() });
        assert!(
            check(&[home.join("repo")])
                && check(std::slice::from_ref(&folder))
                && check(&[home.join("repo/../repo/sub")])
        );
        assert!(!check(&[]) && !check(std::slice::from_ref(&home)) && !check(&[home.join("other")]));
        let relative = |folder: &Path| {
            is_trusted_folder(folder, &TrustSources { listed: &[".".into()], ..TrustSources::default() })
        };
        assert!(!relative(&std::env::current_dir().unwrap().canonicalize().unwrap()));
    }

    #[test]
    fn a_folder_is_trusted_when_it_or_its_repository_was_accepted() {
        let (_temp, home, folder) = home_with_repository();
        let check = |named: &Path, value: &str| {
            let text = format!(r#"{{"projects": {{"{}": {{"hasTrustDialogAccepted": {value}}}}}}}"#, named.display());
            fs::write(home.join(".claude.json"), text).unwrap();
            let by_home = TrustSources { home: Some(&home), ..TrustSources::default() };
            let by_config = TrustSources { config_dirs: &[&home], ..TrustSources::default() };
            assert_eq!(is_trusted_folder(&folder, &by_home), is_trusted_folder(&folder, &by_config));
            is_trusted_folder(&folder, &by_home)
        };
        assert!(check(&folder, "true") && check(&home.join("repo"), "true"));
        assert!(!check(&home, "true") && !check(&folder, "false") && !check(&folder, "\"true\""));
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt as _;
            let odd = home.join(std::ffi::OsStr::from_bytes(b"odd\xff"));
            let text =
                format!(r#"{{"projects": {{"{}": {{"hasTrustDialogAccepted": true}}}}}}"#, odd.to_string_lossy());
            fs::write(home.join(".claude.json"), text).unwrap();
            assert!(!is_trusted_folder(&odd, &TrustSources { home: Some(&home), ..TrustSources::default() }));
        }
    }
}
