//! What the kernel lets a command do, whatever the reader of bash made of its text.

/// What the kernel lets a command do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
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
