use super::*;

#[test]
fn old_versions_are_refused_and_unparsable_ones_accepted() {
    for fine in ["2.0.0", "2.1.325 (quipu-agent 0.1.0)", "3.0.0-beta.1", "10.0.0", "", "nightly", "2.1"] {
        assert!(check_version(fine).is_ok(), "{fine}");
    }
    for old in ["1.0.128", "1.99.99 (Claude Code)", "0.2.9"] {
        let error = check_version(old).unwrap_err();
        assert_eq!(error.code(), "sdk.too_old", "{old}");
    }
}

#[cfg(unix)]
#[test]
fn the_path_is_searched_before_the_folder_of_this_program() {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, mode: u32| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    let path = env::join_paths([dir.path().join("a"), dir.path().join("b")]).unwrap();
    let found = || search_folders(&path, Some(&dir.path().join("c")));
    assert_eq!(found(), None);
    let bundled = put("c/quipu-agent", 0o755);
    assert_eq!(found(), Some(bundled));
    let ours = put("a/quipu-agent", 0o755);
    assert_eq!(found(), Some(ours.clone()));
    put("a/claude", 0o644);
    assert_eq!(found(), Some(ours));
    let theirs = put("b/claude", 0o755);
    assert_eq!(found(), Some(theirs.clone()));
    let named = |name: &str| find_named(Path::new(name), &path, Some(&dir.path().join("c")));
    assert_eq!(named("claude"), Some(theirs));
    let other = put("c/other-agent", 0o755);
    assert_eq!(named("other-agent"), Some(other));
    for no_name in ["missing", "./claude", "b/claude", "..", "/claude", ""] {
        assert_eq!(named(no_name), None, "{no_name}");
    }
}
