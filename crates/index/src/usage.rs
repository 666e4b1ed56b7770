//! Usage reports: the window, the grouping, the rows, and the records they are built from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_conversation::Tokens;
use quipu_conversation::price::{Cost, Prices, UnpricedReason, Usd};
use quipu_conversation::usage::MessageUsage;
use quipu_message::synthetic::SYNTHETIC_MODEL;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// How the rows of a usage report are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Local day, such as `2026-11-15`.
    Day,
    /// Local week, named by its Monday.
    Week,
    /// Local month, such as `2026-11`.
    Month,
    /// Id of the session.
    Session,
    /// Name of the model.
    Model,
    /// Name of the project folder.
    Project,
    /// Five-hour block, named by its start in UTC.
    Block,
    /// Name of a tool. A message that calls several is divided equally among them; the
    /// first gets the remainder. `(none)` for messages without a tool call.
    Tool,
    /// Type of subagent, `main` for the main conversation, `(unknown)` if it is not recorded.
    Agent,
    /// Turn: session id and number, such as `05ef09b2…:3`. Number 0 is usage before
    /// the first prompt, or of a subagent whose turn is not recorded.
    Turn,
}

impl GroupBy {
    /// Whether the grouping needs single messages; the others can be built from sums.
    pub fn needs_messages(self) -> bool {
        matches!(self, Self::Tool | Self::Agent | Self::Turn)
    }
}

/// Which messages to count, and the time zone of days, weeks and months.
#[derive(Debug, Clone)]
pub struct TimeWindow {
    /// Counts messages from this time on; `None` for no limit.
    pub since: Option<Timestamp>,
    /// Counts messages before this time; `None` for no limit.
    pub until: Option<Timestamp>,
    /// Time zone that days, weeks and months are in.
    pub zone: TimeZone,
}

impl Default for TimeWindow {
    fn default() -> Self {
        Self { since: None, until: None, zone: TimeZone::system() }
    }
}

impl TimeWindow {
    /// Whether a time is in the window. Messages without a time are only in a window
    /// without limits.
    pub fn contains(&self, at: Option<Timestamp>) -> bool {
        match at {
            Some(at) => self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until),
            None => self.since.is_none() && self.until.is_none(),
        }
    }

    pub(crate) fn date_key(&self, at: Timestamp, by: GroupBy) -> String {
        let day = at.to_zoned(self.zone.clone()).date();
        match by {
            GroupBy::Month => format!("{:04}-{:02}", day.year(), day.month()),
            GroupBy::Week => {
                let since_monday = i32::from(day.weekday().to_monday_zero_offset());
                day.saturating_sub(jiff::Span::new().days(since_monday)).to_string()
            }
            _ => day.to_string(),
        }
    }
}

/// A usage report, in the shape of `quipu usage --json`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct UsageReport {
    /// One row for each key; see [`UsageCounter::report`](crate::UsageCounter::report) for their order.
    pub rows: Vec<UsageRow>,
    /// Sum of all rows.
    pub totals: UsageRow,
}

/// Usage of one group of messages.
#[derive(Debug, Clone, Default)]
pub struct UsageRow {
    /// Day, session, model or whatever the report is grouped by; `None` for the totals.
    pub key: Option<String>,
    /// Models of the messages.
    pub models: BTreeSet<String>,
    /// Sum of all tokens.
    pub tokens: Tokens,
    /// Number of web searches.
    pub web_searches: u64,
    /// Number of API messages.
    pub messages: u64,
    /// Cost of the messages that have a price.
    pub cost: Usd,
    /// What the prompt cache saved, for the messages that have a price.
    pub cache_savings: Usd,
    /// Messages without a price by model, or by model and speed if only the speed has no
    /// price. Their tokens are counted; their cost is not known.
    pub unpriced: BTreeMap<String, UnpricedCount>,
    /// Times of the earliest and the latest message.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Messages whose session file no longer exists.
    pub vanished_messages: u64,
    /// Cost of those messages.
    pub vanished_cost: Usd,
    /// The same by model; empty unless the counter was created `with_breakdown`.
    pub breakdown: BTreeMap<String, UsageRow>,
    /// Set if the report is grouped by block.
    pub block: Option<UsageBlock>,
}

