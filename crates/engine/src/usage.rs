//! Usage and cost, by API call, turn and session.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use quipu_conversation::Tokens;
use quipu_conversation::price::{BilledRequest, Prices, Usd};
use quipu_message::bookkeeping::CostState;
use quipu_message::control::response::SessionUsage;
use quipu_message::usage::{CacheCreation, ModelUsage, ServerToolUsage};
use quipu_message::{Maybe, Usage, factory};
use serde_json::Number;

use crate::model::ModelLimits;

/// Usage and cost of a session.
#[derive(Debug)]
pub(crate) struct UsageTracker {
    /// The prices of models; the bundled ones, loaded when needed, if `None`.
    prices: Option<Prices>,
    usage_by_model: BTreeMap<String, ModelUsage>,
    /// Usage by model since the last result.
    since_last_result: BTreeMap<String, ModelUsage>,
    cost_usd: Usd,
    has_unpriced: bool,
    api_time: Duration,
    tool_time: Duration,
    /// Time in API calls of earlier processes.
    earlier_duration: Duration,
    started_at: Instant,
    lines_added: u64,
    lines_removed: u64,
}

impl UsageTracker {
    /// A tracker without usage; `None` for the bundled prices.
    pub(crate) fn new(prices: Option<Prices>) -> Self {
        Self {
            prices,
            usage_by_model: BTreeMap::new(),
            since_last_result: BTreeMap::new(),
            cost_usd: Usd::ZERO,
            has_unpriced: false,
            api_time: Duration::ZERO,
            tool_time: Duration::ZERO,
            earlier_duration: Duration::ZERO,
            started_at: Instant::now(),
            lines_added: 0,
            lines_removed: 0,
        }
    }

    /// Adds the usage of earlier processes, from the transcript.
    pub(crate) fn carry_over(&mut self, state: &CostState) {
        let number = |n: &Maybe<Number>| n.get().and_then(Number::as_f64).unwrap_or_default();
        let millis = |n: &Maybe<Number>| Duration::try_from_secs_f64(number(n) / 1000.0).unwrap_or_default();
        self.cost_usd = Usd::from_f64(number(&state.total_cost_usd));
        self.earlier_duration = millis(&state.total_duration);
        self.tool_time = millis(&state.total_tool_duration);
        self.usage_by_model = state.model_usage.get().cloned().unwrap_or_default();
        self.has_unpriced = state.has_unknown_model_cost.is_true();
        self.lines_added = state.total_lines_added.get().copied().unwrap_or_default();
        self.lines_removed = state.total_lines_removed.get().copied().unwrap_or_default();
    }

    /// Resets everything, for a new conversation.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.prices.take());
    }

    /// Adds the usage and time of one API call.
    pub(crate) fn add_api_call(&mut self, model: &str, usage: &Usage, time: Duration) {
        let request = billed_request(model, usage);
        let prices = self.prices.get_or_insert_with(Prices::bundled);
        let cost = prices.cost(&request).usd();
        self.has_unpriced |= cost.is_none();
        let cost = cost.unwrap_or(Usd::ZERO);
        self.cost_usd += cost;
        self.api_time += time;
        for account in [&mut self.usage_by_model, &mut self.since_last_result] {
            add_model_usage(account.entry(model.to_owned()).or_default(), &request, usage, cost);
        }
    }

    /// Adds the time and the changed lines of a tool call.
    pub(crate) fn add_tool_run(&mut self, time: Duration, added: u64, removed: u64) {
        self.tool_time += time;
        self.lines_added += added;
        self.lines_removed += removed;
    }

    /// The cost of the session, in US dollars.
    pub(crate) fn cost_usd(&self) -> f64 {
        self.cost_usd.as_f64()
    }

    /// The cost as a JSON number.
    pub(crate) fn cost_number(&self) -> Number {
        float_number(self.cost_usd())
    }

    /// The time in API calls of this process.
    pub(crate) fn api_time(&self) -> Duration {
        self.api_time
    }

    /// Usage by model, over the whole session.
    pub(crate) fn usage_by_model(&self) -> &BTreeMap<String, ModelUsage> {
        &self.usage_by_model
    }

    /// Usage by model since the last call of this function.
    pub(crate) fn take_since_last_result(&mut self) -> BTreeMap<String, ModelUsage> {
        std::mem::take(&mut self.since_last_result)
    }

    /// The usage as an entry of the transcript.
    pub(crate) fn to_cost_state(&self, session_id: quipu_message::SessionId) -> CostState {
        CostState {
            session_id: Maybe::Value(session_id),
            total_cost_usd: Maybe::Value(self.cost_number()),
            total_api_duration: Maybe::Value(millis_number(self.api_time)),
            total_tool_duration: Maybe::Value(millis_number(self.tool_time)),
            total_duration: Maybe::Value(millis_number(self.duration())),
            total_lines_added: Maybe::Value(self.lines_added),
            total_lines_removed: Maybe::Value(self.lines_removed),
            model_usage: Maybe::Value(self.usage_by_model.clone()),
            has_unknown_model_cost: Maybe::Value(self.has_unpriced),
            ..CostState::default()
        }
    }

    /// The usage for `get_usage`.
    pub(crate) fn to_session_usage(&self) -> SessionUsage {
        SessionUsage {
            total_cost_usd: Maybe::Value(self.cost_number()),
            total_api_duration_ms: whole_millis(self.api_time),
            total_duration_ms: whole_millis(self.duration()),
            total_lines_added: self.lines_added,
            total_lines_removed: self.lines_removed,
            model_usage: self.usage_by_model.clone(),
            ..SessionUsage::default()
        }
    }

    /// The usage as text, for `/cost`.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "Total cost: ${:.4}\nTime in calls: {:.1} s\nTime in all: {:.1} s\nCode changes: {} lines added, {} removed",
            self.cost_usd(),
            self.api_time.as_secs_f64(),
            self.duration().as_secs_f64(),
            self.lines_added,
            self.lines_removed,
        );
        for (model, used) in &self.usage_by_model {
            let count = |n: &Maybe<u64>| n.get().copied().unwrap_or_default();
            text.push_str(&format!(
                "\n{model}: {} input, {} output, {} cache read, {} cache write",
                count(&used.input_tokens),
                count(&used.output_tokens),
                count(&used.cache_read_input_tokens),
                count(&used.cache_creation_input_tokens),
            ));
        }
        text
    }

    fn duration(&self) -> Duration {
        self.earlier_duration + self.started_at.elapsed()
    }
}

