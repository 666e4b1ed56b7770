//! One command in the sandbox: its policy, environment and clean-up.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::launchers::{Launched, Launchers};
use super::policy::{NetworkAccess, Policy};
use super::restricted_paths::{GuardedPath, PathMatcher, SandboxRestrictions, find_guarded_paths, find_settings};
use super::running_commands::{NotAdded, RunningCommand, WriteAccess};
use super::session_sandbox::{Sandbox, SandboxLevel};
use super::{CommandContext, SandboxProfile, readable};
use crate::clock::random_id;
use crate::guarded_paths::config_paths::ConfigPaths;
use crate::guarded_paths::{self, GuardedHome};
use crate::path::{resolve, without_dots};
use crate::safe_file;

/// Variables that commands in the profile `Read` get.
const KEPT_VARIABLES: [&str; 16] = [
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

/// The script in the agent's folder that defines what the user's shell does.
pub(crate) const USER_SHELL_FILE: &str = "user-shell.sh";

/// Why a command that can write does not start.
pub(super) const NAMES_IN_USE: &str = "a command that rules allow is running and uses files by name";

/// How often guarded files are searched before a command if other commands end meanwhile.
const MAX_SEARCHES: usize = 20;

/// Maximum number of names that are tried for a file that is moved aside.
const MAX_MOVED_NAMES: usize = 1000;

/// Git settings that prevent it from running programs which a repository configures.
const SAFE_GIT_SETTINGS: [(&str, &str); 4] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("safe.bareRepository", "explicit"),
];

/// One command in the sandbox. Its temporary folder is removed on drop.
#[derive(Debug)]
pub(crate) struct SandboxedCommand {
    launchers: Arc<Launchers>,
    policy: Policy,
    profile: SandboxProfile,
    folders: Vec<PathBuf>,
    settings_folders: Vec<PathBuf>,
    home: Option<PathBuf>,
    agent_folder: PathBuf,
    config_paths: ConfigPaths,
    /// Paths that must not be changed.
    unwritable: PathMatcher,
    /// Its entry among the running commands that can write in the session's folders; `None` if it
    /// cannot.
    run: Option<RunningCommand>,
}

impl Sandbox {
    /// Prepares a command for a profile; `None` if the profile has no sandbox. The error says why
    /// the profile cannot be enforced.
    pub(crate) fn prepare_command(
        &self,
        profile: SandboxProfile,
        context: &CommandContext<'_>,
        id: &str,
    ) -> Result<Option<SandboxedCommand>, String> {
        if !profile.is_sandboxed() {
            return Ok(None);
        }
        let Some(launchers) = self.launchers.clone() else { return Err("there is no launcher".to_owned()) };
        let (mut policy, unwritable, run) = self.policy_and_run(profile, context)?;
        let temp = self.temp_root.join(format!("{id}.tmp"));
        DirBuilder::new().recursive(true).mode(0o700).create(&temp).map_err(|error| error.to_string())?;
        policy.temp_folder = temp.canonicalize().map_err(|error| error.to_string())?;
        Ok(Some(SandboxedCommand {
            launchers,
            policy,
            profile,
            folders: context.folders.clone(),
            settings_folders: context.settings_folders.to_vec(),
            home: context.resolved_home(),
            unwritable,
            agent_folder: self.agent_folder().map_err(|error| error.to_string())?,
            config_paths: context.config_paths.clone(),
            run,
        }))
    }

    /// Builds the policy for a profile, and adds a command that can write to the running ones. Also returns what
    /// matches the paths that must not be changed.
    fn policy_and_run(
        &self,
        profile: SandboxProfile,
        context: &CommandContext<'_>,
    ) -> Result<(Policy, PathMatcher, Option<RunningCommand>), String> {
        for _ in 0..MAX_SEARCHES {
            let ended = self.running.ended_writers();
            let (policy, guarded, unwritable) = self.policy_for(profile, context)?;
            if profile != SandboxProfile::Workspace {
                return Ok((policy, unwritable, None));
            }
            let access = WriteAccess {
                writable: policy.writable.clone(),
                read_only: policy.read_only.clone(),
                unwritable: unwritable.clone(),
            };
            match self.running.add_writer(access, guarded, ended) {
                Ok(run) => return Ok((policy, unwritable, Some(run))),
                Err(NotAdded::NamesInUse) => return Err(NAMES_IN_USE.to_owned()),
                Err(NotAdded::SearchAgain) => {}
            }
        }
        Err("other commands ended all the time while guarded files were searched".to_owned())
    }

