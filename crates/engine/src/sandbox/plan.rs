//! One command in the sandbox: what it may do, where it writes, what it leaves behind.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::launchers::{Launched, Launchers};
use super::policy::{Network, Policy};
use super::refusals::{Guarded, guarded_paths};
use super::session::{Level, Sandbox};
use super::{Profile, readable};
use crate::tool::{Place, resolve};

/// Variables that commands which only read are given.
const KEPT: [&str; 16] = [
    "CI",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "LINES",
];

/// Settings of git under which it runs no program that a repository names.
const GIT: [(&str, &str); 4] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("safe.bareRepository", "explicit"),
];

/// One command in the sandbox. Dropped, its temporary folder is removed.
#[derive(Debug)]
pub(crate) struct Plan {
    launchers: Arc<Launchers>,
    policy: Policy,
    profile: Profile,
    folders: Vec<PathBuf>,
    /// The guarded paths that were there before.
    guarded: Vec<Guarded>,
}

impl Sandbox {
    /// Prepares a command for a profile; `None` for [`Profile::None`]. An error says why it
    /// cannot be held.
    pub(crate) fn plan(&self, profile: Profile, place: &Place, id: &str) -> Result<Option<Plan>, String> {
        if profile == Profile::None {
            return Ok(None);
        }
        let Some(launchers) = self.launchers.clone() else { return Err("there is no launcher".to_owned()) };
        let (mut policy, guarded) = self.policy(profile, place)?;
        let temp = self.folder.join(format!("{id}.tmp"));
        DirBuilder::new().recursive(true).mode(0o700).create(&temp).map_err(|error| error.to_string())?;
        policy.temp = temp.canonicalize().map_err(|error| error.to_string())?;
        Ok(Some(Plan { launchers, policy, profile, folders: place.folders(), guarded }))
    }

    /// What a command in a profile may do, and the guarded paths that are there.
    pub(super) fn policy(&self, profile: Profile, place: &Place) -> Result<(Policy, Vec<Guarded>), String> {
        let mounts = match (self.level(), profile) {
            (_, Profile::None) => return Ok(<(Policy, Vec<Guarded>)>::default()),
            (Level::Full, _) => true,
            (Level::WithoutMounts, Profile::Read) => false,
            (Level::WithoutMounts, Profile::Workspace) => {
                return Err("the system gives it no namespaces to guard files with".to_owned());
            }
            (Level::Unavailable(why), _) => return Err(why.clone()),
        };
        let settings = &self.options.settings;
        let at = |path: &String| {
            let path = place.absolute(path);
            resolve(&path).unwrap_or(path)
        };
        let folders = place.folders();
        let writes = profile == Profile::Workspace;
        let mut read = readable::files(place, mounts);
        let mut execute = readable::programs(place);
        let mut write = Vec::new();
        if writes {
            write.clone_from(&folders);
            execute.extend(folders.iter().cloned());
            if settings.approves() {
                write.extend(settings.filesystem.allow_write.iter().map(at).filter(|path| path.exists()));
                // As documented: what is not refused may be read.
                (read, execute) = (Vec::new(), vec![PathBuf::from("/")]);
            }
        }
        let all: Vec<PathBuf> = read.iter().chain(&execute).cloned().collect();
        let refused = self.refused.read().unwrap_or_else(PoisonError::into_inner);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = cache.find((refused.0, &refused.1), &folders, &all, writes);
        if found.incomplete {
            return Err("there are too many files to look for those that rules refuse".to_owned());
        }
        found.covered.extend(settings.filesystem.deny_read.iter().map(at).filter(|path| path.exists()));
        found.read_only.extend(settings.filesystem.deny_write.iter().map(at).filter(|path| writes && path.exists()));
        if !mounts && !found.covered.is_empty() {
            return Err("the system gives it no namespaces to cover the files that rules refuse".to_owned());
        }
        let allowed = writes && settings.has_network(refused.1.network);
        let network = match (allowed, settings.network.allow_all_unix_sockets) {
            (false, _) => Network::None,
            (true, Some(true)) => Network::WithUnixSockets,
            (true, _) => Network::Internet,
        };
        let policy = Policy {
            mounts,
            read,
            execute,
            write,
            covered: found.covered,
            read_only: found.read_only,
            network,
            attributes: writes,
            cwd: place.cwd(),
            ..Policy::default()
        };
        Ok((policy, found.guarded))
    }
}

impl Plan {
    /// The folder that the command may write in, whatever else it may.
    pub(crate) fn temp(&self) -> &Path {
        &self.policy.temp
    }

    /// Starts a program in the sandbox. It gets those of the variables that it may have, as
    /// far as they are text, and `more`. Needs a tokio runtime.
    pub(crate) fn launch(
        &self,
        argv: &[&str],
        given: &BTreeMap<OsString, OsString>,
        more: &[(&str, &str)],
    ) -> io::Result<Launched> {
        let mut env = self.env(given);
        env.extend(more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        let argv = argv.iter().map(|&arg| arg.to_owned()).collect();
        self.launchers.run(&Policy { argv, env: env.into_iter().collect(), ..self.policy.clone() })
    }

    /// The environment of the command: nothing that changes what bash or git do.
    fn env(&self, given: &BTreeMap<OsString, OsString>) -> BTreeMap<String, String> {
        let kept = |name: &str| match self.profile {
            Profile::Read => KEPT.contains(&name) || name.starts_with("LC_"),
            _ => !is_code(name),
        };
        let text = given.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        let mut env: BTreeMap<String, String> =
            text.filter(|(name, _)| kept(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        env.insert("TMPDIR".into(), self.policy.temp.to_string_lossy().into_owned());
        if self.profile == Profile::Read {
            env.insert("GIT_OPTIONAL_LOCKS".into(), "0".into());
            env.insert("GIT_CONFIG_COUNT".into(), GIT.len().to_string());
            for (at, (name, value)) in GIT.iter().enumerate() {
                env.insert(format!("GIT_CONFIG_KEY_{at}"), (*name).into());
                env.insert(format!("GIT_CONFIG_VALUE_{at}"), (*value).into());
            }
        }
        env
    }

    /// Moves guarded paths aside that the command made. Returns where they were and where
    /// they are.
    pub(crate) fn clear_up(&self) -> Vec<(PathBuf, PathBuf)> {
        if self.profile != Profile::Workspace {
            return Vec::new();
        }
        let mut made = guarded_paths(&self.folders);
        made.retain(|guarded| !self.guarded.contains(guarded));
        let aside = |path: PathBuf| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let names = (1..).map(|n| path.with_file_name(format!("{}.moved-aside-{n}", name.trim_start_matches('.'))));
            let to = names.take(1000).find(|to| to.symlink_metadata().is_err())?;
            fs::rename(&path, &to).ok()?;
            Some((path, to))
        };
        made.into_iter().map(|guarded| guarded.path).filter_map(aside).collect()
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        remove_temp(&self.policy.temp);
    }
}

/// Removes a temporary folder with all that is in it.
pub(super) fn remove_temp(temp: &Path) {
    // What covers files may not even be listed.
    let _ = fs::remove_dir(temp.join(".covered-folder"));
    let _ = fs::remove_dir_all(temp);
}

/// Whether a variable holds code, or says where code is.
fn is_code(name: &str) -> bool {
    let starts = ["BASH_FUNC_", "LD_", "GIT_CONFIG", "DYLD_"];
    let names = ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "CDPATH", "GLOBIGNORE"];
    names.contains(&name) || starts.iter().any(|start| name.starts_with(start))
}
