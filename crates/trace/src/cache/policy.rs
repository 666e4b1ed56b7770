//! Settings under which calls are simulated.

use std::fmt;

use super::positions::{Place, Prompt};
use crate::prompt_store::Breakpoint;

/// A setting of the prompt cache or of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Policy {
    /// Everything as it was sent.
    Recorded,
    /// Every breakpoint has a lifetime of five minutes.
    FiveMinutes,
    /// Every breakpoint has a lifetime of one hour.
    OneHour,
    /// One breakpoint, at the end of the last message.
    LastMessage,
    /// One breakpoint, at the end of the system prompt.
    ToolsAndSystem,
    /// All calls of a conversation have the same tools, in the same order.
    StableTools,
    /// Calls for titles, summaries and other side tasks are left out.
    NoSideCalls,
}

impl Policy {
    /// All policies, the recorded one first.
    pub const ALL: [Self; 7] = [
        Self::Recorded,
        Self::FiveMinutes,
        Self::OneHour,
        Self::LastMessage,
        Self::ToolsAndSystem,
        Self::StableTools,
        Self::NoSideCalls,
    ];

    /// Name of the policy in arguments and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::FiveMinutes => "ttl-5m",
            Self::OneHour => "ttl-1h",
            Self::LastMessage => "last-message",
            Self::ToolsAndSystem => "tools-system",
            Self::StableTools => "stable-tools",
            Self::NoSideCalls => "no-side-calls",
        }
    }

    /// What the policy changes, for help texts.
    pub fn description(self) -> &'static str {
        match self {
            Self::Recorded => "the requests as they were sent",
            Self::FiveMinutes => "every breakpoint has a lifetime of 5 minutes",
            Self::OneHour => "every breakpoint has a lifetime of 1 hour",
            Self::LastMessage => "one breakpoint, at the end of the last message",
            Self::ToolsAndSystem => "one breakpoint, at the end of the system prompt",
            Self::StableTools => "all calls of a conversation have the same tools in the same order",
            Self::NoSideCalls => "calls for titles, summaries and other side tasks are left out",
        }
    }

    /// Moves the breakpoints of a prompt. A request without breakpoints stays without.
    pub(super) fn set_breakpoints(self, prompt: &mut Prompt) {
        let Some(last) = prompt.last_breakpoint() else { return };
        let lifetime = prompt.positions[last].breakpoint;
        let only = match self {
            Self::FiveMinutes | Self::OneHour => {
                let new = if self == Self::OneHour { Breakpoint::OneHour } else { Breakpoint::FiveMinutes };
                for position in prompt.positions.iter_mut().filter(|position| position.breakpoint.is_some()) {
                    position.breakpoint = Some(new);
                }
                return;
            }
            Self::LastMessage => Some(prompt.positions.len() - 1),
            Self::ToolsAndSystem => {
                prompt.positions.iter().rposition(|position| !matches!(position.place, Place::Block { .. }))
            }
            Self::Recorded | Self::StableTools | Self::NoSideCalls => return,
        };
        for (index, position) in prompt.positions.iter_mut().enumerate() {
            position.breakpoint = lifetime.filter(|_| Some(index) == only);
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