    /// Builds the policy for a profile, and returns the guarded paths that exist and what matches the
    /// paths that must not be changed.
    pub(super) fn policy_for(
        &self,
        profile: SandboxProfile,
        context: &CommandContext<'_>,
    ) -> Result<(Policy, Vec<GuardedPath>, PathMatcher), String> {
        let mounts = match (self.level(), profile) {
            (_, SandboxProfile::None | SandboxProfile::ByRule { .. }) => return Ok(Default::default()),
            (SandboxLevel::Full, _) => true,
            (SandboxLevel::WithoutMounts, SandboxProfile::Read) => false,
            (SandboxLevel::WithoutMounts, SandboxProfile::Workspace) => {
                return Err("the system gives it no namespaces to guard files with".to_owned());
            }
            (SandboxLevel::Unavailable(why), _) => return Err(why.clone()),
        };
        let settings = &self.options.settings;
        let folders = &context.folders;
        let writes = profile == SandboxProfile::Workspace;
        let home = context.resolved_home();
        // It must exist to be found if it is inside the session's folders.
        let agent_folder = self.agent_folder().map_err(|error| error.to_string())?;
        let home = GuardedHome {
            home: home.as_deref(),
            folders,
            agent_folder: &agent_folder,
            settings_folders: context.settings_folders,
            config_paths: &context.config_paths,
        };
        let mut read = readable::readable_paths(context, mounts);
        let mut execute = readable::program_folders(context);
        let mut write = Vec::new();
        if writes {
            // The session may work in a guarded folder, and further folders may be guarded.
            write.extend(folders.iter().filter(|folder| !home.is_guarded_folder(folder)).cloned());
            if write.first() != folders.first() {
                return Err("the folder of the session is a guarded one".to_owned());
            }
            execute.extend(folders.iter().cloned());
            if settings.approves_sandboxed() {
                let more: Vec<PathBuf> =
                    settings.filesystem.allow_write.iter().map(|path| context.absolute(path)).collect();
                let roots: Vec<PathBuf> = folders.iter().chain(&more).cloned().collect();
                let more = more.iter().filter_map(|path| resolve_below(path, &roots));
                write.extend(more.filter(|path| path.exists()));
                // As documented: everything may be read that is not denied.
                (read, execute) = (Vec::new(), vec![PathBuf::from("/")]);
            }
        }
        let all: Vec<PathBuf> = read.iter().chain(&execute).cloned().collect();
        let (version, source) = self.restrictions.read().clone();
        let restrictions = source.find();
        let agent_folder = self.agent_folder().map_err(|error| error.to_string())?;
        let mut cache = self.cache.lock();
        let mut found = cache.find_restricted((version, &restrictions), home, &agent_folder, &all, &write);
        if found.is_incomplete {
            return Err(
                "there are too many files, or folders that cannot be listed, to look for those that rules refuse"
                    .to_owned(),
            );
        }
        found = found.with(find_settings(home, &write));
        // The command cannot read those of other users either.
        let is_readable = |script: &PathBuf| all.iter().any(|open| script.starts_with(open)) && script.exists();
        found.covered.extend(user_shell_files(&agent_folder).into_iter().filter(is_readable));
        // The script in it is found by name.
        found.read_only.extend(write.iter().any(|open| agent_folder.starts_with(open)).then_some(agent_folder));
        if !mounts && !found.covered.is_empty() {
            return Err("the system gives it no namespaces to cover the files that rules refuse".to_owned());
        }
        let allowed = writes && settings.allows_network(restrictions.allows_network);
        let network = match (allowed, settings.network.allow_all_unix_sockets) {
            (false, _) => NetworkAccess::None,
            (true, Some(true)) => NetworkAccess::WithUnixSockets,
            (true, _) => NetworkAccess::Internet,
        };
        // Another command could be starting, which finds a folder inside another one by name.
        let pinned = found.covered.iter().chain(&found.read_only).chain(&found.links).chain(folders);
        let pinned = folders_to_pin(pinned, &write);
        let policy = Policy {
            uses_mounts: mounts,
            readable: read,
            executable: execute,
            writable: write,
            covered: found.covered,
            read_only: found.read_only,
            pinned,
            network,
            allows_attribute_changes: writes,
            cwd: context.cwd.clone(),
            ..Policy::default()
        };
        Ok((policy, found.guarded, restrictions.unwritable))
    }
}

