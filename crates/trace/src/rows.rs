//! Calls in the shapes that commands and the page show as JSON.

use std::collections::HashMap;

use quipu_conversation::Tokens;
use quipu_conversation::price::Prices;
use serde::Serialize;

use crate::anatomy::{AnatomyPart, anatomy};
use crate::call::Call;
use crate::diff::{Change, Difference, diff_requests};
use crate::structure::{Branch, Structure};
use crate::trace::Trace;

/// Shape of `quipu trace show --json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct TraceRows<'a> {
    /// Sessions with their branches and turns.
    pub sessions: Vec<SessionCallRows<'a>>,
    /// All calls, in order of time.
    pub calls: Vec<CallRow<'a>>,
}

/// Branches and turns of one session.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct SessionCallRows<'a> {
    /// Id of the session; `None` for calls without one.
    pub session_id: Option<&'a str>,
    /// Chains of calls that continue each other.
    pub branches: Vec<BranchRow<'a>>,
    /// Turns of the main conversation and its subagents.
    pub turns: Vec<TurnRow<'a>>,
}

/// One branch.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct BranchRow<'a> {
    /// Id of the branch.
    pub id: &'a str,
    /// Kind of the branch, such as `main` or `subagent`.
    pub kind: &'static str,
    /// Id of the branch that it left.
    pub parent: Option<&'a str>,
    /// Id of the last call of the parent before the fork.
    pub forked_at: Option<&'a str>,
    /// Why the branch began.
    pub reason: String,
    /// Id of the subagent, for its branch.
    pub agent_id: Option<&'a str>,
    /// Ids of the calls.
    pub calls: Vec<&'a str>,
}

/// One turn.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct TurnRow<'a> {
    /// Text of the prompt.
    pub prompt: &'a str,
    /// Ids of the calls.
    pub calls: Vec<&'a str>,
    /// Names of the tools that were called, in order.
    pub tools: &'a [String],
    /// Token counts of its calls.
    pub tokens: Tokens,
    /// Cost in US dollars, of the calls that have a price.
    pub cost_usd: f64,
}

/// One call and the parts of its request.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct CallRow<'a> {
    /// Id of the call.
    pub id: &'a str,
    /// Time of the request, as ISO 8601.
    pub started_at: Option<String>,
    /// Milliseconds from the request to the end of the response.
    pub duration_ms: Option<u64>,
    /// Model of the request, or else of the response.
    pub model: Option<&'a str>,
    /// HTTP status; `None` if there was no response.
    pub status: Option<u16>,
    /// Id of the branch.
    pub branch: Option<&'a str>,
    /// Number of the turn in its session, from 1.
    pub turn: Option<usize>,
    /// Token counts of the response.
    pub usage: Option<Tokens>,
    /// Cost in US dollars; `None` if it is not known.
    pub cost_usd: Option<f64>,
    /// The parts of the request.
    pub anatomy: Vec<AnatomyPart>,
}

impl<'a> TraceRows<'a> {
    /// Collects the rows of a trace. Prices its calls.
    pub fn new(trace: &'a Trace, structure: &'a Structure, prices: &Prices) -> Self {
        let id = |call: &usize| trace.calls[*call].id.as_str();
        let mut turn_of: HashMap<usize, usize> = HashMap::new();
        for session in &structure.sessions {
            for (number, turn) in session.turns.iter().enumerate() {
                turn_of.extend(turn.calls.iter().map(|call| (*call, number + 1)));
            }
        }
        let branch = |branch: &'a Branch| BranchRow {
            id: &branch.id,
            kind: branch.kind.as_str(),
            parent: branch.parent.map(|parent| structure.branches[parent].id.as_str()),
            forked_at: branch.forked_at.as_ref().map(id),
            reason: branch.reason.to_string(),
            agent_id: branch.agent_id.as_deref(),
            calls: branch.calls.iter().map(id).collect(),
        };
        let sessions = structure.sessions.iter().map(|session| SessionCallRows {
            session_id: session.session_id.as_deref(),
            branches: session.branches.iter().map(|index| branch(&structure.branches[*index])).collect(),
            turns: session
                .turns
                .iter()
                .map(|turn| TurnRow {
                    prompt: &turn.prompt,
                    calls: turn.calls.iter().map(id).collect(),
                    tools: &turn.tools,
                    tokens: turn.tokens,
                    cost_usd: turn.calls.iter().filter_map(|call| call_cost(&trace.calls[*call], prices)).sum(),
                })
                .collect(),
        });
        let calls = trace.calls.iter().map(|call| CallRow {
            id: &call.id,
            started_at: call.started_at.map(|time| time.to_string()),
            duration_ms: call.duration_ms,
            model: call.model(),
            status: call.response.status,
            branch: structure.branch_of[call.index].map(|branch| structure.branches[branch].id.as_str()),
            turn: turn_of.get(&call.index).copied(),
            usage: call.response.tokens,
            cost_usd: call_cost(call, prices),
            anatomy: anatomy(trace, call, structure.previous_call(call).map(|index| &trace.calls[index])),
        });
        Self { sessions: sessions.collect(), calls: calls.collect() }
    }
}

/// The differences between the requests of two calls, in the shape of `quipu trace diff --json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct CallDiff<'a> {
    /// Id of the earlier call.
    pub from: &'a str,
    /// Id of the later call.
    pub to: &'a str,
    /// What the two requests do not share.
    pub differences: Vec<Difference>,
}

impl<'a> CallDiff<'a> {
    /// Compares two calls. Messages that the later one appends are left out unless `with_appended`.
    pub fn new(trace: &Trace, from: &'a Call, to: &'a Call, with_appended: bool) -> Self {
        let old_messages = from.request.as_ref().map_or(0, |request| request.messages.len());
        let mut differences = diff_requests(trace, from, to);
        if !with_appended {
            let is_appended = |difference: &Difference| {
                let index =
                    difference.at.strip_prefix("messages[").and_then(|rest| rest.strip_suffix(']')?.parse().ok());
                difference.change == Change::Added && index.is_some_and(|index: usize| index >= old_messages)
            };
            differences.retain(|difference| !is_appended(difference));
        }
        Self { from: &from.id, to: &to.id, differences }
    }
}

/// Cost of a call in US dollars; `None` if it is not known.
pub fn call_cost(call: &Call, prices: &Prices) -> Option<f64> {
    call.cost(prices)?.usd().map(|usd| usd.as_f64())
}
