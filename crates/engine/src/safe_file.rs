//! Opens files by their resolved path without following links, so that the file opened is
//! the file that was permitted. Only regular files are opened.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fchmod, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::clock::random_id;

/// Flags for the folders of a path: enough to open entries in them.
#[cfg(target_os = "linux")]
const FOLDER_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Flags for the file itself; `NONBLOCK` because opening a pipe could block forever.
const FILE_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Reads a regular file of at most `max_bytes`. `real` must be resolved: a link in it, a
/// folder, a device or a pipe is an error.
pub(crate) fn read(real: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(real)?;
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it holds more than {max_bytes} bytes"));
    if file.metadata()?.len() > max_bytes {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    // Files in /proc report a size of zero and may be endless.
    if bytes.len() as u64 > max_bytes { Err(too_large()) } else { Ok(bytes) }
}

/// Opens a regular file for reading.
pub(crate) fn open(real: &Path) -> io::Result<File> {
    require_regular(open_at(real, OFlags::RDONLY, false)?)
}

/// Replaces the content of a regular file.
pub(crate) fn replace(real: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = require_regular(open_at(real, OFlags::WRONLY, false)?)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

/// Creates a file and its missing parent folders; fails if the file exists.
pub(crate) fn create(real: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = open_at(real, OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL), true)?;
    File::from(file).write_all(bytes)
}

/// Replaces the content of a regular file in one step, synced, or creates it with its missing parent folders.
/// A new file is readable by the user only; an existing one keeps its mode.
pub(crate) fn replace_atomically(real: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = split_name(real)?;
    let folder = open_folder(folder, true)?;
    let old_mode = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) if FileType::from_raw_mode(about.st_mode).is_file() => Some(Mode::from_raw_mode(about.st_mode)),
        Ok(_) => return Err(not_regular()),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(explain_error(error)),
    };
    let fresh = format!("{}.{}", name.to_string_lossy(), random_id("new."));
    let flags = FILE_FLAGS.union(OFlags::WRONLY).union(OFlags::CREATE).union(OFlags::EXCL);
    let file = openat(&folder, &fresh, flags, Mode::RUSR | Mode::WUSR).map_err(explain_error)?;
    let write = || {
        if let Some(mode) = old_mode {
            fchmod(&file, mode)?;
        }
        let mut file = File::from(file);
        file.write_all(bytes)?;
        file.sync_all()?;
        renameat(&folder, &fresh, &folder, name).map_err(explain_error)
    };
    write().inspect_err(|_| {
        // The first error says more.
        let _ = unlinkat(&folder, &fresh, AtFlags::empty());
    })
}

/// Removes a regular file.
pub(crate) fn remove(real: &Path) -> io::Result<()> {
    let (folder, name) = split_name(real)?;
    let folder = open_folder(folder, false)?;
    let about = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(explain_error)?;
    if !FileType::from_raw_mode(about.st_mode).is_file() {
        return Err(not_regular());
    }
    unlinkat(&folder, name, AtFlags::empty()).map_err(explain_error)
}

/// Renames a file within its folder. On Linux an existing file is not replaced.
pub(crate) fn rename(real: &Path, to: &Path) -> io::Result<()> {
    let ((folder, name), (_, new)) = (split_name(real)?, split_name(to)?);
    let folder = open_folder(folder, false)?;
    #[cfg(target_os = "linux")]
    return rustix::fs::renameat_with(&folder, name, &folder, new, rustix::fs::RenameFlags::NOREPLACE)
        .map_err(explain_error);
    #[cfg(not(target_os = "linux"))]
    renameat(&folder, name, &folder, new).map_err(explain_error)
}

/// Gives the owner of a folder all access to it.
pub(crate) fn allow_owner(real: &Path) -> io::Result<()> {
    let folder = open_folder(real, false)?;
    let about = rustix::fs::fstat(&folder)?;
    let mode = Mode::from_raw_mode(about.st_mode) | Mode::RWXU;
    // The mode of a folder opened only as a path cannot be changed in another way.
    #[cfg(target_os = "linux")]
    rustix::fs::chmod(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder)), mode)?;
    #[cfg(not(target_os = "linux"))]
    fchmod(&folder, mode)?;
    Ok(())
}

