//! Running the hooks of a session.

use std::borrow::Cow;
use std::path::PathBuf;

use quipu_message::hook::{
    HookEvent, HookInputBase, InstructionsLoadReason, InstructionsLoaded, SessionStart, SessionStartSource,
};
use quipu_message::{Json, Maybe, ToolUseId};
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::hooks::{HookEnvironment, HookOutcome};
use crate::tools::bash::user_shell::find_script_variables;
use crate::{private_file, text_file};

/// The variable that names the file of a shell script that runs before every command.
pub(crate) const ENV_FILE_VARIABLE: &str = "CLAUDE_ENV_FILE";

/// Maximum size of that script; it is passed to the shell as an argument.
pub(crate) const MAX_ENV_FILE_BYTES: u64 = 64 << 10;

impl Session {
    /// The fields that every hook input has.
    pub(crate) fn hook_base(&self) -> HookInputBase {
        let path = self.log().path().display().to_string();
        HookInputBase {
            session_id: Maybe::Value(self.identity.id()),
            prompt_id: self.activity.prompt_id().into(),
            permission_mode: Maybe::Value(self.permissions.mode().into()),
            transcript_path: Maybe::Value(path),
            cwd: Maybe::Value(self.workspace.cwd().display().to_string()),
            ..HookInputBase::default()
        }
    }

    /// Runs the hooks of an event. Emits a warning for each that fails.
    pub(crate) async fn run_hooks<E: HookEvent>(
        &self,
        input: E,
        subject: Option<&str>,
        call: Option<&ToolUseId>,
        cancel: &CancellationToken,
    ) -> HookOutcome {
        let root = self.workspace.root();
        let mut env = Cow::Borrowed(&self.hook_env);
        if E::NAME == SessionStart::NAME {
            env.to_mut().insert(ENV_FILE_VARIABLE.to_owned(), self.hook_env_file().display().to_string());
        }
        let (host, output, env) = (&self.host, &self.output, &*env);
        let environment = HookEnvironment { host, output, env, root, project_folder: &self.project_folder, cancel };
        let hook_outcome = self.hooks.run(E::NAME, Json::from_serialize(&input), subject, call, environment).await;
        if !cancel.is_cancelled() {
            hook_outcome.failures().for_each(|failure| self.warn(failure));
        }
        hook_outcome
    }

    /// The file that `SessionStart` hooks write variables for later commands to.
    fn hook_env_file(&self) -> PathBuf {
        self.workspace.output_folder().join("session-env.sh")
    }

    /// Makes what `SessionStart` hooks have written run before every command. The file is read here and
    /// not by the commands, which could change it.
    fn load_env_file(&self) {
        // A hook may have made it a link to a file of the session.
        self.workspace.guard_start_files([self.hook_env_file()]);
        match text_file::read(&self.hook_env_file(), None, MAX_ENV_FILE_BYTES) {
            Ok(text) => self.workspace.set_env_script([self.env_script.as_str(), &text].join("\n").trim().to_owned()),
            Err(error) => self.warn(format!("{ENV_FILE_VARIABLE} of SessionStart hooks is not used: {error}")),
        }
    }

    /// Runs the hooks for the start of a session and for its instruction files. Their attachments are
    /// recorded with the next prompt.
    pub(crate) async fn run_start_hooks(&self, source: SessionStartSource) {
        let cancel = CancellationToken::new();
        if self.hooks.has_hooks_for(SessionStart::NAME) {
            let input = SessionStart { source: source.clone(), base: self.hook_base(), ..SessionStart::default() };
            if !self.hook_env_file().exists() {
                // A hook that needs the file reports that it cannot be written.
                let _ = private_file::write_file(&self.hook_env_file(), b"");
            }
            let hook_outcome = self.run_hooks(input, Some(source.as_str()), None, &cancel).await;
            self.activity.add_pending(hook_outcome.attachments);
            self.load_env_file();
        }
        find_script_variables(&self.workspace).await;
        if self.hooks.has_hooks_for(InstructionsLoaded::NAME) {
            for file in self.instructions() {
                let input = InstructionsLoaded {
                    file_path: file.path.display().to_string(),
                    memory_type: Maybe::Value(file.kind),
                    load_reason: Maybe::Value(InstructionsLoadReason::SessionStart),
                    base: self.hook_base(),
                    ..InstructionsLoaded::default()
                };
                self.run_hooks(input, None, None, &cancel).await;
            }
        }
    }
}
