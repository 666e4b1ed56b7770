//! Why a session was slow and expensive: where its time, tokens and money went.
//!
//! ```text
//!   lines of a session file ── ExplainBuilder ──┬── Timeline   wall time by activity
//!   and of its subagents                        ├── Money      cost by turn, tool, agent, server
//!                                               └── context    prompt size of each API call
//! ```

mod advice;
mod filling;
mod money;
mod report;
mod timeline;

use std::path::Path;

use jiff::Timestamp;
use quipu_conversation::price::{BilledRequest, Cost, Prices};
use quipu_conversation::{SubagentRef, Tokens, headline};
use quipu_message::{ToolUseId, View};
use quipu_transcript::find::{self, SubagentFile};
use quipu_transcript::{FileError, for_each_view};

pub use self::advice::{Advice, AdviceKind};
use self::filling::FillingBuilder;
use self::money::MoneyBuilder;
pub use self::money::{Moment, Money, TurnMoney};
pub use self::report::{
    CacheReport, CauseReport, ContextReport, FilledBy, MomentReport, MoneyReport, PolicyReport, Report, TimeReport,
    TurnReport,
};
use self::timeline::TimelineBuilder;
pub use self::timeline::{Activity, TimeSpan, Timeline};

/// What a session file alone tells about time and money.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// Id of the session, from the first entry that has one.
    pub session_id: Option<String>,
    /// Title of the session, or its first prompt.
    pub headline: Option<String>,
    /// Wall time by activity.
    pub timeline: Timeline,
    /// Tokens and cost by turn, tool, agent and MCP server.
    pub money: Money,
    /// Prompt size of each API call of the main conversation, in order.
    pub context: Vec<ContextSize>,
    /// What filled the context, the largest source first.
    pub filled_by: Vec<FilledBy>,
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
    /// Model that answered.
    pub model: String,
    /// When the response began.
    pub time: Option<Timestamp>,
}

impl ContextSize {
    /// What reading some of the call's tokens from the cache cost, in US dollars; 0 if the model
    /// has no price.
    fn cost_of_cache_reads(&self, cache_read: u64, prices: &Prices) -> f64 {
        // The whole prompt selects the rates, so the cost is that of all tokens less that of the rest.
        let cost = |tokens: Tokens| {
            let billed =
                BilledRequest { model: &self.model, time: self.time, tokens, web_searches: 0, speed: None, geo: None };
            match prices.cost(&billed) {
                Cost::Priced { usd, .. } => usd.as_f64(),
                Cost::Unpriced { .. } => 0.0,
            }
        };
        let rest = Tokens { cache_read: self.tokens.cache_read.saturating_sub(cache_read), ..self.tokens };
        (cost(self.tokens) - cost(rest)).max(0.0)
    }
}

impl Money {
    /// Reads tokens and cost alone, which takes less than a whole [`Explanation`]. Calls `visit` with
    /// the number and view of each line of the session file.
    pub fn read(path: &Path, prices: &Prices, mut visit: impl FnMut(u64, &View<'_>)) -> Result<Self, FileError> {
        let mut builder = MoneyBuilder::default();
        for_each_view(path, |line, _, view| {
            visit(line, view);
            builder.push(line, view);
        })?;
        for subagent in list_all_subagents(path) {
            builder.enter_file(Some(subagent_ref(&subagent)));
            // As in an explanation, a file that cannot be read is left out.
            let _ = for_each_view(&subagent.path, |line, _, view| builder.push(line, view));
        }
        Ok(builder.finish(prices))
    }
}

fn list_all_subagents(path: &Path) -> Vec<SubagentFile> {
    [find::list_subagents(path), find::list_legacy_subagents(path)].concat()
}

fn subagent_ref(file: &SubagentFile) -> SubagentRef<'_> {
    SubagentRef {
        id: file.agent_id.as_str(),
        tool_use_id: file.tool_use_id.as_ref().map(ToolUseId::as_str),
        agent_type: file.agent_type.as_deref(),
    }
}

/// Builds an [`Explanation`] from the lines of a session.
#[derive(Debug, Default)]
pub struct ExplainBuilder {
    timeline: TimelineBuilder,
    money: MoneyBuilder,
    filling: FillingBuilder,
    is_in_subagent: bool,
}

impl ExplainBuilder {
    /// Reads a session file and the files of its subagents. Skips lines that cannot be parsed,
    /// and subagent files that cannot be read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let mut builder = Self::default();
        for_each_view(path, |line, text, view| builder.push(line, text, view))?;
        for subagent in list_all_subagents(path) {
            builder.enter_file(Some(subagent_ref(&subagent)));
            // A conversation without this file is still worth an explanation.
            let _ = for_each_view(&subagent.path, |line, text, view| builder.push(line, text, view));
        }
        Ok(builder)
    }

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
            self.filling.push(text, view);
        }
        self.money.push(line, view);
    }

    /// The explanation of all lines that were added.
    pub fn finish(self, prices: &Prices) -> Explanation {
        let context = self.money.context();
        let facts = self.money.facts(prices);
        let headline = headline(facts.title.as_deref(), facts.first_prompt.as_deref()).map(str::to_owned);
        Explanation {
            session_id: facts.session_id,
            headline,
            money: self.money.finish(prices),
            timeline: self.timeline.finish(),
            context,
            filled_by: self.filling.finish(),
        }
    }
}
