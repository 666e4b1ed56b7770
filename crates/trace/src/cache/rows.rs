//! Verdicts and policies in the shapes that commands and the page show as JSON.

use quipu_conversation::price::Prices;
use serde::Serialize;

use super::analysis::CacheAnalysis;
use super::cause::Cause;
use super::policy::Policy;
use super::verdict::CallVerdict;
use super::what_if::CostedTokens;
use crate::structure::Structure;
use crate::trace::Trace;

/// One call in the shape of `quipu trace cache --json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct CacheRow<'a> {
    /// Id of the call.
    pub call: &'a str,
    /// Id of its branch.
    pub branch: &'a str,
    /// Id of its session.
    pub session_id: Option<&'a str>,
    /// Tokens read from the cache; null if the response has no usage.
    pub read: Option<u64>,
    /// Tokens written to the cache; null if the response has no usage.
    pub written: Option<u64>,
    /// Tokens that it should have read.
    pub expected_read: u64,
    /// Whether `expected_read` is an estimate.
    pub is_estimate: bool,
    /// The miss; null if it read what it should.
    pub miss: Option<MissRow<'a>>,
    /// The server's own diagnosis; null if the response has none.
    pub server_diagnosis: Option<DiagnosisRow<'a>>,
}

/// Why a call read less than it should have.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct MissRow<'a> {
    /// Cause of the miss.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub cause: Cause,
    /// The first difference to the request before it.
    pub at: Option<&'a str>,
    /// Tokens that were not read.
    pub tokens: u64,
    /// Null if the model has no price.
    pub cost_usd: Option<f64>,
    /// What to do about it.
    pub advice: &'a str,
}

/// What the server reported about a miss.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct DiagnosisRow<'a> {
    /// Kind of the difference.
    #[serde(rename = "type")]
    pub kind: Option<&'a str>,
    /// Tokens that were missed.
    pub missed_tokens: Option<u64>,
}

impl<'a> CacheRow<'a> {
    /// The row of a verdict.
    pub fn new(trace: &'a Trace, structure: &'a Structure, verdict: &'a CallVerdict) -> Self {
        let call = &trace.calls[verdict.call];
        let miss = verdict.miss.as_ref().map(|miss| MissRow {
            cause: miss.cause,
            at: miss.at.as_deref(),
            tokens: miss.tokens,
            cost_usd: miss.cost.map(|cost| cost.as_f64()),
            advice: &miss.advice,
        });
        let diagnosis = verdict.server_diagnosis.as_ref().map(|diagnosis| DiagnosisRow {
            kind: diagnosis.kind.text(),
            missed_tokens: diagnosis.cache_missed_input_tokens.get().copied(),
        });
        Self {
            call: &call.id,
            branch: &structure.branches[verdict.branch].id,
            session_id: call.identity.session_id.as_deref(),
            read: verdict.read,
            written: verdict.written,
            expected_read: verdict.expected_read,
            is_estimate: verdict.is_estimate,
            miss,
            server_diagnosis: diagnosis,
        }
    }
}

/// One policy in the shape of `quipu trace cache --what-if --json`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
pub struct PolicyRow {
    /// Name of the policy; `counted` for what the server counted.
    pub policy: &'static str,
    /// Number of calls.
    pub calls: usize,
    /// Tokens that were not cached.
    pub input_tokens: u64,
    /// Tokens written to the cache for five minutes.
    pub cache_write_5m_tokens: u64,
    /// Tokens written to the cache for an hour.
    pub cache_write_1h_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Cost in US dollars.
    pub cost_usd: f64,
    /// Cost of the recorded requests by the same rules, less the cost under the policy.
    pub saves_usd: f64,
    /// Models without a price.
    pub unpriced_models: Vec<String>,
}

impl PolicyRow {
    fn new(policy: &'static str, costed: CostedTokens, recorded: f64) -> Self {
        let (tokens, cost) = (costed.tokens, costed.cost.as_f64());
        Self {
            policy,
            calls: costed.calls,
            input_tokens: tokens.input,
            cache_write_5m_tokens: tokens.cache_write_5m,
            cache_write_1h_tokens: tokens.cache_write_1h,
            cache_read_tokens: tokens.cache_read,
            cost_usd: cost,
            saves_usd: recorded - cost,
            unpriced_models: costed.unpriced_models.into_iter().collect(),
        }
    }
}

/// What the calls cost as the server counted them, as recorded by the documented rules, and under
/// each policy.
pub fn policy_rows(analysis: &CacheAnalysis<'_>, policies: &[Policy], prices: &Prices) -> Vec<PolicyRow> {
    let recorded = analysis.what_if(Policy::Recorded, prices);
    let recorded_cost = recorded.cost.as_f64();
    let mut rows = vec![
        PolicyRow::new("counted", analysis.recorded_cost(prices), recorded_cost),
        PolicyRow::new(Policy::Recorded.name(), recorded, recorded_cost),
    ];
    rows.extend(
        policies.iter().map(|policy| PolicyRow::new(policy.name(), analysis.what_if(*policy, prices), recorded_cost)),
    );
    rows
}
