//! The sandbox of a session: what the system supports, and the self-test that finds out.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use super::launchers::Launchers;
use super::policy::Policy;
use super::restricted_paths::{RestrictedPathCache, RestrictionSource};
use super::running_commands::{NameUse, RunningCommand, RunningCommands};
use super::sandboxed_command::NAMES_IN_USE;
use super::sandboxed_command::remove_temp;
use super::settings::SandboxSettings;
use super::{CommandContext, LAUNCHER_FLAG, SandboxProfile};
use crate::clock::random_id;
use crate::path::TargetPath;

/// Whether to use a sandbox (`QUIPU_SANDBOX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// Use it if the system supports it; otherwise ask about commands that need it.
    #[default]
    Auto,
    /// Refuse to start without it.
    Require,
    /// Never use it; ask about commands that need it.
    Off,
}

impl SandboxMode {
    /// Parses the value of `QUIPU_SANDBOX`; `None` if it is unknown.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "require" => Some(Self::Require),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// What the system supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxLevel {
    /// Everything, so that single files can be protected.
    Full,
    /// No namespaces: folders can be granted only as a whole.
    WithoutMounts,
    /// No sandbox; the text says why.
    Unavailable(String),
}

/// Options of a [`Sandbox`].
#[derive(Debug, Clone, Default)]
pub struct SandboxOptions {
    /// The program that calls [`run_internal_role`](crate::run_internal_role) first: the agent
    /// itself, or `quipu-launcher`. Without one there is no sandbox, and PDF files are not read.
    pub launcher: Option<PathBuf>,
    /// Whether to use the sandbox.
    pub mode: SandboxMode,
    /// The `sandbox` settings.
    pub settings: SandboxSettings,
    /// Result to use instead of running the self-test.
    pub assumed_level: Option<SandboxLevel>,
}

/// Sandbox of a session and its subagents.
#[derive(Debug)]
pub struct Sandbox {
    pub(super) options: SandboxOptions,
    pub(super) launchers: Option<Arc<Launchers>>,
    level: OnceLock<SandboxLevel>,
    /// What finds the restrictions from rules, with a version that increases when they change.
    pub(super) restrictions: RwLock<(u64, RestrictionSource)>,
    pub(super) cache: Mutex<RestrictedPathCache>,
    pub(super) running: RunningCommands,
    /// Folder that contains the temporary folders of commands.
    pub(super) temp_root: PathBuf,
}

impl Sandbox {
    pub(crate) fn new(options: SandboxOptions, folder: &Path) -> Self {
        Self {
            launchers: options.launcher.clone().map(Launchers::new).map(Arc::new),
            options,
            level: OnceLock::new(),
            restrictions: RwLock::default(),
            cache: Mutex::default(),
            running: RunningCommands::default(),
            temp_root: folder.to_owned(),
        }
    }

    /// Returns the program that has the internal roles; `None` if there is none.
    pub(crate) fn launcher(&self) -> Option<&Path> {
        self.options.launcher.as_deref()
    }

