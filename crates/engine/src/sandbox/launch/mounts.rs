//! Namespaces, mounts and capabilities.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::{LaunchError, Policy, step_error};

const NO_VALUE: Option<&str> = None;

/// Enters new namespaces for users, mounts and System V IPC, and for the processes that
/// this one starts.
pub(super) fn enter_namespaces() -> io::Result<()> {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let flags =
        CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC;
    unshare(flags)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Makes everything read-only except the writable folders, and hides the covered paths.
pub(super) fn set_up_mounts(policy: &Policy) -> Result<(), LaunchError> {
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NO_VALUE, "/", NO_VALUE, private, NO_VALUE).map_err(step_error("separating mounts"))?;
    // Create the covers before the temporary folder is remounted.
    let (file, folder) = (policy.temp_folder.join(".covered-file"), policy.temp_folder.join(".covered-folder"));
    if !policy.covered.is_empty() {
        create_covers(&file, &folder).map_err(step_error("making what covers"))?;
    }
    let writable: Vec<&PathBuf> = policy.writable.iter().chain([&policy.temp_folder]).collect();
    for path in &writable {
        mount_over_itself(path).map_err(step_error("mounting what is writable"))?;
    }
    // A mount point cannot be renamed. Those outside come first, because mounting one hides
    // the mounts inside it.
    for path in &policy.pinned {
        mount_over_itself(path).map_err(step_error("mounting what is pinned"))?;
    }
    for path in &policy.read_only {
        mount_over_itself(path).map_err(step_error("mounting what is guarded"))?;
    }
    // Not text: names of files need not be.
    let table = fs::read("/proc/self/mountinfo").map_err(step_error("reading the mounts"))?;
    for line in table.split(|byte| *byte == b'\n') {
        let Some((point, flags)) = parse_mount_line(line) else { continue };
        // The innermost path decides: a guarded file is inside a writable folder.
        let depth = |paths: &mut dyn Iterator<Item = &Path>| {
            paths.filter(|path| point.starts_with(path)).map(|path| path.components().count()).max()
        };
        let open = depth(&mut writable.iter().map(|path| path.as_path()));
        let guarded = depth(&mut policy.read_only.iter().map(PathBuf::as_path));
        if open.is_some() && open >= guarded.map(|depth| depth + 1) {
            continue;
        }
        let flags = flags | MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        // A mount point under another mount or in an inaccessible folder cannot be reached. Ours can, unless
        // another command has moved it meanwhile.
        let is_ours = open.is_some() || guarded.is_some();
        let remounted = open_without_links(&point)
            .and_then(|opened| Ok(mount(NO_VALUE, &descriptor_path(&opened), NO_VALUE, flags, NO_VALUE)?));
        match remounted {
            Ok(()) => {}
            Err(error) if !is_ours && is_unreachable(&error) => {}
            Err(error) => {
                let reason = format!("{}: {error}", point.display());
                return Err(LaunchError { step: "making mounts read-only", reason });
            }
        }
    }
    for path in &policy.covered {
        let covered = open_without_links(path).map_err(step_error("covering"))?;
        let kind = rustix::fs::fstat(&covered).map_err(step_error("covering"))?.st_mode;
        let is_folder = rustix::fs::FileType::from_raw_mode(kind).is_dir();
        let cover = if is_folder { &folder } else { &file };
        mount(Some(cover), &descriptor_path(&covered), NO_VALUE, MsFlags::MS_BIND, NO_VALUE)
            .map_err(step_error("covering"))?;
    }
    Ok(())
}

/// Mounts a file or folder over itself. Other commands may exchange names in the session's folders meanwhile, so it
/// is opened once, and its name must not lead through a link.
fn mount_over_itself(path: &Path) -> io::Result<()> {
    let opened = open_without_links(path)?;
    let path = descriptor_path(&opened);
    let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
    Ok(mount(Some(path.as_path()), path.as_path(), NO_VALUE, bind, NO_VALUE)?)
}

/// Opens a resolved path; a link in it is an error.
pub(super) fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

/// Returns the path of what a descriptor has opened, whatever its name is now.
fn descriptor_path(opened: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

fn is_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory)
}

/// Creates the file and the folder, without any permissions, that cover others.
fn create_covers(file: &Path, folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(file, "")?;
    fs::create_dir(folder)?;
    [file, folder].iter().try_for_each(|path| fs::set_permissions(path, fs::Permissions::from_mode(0o0)))
}

/// Parses a line of `mountinfo`: mount point and the flags that a remount must keep.
fn parse_mount_line(line: &[u8]) -> Option<(PathBuf, MsFlags)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let (point, options) = (unescape_path(fields.next()?), String::from_utf8_lossy(fields.next()?));
    let flag = |option: &str| match option {
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        "noatime" => MsFlags::MS_NOATIME,
        "nodiratime" => MsFlags::MS_NODIRATIME,
        "relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    };
    Some((PathBuf::from(point), options.split(',').map(flag).collect()))
}

/// Decodes a path of `mountinfo`, where spaces are written `\040`.
fn unescape_path(bytes: &[u8]) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt as _;
    let mut path = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 4).filter(|_| *byte == b'\\');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(code) => {
                path.push(code);
                at += 4;
            }
            None => {
                path.push(*byte);
                at += 1;
            }
        }
    }
    std::ffi::OsString::from_vec(path)
}

/// Keeps the capability that the inner process needs to mount `/proc`.
pub(super) fn keep_capability() -> io::Result<()> {
    let sets = rustix::thread::capabilities(None)?;
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SETPCAP;
    rustix::thread::set_capabilities(None, CapabilitySets { inheritable: needed, ..sets })?;
    rustix::thread::configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    Ok(rustix::thread::configure_capability_in_ambient_set(CapabilitySet::SETPCAP, true)?)
}

/// Mounts a `/proc` that shows only the processes of the namespace.
pub(super) fn mount_proc() -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    Ok(mount(Some("proc"), "/proc", Some("proc"), flags, NO_VALUE)?)
}

/// Drops all capabilities, including those that a program run as root would regain.
pub(super) fn drop_capabilities() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let sets = rustix::thread::capabilities(None)?;
    if sets.effective.contains(CapabilitySet::SETPCAP) {
        for bit in 0..64 {
            let one = CapabilitySet::from_bits_retain(1 << bit);
            if rustix::thread::capability_is_in_bounding_set(one).unwrap_or(false) {
                rustix::thread::remove_capability_from_bounding_set(one)?;
            }
        }
    }
    let none = CapabilitySet::empty();
    Ok(rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_keeps_its_flags() {
        let line = r"28 27 0:25 / /mnt/a\040b ro,nosuid,nodev,relatime - tmpfs x ro,size=4k,mode=755";
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_RELATIME;
        assert_eq!(parse_mount_line(line.as_bytes()), Some((PathBuf::from("/mnt/a b"), flags)));
        assert_eq!(parse_mount_line(b"28 27"), None);
    }
}
