//! Builds usage reports from records.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

use jiff::{SignedDuration, Timestamp, Unit};

use crate::hashing::IntegerHasher;
use crate::usage::{GroupBy, TimeWindow, UsageBlock, UsageRecord, UsageReport, UsageRow};

/// Length of a block, and of the pause that ends one.
const BLOCK_LENGTH: SignedDuration = SignedDuration::from_hours(5);
/// Days, weeks and blocks begin at a full quarter of an hour in every time zone.
const QUARTER_SECONDS: i64 = 15 * 60;
/// Key of the row for messages without a tool call.
const NO_TOOL_KEY: &str = "(none)";

/// Builds a [`UsageReport`]: add records, then call [`report`](Self::report).
#[derive(Debug)]
pub struct UsageCounter<'a> {
    group_by: GroupBy,
    window: &'a TimeWindow,
    has_breakdown: bool,
    rows: Vec<UsageRow>,
    /// Row index by key.
    row_by_name: HashMap<String, usize>,
    /// Row index by quarter of an hour since 1970, so that the date is computed once for each.
    row_by_quarter: HashMap<i64, usize, BuildHasherDefault<IntegerHasher>>,
}

impl<'a> UsageCounter<'a> {
    /// Creates an empty counter.
    pub fn new(group_by: GroupBy, window: &'a TimeWindow) -> Self {
        let (names, quarters) = (HashMap::new(), HashMap::default());
        Self { group_by, window, has_breakdown: false, rows: Vec::new(), row_by_name: names, row_by_quarter: quarters }
    }

    /// Also counts the usage of each row by model.
    pub fn with_breakdown(self) -> Self {
        Self { has_breakdown: true, ..self }
    }

    /// Adds a record if it is in the window. Messages that the agent wrote itself are
    /// ignored.
    pub fn add(&mut self, record: &UsageRecord<'_>) {
        let time = record.amounts.span.map(|(first, _)| first);
        if !self.window.contains(time) || record.is_synthetic() {
            return;
        }
        let row = match (self.group_by, time) {
            (GroupBy::Session, _) => self.row_named(record.session),
            (GroupBy::Model, _) => self.row_named(record.model),
            (GroupBy::Project, _) => self.row_named(record.project),
            (GroupBy::Agent, _) => self.row_named(record.agent),
            (GroupBy::Turn, _) => self.row_named(&format!("{}:{}", record.session, record.turn)),
            (GroupBy::Tool, _) => return self.add_by_tool(record),
            (_, None) => self.row_named("unknown"),
            (_, Some(time)) => self.row_at(time),
        };
        self.add_to(row, record);
    }

    fn add_by_tool(&mut self, record: &UsageRecord<'_>) {
        if record.tools.is_empty() {
            let row = self.row_named(NO_TOOL_KEY);
            return self.add_to(row, record);
        }
        for (n, tool) in record.tools.iter().enumerate() {
            let row = self.row_named(tool);
            let amounts = record.amounts.share(record.tools.len(), n == 0);
            self.add_to(row, &UsageRecord { amounts, ..*record });
        }
    }

    fn add_to(&mut self, row: usize, record: &UsageRecord<'_>) {
        let row = &mut self.rows[row];
        row.add_usage(record);
        if self.has_breakdown {
            row.breakdown.entry(record.model.to_owned()).or_default().add_usage(record);
        }
    }

    fn row_named(&mut self, name: &str) -> usize {
        if let Some(row) = self.row_by_name.get(name) {
            return *row;
        }
        self.rows.push(UsageRow { key: Some(name.to_owned()), ..UsageRow::default() });
        self.row_by_name.insert(name.to_owned(), self.rows.len() - 1);
        self.rows.len() - 1
    }

    fn row_at(&mut self, time: Timestamp) -> usize {
        let quarter = time.as_second().div_euclid(QUARTER_SECONDS);
        if let Some(row) = self.row_by_quarter.get(&quarter) {
            return *row;
        }
        let row = match self.group_by {
            // Blocks depend on all messages, so they are assigned at the end.
            GroupBy::Block => {
                self.rows.push(UsageRow::default());
                self.rows.len() - 1
            }
            group_by => self.row_named(&self.window.date_key(time, group_by)),
        };
        self.row_by_quarter.insert(quarter, row);
        row
    }

    /// Returns the report. Days, weeks, months and blocks are in order, turns by session and
    /// number, all other rows by cost, highest first. `now` decides which block is active.
    pub fn report(mut self, now: Timestamp) -> UsageReport {
        if self.group_by == GroupBy::Block {
            self.assign_blocks();
        }
        let mut rows: BTreeMap<String, UsageRow> = BTreeMap::new();
        let mut totals = UsageRow::default();
        for mut row in self.rows {
            let Some(key) = row.key.take() else { continue };
            totals.merge(row.clone());
            rows.entry(key).or_default().merge(row);
        }
        let keyed = |(key, row)| UsageRow { key: Some(key), ..row };
        let mut rows: Vec<UsageRow> = rows.into_iter().map(keyed).collect();
        match self.group_by {
            GroupBy::Day | GroupBy::Week | GroupBy::Month => {}
            GroupBy::Block => rows.iter_mut().for_each(|row| row.block = usage_block(row, now)),
            GroupBy::Turn => rows.sort_by_cached_key(turn_sort_key),
            // A stable sort: rows that cost the same stay in the order of their names.
            GroupBy::Session | GroupBy::Model | GroupBy::Project | GroupBy::Tool | GroupBy::Agent => {
                rows.sort_by_key(|row| std::cmp::Reverse(row.cost));
            }
        }
        UsageReport { rows, totals }
    }

    fn assign_blocks(&mut self) {
        let mut quarters: Vec<(i64, usize)> =
            self.row_by_quarter.iter().map(|(quarter, row)| (*quarter, *row)).collect();
        quarters.sort_unstable();
        let mut block = None;
        for (_, row) in quarters {
            let row = &mut self.rows[row];
            row.key = row.span.map(|(first, last)| block_start(&mut block, first, last).to_string());
        }
    }
}

/// The start of the block a quarter of an hour falls into: the full hour of the first
/// message after the last block ended, or after five hours of silence.
fn block_start(block: &mut Option<(Timestamp, Timestamp)>, first: Timestamp, last: Timestamp) -> Timestamp {
    let start = match *block {
        Some((start, before))
            if first.duration_since(start) < BLOCK_LENGTH && first.duration_since(before) < BLOCK_LENGTH =>
        {
            start
        }
        _ => floor_to_hour(first),
    };
    *block = Some((start, last));
    start
}

fn floor_to_hour(at: Timestamp) -> Timestamp {
    let rounding = jiff::TimestampRound::new().smallest(Unit::Hour).mode(jiff::RoundMode::Floor);
    at.round(rounding).unwrap_or(at)
}

/// Start, end and remaining time of a block.
fn usage_block(row: &UsageRow, now: Timestamp) -> Option<UsageBlock> {
    let (first, last) = row.span?;
    let start: Timestamp = row.key.as_deref()?.parse().ok()?;
    let end = start.checked_add(BLOCK_LENGTH).ok()?;
    let minutes = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64() / 60.0;
    let minutes_left = (start <= now && now < end).then(|| minutes(now, end));
    Some(UsageBlock { start, end, active_minutes: minutes(first, last).max(1.0), minutes_left })
}

/// Session and number of a turn.
fn turn_sort_key(row: &UsageRow) -> (String, u32) {
    let key = row.key.as_deref().unwrap_or_default();
    let (session, turn) = key.rsplit_once(':').unwrap_or((key, ""));
    (session.to_owned(), turn.parse().unwrap_or_default())
}
