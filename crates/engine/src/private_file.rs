//! Files and folders that only the user may read.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Creates a folder and its missing parents, readable by the user only.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file that only the user can read, and creates the folders it needs. An existing file
/// keeps its mode; a link is an error.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    path.parent().map_or(Ok(()), create_folder)?;
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    // The bits fit: flags of the system are an `int`.
    let mut file = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)?;
    file.write_all(bytes)
}
