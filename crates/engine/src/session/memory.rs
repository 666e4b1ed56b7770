//! Which instruction files and rules a session has read, and from where.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::instructions::PathRule;

/// Which instruction files and rules a session has read, and from where.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    /// Folders that the host added as parts of the project.
    extra_roots: Vec<PathBuf>,
    /// Whether the model has been given the instruction files.
    instructions_sent: bool,
    /// The rules for some files only; `None` until they are read, and again when the files they
    /// are read from may have changed.
    path_rules: Option<Arc<[PathRule]>>,
}

impl Memory {
    /// Folders that the host added as parts of the project.
    pub(crate) fn extra_roots(&self) -> Vec<PathBuf> {
        self.state.lock().extra_roots.clone()
    }

    /// Adds a folder as a part of the project. Rules are read again.
    pub(crate) fn add_root(&self, folder: PathBuf) {
        let mut state = self.state.lock();
        state.extra_roots.push(folder);
        state.path_rules = None;
    }

    /// The rules for some files only; `None` if they are still to be read.
    pub(crate) fn path_rules(&self) -> Option<Arc<[PathRule]>> {
        self.state.lock().path_rules.clone()
    }

    /// Keeps the rules for some files only, until they are cleared.
    pub(crate) fn set_path_rules(&self, rules: Arc<[PathRule]>) {
        self.state.lock().path_rules = Some(rules);
    }

    /// Rules are read again when they are next needed.
    pub(crate) fn clear_path_rules(&self) {
        self.state.lock().path_rules = None;
    }

    /// Whether the instruction files are still to be sent; they count as sent from then on.
    pub(crate) fn take_instructions_unsent(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().instructions_sent, true)
    }

    /// Instruction files are sent again with the next prompt.
    pub(crate) fn clear_instructions_sent(&self) {
        self.state.lock().instructions_sent = false;
    }
}