/// Returns the scripts that define what the user's shell does, of this agent and of those beside it.
fn user_shell_files(agent_folder: &Path) -> Vec<PathBuf> {
    let beside = agent_folder.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let others =
        beside.filter(|entry| guarded_paths::is_agent_folder_name(&entry.file_name())).map(|entry| entry.path());
    [agent_folder.to_owned()].into_iter().chain(others).map(|folder| folder.join(USER_SHELL_FILE)).collect()
}

/// Resolves a path; `None` if it leads through one of the `roots` and out of it by a link. Commands can write there,
/// so the link may be theirs, and files of a project may be links.
fn resolve_below(path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    let path = without_dots(path);
    let real = resolve(&path)?;
    let on_the_way: Vec<PathBuf> = path.ancestors().filter_map(resolve).collect();
    let leads_out =
        |root: &PathBuf| !real.starts_with(root) && on_the_way.iter().any(|folder| folder.starts_with(root));
    let mut roots = roots.iter().filter_map(|root| resolve(root));
    (!roots.any(|root| leads_out(&root))).then_some(real)
}

/// Returns the parent folders of some paths inside the writable folders, the outer ones first.
fn folders_to_pin<'a>(paths: impl Iterator<Item = &'a PathBuf>, writable: &[PathBuf]) -> Vec<PathBuf> {
    let is_inside = |parent: &&Path| writable.iter().any(|folder| parent.starts_with(folder) && parent != folder);
    let parents: BTreeSet<&Path> = paths.flat_map(|path| path.ancestors().skip(1).take_while(is_inside)).collect();
    parents.into_iter().map(Path::to_owned).collect()
}

impl SandboxedCommand {
    /// Returns the temporary folder, which the command may always write in.
    pub(crate) fn temp_folder(&self) -> &Path {
        &self.policy.temp_folder
    }

