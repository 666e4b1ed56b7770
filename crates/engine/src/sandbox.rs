//! Limits what shell commands can do, enforced by the kernel.
//!
//! ```text
//!   permission ── SandboxProfile ──▸ Sandbox::prepare_command ── Policy ──▸ launcher ──▸ bash
//!                                          │                                  │
//!              restricted_paths: files that rules protect       namespaces, Landlock, seccomp
//! ```
//!
//! The sandbox does not rely on how permissions parsed the command: a parser mistake cannot
//! exceed the profile. [`Sandbox`] belongs to a session and determines by a self-test at first
//! use what the system supports ([`SandboxLevel`]). The launcher ([`launch`]) is the agent's own
//! program with another flag: it restricts itself and then becomes the shell. On macOS the same
//! policy becomes a Seatbelt profile.

mod command_context;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(not(target_os = "linux"))]
#[path = "sandbox/launch_seatbelt.rs"]
mod launch;
mod launchers;
mod policy;
mod readable;
mod restricted_paths;
mod running_commands;
mod sandboxed_command;
mod seatbelt;
mod self_test;
mod session_sandbox;
mod settings;

pub(crate) use command_context::CommandContext;
pub use launch::launch;
pub(crate) use launchers::Launched;
pub use restricted_paths::{PathMatcher, RestrictionSource, SandboxRestrictions};
pub use running_commands::NameUse;
pub(crate) use running_commands::RunningCommand;
pub(crate) use sandboxed_command::{SandboxedCommand, USER_SHELL_FILE};
pub use session_sandbox::{Sandbox, SandboxLevel, SandboxMode, SandboxOptions};
pub use settings::SandboxSettings;

/// Flag that starts a program as the launcher ([`launch`]).
const LAUNCHER_FLAG: &str = "--internal-sandbox-launcher";

/// Permissions of a command in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SandboxProfile {
    /// Reads the session's and the system's folders, writes only its own temporary folder, no
    /// network. For commands that were allowed because they only read.
    Read,
    /// Also writes in the session's folders, except guarded files. For commands that a mode or a
    /// setting approved.
    Workspace,
    /// No sandbox. For commands that the user or the host approved, or the rule `Bash`.
    #[default]
    None,
    /// No sandbox. For commands that rules allow by their words: no command may run beside it that could replace
    /// the names of files in it, or whose names it could replace.
    ByRule {
        /// When it uses names of files.
        name_use: NameUse,
        /// Id of the last command that had started when they were checked.
        last_command: u64,
        /// Whether it runs git.
        uses_git: bool,
    },
}

impl SandboxProfile {
    /// Whether the kernel limits the command.
    pub fn is_sandboxed(self) -> bool {
        matches!(self, Self::Read | Self::Workspace)
    }
}