    /// Creates the agent's own folder if it does not exist, and returns it resolved.
    pub(super) fn agent_folder(&self) -> io::Result<PathBuf> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.temp_root)?;
        self.temp_root.canonicalize()
    }

    /// Returns the `sandbox` settings.
    pub fn settings(&self) -> &SandboxSettings {
        &self.options.settings
    }

    /// Returns why a requested sandbox is not available, and whether the agent must then refuse
    /// to start; `None` if it is available or was not requested.
    pub(crate) fn unavailable_reason(&self) -> Option<(String, bool)> {
        let settings = &self.options.settings;
        let fails = settings.fail_if_unavailable == Some(true) && settings.enabled != Some(false);
        let required = self.options.mode == SandboxMode::Require || fails;
        if !required && settings.enabled != Some(true) {
            return None;
        }
        match self.level() {
            SandboxLevel::Full => None,
            SandboxLevel::WithoutMounts if settings.enabled != Some(true) && !fails => None,
            SandboxLevel::WithoutMounts => Some(("the system gives it no namespaces".to_owned(), required)),
            SandboxLevel::Unavailable(why) => Some((why.clone(), required)),
        }
    }

    /// Returns what the system supports. The first call runs the self-test, which takes about
    /// 20 ms.
    pub fn level(&self) -> &SandboxLevel {
        self.level.get_or_init(|| {
            if self.options.mode == SandboxMode::Off {
                return SandboxLevel::Unavailable("QUIPU_SANDBOX is off".to_owned());
            }
            if let Some(level) = &self.options.assumed_level {
                return level.clone();
            }
            let Some(launcher) = &self.options.launcher else {
                return SandboxLevel::Unavailable("there is no launcher".to_owned());
            };
            if probe_sandbox(launcher, &self.temp_root, true).is_ok() {
                return SandboxLevel::Full;
            }
            match probe_sandbox(launcher, &self.temp_root, false) {
                Ok(()) => SandboxLevel::WithoutMounts,
                Err(error) => SandboxLevel::Unavailable(error.to_string()),
            }
        })
    }

    /// Sets the restrictions from rules. Must be called whenever the rules change.
    pub fn set_restrictions(&self, restrictions: RestrictionSource) {
        let mut kept = self.restrictions.write();
        *kept = (kept.0 + 1, restrictions);
    }

    /// Whether a deny or ask rule, or a setting, protects a file or a link that leads to it.
    pub(crate) fn is_restricted(&self, path: &Path) -> bool {
        let restrictions = self.restrictions.read().1.find();
        let names = TargetPath::new(path);
        let mut names = names.names();
        names.any(|path| (restrictions.unreadable.matches)(path) || (restrictions.unwritable.matches)(path))
    }

    /// Returns the id of the last command that has started, to be read before names are checked
    /// ([`SandboxProfile::ByRule`]).
    pub(crate) fn last_command(&self) -> u64 {
        self.running.last_id()
    }

    /// Whether a command that rules allow may start now without a sandbox.
    pub(crate) fn allows_unsandboxed(&self, name_use: NameUse) -> bool {
        self.running.allows_names(name_use)
    }

    /// Starts git for the agent itself; `None` if a command runs that could make another repository for it. It ends
    /// when the value is dropped.
    pub(crate) fn start_git(&self) -> Option<RunningCommand> {
        self.running.add_unsandboxed(Some((NameUse::Repository, self.running.last_id())))
    }

    /// Starts a command without a sandbox, which ends when the value is dropped; `None` if names that were
    /// checked may lead elsewhere now.
    pub(crate) fn start_unsandboxed(&self, profile: SandboxProfile) -> Option<RunningCommand> {
        let names = match profile {
            SandboxProfile::ByRule { name_use, last_command, .. } => Some((name_use, last_command)),
            _ => None,
        };
        self.running.add_unsandboxed(names)
    }

    /// Whether a guarded path in the session's folders may have been made by a command that still runs.
    pub(crate) fn may_be_new(&self, path: &Path) -> bool {
        self.running.may_have_made(path)
    }

    /// Checks whether a profile can be enforced now; the error says why not.
    pub(crate) fn check_available(&self, profile: SandboxProfile, context: &CommandContext<'_>) -> Result<(), String> {
        let result = match profile {
            SandboxProfile::Workspace if self.running.uses_names() => Err(NAMES_IN_USE.to_owned()),
            _ => self.policy_for(profile, context).map(|_| ()),
        };
        if let Err(why) = &result {
            tracing::debug!(target: "quipu::sandbox", ?profile, %why, "cannot hold the command");
        }
        result
    }
}

/// Runs the self-test: a process in the sandbox must be denied what the policy forbids.
fn probe_sandbox(launcher: &Path, folder: &Path, mounts: bool) -> io::Result<()> {
    let home = folder.join(random_id("check-"));
    let (work, temp) = (home.join("work"), home.join("temp"));
    [&work, &temp].iter().try_for_each(|path| DirBuilder::new().recursive(true).mode(0o700).create(path))?;
    let outcome = probe_policy(launcher, mounts, &work, &temp);
    remove_temp(&temp);
    let _ = fs::remove_dir_all(&home);
    tracing::debug!(target: "quipu::sandbox", mounts, ?outcome, "self-test");
    outcome
}

fn probe_policy(launcher: &Path, mounts: bool, work: &Path, temp: &Path) -> io::Result<()> {
    ["file", "covered"].iter().try_for_each(|name| fs::write(work.join(name), "kept"))?;
    let (work, temp) = (work.canonicalize()?, temp.canonicalize()?);
    let covered = if mounts { vec![work.join("covered")] } else { Vec::new() };
    let policy = Policy {
        uses_mounts: mounts,
        readable: vec![work.clone()],
        covered,
        temp_folder: temp,
        cwd: work,
        ..Policy::default()
    };
    #[expect(clippy::disallowed_methods, reason = "the self-test waits for its launcher")]
    let mut command = Command::new(launcher);
    command.arg(LAUNCHER_FLAG).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Stays open until it ends.
    let mut stdin = child.stdin.take();
    if let Some(stdin) = &mut stdin {
        stdin.write_all(&policy.to_line()?)?;
    }
    let output = child.wait_with_output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match text(&output.stdout).as_str() {
        "ok" if output.status.success() => Ok(()),
        "" => Err(io::Error::other(text(&output.stderr))),
        said => Err(io::Error::other(said.to_owned())),
    }
}
