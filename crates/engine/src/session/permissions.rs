//! The permission mode and rules of a session, which hosts, commands and tools change.

use parking_lot::Mutex;

use crate::permission::{EffectiveMode, RuleSet};

/// The permission mode and rules of a session.
#[derive(Debug)]
pub(crate) struct Permissions {
    state: Mutex<PermissionsState>,
}

#[derive(Debug)]
struct PermissionsState {
    mode: EffectiveMode,
    rules: RuleSet,
    /// Whether the user has been informed what mode `auto` allows.
    auto_mode_announced: bool,
    /// Whether the last note to the model said that plan mode is on.
    plan_mode_announced: bool,
}

impl Permissions {
    /// Permissions as flags and settings configure them.
    pub(crate) fn new(mode: EffectiveMode, rules: RuleSet) -> Self {
        let state = PermissionsState { mode, rules, auto_mode_announced: false, plan_mode_announced: false };
        Self { state: Mutex::new(state) }
    }

    /// The current permission mode.
    pub(crate) fn mode(&self) -> EffectiveMode {
        self.state.lock().mode
    }

    /// Changes the mode. Returns whether it was another one before.
    pub(crate) fn replace_mode(&self, mode: EffectiveMode) -> bool {
        let mut state = self.state.lock();
        let previous = std::mem::replace(&mut state.mode, mode);
        // The model is then informed that plan mode is over, however it ended.
        state.plan_mode_announced |= previous == EffectiveMode::Plan;
        previous != mode
    }

    /// Calls `read` with the mode and the rules of one moment.
    pub(crate) fn read<T>(&self, read: impl FnOnce(EffectiveMode, &RuleSet) -> T) -> T {
        let state = self.state.lock();
        read(state.mode, &state.rules)
    }

    /// Calls `change` with the rules, and returns what it returns.
    pub(crate) fn change_rules<T>(&self, change: impl FnOnce(&mut RuleSet) -> T) -> T {
        change(&mut self.state.lock().rules)
    }

    /// Whether mode `auto` is on and has not been announced; it counts as announced from then on.
    pub(crate) fn take_auto_mode_notice(&self) -> bool {
        let mut state = self.state.lock();
        state.mode == EffectiveMode::Auto && !std::mem::replace(&mut state.auto_mode_announced, true)
    }

    /// Whether plan mode was on when this was last called, and whether it is on.
    pub(crate) fn take_plan_mode_change(&self) -> (bool, bool) {
        let mut state = self.state.lock();
        let is_planning = state.mode == EffectiveMode::Plan;
        (std::mem::replace(&mut state.plan_mode_announced, is_planning), is_planning)
    }
}
