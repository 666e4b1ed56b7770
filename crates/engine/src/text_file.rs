//! Reading small text files that others may have written: settings, instructions, commands. Only
//! regular files of a bounded size.

use std::io;
use std::path::{Path, PathBuf};

use crate::path::resolve;
use crate::safe_file;

/// The most bytes of a file of settings, instructions or commands.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Reads a text file. Links are followed, because users keep settings elsewhere, but not out of
/// `within`, the folder of a project. Fails if the file is too large, not regular or not UTF-8.
pub(crate) fn read(path: &Path, within: Option<&Path>, max_bytes: u64) -> io::Result<String> {
    into_text(read_bytes(path, within, max_bytes)?)
}

/// Decodes the bytes of a text file.
pub(crate) fn into_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// As [`read`], for any bytes.
pub(crate) fn read_bytes(path: &Path, within: Option<&Path>, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_resolved(&resolve_within(path, within)?, max_bytes)
}

/// Follows the links of a path, which must not lead out of `within`. The file need not exist.
pub(crate) fn resolve_within(path: &Path, within: Option<&Path>) -> io::Result<PathBuf> {
    let real = resolve(&std::path::absolute(path)?).ok_or_else(|| io::Error::other("its links form a ring"))?;
    let folder = within.map(|folder| resolve(folder).unwrap_or_else(|| folder.to_owned()));
    match folder.is_some_and(|folder| !real.starts_with(folder)) {
        true => Err(io::Error::other("it leads out of its folder")),
        false => Ok(real),
    }
}

/// As [`read_bytes`], for a path that was resolved and checked before. A link in it is an error.
pub(crate) fn read_resolved(real: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    // Files of the kernel are not written by users, and may contain secrets.
    if ["/proc", "/sys", "/dev"].iter().any(|folder| real.starts_with(folder)) {
        return Err(io::Error::other("it is not a regular file"));
    }
    safe_file::read(real, max_bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_of_their_own_folder_are_read() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        fs::create_dir(root.join("project")).unwrap();
        fs::write(root.join("secret"), "s").unwrap();
        fs::write(root.join("project/own"), "own").unwrap();
        for (target, name) in [("../secret", "out"), ("own", "in"), ("/dev/stdin", "stdin"), ("/dev/zero", "zero")] {
            symlink(target, root.join("project").join(name)).unwrap();
        }
        symlink("/proc/self/environ", root.join("project/environ")).unwrap();
        let project = root.join("project");
        let within = |name: &str| read(&project.join(name), Some(&project), 3);
        assert_eq!((within("own").unwrap().as_str(), within("in").unwrap().as_str()), ("own", "own"));
        for name in ["out", "stdin", "zero", "environ", "none"] {
            assert!(within(name).is_err(), "{name}");
        }
        assert!(read(&project.join("own"), None, 2).is_err());
        let project = project.canonicalize().unwrap();
        assert_eq!(read_resolved(&project.join("own"), 9).unwrap(), b"own");
        for name in ["in", "out", "none"] {
            assert!(read_resolved(&project.join(name), 9).is_err(), "{name}");
        }
        assert_eq!(read(&project.join("out"), None, 9).unwrap(), "s");
        assert!(read(&project.join("environ"), None, 9999).is_err());
    }
}
