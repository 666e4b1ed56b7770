//! The launcher on macOS: `sandbox-exec` with the policy's profile.

use std::ffi::OsStr;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::{env, fs};

use super::policy::Policy;
use super::{LAUNCHER_FLAG, check, seatbelt};

/// The second argument of the process in the sandbox.
const INSIDE: &str = "inside";
/// What the launcher exits with when it could not set the sandbox up.
const FAILED: u8 = 125;

/// Runs the launcher, when the process was started as one. To be called before
/// anything else in `main`. Returns none in any other process.
pub fn launch() -> Option<ExitCode> {
    let mut args = env::args_os().skip(1);
    if args.next().is_none_or(|arg| arg != LAUNCHER_FLAG) {
        return None;
    }
    let inside = args.next().is_some_and(|arg| arg == INSIDE);
    Some(run(inside).unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "the sandbox could not be set up: {error}");
        ExitCode::from(FAILED)
    }))
}

fn run(inside: bool) -> io::Result<ExitCode> {
    let mut stdin = fs::File::open("/dev/stdin")?;
    stdin.rewind()?;
    let mut text = Vec::new();
    stdin.read_to_end(&mut text)?;
    let policy: Policy = serde_json::from_slice(&text)?;
    if !inside {
        let _ = rustix::process::setsid();
        let mut command = Command::new("/usr/bin/sandbox-exec");
        command.arg("-p").arg(seatbelt::profile(&policy)).arg(env::current_exe()?);
        return Err(command.args([OsStr::new(LAUNCHER_FLAG), OsStr::new(INSIDE)]).exec());
    }
    env::set_current_dir(&policy.cwd)?;
    let Some((program, args)) = policy.argv.split_first() else { return Ok(check::check(&policy)) };
    Err(Command::new(program).args(args).stdin(std::process::Stdio::null()).exec())
}
