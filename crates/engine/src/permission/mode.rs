//! Permission modes.

use std::fmt;

use quipu_message::values;

/// Permission mode in force: which tool calls run without asking the user. Only modes that
/// this agent has; `manual` is read as `default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EffectiveMode {
    /// Reading is allowed; everything else is asked.
    #[default]
    Default,
    /// Also allows changes to files in the session's folders.
    AcceptEdits,
    /// As `AcceptEdits`; commands that no rule matches also run, in the workspace sandbox.
    Auto,
    /// Everything is allowed unless a deny rule matches.
    BypassPermissions,
    /// Only reading is allowed.
    Plan,
    /// Calls that would be asked about are denied.
    DontAsk,
}

impl EffectiveMode {
    /// Parses the value used in JSON and flags; `None` if it is unknown. `manual` is another
    /// name for `default`.
    ///
    /// ```
    /// use quipu_engine::testing::permission::PermissionMode as Mode;
    /// assert_eq!(Mode::parse("acceptEdits"), Some(Mode::AcceptEdits));
    /// assert_eq!(Mode::parse("manual"), Some(Mode::Default));
    /// assert_eq!(Mode::parse("allowEverything"), None);
    /// ```
    pub fn parse(word: &str) -> Option<Self> {
        if word == "manual" {
            return Some(Self::Default);
        }
        let all = [Self::Default, Self::AcceptEdits, Self::Auto, Self::BypassPermissions, Self::Plan, Self::DontAsk];
        all.into_iter().find(|mode| mode.as_str() == word)
    }

    /// Whether every call that the mode allows, with whatever rules, is allowed in `other` too.
    pub(crate) fn is_at_most(self, other: Self) -> bool {
        let strictest_first =
            [Self::Plan, Self::DontAsk, Self::Default, Self::AcceptEdits, Self::Auto, Self::BypassPermissions];
        let rank = |mode| strictest_first.iter().position(|known| *known == mode);
        rank(self) <= rank(other)
    }

    /// Whether files in the session's folders may be changed without asking.
    pub fn accepts_edits(self) -> bool {
        matches!(self, Self::AcceptEdits | Self::Auto)
    }

    /// Returns the value used in JSON and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Auto => "auto",
            Self::BypassPermissions => "bypassPermissions",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
        }
    }
}

impl From<EffectiveMode> for values::PermissionMode {
    fn from(mode: EffectiveMode) -> Self {
        Self::from(mode.as_str())
    }
}

impl fmt::Display for EffectiveMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
