//! What the kernel lets a command do, whatever the reader of bash made of its text.
//!
//! ```text
//!   judge ── Profile ──▸ Sandbox::plan ── Policy ──▸ launcher ── namespaces, Landlock, seccomp ──▸ bash
//!                           │
//!                        refusals: what rules refuse inside the folders, from one walk
//! ```
//!
//! [`Sandbox`] belongs to a session and knows how far the kernel can hold a command
//! ([`SandboxLevel`], found by a self-test at first use). The launcher ([`launch`]) is the
//! agent's own program in another role: it sets itself up and becomes the shell. On
//! macOS the same policy becomes a Seatbelt profile.

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
mod sandboxed_command;
mod seatbelt;
mod self_test;
mod session_sandbox;
mod settings;

pub(crate) use command_context::CommandContext;
pub use launch::launch;
pub(crate) use launchers::Launched;
pub use restricted_paths::{PathMatcher, SandboxRestrictions};
pub(crate) use sandboxed_command::SandboxedCommand;
pub use session_sandbox::{Sandbox, SandboxLevel, SandboxMode, SandboxOptions};
pub use settings::SandboxSettings;

/// The flag that makes a program the launcher ([`launch`]).
const LAUNCHER_FLAG: &str = "--internal-sandbox-launcher";

/// What the kernel lets a command do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SandboxProfile {
    /// Read the session's folders and the system's; write nothing but a temporary
    /// folder of its own; no network. For commands that were allowed because they
    /// only read.
    Read,
    /// Also write in the session's folders, except for files that decide what
    /// programs do. For commands that a mode or a setting approved.
    Workspace,
    /// Everything the user can do. For commands that the user, a rule or the host
    /// approved.
    #[default]
    None,
}
