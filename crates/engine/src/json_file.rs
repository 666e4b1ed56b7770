//! Changing a JSON file that other programs write too.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::safe_file;
use crate::state_file;
use crate::text_file;

/// How long another agent that changes a file of the same folder is waited for.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// Changes the JSON object in a file, which is created if it is missing. Fails without a change if the
/// file is not valid. The new content is synced and replaces the old in one step. A new file is
/// readable by the user only, an existing one keeps its mode. Links must not lead out of `within`.
pub(crate) fn edit_object(
    path: &Path,
    within: Option<&Path>,
    change: impl FnOnce(&mut Map<String, Value>),
) -> io::Result<()> {
    // The target of a link is replaced, not the link. If a folder becomes a link from now on, that is an error.
    let real = text_file::resolve_within(path, within)?;
    let _lock = lock_folder(&real)?;
    let read = text_file::read_resolved(&real, state_file::MAX_BYTES).and_then(text_file::into_text);
    let mut object: Map<String, Value> = match read {
        Ok(text) if text.trim().is_empty() => Map::new(),
        Ok(text) => serde_json::from_str(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(error),
    };
    change(&mut object);
    let text = serde_json::to_string_pretty(&object)?;
    safe_file::replace_atomically(&real, format!("{text}\n").as_bytes())
}

/// Locks the folder of a file, or the one that it will be made in, against other agents. The file itself is replaced,
/// so a lock of it would not last.
fn lock_folder(path: &Path) -> io::Result<Option<File>> {
    let Some(folder) = path.ancestors().skip(1).find(|folder| folder.is_dir()) else { return Ok(None) };
    let file = File::open(folder)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if start.elapsed() < MAX_LOCK_WAIT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another program is changing the file"));
            }
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
}

/// The object under a key, created if it is missing; `None` if the value is not an object.
pub(crate) fn object_entry<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    map.entry(key).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn changes_at_the_same_time_are_all_kept() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().canonicalize().unwrap().join("settings.json");
        let change = |name: String| edit_object(&path, None, |object| drop(object.insert(name, 1.into()))).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || (0..10).for_each(|number| change(format!("{thread}.{number}"))));
            }
        });
        let object: Map<String, Value> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(object.len(), 40);
    }

    #[test]
    fn a_projects_file_is_not_changed_through_a_link() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let project = root.join("project");
        fs::create_dir(&project).unwrap();
        fs::write(root.join("other.json"), "{}").unwrap();
        for (target, name) in [("../other.json", "there"), ("../new.json", "dangling"), ("..", "folder")] {
            std::os::unix::fs::symlink(target, project.join(name)).unwrap();
        }
        let change =
            |path: &Path, within| edit_object(path, within, |object| drop(object.insert("a".into(), 1.into())));
        for name in ["there", "dangling", "folder/other.json", "folder/new.json"] {
            assert!(change(&project.join(name), Some(&project)).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(root.join("other.json")).unwrap(), "{}");
        assert!(!root.join("new.json").exists());
        change(&project.join("own.json"), Some(&project)).unwrap();
        // The user's own file may be kept elsewhere.
        change(&project.join("there"), None).unwrap();
        for path in [root.join("other.json"), project.join("own.json")] {
            assert_eq!(fs::read_to_string(path).unwrap(), "{\n  \"a\": 1\n}\n");
        }
        assert!(project.join("there").is_symlink());
    }

    #[test]
    fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (project, outside) = (root.join("project"), root.join("outside"));
        for folder in [&project.join(".claude"), &outside] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("settings.json"), "{}").unwrap();
        }
        let changed = edit_object(&project.join(".claude/settings.json"), Some(&project), |object| {
            object.insert("a".into(), 1.into());
            fs::rename(project.join(".claude"), project.join("moved")).unwrap();
            std::os::unix::fs::symlink(&outside, project.join(".claude")).unwrap();
        });
        assert!(changed.is_err());
        assert_eq!(fs::read_to_string(outside.join("settings.json")).unwrap(), "{}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }
}
