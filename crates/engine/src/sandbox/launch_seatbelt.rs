//! The launcher on macOS: `sandbox-exec` with the policy's profile.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use super::policy::Policy;
use super::{LAUNCHER_FLAG, seatbelt, self_test};

/// Exit code if the sandbox could not be set up.
const SETUP_FAILED_EXIT_CODE: u8 = 125;

/// Runs the launcher if the process was started with its flag; returns `None` otherwise.
/// Must be called first in `main`.
pub fn launch() -> Option<ExitCode> {
    let mut args = env::args_os().skip(1);
    if args.next().is_none_or(|arg| arg != LAUNCHER_FLAG) {
        return None;
    }
    Some(run(args.next()).unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "the sandbox could not be set up: {error}");
        ExitCode::from(SETUP_FAILED_EXIT_CODE)
    }))
}

/// `inside` is the policy of a self-test, if the process is already in the sandbox.
fn run(inside: Option<OsString>) -> io::Result<ExitCode> {
    if let Some(policy) = inside {
        return Ok(self_test::run_self_test(&serde_json::from_slice(policy.as_encoded_bytes())?));
    }
    let _ = rustix::process::setsid();
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        // The agent has ended without a command for this process.
        return Ok(ExitCode::SUCCESS);
    }
    let policy: Policy = serde_json::from_str(&line)?;
    env::set_current_dir(&policy.cwd)?;
    #[expect(clippy::disallowed_methods, reason = "the command replaces the launcher")]
    let mut command = Command::new("/usr/bin/sandbox-exec");
    command.arg("-p").arg(seatbelt::seatbelt_profile(&policy)).stdin(Stdio::null());
    match policy.argv.is_empty() {
        true => command.arg(env::current_exe()?).args([LAUNCHER_FLAG, line.trim_end()]),
        false => command.args(&policy.argv).env_clear().envs(policy.env),
    };
    Err(command.exec())
}
