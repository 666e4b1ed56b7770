//! Finds the agent program and checks its version.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use semver::Version;

use crate::Error;

/// First version with the control protocol that this crate uses.
const MIN_AGENT_VERSION: Version = Version::new(2, 0, 0);
const MIN_AGENT_VERSION_TEXT: &str = "2.0.0";

/// Names of agent programs, in the order they are looked for.
const PROGRAM_NAMES: [&str; 2] = ["claude", "quipu-agent"];

/// The program to start: `named`, or the one that `QUIPU_CLI` names, `claude` or
/// `quipu-agent` on the PATH, or `quipu-agent` in the folder of this program. A name without a
/// folder is looked for on the PATH, then in the folder of this program.
#[expect(clippy::disallowed_methods, reason = "programs are found as a shell finds them")]
pub(crate) fn find_program(named: Option<&Path>) -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let bundled = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let variable = env::var_os("QUIPU_CLI").filter(|name| !name.is_empty()).map(PathBuf::from);
    if let Some(named) = named.map(Path::to_owned).or(variable) {
        return Ok(find_named(&named, &path, bundled.as_deref()).unwrap_or(named));
    }
    search_folders(&path, bundled.as_deref())
        .ok_or_else(|| Error::NotFound { names: PROGRAM_NAMES.map(str::to_owned).to_vec() })
}

/// Path of an agent program by its name, on the PATH or in the folder of this program; `None` if there is none.
#[expect(clippy::disallowed_methods, reason = "programs are found as a shell finds them")]
pub fn find_agent(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let own_folder = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    find_named(Path::new(name), &path, own_folder.as_deref())
}

/// A program that is given by its name alone, in the folders of `path` or else in `bundled`.
fn find_named(name: &Path, path: &OsStr, bundled: Option<&Path>) -> Option<PathBuf> {
    let is_name = name.components().count() == 1 && name.file_name().is_some_and(|file| file == name);
    let find = |folders: &OsStr| which::which_in_global(name, Some(folders)).ok()?.next();
    if is_name { find(path).or_else(|| find(bundled?.as_os_str())) } else { None }
}

/// The first program found in the folders of `path`, or else in the folder `bundled`.
fn search_folders(path: &OsStr, bundled: Option<&Path>) -> Option<PathBuf> {
    let find = |name: &str, folders: &OsStr| which::which_in_global(name, Some(folders)).ok()?.next();
    let on_path = PROGRAM_NAMES.iter().find_map(|name| find(name, path));
    on_path.or_else(|| find("quipu-agent", bundled?.as_os_str()))
}

/// Fails if the version that an agent reports is too old. The version may be followed by
/// other text; one that cannot be parsed is accepted.
pub(crate) fn check_version(version: &str) -> Result<(), Error> {
    let number = version.split_whitespace().next().unwrap_or_default();
    match Version::parse(number) {
        Ok(found) if found < MIN_AGENT_VERSION => {
            Err(Error::TooOld { version: version.to_owned(), needed: MIN_AGENT_VERSION_TEXT })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
