//! Changing a JSON file that other programs write too.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use serde_json::{Map, Value};

/// Changes the object in a file, which is made when it is not there; one that cannot be
/// read is left alone. The new content is synced and replaces the old in one step. A new
/// file is readable by the user alone, an old one keeps its permissions.
pub(crate) fn edit(path: &Path, change: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    let mut object: Map<String, Value> = match fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Map::new(),
        Ok(text) => serde_json::from_str(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(error),
    };
    change(&mut object);
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    // A file behind a link stays where it is.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let fresh = path.with_extension(format!("json.{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create(true).truncate(true).open(&fresh)?;
    if let Ok(old) = path.metadata() {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(serde_json::to_string_pretty(&object)?.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&fresh, &path)
}

/// The object under a key, made when it is not there; `None` if something else is there.
pub(crate) fn object<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    map.entry(key).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}
