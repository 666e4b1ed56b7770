//! What a session reports to its host.

use quipu_message::stream::CommandLifecycle;
use quipu_message::system::{Informational, System, stream_only};
use quipu_message::values::{CommandState, MessageLevel, SessionActivity};
use quipu_message::{Entry, Maybe, Uuid};

use super::Session;
use crate::permission::EffectiveMode;

impl Session {
    /// Emits a `system` line.
    pub(crate) fn emit_system(&self, system: System) {
        self.output.emit(Entry::System(Box::new(system)));
    }

    /// Emits a warning for the user.
    pub(crate) fn warn(&self, text: String) {
        self.emit_informational(&text, MessageLevel::Warning);
    }

    /// Emits an `informational` line of this level.
    fn emit_informational(&self, text: &str, level: MessageLevel) {
        self.emit_system(System::Informational(Box::new(Informational {
            content: Maybe::Value(text.to_owned()),
            level: level.into(),
            envelope: self.output.envelope(),
            ..Informational::default()
        })));
    }

    /// Sets the status of the session, and emits it to hosts that asked for it.
    pub(crate) fn set_activity(&self, state: SessionActivity) {
        if let Some(line) = self.change_activity(state) {
            self.output.emit(line);
        }
    }

    /// Sets the status of the session. Returns the line for hosts that asked for it; `None` for others, and if
    /// the status is the same.
    pub(crate) fn change_activity(&self, state: SessionActivity) -> Option<Entry> {
        let is_changed = self.activity.set_status(state.clone());
        let is_read = self.var("CLAUDE_CODE_SDK_READS_SESSION_STATE").is_some_and(|set| set != "0");
        (is_changed && is_read).then(|| {
            Entry::System(Box::new(System::SessionStateChanged(Box::new(stream_only::SessionStateChanged {
                state: state.into(),
                sdk_host_only: Maybe::Value(true),
                envelope: self.output.envelope(),
                ..stream_only::SessionStateChanged::default()
            }))))
        })
    }

    /// Changes the permission mode, and emits the change.
    pub(crate) fn set_mode(&self, mode: EffectiveMode) {
        if self.permissions.replace_mode(mode) {
            self.emit_system(System::Status(Box::new(stream_only::Status {
                status: Maybe::Null,
                permission_mode: Maybe::Value(mode.into()),
                envelope: self.output.envelope(),
                ..stream_only::Status::default()
            })));
            self.announce_auto_mode();
        }
    }

    /// Informs the user once about what mode `auto` allows, if it is on.
    pub(crate) fn announce_auto_mode(&self) {
        if self.permissions.take_auto_mode_notice() {
            let held = "commands run in the workspace sandbox and edits inside the working directories";
            self.emit_informational(
                &format!("Mode auto: {held} are allowed; everything else needs approval."),
                MessageLevel::Info,
            );
        }
    }

    /// Emits the state of a prompt; nothing if the host gave it no UUID.
    pub(crate) fn emit_lifecycle(&self, uuid: Option<&Uuid>, state: CommandState) {
        if let Some(uuid) = uuid {
            self.output.emit(self.lifecycle_entry(uuid, state));
        }
    }

    /// The stream line for the state of a prompt: `queued`, `started` or `completed`.
    pub(crate) fn lifecycle_entry(&self, uuid: &Uuid, state: CommandState) -> Entry {
        Entry::CommandLifecycle(Box::new(CommandLifecycle {
            command_uuid: Maybe::Value(uuid.clone()),
            state: state.into(),
            envelope: self.output.envelope(),
            ..CommandLifecycle::default()
        }))
    }
}
