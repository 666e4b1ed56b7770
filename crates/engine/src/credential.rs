//! The source of the API key.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::CommandWrap;
use quipu_api::{Credential, KeyHelper};
use tokio::io::AsyncReadExt as _;

use crate::guarded_paths::python_code;
use crate::process_group::GroupProcess;
use crate::settings::Settings;

/// The setting that names a command which prints a key.
const HELPER: &str = "apiKeyHelper";

/// How long a key of the command is used, unless `CLAUDE_CODE_API_KEY_HELPER_TTL_MS` is set.
const HELPER_TTL: Duration = Duration::from_secs(5 * 60);

/// The most bytes that the command may print.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// How long the command may run.
const HELPER_TIMEOUT: Duration = Duration::from_secs(60);

/// The source of the key: a variable, or `apiKeyHelper`; `None` if there is no key.
pub(crate) fn source(credential: Option<&Credential>) -> Option<&'static str> {
    credential.map(|credential| match credential {
        Credential::Bearer(_) => "ANTHROPIC_AUTH_TOKEN",
        Credential::ApiKey(_) => "ANTHROPIC_API_KEY",
        Credential::Helper(_) => HELPER,
    })
}

/// The command of the setting `apiKeyHelper`; `None` if it is not set.
pub(crate) fn helper(settings: &Settings, env: &BTreeMap<String, String>, cwd: &Path) -> Option<KeyHelper> {
    let command =
        settings.strongest_value(|known| known.api_key_helper.clone()).filter(|command| !command.trim().is_empty())?;
    let ttl = env.get("CLAUDE_CODE_API_KEY_HELPER_TTL_MS").and_then(|millis| millis.trim().parse().ok());
    let (env, cwd) = (env.clone(), cwd.to_owned());
    Some(KeyHelper::new(ttl.map_or(HELPER_TTL, Duration::from_millis), move || {
        Box::pin(run(command.clone(), env.clone(), cwd.clone()))
    }))
}

/// Runs the command and returns what it prints. Errors do not quote its output, which may contain the
/// key.
async fn run(command: String, env: BTreeMap<String, String>, cwd: PathBuf) -> Result<String, String> {
    let shell = CommandWrap::with_new("sh", |shell| {
        shell.args(["-c", &command]).env_clear().envs(&env).current_dir(&cwd);
        shell.envs(python_code::safe_path(&command, &cwd, |name| env.contains_key(name)));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    });
    let (status, output) = match tokio::time::timeout(HELPER_TIMEOUT, read_output(shell)).await {
        Ok(output) => output.map_err(|error| format!("{HELPER} cannot be run: {error}"))?,
        Err(_) => return Err(format!("{HELPER} did not end within {} s", HELPER_TIMEOUT.as_secs())),
    };
    if output.len() as u64 > MAX_KEY_BYTES {
        return Err(format!("{HELPER} printed more than {} kB", MAX_KEY_BYTES >> 10));
    }
    let key = String::from_utf8_lossy(&output).trim().to_owned();
    match status.code() {
        Some(0) if key.is_empty() => Err(format!("{HELPER} printed nothing")),
        Some(0) => Ok(key),
        Some(code) => Err(format!("{HELPER} failed with exit code {code}")),
        None => Err(format!("{HELPER} was killed")),
    }
}

/// Runs a command, and returns the beginning of what it prints. It is killed with its children if it prints too much or
/// if the call is dropped.
async fn read_output(command: CommandWrap) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut shell = GroupProcess::spawn(command)?;
    let mut output = Vec::new();
    if let Some(stdout) = shell.take_stdout() {
        stdout.take(MAX_KEY_BYTES + 1).read_to_end(&mut output).await?;
    }
    if output.len() as u64 > MAX_KEY_BYTES {
        shell.kill();
    }
    Ok((shell.wait().await?, output))
}