/// Removes a folder that no program uses any more, with everything in it. Folders inside are moved up before they are
/// removed, so that their depth does not matter.
pub(crate) fn remove_tree(folder: &Path) -> io::Result<()> {
    let mut is_empty = false;
    while !is_empty {
        is_empty = true;
        for entry in folder.read_dir()? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            is_empty = false;
            // Its owner may have locked it.
            let _ = allow_owner(&entry.path());
            for inner in entry.path().read_dir()? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    // A locked folder cannot be moved.
                    let _ = allow_owner(&inner.path());
                    fs::rename(inner.path(), folder.join(random_id("removed-")))?;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

fn require_regular(file: OwnedFd) -> io::Result<File> {
    let file = File::from(file);
    let about = file.metadata()?;
    match about.is_file() {
        true => Ok(file),
        false if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        false => Err(not_regular()),
    }
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

/// Splits the path of a file into its folder and its name.
fn split_name(real: &Path) -> io::Result<(&Path, &OsStr)> {
    real.parent().zip(real.file_name()).ok_or_else(|| io::ErrorKind::IsADirectory.into())
}

fn open_at(real: &Path, flags: OFlags, make_folders: bool) -> io::Result<OwnedFd> {
    let (folder, name) = split_name(real)?;
    let folder = open_folder(folder, make_folders)?;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    openat(folder, name, FILE_FLAGS.union(flags), mode).map_err(explain_error)
}

/// Opens a folder by its resolved path; with `make` it and its parents are created.
pub(crate) fn open_folder(path: &Path, make: bool) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    if !make {
        use rustix::fs::{ResolveFlags, openat2};
        // Kernels before 5.6 and some containers lack `openat2`.
        match openat2(CWD, path, FOLDER_FLAGS, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened.map_err(explain_error),
        }
    }
    let mut folder = openat(CWD, "/", FOLDER_FLAGS, Mode::empty())?;
    for part in path.components() {
        if let Component::Normal(name) = part {
            folder = open_child_folder(&folder, name, make).map_err(explain_error)?;
        }
    }
    Ok(folder)
}

fn open_child_folder(folder: &OwnedFd, name: &OsStr, make: bool) -> Result<OwnedFd, Errno> {
    let flags = FOLDER_FLAGS.union(OFlags::NOFOLLOW);
    match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) if make => {
            match mkdirat(folder, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            openat(folder, name, flags, Mode::empty())
        }
        opened => opened,
    }
}

/// Replaces error codes by messages where the system's own would mislead.
fn explain_error(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("it has become a link since it was looked at"),
        // A pipe without a reader.
        Errno::NXIO => not_regular(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_and_only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "text").unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        symlink(root.join("real/file"), root.join("real/alias")).unwrap();
        rustix::fs::mknodat(CWD, root.join("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(read(&root.join("real/file"), 4).unwrap(), b"text");
        assert_eq!(read(&root.join("real/file"), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        for path in ["link/file", "real/alias", "pipe", "real", "none"] {
            assert!(read(&root.join(path), 100).is_err(), "{path}");
            assert!(replace(&root.join(path), b"x").is_err(), "{path}");
        }
        for path in ["link/new", "link/deep/new", "real/alias", "real/file"] {
            assert!(create(&root.join(path), b"x").is_err(), "{path}");
        }
        assert!(read(Path::new("/dev/zero"), 100).is_err());
        create(&root.join("a/b/new"), b"made").unwrap();
        replace(&root.join("a/b/new"), b"new").unwrap();
        assert_eq!(fs::read(root.join("a/b/new")).unwrap(), b"new");
        assert_eq!(fs::read(root.join("real/file")).unwrap(), b"text");
        assert!(!root.join("real/deep").exists());
    }

    #[test]
    fn files_are_replaced_and_removed_in_their_own_folder_only() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "text").unwrap();
        fs::set_permissions(root.join("real/file"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        symlink(root.join("real/file"), root.join("real/alias")).unwrap();
        for path in ["link/file", "link/new", "link/deep/new", "real/alias", "real"] {
            assert!(replace_atomically(&root.join(path), b"x").is_err(), "{path}");
        }
        for path in ["link/file", "real/alias", "real", "none"] {
            assert!(remove(&root.join(path)).is_err(), "{path}");
        }
        assert_eq!(fs::read(root.join("real/file")).unwrap(), b"text");
        assert_eq!(fs::read_dir(root.join("real")).unwrap().count(), 2, "nothing else is left there");

        replace_atomically(&root.join("real/file"), b"changed").unwrap();
        replace_atomically(&root.join("a/b/new"), b"made").unwrap();
        for (path, text, mode) in [("real/file", "changed", 0o640), ("a/b/new", "made", 0o600)] {
            let path = root.join(path);
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
        }
        remove(&root.join("real/file")).unwrap();
        assert_eq!(fs::read_dir(root.join("real")).unwrap().count(), 1);
    }

    /// Recursion would overflow the stack of the test.
    #[test]
    fn a_deep_folder_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap().join("top");
        fs::create_dir(&top).unwrap();
        let mut folder = open_folder(&top, false).unwrap();
        for _ in 0..12_000 {
            folder = open_child_folder(&folder, OsStr::new("d"), true).unwrap();
        }
        fs::write(top.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(temp.path(), top.join("d/link")).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists() && temp.path().exists());
    }
}