    /// Starts a program in the sandbox with the permitted variables of `given` that are UTF-8,
    /// and `more`. Needs a tokio runtime.
    pub(crate) fn launcher_command(
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

    /// Returns the environment without variables that change what bash or git do.
    fn env(&self, given: &BTreeMap<OsString, OsString>) -> BTreeMap<String, String> {
        let kept = |name: &str| match self.profile {
            SandboxProfile::Read => KEPT_VARIABLES.contains(&name) || name.starts_with("LC_"),
            _ => !is_code_variable(name),
        };
        let text = given.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        let mut env: BTreeMap<String, String> =
            text.filter(|(name, _)| kept(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        env.insert("TMPDIR".into(), self.policy.temp_folder.to_string_lossy().into_owned());
        if self.profile == SandboxProfile::Read {
            env.insert("GIT_OPTIONAL_LOCKS".into(), "0".into());
            env.insert("GIT_CONFIG_COUNT".into(), SAFE_GIT_SETTINGS.len().to_string());
            for (at, (name, value)) in SAFE_GIT_SETTINGS.iter().enumerate() {
                env.insert(format!("GIT_CONFIG_KEY_{at}"), (*name).into());
                env.insert(format!("GIT_CONFIG_VALUE_{at}"), (*value).into());
            }
        }
        env
    }

    /// Whether the command could create files that have to be moved aside.
    pub(crate) fn can_write(&self) -> bool {
        self.run.is_some()
    }

    /// Renames guarded paths, and those that must not be changed, that the command created. Returns
    /// the old and new path of each; an error if it could not be renamed. So are folders with paths
    /// that are too long to be opened.
    pub(crate) fn move_guarded_aside(&self) -> Vec<(PathBuf, io::Result<PathBuf>)> {
        let Some(run) = &self.run else { return Vec::new() };
        let home = GuardedHome {
            home: self.home.as_deref(),
            folders: &self.folders,
            agent_folder: &self.agent_folder,
            settings_folders: &self.settings_folders,
            config_paths: &self.config_paths,
        };
        let unwritable = self.unwritable.clone();
        let mut refused = SandboxRestrictions { unwritable, ..SandboxRestrictions::default() };
        let before = run.guarded_before();
        let is_new = |guarded: &GuardedPath| {
            let is_kept = guarded.path == self.agent_folder || self.policy.writable.contains(&guarded.path);
            !is_kept && guarded.is_new(&before)
        };
        let (mut all, mut inside) = (Vec::new(), None);
        let mut settings = find_settings(home, &self.policy.writable).guarded;
        loop {
            let (mut found, too_deep) = find_guarded_paths(&refused, home, &self.policy.writable, inside.take());
            found.append(&mut settings);
            // A file is moved with its folder.
            let found = found.into_iter().filter(is_new).filter(|guarded| guarded.path.symlink_metadata().is_ok());
            let made = found.map(|guarded| (move_aside(&guarded.path), guarded.path));
            let made: Vec<(PathBuf, io::Result<PathBuf>)> = made.map(|(moved, path)| (path, moved)).collect();
            // A guarded folder may contain guarded files, which its new name does not disable. Rules
            // are not applied again: they may match the new name too.
            let moved = made.iter().filter_map(|(_, moved)| moved.as_ref().ok());
            // A link may lead out of the session's folders.
            let folders = moved.filter(|moved| !moved.is_symlink()).filter_map(|moved| moved.read_dir().ok());
            let entries: Vec<PathBuf> = folders.flatten().flatten().map(|entry| entry.path()).collect();
            refused.unwritable = PathMatcher::default();
            all.extend(made);
            let is_unchecked =
                || io::Error::new(io::ErrorKind::InvalidFilename, "paths in it are too long to be checked");
            all.extend(too_deep.into_iter().map(|folder| (folder, Err(is_unchecked()))));
            if entries.is_empty() {
                return all;
            }
            inside = Some(entries);
        }
    }
}

/// Gives a file another name in its folder, and returns its new path.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let name = name.to_string_lossy().trim_start_matches('.').to_owned();
    let mut names = (1..=MAX_MOVED_NAMES).map(|n| path.with_file_name(format!("{name}.moved-aside-{n}")));
    let free = names.find(|to| to.symlink_metadata().is_err());
    // The command may have taken all these names, or they may be too long.
    let names = free.into_iter().chain([path.with_file_name(random_id("moved-aside-"))]);
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for to in names {
        outcome = match safe_file::rename(path, &to) {
            // The command may have made the folder read-only.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                safe_file::allow_owner(folder).and_then(|()| safe_file::rename(path, &to))
            }
            renamed => renamed,
        }
        .map(|()| to);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

impl Drop for SandboxedCommand {
    fn drop(&mut self) {
        remove_temp(&self.policy.temp_folder);
    }
}

/// Removes a temporary folder and its contents.
pub(super) fn remove_temp(temp: &Path) {
    // This folder cannot be listed, so it is removed by name.
    let _ = fs::remove_dir(temp.join(".covered-folder"));
    let _ = safe_file::remove_tree(temp);
}

/// Whether a variable contains code or the location of code.
fn is_code_variable(name: &str) -> bool {
    let starts = ["BASH_FUNC_", "LD_", "GIT_CONFIG", "DYLD_"];
    let names = ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "CDPATH", "GLOBIGNORE"];
    names.contains(&name) || starts.iter().any(|start| name.starts_with(start))
}
