//! What would have made a session cheaper or faster.

use quipu_conversation::price::Prices;
use quipu_message::ToolName;
use serde::Serialize;

use super::Explanation;
use super::report::Report;
use crate::cache::{Cause, Policy};

/// What a piece of advice is about.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AdviceKind {
    /// Misses of the prompt cache with one cause.
    CacheMiss,
    /// Another policy for the prompt cache.
    Policy,
    /// Long prompts.
    LargeContext,
    /// Questions and permission requests.
    Waiting,
    /// Failed API calls.
    Retries,
    /// Hooks that ran long.
    Hooks,
    /// A tool that ran most of the time.
    SlowTool,
}

/// One piece of advice.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// What the advice is about.
    pub kind: AdviceKind,
    /// Name of the cause, the policy or the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Number of misses or API calls, or percentage of the busy time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// What to do, and why.
    pub text: String,
    /// What it would have saved in this session, in US dollars; 0 if it only saves time.
    pub saves_usd: f64,
}

/// Savings below this share of the cost, or below a cent, are not worth a sentence.
const MIN_SHARE: f64 = 0.01;
const MIN_USD: f64 = 0.01;

/// Prompt size up to which long conversations are considered normal.
const LARGE_CONTEXT_TOKENS: u64 = 100_000;

/// Advice for a session, the largest saving first. Savings overlap: they must not be added.
pub(super) fn advise(report: &Report, explanation: &Explanation, prices: &Prices) -> Vec<Advice> {
    let mut advice = Vec::new();
    let min_usd = MIN_USD.max(report.cost_usd * MIN_SHARE);
    let is_avoidable = |cause: &str| ![Cause::Unknown, Cause::BelowMinimum].map(Cause::as_str).contains(&cause);
    let misses = report.cache.by_cause.iter().filter(|(cause, _)| is_avoidable(cause));
    for (cause, misses) in misses.filter(|(_, misses)| misses.cost_usd >= min_usd) {
        let times = if misses.misses == 1 { "once".to_owned() } else { format!("{} times", misses.misses) };
        let text = format!("the prompt cache missed {times} because of {}: {}", cause.replace('_', " "), misses.advice);
        advice.push(Advice {
            kind: AdviceKind::CacheMiss,
            subject: Some((*cause).to_owned()),
            number: Some(misses.misses as u64),
            text,
            saves_usd: misses.cost_usd,
        });
    }
    advice.extend(policy_advice(report, min_usd));
    let saves_usd = large_context_cost(explanation, prices);
    if saves_usd >= min_usd {
        let calls = explanation.context.iter().filter(|size| size.tokens.prompt() > LARGE_CONTEXT_TOKENS).count();
        let text = format!(
            "{calls} API calls had a prompt of more than {} thousand tokens; start a new session or compact between tasks",
            LARGE_CONTEXT_TOKENS / 1000
        );
        let number = Some(calls as u64);
        advice.push(Advice { kind: AdviceKind::LargeContext, subject: None, number, text, saves_usd });
    }
    advice.sort_by(|a, b| b.saves_usd.total_cmp(&a.saves_usd));
    advice.extend(time_advice(report));
    advice
}

/// Policies that cost less than the requests as they were sent, both by the same rules.
fn policy_advice(report: &Report, min_usd: f64) -> Vec<Advice> {
    let cost_of = |policy: Policy| report.cache.what_if.iter().find(|row| row.policy == policy.name());
    let Some(sent) = cost_of(Policy::Recorded) else { return Vec::new() };
    let policies = [Policy::FiveMinutes, Policy::OneHour, Policy::StableTools, Policy::NoSideCalls];
    let savings = policies.into_iter().filter_map(|policy| {
        let saves_usd = sent.cost_usd - cost_of(policy)?.cost_usd;
        let text = format!("the same calls cost less if {} (what if: {})", policy.description(), policy.name());
        let subject = Some(policy.name().to_owned());
        (saves_usd >= min_usd).then_some(Advice { kind: AdviceKind::Policy, subject, number: None, text, saves_usd })
    });
    savings.collect()
}

/// What the tokens above [`LARGE_CONTEXT_TOKENS`] that were read from the cache cost.
fn large_context_cost(explanation: &Explanation, prices: &Prices) -> f64 {
    let costs = explanation.context.iter().map(|size| {
        let excess = size.tokens.prompt().saturating_sub(LARGE_CONTEXT_TOKENS).min(size.tokens.cache_read);
        size.cost_of_cache_reads(excess, prices)
    });
    costs.sum()
}

/// Advice on waits that took at least a tenth of the time in which the session was busy.
fn time_advice(report: &Report) -> Vec<Advice> {
    let time = &report.time;
    let busy = report.wall_ms - time.idle;
    let is_long = |part: u64| part >= 10_000 && part * 10 >= busy;
    let percent = |part: u64| part * 100 / busy.max(1);
    let mut advice = Vec::new();
    let mut push = |kind, part, subject: Option<&String>, text: &dyn Fn(u64) -> String| {
        let (percent, subject) = (percent(part), subject.cloned());
        advice.push(Advice { kind, subject, number: Some(percent), text: text(percent), saves_usd: 0.0 });
    };
    if is_long(time.waiting) {
        push(AdviceKind::Waiting, time.waiting, None, &|percent| {
            format!(
                "questions and permission requests waited for the user during {percent} % of the busy time; allow \
                 rules for commands that are always approved"
            )
        });
    }
    if is_long(time.retries) {
        push(AdviceKind::Retries, time.retries, None, &|percent| {
            format!("failed API calls waited to be sent again during {percent} % of the busy time")
        });
    }
    if is_long(time.hooks) {
        push(AdviceKind::Hooks, time.hooks, None, &|percent| {
            format!("hooks ran during {percent} % of the busy time; make slow ones asynchronous")
        });
    }
    if let Some((tool, duration)) = time.tools.iter().max_by_key(|(_, duration)| **duration)
        && *duration * 2 >= busy
        && *duration >= 10_000
    {
        let hint = match ToolName::from(tool.as_str()) {
            ToolName::Bash => "; run long commands in the background",
            name if name.is_agent() => "; run subagents in the background",
            _ => "",
        };
        push(AdviceKind::SlowTool, *duration, Some(tool), &|percent| {
            format!("{tool} ran during {percent} % of the busy time{hint}")
        });
    }
    advice
}
