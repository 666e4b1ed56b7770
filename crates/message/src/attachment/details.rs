//! What attachments that describe the session hold inside.

use crate::macros::wire;

wire! {
    /// The machine and the folders of an [`Environment`](super::Environment) attachment.
    pub struct EnvironmentSnapshot {
        /// The folder the session works in.
        working_directory: opt String = "workingDirectory",
        /// Whether that folder is a linked worktree of a git repository.
        is_worktree: opt bool = "isWorktree",
        /// Whether that folder is in a git repository.
        is_git_repo: opt bool = "isGitRepo",
        /// Further folders that tools may work in.
        additional_working_directories: opt Vec<String> = "additionalWorkingDirectories",
        /// Operating system, for example `linux`.
        platform: opt String,
        /// The user's shell, for example `bash`.
        shell: opt String,
    }
}

wire! {
    /// The model that a [`ModelIdentity`](super::ModelIdentity) attachment names.
    pub struct ModelIdentityDetails {
        /// Model id, as requests have it.
        model_id: opt String = "modelId",
    }
}

wire! {
    /// The style of an [`OutputStyleInstructions`](super::OutputStyleInstructions) attachment.
    pub struct OutputStyleDetails {
        /// Name of the style.
        name: opt String,
        /// What it tells the model.
        prompt: opt String,
    }
}
