//! What a usage report is made of: which messages, grouped how, in which shape.

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

/// What to group by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Local day, such as `2026-11-15`.
    Day,
    /// Local week, named by its Monday.
    Week,
    /// Local month, such as `2026-11`.
    Month,
    /// Session id.
    Session,
    /// Model.
    Model,
    /// Name of the project's folder.
    Project,
    /// Five-hour block, named by its start in UTC.
    Block,
    /// Name of a tool; a message that calls several is shared equally among them, and
    /// what cannot be shared goes to the first. `(none)` for messages without a call.
    Tool,
    /// Type of subagent, `main` for the main conversation, `(unknown)` where no file says.
    Agent,
    /// Turn: session id and number, such as `05ef09b2…:3`. Number 0 is what came before
    /// the first prompt, or from a subagent whose turn no file says.
    Turn,
}

impl GroupBy {
    /// Whether grouping needs to know what each message did, which only its lines say.
    pub fn needs_messages(self) -> bool {
        matches!(self, Self::Tool | Self::Agent | Self::Turn)
    }
}

/// Which messages to count, and whose days.
#[derive(Debug, Clone)]
pub struct TimeWindow {
    /// From this moment on.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
    /// Whose days and months.
    pub zone: TimeZone,
}

impl Default for TimeWindow {
    fn default() -> Self {
        Self { since: None, until: None, zone: TimeZone::system() }
    }
}

impl TimeWindow {
    /// Whether a moment is within it; what has no time is only within all of time.
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

/// What was used, in rows and in all. The shape of `quipu usage --json`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct UsageReport {
    /// One row a key: time in order, everything else by cost.
    pub rows: Vec<UsageRow>,
    /// Everything.
    pub totals: UsageRow,
}

/// What was used under one key.
#[derive(Debug, Clone, Default)]
pub struct UsageRow {
    /// The day, session, model …; `None` for the totals.
    pub key: Option<String>,
    /// Models that answered.
    pub models: BTreeSet<String>,
    /// Tokens.
    pub tokens: Tokens,
    /// Web searches.
    pub web_searches: u64,
    /// API messages.
    pub messages: u64,
    /// What it cost.
    pub cost: Usd,
    /// What the prompt cache saved.
    pub cache_savings: Usd,
    /// Messages without a price, by model and, where that is what has no price, speed:
    /// their tokens count, their cost is not known.
    pub unpriced: BTreeMap<String, UnpricedCount>,
    /// The earliest and the latest message.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Messages whose session file no longer exists.
    pub vanished_messages: u64,
    /// What they cost.
    pub vanished_cost: Usd,
    /// The same by model, when asked for.
    pub breakdown: BTreeMap<String, UsageRow>,
    /// Of a five-hour block: what is left of it.
    pub block: Option<UsageBlock>,
}

/// Messages whose cost is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpricedCount {
    /// Why.
    pub reason: UnpricedKind,
    /// How many.
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
    /// When it began: a full hour.
    pub start: Timestamp,
    /// When it ends or ended.
    pub end: Timestamp,
    /// Minutes from the first message to the last, at least one.
    pub active_minutes: f64,
    /// Minutes left; `None` when it is over.
    pub minutes_left: Option<f64>,
}

impl UsageRow {
    /// Output tokens and dollars a minute, of a block.
    pub fn per_minute(&self) -> Option<(f64, f64)> {
        let minutes = self.block?.active_minutes;
        Some((self.tokens.output as f64 / minutes, self.cost.as_f64() / minutes))
    }

    /// What an active block will have used of something at its end, at the rate it has so far.
    pub fn projected(&self, used: f64) -> Option<f64> {
        let block = self.block?;
        Some(used + used / block.active_minutes * block.minutes_left?)
    }

    pub(crate) fn add_usage(&mut self, used: &UsageRecord<'_>) {
        self.messages += used.messages;
        self.tokens.add(used.tokens);
        self.web_searches += used.web_searches;
        if !used.model.is_empty() && used.model != SYNTHETIC_MODEL && !self.models.contains(used.model) {
            self.models.insert(used.model.to_owned());
        }
        match used.cost {
            Ok(usd) => self.cost += usd,
            Err(reason) => {
                let name = match (reason, used.speed) {
                    (UnpricedKind::UnknownSpeed, Some(speed)) => format!("{} ({speed} mode)", used.model),
                    _ => used.model.to_owned(),
                };
                let unknown = self.unpriced.entry(name).or_insert(UnpricedCount { reason, messages: 0 });
                unknown.messages += used.messages;
            }
        }
        if used.is_vanished {
            self.vanished_messages += used.messages;
            self.vanished_cost += used.cost.unwrap_or_default();
        }
        self.cache_savings += used.cache_savings;
        self.extend_span(used.span);
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
        self.extend_span(other.span);
    }

    fn extend_span(&mut self, span: Option<(Timestamp, Timestamp)>) {
        if let Some((first, last)) = span {
            let (from, to) = self.span.unwrap_or((first, last));
            self.span = Some((from.min(first), to.max(last)));
        }
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

/// What one message used, or several of one session and model within a quarter of an
/// hour.
#[derive(Debug, Clone, Copy)]
pub struct UsageRecord<'a> {
    /// The session.
    pub session: &'a str,
    /// The name of its project's folder.
    pub project: &'a str,
    /// Whether the file it was counted from no longer exists.
    pub is_vanished: bool,
    /// The model.
    pub model: &'a str,
    /// The speed, when it is not the standard one.
    pub speed: Option<&'a str>,
    /// Names of the tools called; empty when several messages are added up.
    pub tools: &'a [Arc<str>],
    /// Type of subagent; empty when several messages are added up.
    pub agent: &'a str,
    /// Number of the turn; 0 when several messages are added up.
    pub turn: u32,
    /// The earliest and the latest message; `None` when they do not say.
    pub span: Option<(Timestamp, Timestamp)>,
    /// API messages.
    pub messages: u64,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their web searches.
    pub web_searches: u64,
    /// What they cost, or why that is not known.
    pub cost: Result<Usd, UnpricedKind>,
    /// What the prompt cache saved.
    pub cache_savings: Usd,
}

/// The main conversation, beside the types of subagents.
pub(crate) const MAIN_AGENT: &str = "main";
/// A subagent whose type no file says.
pub(crate) const UNKNOWN_AGENT: &str = "(unknown)";

impl<'a> UsageRecord<'a> {
    /// One message.
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
            span: message.earliest_time.map(|time| (time, time)),
            messages: 1,
            tokens: message.tokens,
            web_searches: message.web_searches(),
            cost: match message.cost(prices) {
                Cost::Priced { usd, .. } => Ok(usd),
                Cost::Unpriced { reason, .. } => Err(reason.into()),
            },
            cache_savings: message.cache_savings(prices).unwrap_or_default(),
        }
    }

    /// An equal share of it; the first has what cannot be shared.
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

    /// Whether the program wrote the message itself, without asking a model.
    pub(crate) fn is_synthetic(&self) -> bool {
        self.model == SYNTHETIC_MODEL && self.tokens == Tokens::default() && self.web_searches == 0
    }
}