/// Adds the usage of an API call to a sum.
pub(crate) fn add_usage(total: &mut Option<Usage>, usage: &Usage) {
    let total = total.get_or_insert_with(factory::zero_usage);
    let plus = |slot: &mut Maybe<u64>, more: &Maybe<u64>| {
        *slot = Maybe::Value(slot.get().copied().unwrap_or_default() + more.get().copied().unwrap_or_default());
    };
    plus(&mut total.input_tokens, &usage.input_tokens);
    plus(&mut total.output_tokens, &usage.output_tokens);
    plus(&mut total.cache_creation_input_tokens, &usage.cache_creation_input_tokens);
    plus(&mut total.cache_read_input_tokens, &usage.cache_read_input_tokens);
    if let (Maybe::Value(split), Maybe::Value(more)) = (&mut total.cache_creation, &usage.cache_creation) {
        let split: &mut CacheCreation = split;
        plus(&mut split.ephemeral_5m_input_tokens, &more.ephemeral_5m_input_tokens);
        plus(&mut split.ephemeral_1h_input_tokens, &more.ephemeral_1h_input_tokens);
    }
    if let (Maybe::Value(tools), Maybe::Value(more)) = (&mut total.server_tool_use, &usage.server_tool_use) {
        let tools: &mut ServerToolUsage = tools;
        plus(&mut tools.web_search_requests, &more.web_search_requests);
        plus(&mut tools.web_fetch_requests, &more.web_fetch_requests);
    }
    if usage.service_tier.is_value() {
        total.service_tier = usage.service_tier.clone();
    }
}

/// The tokens in the context after a call, its answer included.
pub(crate) fn context_tokens(usage: &Usage) -> u64 {
    billed_request("", usage).tokens.total()
}

/// Milliseconds as a JSON number.
pub(crate) fn millis_number(time: Duration) -> Number {
    Number::from(whole_millis(time))
}

/// A float as a JSON number; 0 if it is not finite.
pub(crate) fn float_number(value: f64) -> Number {
    Number::from_f64(value).unwrap_or_else(|| Number::from(0))
}

fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn billed_request<'a>(model: &'a str, usage: &'a Usage) -> BilledRequest<'a> {
    let count = |n: &Maybe<u64>| n.get().copied().unwrap_or_default();
    BilledRequest {
        model,
        time: None,
        tokens: Tokens::from(usage),
        web_searches: usage.server_tool_use.get().map(|used| count(&used.web_search_requests)).unwrap_or_default(),
        speed: usage.speed.text(),
        geo: usage.inference_geo.text(),
    }
}

fn add_model_usage(used: &mut ModelUsage, request: &BilledRequest<'_>, usage: &Usage, cost: Usd) {
    let plus = |slot: &mut Maybe<u64>, more: u64| {
        *slot = Maybe::Value(slot.get().copied().unwrap_or_default() + more);
    };
    let BilledRequest { model, tokens, .. } = request;
    // The split of cache writes is passed on as the API gives it, without the unsplit rest.
    let split = usage.cache_creation.get().map(|split| split.ephemeral_5m_input_tokens.get().copied());
    plus(&mut used.input_tokens, tokens.input);
    plus(&mut used.output_tokens, tokens.output);
    plus(&mut used.cache_read_input_tokens, tokens.cache_read);
    plus(&mut used.cache_creation_input_tokens, tokens.cache_write());
    plus(&mut used.cache_creation_5m, split.flatten().unwrap_or_default());
    plus(&mut used.cache_creation_1h, tokens.cache_write_1h);
    plus(&mut used.web_search_requests, request.web_searches);
    let so_far = used.cost_usd.get().and_then(Number::as_f64).unwrap_or_default();
    used.cost_usd = Maybe::Value(float_number((Usd::from_f64(so_far) + cost).as_f64()));
    let size = ModelLimits::for_model(model);
    used.context_window = Maybe::Value(size.context_window);
    used.max_output_tokens = Maybe::Value(size.max_output_tokens);
    used.canonical_model = Maybe::Value((*model).to_owned());
    let thought = usage.output_tokens_details.get().map(|details| details.to_value()["thinking_tokens"].as_u64());
    plus(&mut used.thinking_tokens, thought.flatten().unwrap_or_default());
}