/// Messages whose cost is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpricedCount {
    /// Why they have no price.
    pub reason: UnpricedKind,
    /// Number of messages.
    pub messages: u64,
}

/// Why a message has no price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnpricedKind {
    /// The price table does not name the model.
    UnknownModel = 1,
    /// The message is older than the model's first price.
    NotInForce = 2,
    /// The model has no price at that speed.
    UnknownSpeed = 3,
    /// The model has no rate for a kind of tokens that were used.
    NoRate = 4,
}

impl UnpricedKind {
    pub(crate) fn from_code(number: u64) -> Option<Self> {
        [Self::UnknownModel, Self::NotInForce, Self::UnknownSpeed, Self::NoRate]
            .into_iter()
            .find(|reason| *reason as u64 == number)
    }
}

impl From<UnpricedReason> for UnpricedKind {
    fn from(reason: UnpricedReason) -> Self {
        match reason {
            UnpricedReason::UnknownModel => Self::UnknownModel,
            UnpricedReason::NotInForce => Self::NotInForce,
            UnpricedReason::UnknownSpeed => Self::UnknownSpeed,
            UnpricedReason::NoRate { .. } => Self::NoRate,
        }
    }
}

/// A five-hour block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsageBlock {
    /// Start of the block, at a full hour.
    pub start: Timestamp,
    /// End of the block, five hours later.
    pub end: Timestamp,
    /// Minutes from the first message to the last, at least one.
    pub active_minutes: f64,
    /// Minutes until the end; `None` if the block is over.
    pub minutes_left: Option<f64>,
}

impl UsageRow {
    /// Output tokens and US dollars per minute of a block; `None` for other rows.
    pub fn per_minute(&self) -> Option<(f64, f64)> {
        let minutes = self.block?.active_minutes;
        Some((self.tokens.output as f64 / minutes, self.cost.as_f64() / minutes))
    }

    /// Extrapolates an amount to the end of the block at the rate so far; `None` unless the
    /// row is an active block.
    pub fn projected(&self, used: f64) -> Option<f64> {
        let block = self.block?;
        Some(used + used / block.active_minutes * block.minutes_left?)
    }

    pub(crate) fn add_usage(&mut self, record: &UsageRecord<'_>) {
        let UsageRecord { model, amounts, .. } = record;
        self.messages += amounts.messages;
        self.tokens.add(amounts.tokens);
        self.web_searches += amounts.web_searches;
        if !model.is_empty() && *model != SYNTHETIC_MODEL && !self.models.contains(*model) {
            self.models.insert((*model).to_owned());
        }
        match amounts.cost {
            Ok(usd) => self.cost += usd,
            Err(reason) => {
                let name = match (reason, record.speed) {
                    (UnpricedKind::UnknownSpeed, Some(speed)) => format!("{model} ({speed} mode)"),
                    _ => (*model).to_owned(),
                };
                let unpriced = self.unpriced.entry(name).or_insert(UnpricedCount { reason, messages: 0 });
                unpriced.messages += amounts.messages;
            }
        }
        if record.is_vanished {
            self.vanished_messages += amounts.messages;
            self.vanished_cost += amounts.cost.unwrap_or_default();
        }
        self.cache_savings += amounts.cache_savings;
        self.span = join_spans(self.span, amounts.span);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        self.tokens.add(other.tokens);
        self.web_searches += other.web_searches;
        self.models.extend(other.models);
        for (name, UnpricedCount { reason, messages }) in other.unpriced {
            self.unpriced.entry(name).or_insert(UnpricedCount { reason, messages: 0 }).messages += messages;
        }
        self.cost += other.cost;
        self.cache_savings += other.cache_savings;
        self.vanished_messages += other.vanished_messages;
        self.vanished_cost += other.vanished_cost;
        for (model, row) in other.breakdown {
            self.breakdown.entry(model).or_default().merge(row);
        }
        self.span = join_spans(self.span, other.span);
    }
}

