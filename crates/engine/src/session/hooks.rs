//! Running the hooks of a session.

use quipu_message::hook::{
    HookEvent, HookInputBase, InstructionsLoadReason, InstructionsLoaded, SessionStart, SessionStartSource,
};
use quipu_message::{Json, Maybe, ToolUseId};
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::hooks::{HookEnvironment, HookOutcome};

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
        let (host, output, env) = (&self.host, &self.output, &self.hook_env);
        let environment = HookEnvironment { host, output, env, root, project_folder: &self.project_folder, cancel };
        let hook_outcome = self.hooks.run(E::NAME, Json::from_serialize(&input), subject, call, environment).await;
        if !cancel.is_cancelled() {
            hook_outcome.failures().for_each(|failure| self.warn(failure));
        }
        hook_outcome
    }

    /// Runs the hooks for the start of a session and for its instruction files. Their attachments are
    /// recorded with the next prompt.
    pub(crate) async fn run_start_hooks(&self, source: SessionStartSource) {
        let cancel = CancellationToken::new();
        let input = SessionStart { source: source.clone(), base: self.hook_base(), ..SessionStart::default() };
        let hook_outcome = self.run_hooks(input, Some(source.as_str()), None, &cancel).await;
        self.activity.add_pending(hook_outcome.attachments);
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
