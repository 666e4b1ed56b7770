//! Usage by day, week, month, session, model, project or five-hour block.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Unit};
use quipu_conversation::Tokens;
use quipu_conversation::price::{Cost, Prices, Usd};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::ledger::{Credited, Ledger};

/// What to group by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
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
}

/// Which messages to count, and whose days.
#[derive(Debug, Clone)]
pub struct Window {
    /// From this moment on.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
    /// Whose days and months.
    pub zone: TimeZone,
}

impl Default for Window {
    fn default() -> Self {
        Self { since: None, until: None, zone: TimeZone::system() }
    }
}

/// What was used, in rows and in all. The shape of `quipu usage --json`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// One row a key, in order.
    pub rows: Vec<Row>,
    /// Everything.
    pub totals: Row,
}

/// What was used under one key.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The day, session, model …; none for the totals.
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
    pub cache_savings_usd: f64,
    /// Models without a price: their tokens count, their money is not known.
    pub unpriced_models: BTreeSet<String>,
    /// The earliest and the latest message.
    pub span: Option<(Timestamp, Timestamp)>,
}

impl Serialize for Row {
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
        map.serialize_entry("cache_savings_usd", &self.cache_savings_usd)?;
        map.serialize_entry("unpriced_models", &self.unpriced_models)?;
        map.end()
    }
}

impl Row {
    fn add(&mut self, credited: Credited<'_>, at: Option<Timestamp>, prices: &Prices) {
        let message = credited.message;
        self.messages += 1;
        self.tokens.add(message.tokens());
        self.web_searches += message.web_searches();
        if !message.model.is_empty() && &*message.model != quipu_conversation::price::SYNTHETIC {
            self.models.insert(message.model.to_string());
        }
        match message.cost(prices) {
            Cost::Priced { usd, .. } => self.cost += usd,
            Cost::Unpriced { model, .. } => {
                self.unpriced_models.insert(model);
            }
        }
        self.cache_savings_usd += message.cache_savings(prices).unwrap_or_default();
        if let Some(at) = at {
            self.span = Some(self.span.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        }
    }
}

/// How long a block is, and how long a silence ends it.
const BLOCK: SignedDuration = SignedDuration::from_hours(5);

impl Report {
    /// Counts a ledger.
    pub fn new(ledger: &Ledger, by: By, window: &Window, prices: &Prices) -> Self {
        let time = |credited: &Credited<'_>| credited.message.timestamp.as_deref()?.parse::<Timestamp>().ok();
        let mut messages: Vec<(Option<Timestamp>, Credited<'_>)> =
            ledger.messages().map(|credited| (time(&credited), credited)).filter(|(at, _)| window.holds(*at)).collect();
        // Blocks depend on the order; the rest does not mind.
        messages.sort_by_key(|(at, _)| *at);
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        let mut totals = Row::default();
        let mut block: Option<(Timestamp, Timestamp)> = None;
        for (at, credited) in messages {
            let key = match by {
                By::Session => credited.session_id.to_owned(),
                By::Model => credited.message.model.to_string(),
                By::Project => credited.project.to_owned(),
                By::Block => at.map_or_else(unknown, |at| block_of(&mut block, at).to_string()),
                By::Day | By::Week | By::Month => at.map_or_else(unknown, |at| window.date(at, by)),
            };
            rows.entry(key.clone())
                .or_insert_with(|| Row { key: Some(key), ..Row::default() })
                .add(credited, at, prices);
            totals.add(credited, at, prices);
        }
        Self { rows: rows.into_values().collect(), totals }
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The start of the block a message falls into: the full hour of the first message
/// after the last block ended, or after five hours of silence.
fn block_of(block: &mut Option<(Timestamp, Timestamp)>, at: Timestamp) -> Timestamp {
    let start = match *block {
        Some((start, last)) if at.duration_since(start) < BLOCK && at.duration_since(last) < BLOCK => start,
        _ => hour(at),
    };
    *block = Some((start, at));
    start
}

fn hour(at: Timestamp) -> Timestamp {
    let rounding = jiff::TimestampRound::new().smallest(Unit::Hour).mode(jiff::RoundMode::Floor);
    at.round(rounding).unwrap_or(at)
}

impl Window {
    fn holds(&self, at: Option<Timestamp>) -> bool {
        match at {
            Some(at) => self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until),
            None => self.since.is_none() && self.until.is_none(),
        }
    }

    fn date(&self, at: Timestamp, by: By) -> String {
        let day = at.to_zoned(self.zone.clone()).date();
        match by {
            By::Month => format!("{:04}-{:02}", day.year(), day.month()),
            By::Week => {
                let since_monday = i32::from(day.weekday().to_monday_zero_offset());
                day.saturating_sub(jiff::Span::new().days(since_monday)).to_string()
            }
            _ => day.to_string(),
        }
    }
}