impl Serialize for UsageRow {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        if let Some(key) = &self.key {
            map.serialize_entry("key", key)?;
        }
        map.serialize_entry("models", &self.models)?;
        map.serialize_entry("input_tokens", &self.tokens.input)?;
        map.serialize_entry("output_tokens", &self.tokens.output)?;
        map.serialize_entry("cache_write_5m_tokens", &self.tokens.cache_write_5m)?;
        map.serialize_entry("cache_write_1h_tokens", &self.tokens.cache_write_1h)?;
        map.serialize_entry("cache_read_tokens", &self.tokens.cache_read)?;
        map.serialize_entry("web_searches", &self.web_searches)?;
        map.serialize_entry("messages", &self.messages)?;
        map.serialize_entry("cost_usd", &self.cost.as_f64())?;
        map.serialize_entry("cache_savings_usd", &self.cache_savings.as_f64())?;
        map.serialize_entry("unpriced_models", &self.unpriced.keys().collect::<Vec<_>>())?;
        if !self.unpriced.is_empty() {
            let unpriced = self.unpriced.iter();
            let unpriced = unpriced.map(|(name, unknown)| UnpricedRow {
                name,
                reason: unknown.reason,
                messages: unknown.messages,
            });
            map.serialize_entry("unpriced", &unpriced.collect::<Vec<_>>())?;
        }
        if let Some((first, last)) = self.span {
            map.serialize_entry("first_at", &first.to_string())?;
            map.serialize_entry("last_at", &last.to_string())?;
        }
        if self.vanished_messages > 0 {
            map.serialize_entry("vanished", &true)?;
            map.serialize_entry("vanished_messages", &self.vanished_messages)?;
            map.serialize_entry("vanished_cost_usd", &self.vanished_cost.as_f64())?;
        }
        if let Some(block) = &self.block {
            map.serialize_entry("start", &block.start.to_string())?;
            map.serialize_entry("end", &block.end.to_string())?;
            map.serialize_entry("active", &block.minutes_left.is_some())?;
        }
        if let Some((tokens, usd)) = self.per_minute() {
            map.serialize_entry("output_tokens_per_minute", &tokens)?;
            map.serialize_entry("cost_usd_per_minute", &usd)?;
        }
        if let Some(left) = self.block.and_then(|block| block.minutes_left) {
            map.serialize_entry("minutes_left", &left)?;
            map.serialize_entry("projected_output_tokens", &self.projected(self.tokens.output as f64))?;
            map.serialize_entry("projected_cost_usd", &self.projected(self.cost.as_f64()))?;
        }
        if !self.breakdown.is_empty() {
            let rows = self.breakdown.iter().map(|(model, row)| UsageRow { key: Some(model.clone()), ..row.clone() });
            map.serialize_entry("breakdown", &rows.collect::<Vec<_>>())?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct UnpricedRow<'a> {
    name: &'a str,
    reason: UnpricedKind,
    messages: u64,
}

/// Usage of one message, or of several added up.
#[derive(Debug, Clone, Copy)]
pub struct UsageAmounts {
    /// Times of the earliest and the latest message; `None` if no message has a time.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Number of API messages.
    pub messages: u64,
    /// Sum of their tokens.
    pub tokens: Tokens,
    /// Sum of their web searches.
    pub web_searches: u64,
    /// Sum of their costs, or why they have no price.
    pub cost: Result<Usd, UnpricedKind>,
    /// What the prompt cache saved; 0 if they have no price.
    pub cache_savings: Usd,
}

impl UsageAmounts {
    pub(crate) fn from_message(message: &MessageUsage, prices: &Prices) -> Self {
        let (cost, cache_savings) = message.cost_and_cache_savings(prices);
        Self {
            span: message.earliest_time.map(|time| (time, time)),
            messages: 1,
            tokens: message.tokens,
            web_searches: message.web_searches(),
            cost: match cost {
                Cost::Priced { usd, .. } => Ok(usd),
                Cost::Unpriced { reason, .. } => Err(reason.into()),
            },
            cache_savings,
        }
    }

