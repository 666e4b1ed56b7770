//! The self-test: a process in the sandbox tries what the policy forbids.

use std::fs;
use std::io::{self, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::process::ExitCode;

use super::policy::Policy;

/// Tries operations that must be denied and some that must be allowed. Prints `ok`, or what
/// went wrong and fails.
pub(super) fn run_self_test(policy: &Policy) -> ExitCode {
    let refused = |what: &'static str, tried: io::Result<()>| match tried {
        Ok(()) => Some(format!("{what} was not refused")),
        Err(error) => {
            let kind = error.kind();
            let expected = kind == io::ErrorKind::PermissionDenied || kind == io::ErrorKind::ReadOnlyFilesystem;
            (!expected).then(|| format!("{what}: {error}"))
        }
    };
    let file = policy.cwd.join("file");
    let mode = fs::Permissions::from_mode(0o600);
    let mut wrong = vec![
        refused("a write", fs::write(&file, "changed")),
        refused("a new file", fs::write(policy.cwd.join("new"), "new")),
        refused("a deletion", fs::remove_file(&file)),
        refused("a change of mode", fs::set_permissions(&file, mode)),
        refused("a TCP socket", TcpListener::bind("127.0.0.1:0").map(drop)),
        refused("a UDP socket", UdpSocket::bind("127.0.0.1:0").map(drop)),
        refused("a Unix socket", UnixDatagram::unbound().map(drop)),
        refused("a folder that is not granted", fs::read_dir(policy.cwd.join("..")).map(drop)),
    ];
    wrong.extend(policy.covered.iter().map(|path| refused("a covered file", fs::read(path).map(drop))));
    wrong.push(
        fs::write(policy.temp_folder.join("own"), "own").err().map(|error| format!("the temporary folder: {error}")),
    );
    wrong.push(fs::read(&file).err().map(|error| format!("a file that may be read: {error}")));
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    let _ = writeln!(io::stdout(), "{}", if wrong.is_empty() { "ok".to_owned() } else { wrong.join("; ") });
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
