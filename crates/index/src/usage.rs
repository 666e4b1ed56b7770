//! Usage by day, week, month, session, model, project or five-hour block.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Unit};
use quipu_conversation::Tokens;
use quipu_conversation::price::{SYNTHETIC, Usd};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::hashed::Hashed;

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
    pub cache_savings: Usd,
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
        map.serialize_entry("cache_savings_usd", &self.cache_savings.as_f64())?;
        map.serialize_entry("unpriced_models", &self.unpriced_models)?;
        map.end()
    }
}

/// What one message used, or several of one session and model within a quarter of an
/// hour.
#[derive(Debug, Clone, Copy)]
pub struct Used<'a> {
    /// The session.
    pub session: &'a str,
    /// The name of its project's folder.
    pub project: &'a str,
    /// The model.
    pub model: &'a str,
    /// The earliest and the latest message; none when they do not say.
    pub span: Option<(Timestamp, Timestamp)>,
    /// API messages.
    pub messages: u64,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their web searches.
    pub web_searches: u64,
    /// What they cost; none when the model has no price.
    pub cost: Option<Usd>,
    /// What the prompt cache saved.
    pub cache_savings: Usd,
}

impl Row {
    fn add(&mut self, used: &Used<'_>) {
        self.messages += used.messages;
        self.tokens.add(used.tokens);
        self.web_searches += used.web_searches;
        if !used.model.is_empty() && used.model != SYNTHETIC {
            remember(&mut self.models, used.model);
        }
        match used.cost {
            Some(usd) => self.cost += usd,
            None => remember(&mut self.unpriced_models, used.model),
        }
        self.cache_savings += used.cache_savings;
        self.stretch(used.span);
    }

    fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        self.tokens.add(other.tokens);
        self.web_searches += other.web_searches;
        self.models.extend(other.models);
        self.unpriced_models.extend(other.unpriced_models);
        self.cost += other.cost;
        self.cache_savings += other.cache_savings;
        self.stretch(other.span);
    }

    fn stretch(&mut self, span: Option<(Timestamp, Timestamp)>) {
        if let Some((first, last)) = span {
            let (from, to) = self.span.unwrap_or((first, last));
            self.span = Some((from.min(first), to.max(last)));
        }
    }
}

fn remember(names: &mut BTreeSet<String>, name: &str) {
    if !names.contains(name) {
        names.insert(name.to_owned());
    }
}

/// How long a block is, and how long a silence ends it.
const BLOCK: SignedDuration = SignedDuration::from_hours(5);
/// Days, weeks and blocks begin at a full quarter of an hour in every time zone.
const QUARTER: i64 = 15 * 60;

/// Adds up what was used, row by row.
#[derive(Debug)]
pub struct Counter<'a> {
    by: By,
    window: &'a Window,
    rows: Vec<Row>,
    /// Which row has that name.
    names: HashMap<String, usize>,
    /// Which row a quarter of an hour belongs to: most messages share one with others.
    quarters: HashMap<i64, usize, BuildHasherDefault<Hashed>>,
}

impl<'a> Counter<'a> {
    /// Nothing so far.
    pub fn new(by: By, window: &'a Window) -> Self {
        Self { by, window, rows: Vec::new(), names: HashMap::new(), quarters: HashMap::default() }
    }

    /// Takes what was used, when it falls into the window.
    pub fn add(&mut self, used: &Used<'_>) {
        let time = used.span.map(|(first, _)| first);
        if !self.window.holds(time) {
            return;
        }
        let row = match (self.by, time) {
            (By::Session, _) => self.named(used.session),
            (By::Model, _) => self.named(used.model),
            (By::Project, _) => self.named(used.project),
            (_, None) => self.named("unknown"),
            (_, Some(time)) => self.timed(time),
        };
        self.rows[row].add(used);
    }

    fn named(&mut self, name: &str) -> usize {
        if let Some(row) = self.names.get(name) {
            return *row;
        }
        self.rows.push(Row { key: Some(name.to_owned()), ..Row::default() });
        self.names.insert(name.to_owned(), self.rows.len() - 1);
        self.rows.len() - 1
    }

    fn timed(&mut self, time: Timestamp) -> usize {
        let quarter = time.as_second().div_euclid(QUARTER);
        if let Some(row) = self.quarters.get(&quarter) {
            return *row;
        }
        let row = match self.by {
            // Which block it is shows only when all is known.
            By::Block => {
                self.rows.push(Row::default());
                self.rows.len() - 1
            }
            by => self.named(&self.window.date(time, by)),
        };
        self.quarters.insert(quarter, row);
        row
    }

    /// The report: rows in the order of their names.
    pub fn report(mut self) -> Report {
        if self.by == By::Block {
            let mut quarters: Vec<(i64, usize)> = self.quarters.into_iter().collect();
            quarters.sort_unstable();
            let mut block = None;
            for (_, row) in quarters {
                let row = &mut self.rows[row];
                row.key = row.span.map(|(first, last)| block_of(&mut block, first, last).to_string());
            }
        }
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        let mut totals = Row::default();
        for mut row in self.rows {
            let Some(key) = row.key.take() else { continue };
            totals.merge(row.clone());
            rows.entry(key).or_default().merge(row);
        }
        let keyed = |(key, row)| Row { key: Some(key), ..row };
        Report { rows: rows.into_iter().map(keyed).collect(), totals }
    }
}

/// The start of the block a quarter of an hour falls into: the full hour of the first
/// message after the last block ended, or after five hours of silence.
fn block_of(block: &mut Option<(Timestamp, Timestamp)>, first: Timestamp, last: Timestamp) -> Timestamp {
    let start = match *block {
        Some((start, before)) if first.duration_since(start) < BLOCK && first.duration_since(before) < BLOCK => start,
        _ => hour(first),
    };
    *block = Some((start, last));
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
