//! The whole explanation of a session, as commands print it.

use std::collections::BTreeMap;

use quipu_conversation::Tokens;
use quipu_conversation::price::{Prices, Usd};
use serde::Serialize;

use super::advice::{Advice, advise};
use super::{Activity, Explanation};
use crate::cache::{CacheAnalysis, MissTotals, Policy};
use crate::call::Call;
use crate::structure::{BranchKind, Structure};
use crate::trace::Trace;

/// Explanation of one session: where its time, tokens and money went, what the prompt cache
/// did, and what would have been cheaper.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Id of the session.
    pub session_id: Option<String>,
    /// Milliseconds from the first to the last entry.
    pub wall_ms: u64,
    /// Wall time by activity, in milliseconds.
    pub time: TimeReport,
    /// Cost by turn, tool, agent, MCP server and side task, in US dollars.
    pub money: MoneyReport,
    /// The most expensive API calls, the most expensive first.
    pub moments: Vec<MomentReport>,
    /// What the prompt cache did.
    pub cache: CacheReport,
    /// Prompt size of each API call of the main conversation, in order.
    pub context: Vec<ContextReport>,
    /// What filled the context, in bytes, by tool and source; the largest first.
    pub filled_by: Vec<FilledBy>,
    /// What would have been cheaper, the largest saving first.
    pub advice: Vec<Advice>,
    /// Total cost in US dollars.
    pub cost_usd: f64,
    /// Models without a known price, whose tokens are not in the costs.
    pub unpriced_models: Vec<String>,
    /// Whether the API calls were derived from the session's entries and not recorded.
    pub is_reconstructed: bool,
}

/// Wall time by activity, in milliseconds. The parts add up to the wall time.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct TimeReport {
    /// Work of the model.
    pub model: u64,
    /// Of that, until the first event of each response; known only from a capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_first_event: Option<u64>,
    /// Tools by name.
    pub tools: BTreeMap<String, u64>,
    /// Questions and permission requests that waited for the user.
    pub waiting: u64,
    /// Hooks that delayed the turn.
    pub hooks: u64,
    /// Failed API calls that waited to be sent again.
    pub retries: u64,
    /// Summaries of the history.
    pub compaction: u64,
    /// Time between two turns.
    pub idle: u64,
}

/// Cost in US dollars.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct MoneyReport {
    /// Each turn with its subagents.
    pub turns: Vec<TurnReport>,
    /// Cost by tool; `(none)` for responses without a tool call.
    pub tools: BTreeMap<String, f64>,
    /// Cost by agent: `main`, or the type of a subagent.
    pub agents: BTreeMap<String, f64>,
    /// Cost by MCP server, as a part of `tools`.
    pub mcp: BTreeMap<String, f64>,
    /// Cost of side calls by reason. Session files record few of them.
    pub side: BTreeMap<String, f64>,
}

/// One turn.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct TurnReport {
    /// Number of the turn, from 1; 0 for calls before the first prompt.
    pub turn: u32,
    /// Text of the prompt.
    pub prompt: String,
    /// Line of the prompt in the session file.
    pub line: u64,
    /// Number of its API calls.
    pub calls: u64,
    /// Token counts of its API calls.
    pub tokens: Tokens,
    /// Cost in US dollars.
    pub cost_usd: f64,
}

/// One expensive API call.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct MomentReport {
    /// Turn of the call, from 1.
    pub turn: u32,
    /// Line of its first entry; 0 if it is in a subagent's file.
    pub line: u64,
    /// Model that answered.
    pub model: String,
    /// Type of the subagent; `None` in the main conversation.
    pub agent: Option<String>,
    /// Tools that it called, each once.
    pub tools: Vec<String>,
    /// Token counts of the call.
    pub tokens: Tokens,
    /// Cost in US dollars.
    pub cost_usd: f64,
}

/// What the prompt cache did.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct CacheReport {
    /// Misses by cause.
    pub by_cause: BTreeMap<String, CauseReport>,
    /// Number of API calls that the analysis knows. Older session files do not record all.
    pub calls: usize,
    /// What these calls cost as the server counted them, in US dollars.
    pub billed_usd: f64,
    /// What the same calls would have cost under other policies.
    pub what_if: Vec<PolicyReport>,
}

/// Misses of one cause.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct CauseReport {
    /// Number of misses.
    pub misses: usize,
    /// Tokens that were not read from the cache.
    pub tokens: u64,
    /// What they cost more than a read, in US dollars.
    pub cost_usd: f64,
    /// What to do about it.
    pub advice: &'static str,
}

/// Cost of all calls under a policy, by the documented rules of the prompt cache.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct PolicyReport {
    /// Name of the policy, for example `ttl-1h`.
    pub policy: &'static str,
    /// Cost in US dollars.
    pub cost_usd: f64,
}

/// Prompt size of one API call.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Serialize)]
pub struct ContextReport {
    /// Turn of the call, from 1.
    pub turn: u32,
    /// Line of its first entry.
    pub line: u64,
    /// Tokens of the whole prompt.
    pub tokens: u64,
    /// Of those, read from the cache.
    pub cache_read: u64,
}

/// Bytes that one source added to the context.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FilledBy {
    /// Results of a tool, `prompts`, `responses` or `attachments`.
    pub source: String,
    /// Number of results or messages.
    pub count: u64,
    /// Bytes of their JSON.
    pub bytes: u64,
}

