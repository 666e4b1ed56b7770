//! Writes files that users name.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::error::Failure;

/// Writes a file whole or not at all. A new file gets the mode of the umask, an existing file
/// keeps its mode; symbolic links are followed. A device or a FIFO is written in place.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = |path: &Path| match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    if !folder(path).is_dir() {
        let message = format!("cannot write {}: no folder '{}'", path.display(), folder(path).display());
        return Err(Failure::error("export.no_folder", message, "create the folder first"));
    }
    let written = match fs::metadata(path) {
        Ok(meta) if meta.is_file() => fs::canonicalize(path).and_then(|target| {
            match write_atomically(&folder(&target), &target, Some(meta.permissions()), bytes) {
                // The folder may be read-only while the file is writable.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => write_in_place(&target, bytes),
                done => done,
            }
        }),
        // A symbolic link to a file that does not exist yet.
        Err(_) if path.is_symlink() => write_in_place(path, bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_atomically(&folder(path), path, None, bytes),
        _ => File::options().write(true).open(path).and_then(|mut file| file.write_all(bytes)),
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create(path)?.write_all(bytes)
}

/// Writes a temporary file in the folder and renames it to `path`.
fn write_atomically(folder: &Path, path: &Path, mode: Option<fs::Permissions>, bytes: &[u8]) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    if let Some(mode) = mode {
        file.as_file().set_permissions(mode)?;
    }
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
