//! Which program to start, and whether it is new enough.

use std::env;
use std::path::{Path, PathBuf};

use crate::Error;

/// What this crate speaks was first spoken so by this version.
const MIN_AGENT_VERSION: &str = "2.0.0";

/// The names an agent goes by.
const PROGRAM_NAMES: [&str; 2] = ["claude", "quipu-agent"];

/// The program to start: the one that was named, the one that `QUIPU_CLI` names,
/// `claude` or `quipu-agent` on the PATH, `quipu-agent` beside this program.
pub(crate) fn find_program(named: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    if let Some(named) = env::var_os("QUIPU_CLI").filter(|name| !name.is_empty()) {
        return Ok(named.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let path: Vec<PathBuf> = env::split_paths(&path).collect();
    search_folders(&path, beside).ok_or_else(|| Error::NotFound { names: PROGRAM_NAMES.map(str::to_owned).to_vec() })
}

fn search_folders(path: &[PathBuf], beside: Option<PathBuf>) -> Option<PathBuf> {
    let on_path = PROGRAM_NAMES.iter().flat_map(|name| path.iter().map(move |folder| program_path(folder, name)));
    let bundled = beside.map(|folder| program_path(&folder, "quipu-agent"));
    on_path.chain(bundled).find(|program| is_executable(program))
}

fn program_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    {
        path.is_file()
    }
}

/// An error when an agent says that it is too old. What cannot be read is let pass.
pub(crate) fn check_version(version: &str) -> Result<(), Error> {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let plain = text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        let numbers: Vec<u64> = plain.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        (numbers.len() == 3).then_some(numbers)
    };
    match (numbers(version), numbers(MIN_AGENT_VERSION)) {
        (Some(has), Some(needs)) if has < needs => {
            Err(Error::TooOld { version: version.to_owned(), needed: MIN_AGENT_VERSION })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