impl Report {
    /// Joins what the session file tells with its API calls, which come from the file itself or
    /// from a capture.
    pub fn new(explanation: &Explanation, trace: &Trace, prices: &Prices) -> Self {
        let structure = Structure::new(trace);
        let analysis = CacheAnalysis::new(trace, &structure);
        let verdicts = analysis.verdicts(prices);
        let money = &explanation.money;
        let usd =
            |costs: &BTreeMap<String, Usd>| costs.iter().map(|(key, cost)| (key.clone(), cost.as_f64())).collect();
        let mut report = Self {
            session_id: explanation.session_id.clone(),
            wall_ms: explanation.timeline.wall_ms,
            time: TimeReport::new(explanation, trace),
            cost_usd: money.total.as_f64(),
            unpriced_models: money.unpriced_models.clone(),
            filled_by: explanation.filled_by.clone(),
            is_reconstructed: !trace.calls.is_empty() && trace.calls.iter().all(|call| call.is_reconstructed),
            ..Self::default()
        };
        report.money = MoneyReport {
            turns: money
                .turns
                .iter()
                .map(|turn| TurnReport {
                    turn: turn.turn,
                    prompt: turn.prompt.clone(),
                    line: turn.line,
                    calls: turn.calls,
                    tokens: turn.tokens,
                    cost_usd: turn.cost.as_f64(),
                })
                .collect(),
            tools: usd(&money.tools),
            agents: usd(&money.agents),
            mcp: usd(&money.mcp),
            side: side_costs(trace, &structure, prices),
        };
        report.moments = money
            .moments
            .iter()
            .map(|moment| MomentReport {
                turn: moment.turn,
                line: moment.line,
                model: moment.model.clone(),
                agent: moment.agent.clone(),
                tools: moment.tools.clone(),
                tokens: moment.tokens,
                cost_usd: moment.cost.as_f64(),
            })
            .collect();
        report.context = explanation
            .context
            .iter()
            .map(|size| ContextReport {
                turn: size.turn,
                line: size.line,
                tokens: size.tokens.prompt(),
                cache_read: size.tokens.cache_read,
            })
            .collect();
        for (cause, totals) in MissTotals::by_cause(&verdicts) {
            let row = CauseReport {
                misses: totals.misses,
                tokens: totals.tokens,
                cost_usd: totals.cost.as_f64(),
                advice: cause.advice(),
            };
            report.cache.by_cause.insert(cause.as_str().to_owned(), row);
        }
        let billed = analysis.recorded_cost(prices);
        (report.cache.calls, report.cache.billed_usd) = (billed.calls, billed.cost.as_f64());
        report.cache.what_if = Policy::ALL
            .iter()
            .map(|policy| PolicyReport {
                policy: policy.name(),
                cost_usd: analysis.what_if(*policy, prices).cost.as_f64(),
            })
            .collect();
        report.advice = advise(&report, explanation, prices);
        report
    }
}

impl TimeReport {
    /// Name and milliseconds of each activity that took time, the longest first.
    pub fn rows(&self) -> Vec<(String, u64)> {
        let fixed = [
            ("model", self.model),
            ("waiting for the user", self.waiting),
            ("hooks", self.hooks),
            ("retries", self.retries),
            ("compaction", self.compaction),
            ("idle between turns", self.idle),
        ];
        let fixed = fixed.into_iter().map(|(name, duration)| (name.to_owned(), duration));
        let tools = self.tools.iter().map(|(name, duration)| (format!("tool {name}"), *duration));
        let mut rows: Vec<_> = fixed.chain(tools).filter(|(_, duration)| *duration > 0).collect();
        rows.sort_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
        rows
    }

    fn new(explanation: &Explanation, trace: &Trace) -> Self {
        let mut time = Self::default();
        for (activity, duration) in explanation.timeline.totals() {
            match activity {
                Activity::Model => time.model = duration,
                Activity::Tool(name) => drop(time.tools.insert(name, duration)),
                Activity::Waiting => time.waiting = duration,
                Activity::Hooks => time.hooks = duration,
                Activity::Retries => time.retries = duration,
                Activity::Compaction => time.compaction = duration,
                Activity::Idle => time.idle = duration,
            }
        }
        let is_main = |call: &&Call| call.is_message_call() && call.identity.agent_id.is_none();
        let first_events: Vec<u64> =
            trace.calls.iter().filter(is_main).filter_map(|call| call.first_event_ms).collect();
        time.model_first_event = (!first_events.is_empty()).then(|| first_events.iter().sum());
        time
    }
}

/// Cost of the calls of side branches, by reason.
fn side_costs(trace: &Trace, structure: &Structure, prices: &Prices) -> BTreeMap<String, f64> {
    let mut costs: BTreeMap<String, Usd> = BTreeMap::new();
    for branch in structure.branches.iter().filter(|branch| branch.kind == BranchKind::Side) {
        let cost = branch.calls.iter().filter_map(|call| trace.calls[*call].cost(prices)?.usd()).sum::<Usd>();
        *costs.entry(branch.reason.to_string()).or_default() += cost;
    }
    costs.into_iter().map(|(reason, cost)| (reason, cost.as_f64())).collect()
}
