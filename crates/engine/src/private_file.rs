//! Files and folders that only the user may read.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Makes a folder and those above it that are not there, for the user alone.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file for the user alone, with the folders it needs. A file that is there
/// keeps its mode.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    path.parent().map_or(Ok(()), create_folder)?;
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}