    /// Adds amounts that are unpriced for the same reason, or both priced.
    pub(crate) fn add(&mut self, other: &Self) {
        self.span = join_spans(self.span, other.span);
        self.messages += other.messages;
        self.tokens.add(other.tokens);
        self.web_searches += other.web_searches;
        self.cost = self.cost.and_then(|cost| Ok(cost + other.cost?));
        self.cache_savings += other.cache_savings;
    }

    /// One of `parts` equal shares; the first share also has the remainders.
    pub(crate) fn share(&self, parts: usize, is_first: bool) -> Self {
        let part = |n: u64| {
            let parts = parts as u64;
            n / parts + if is_first { n % parts } else { 0 }
        };
        let Tokens { input, output, cache_write_5m, cache_write_1h, cache_read } = self.tokens;
        Self {
            messages: part(self.messages),
            tokens: Tokens {
                input: part(input),
                output: part(output),
                cache_write_5m: part(cache_write_5m),
                cache_write_1h: part(cache_write_1h),
                cache_read: part(cache_read),
            },
            web_searches: part(self.web_searches),
            cost: self.cost.map(|cost| cost.share(parts, is_first)),
            cache_savings: self.cache_savings.share(parts, is_first),
            ..*self
        }
    }
}

fn join_spans(a: Option<(Timestamp, Timestamp)>, b: Option<(Timestamp, Timestamp)>) -> Option<(Timestamp, Timestamp)> {
    match (a, b) {
        (Some((first, last)), Some((other_first, other_last))) => Some((first.min(other_first), last.max(other_last))),
        (a, b) => a.or(b),
    }
}

/// Amounts of usage and what they belong to: one message, or several of one session and
/// model within a quarter of an hour.
#[derive(Debug, Clone, Copy)]
pub struct UsageRecord<'a> {
    /// Id of the session.
    pub session: &'a str,
    /// Name of the project folder.
    pub project: &'a str,
    /// Whether the file it was counted from no longer exists.
    pub is_vanished: bool,
    /// Model name; empty if the message has none.
    pub model: &'a str,
    /// Value of `usage.speed`; `None` for the standard speed.
    pub speed: Option<&'a str>,
    /// Names of the tools called; empty if several messages are added up.
    pub tools: &'a [Arc<str>],
    /// Type of subagent, `main` or `(unknown)`; empty if several messages are added up.
    pub agent: &'a str,
    /// Number of the turn; 0 if several messages are added up.
    pub turn: u32,
    /// Tokens, web searches and cost.
    pub amounts: UsageAmounts,
}

/// Value of [`UsageRecord::agent`] for the main conversation.
pub(crate) const MAIN_AGENT: &str = "main";
/// Value of [`UsageRecord::agent`] for a subagent whose type is not recorded.
pub(crate) const UNKNOWN_AGENT: &str = "(unknown)";

impl<'a> UsageRecord<'a> {
    /// The record of one message of the main conversation.
    pub(crate) fn from_message(session: &'a str, project: &'a str, message: &'a MessageUsage, prices: &Prices) -> Self {
        Self {
            session,
            project,
            is_vanished: false,
            model: &message.serving.model,
            speed: message.serving.speed.as_deref(),
            tools: &message.tools,
            agent: MAIN_AGENT,
            turn: message.turn,
            amounts: UsageAmounts::from_message(message, prices),
        }
    }

    /// Whether the agent wrote the message itself, without an API call.
    pub(crate) fn is_synthetic(&self) -> bool {
        let UsageAmounts { tokens, web_searches, .. } = self.amounts;
        self.model == SYNTHETIC_MODEL && tokens == Tokens::default() && web_searches == 0
    }
}
