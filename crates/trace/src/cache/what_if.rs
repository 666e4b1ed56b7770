//! What all calls cost, as recorded and under other policies.

use std::collections::BTreeSet;

use quipu_conversation::Tokens;
use quipu_conversation::price::{Cost, Prices, Usd};

use super::analysis::CacheAnalysis;
use super::policy::Policy;

/// Token counts and cost of several calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostedTokens {
    /// Number of calls.
    pub calls: usize,
    /// Sum of the token counts.
    pub tokens: Tokens,
    /// Sum of the costs that are known.
    pub cost: Usd,
    /// Models of calls without a known cost.
    pub unpriced_models: BTreeSet<String>,
}

impl CacheAnalysis<'_> {
    /// Token counts and cost of all calls under a policy, by the documented rules.
    pub fn what_if(&self, policy: Policy, prices: &Prices) -> CostedTokens {
        let mut sum = CostedTokens::default();
        self.replay(policy, |step, tokens| self.add_cost(&mut sum, step.call, tokens, prices));
        sum
    }

    /// Token counts and cost of all calls as the server counted them.
    pub fn recorded_cost(&self, prices: &Prices) -> CostedTokens {
        let mut sum = CostedTokens::default();
        for &call in &self.order {
            self.add_cost(&mut sum, call, self.recorded(call), prices);
        }
        sum
    }

    fn add_cost(&self, sum: &mut CostedTokens, call: usize, tokens: Tokens, prices: &Prices) {
        sum.calls += 1;
        sum.tokens.add(tokens);
        match prices.cost(&self.trace.calls[call].billed_request(tokens)) {
            Cost::Priced { usd, .. } => sum.cost += usd,
            Cost::Unpriced { model, .. } => {
                sum.unpriced_models.insert(model);
            }
        }
    }
}
