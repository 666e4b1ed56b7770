//! Structs inside attachments that describe the session.

use crate::macros::wire;

wire! {
    /// The machine and the folders of an [`Environment`](super::Environment) attachment.
    pub struct EnvironmentSnapshot {
        /// Working directory of the session.
        working_directory: opt String = "workingDirectory",
        /// Whether it is a linked worktree of a git repository.
        is_worktree: opt bool = "isWorktree",
        /// Whether it is in a git repository.
        is_git_repo: opt bool = "isGitRepo",
        /// Additional working folders.
        additional_working_directories: opt Vec<String> = "additionalWorkingDirectories",
        /// Operating system, for example `linux`.
        platform: opt String,
        /// The user's shell, for example `bash`.
        shell: opt String,
    }
}

wire! {
    /// The model in a [`ModelIdentity`](super::ModelIdentity) attachment.
    pub struct ModelIdentityDetails {
        /// Model id, as in requests.
        model_id: opt String = "modelId",
    }
}

wire! {
    /// The style of an [`OutputStyleInstructions`](super::OutputStyleInstructions) attachment.
    pub struct OutputStyleDetails {
        /// Name of the style.
        name: opt String,
        /// Instructions for the model.
        prompt: opt String,
    }
}
