//! Why a session was slow and expensive: where its time, tokens and money went.
//!
//! ```text
//!   lines of a session file ── ExplainBuilder ──┬── Timeline   wall time by activity
//!   and of its subagents                        ├── Money      cost by turn, tool, agent, server
//!                                               └── context    prompt size of each API call
//! ```

mod money;
mod timeline;

use quipu_conversation::price::Prices;
use quipu_conversation::{SubagentRef, Tokens};
use quipu_message::View;

use self::money::MoneyBuilder;
pub use self::money::{Moment, Money, TurnMoney};
pub use self::timeline::{Activity, TimeSpan, Timeline, TimelineBuilder};

/// What a session file alone tells about time and money.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// Wall time by activity.
    pub timeline: Timeline,
    /// Tokens and cost by turn, tool, agent and MCP server.
    pub money: Money,
    /// Prompt size of each API call of the main conversation, in order.
    pub context: Vec<ContextSize>,
}

/// Prompt size of one API call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextSize {
    /// Turn of the call, from 1.
    pub turn: u32,
    /// Line of its first entry.
    pub line: u64,
    /// Token counts of the call.
    pub tokens: Tokens,
}

/// Builds an [`Explanation`] from the lines of a session.
#[derive(Debug, Default)]
pub struct ExplainBuilder {
    timeline: TimelineBuilder,
    money: MoneyBuilder,
    is_in_subagent: bool,
}

impl ExplainBuilder {
    /// Declares which file the next lines come from: that of a subagent, or the session file
    /// (`None`).
    pub fn enter_file(&mut self, subagent: Option<SubagentRef<'_>>) {
        self.is_in_subagent = subagent.is_some();
        self.money.enter_file(subagent);
    }

    /// Adds a line. Its number counts from 1 in its own file.
    pub fn push(&mut self, line: u64, text: &str, view: &View<'_>) {
        if !self.is_in_subagent {
            self.timeline.push(line, text, view);
        }
        self.money.push(line, text, view);
    }

    /// The explanation of all lines that were added.
    pub fn finish(self, prices: &Prices) -> Explanation {
        let context = self.money.context();
        Explanation { money: self.money.finish(prices), timeline: self.timeline.finish(), context }
    }
}
