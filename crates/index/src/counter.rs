//! Adds up what was used, row by row.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

use jiff::{SignedDuration, Timestamp, Unit};

use crate::hashed::Hashed;
use crate::usage::{Block, By, Report, Row, Used, Window};

/// How long a block is, and how long a silence ends it.
const BLOCK: SignedDuration = SignedDuration::from_hours(5);
/// Days, weeks and blocks begin at a full quarter of an hour in every time zone.
const QUARTER: i64 = 15 * 60;
/// The row of messages that call no tool.
const NO_TOOL: &str = "(none)";

/// Adds up what was used, row by row.
#[derive(Debug)]
pub struct Counter<'a> {
    by: By,
    window: &'a Window,
    has_breakdown: bool,
    rows: Vec<Row>,
    /// Which row has that name.
    names: HashMap<String, usize>,
    /// Which row a quarter of an hour belongs to: most messages share one with others.
    quarters: HashMap<i64, usize, BuildHasherDefault<Hashed>>,
}

impl<'a> Counter<'a> {
    /// Nothing so far.
    pub fn new(by: By, window: &'a Window) -> Self {
        let (names, quarters) = (HashMap::new(), HashMap::default());
        Self { by, window, has_breakdown: false, rows: Vec::new(), names, quarters }
    }

    /// Also counts each row by model.
    pub fn with_breakdown(self) -> Self {
        Self { has_breakdown: true, ..self }
    }

    /// Takes what was used, when it falls into the window. What the program wrote itself
    /// is no API message.
    pub fn add(&mut self, used: &Used<'_>) {
        let time = used.span.map(|(first, _)| first);
        if !self.window.holds(time) || used.is_synthetic() {
            return;
        }
        let row = match (self.by, time) {
            (By::Session, _) => self.named(used.session),
            (By::Model, _) => self.named(used.model),
            (By::Project, _) => self.named(used.project),
            (By::Agent, _) => self.named(used.agent),
            (By::Turn, _) => self.named(&format!("{}:{}", used.session, used.turn)),
            (By::Tool, _) => return self.add_by_tool(used),
            (_, None) => self.named("unknown"),
            (_, Some(time)) => self.timed(time),
        };
        self.add_to(row, used);
    }

    fn add_by_tool(&mut self, used: &Used<'_>) {
        if used.tools.is_empty() {
            let row = self.named(NO_TOOL);
            return self.add_to(row, used);
        }
        for (n, tool) in used.tools.iter().enumerate() {
            let row = self.named(tool);
            self.add_to(row, &used.share(used.tools.len(), n == 0));
        }
    }

    fn add_to(&mut self, row: usize, used: &Used<'_>) {
        let row = &mut self.rows[row];
        row.add(used);
        if self.has_breakdown {
            row.breakdown.entry(used.model.to_owned()).or_default().add(used);
        }
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

    /// The report. Days, weeks, months and blocks come in order, turns by session and
    /// number, everything else by cost. `now` decides which block is active.
    pub fn report(mut self, now: Timestamp) -> Report {
        if self.by == By::Block {
            self.find_blocks();
        }
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        let mut totals = Row::default();
        for mut row in self.rows {
            let Some(key) = row.key.take() else { continue };
            totals.merge(row.clone());
            rows.entry(key).or_default().merge(row);
        }
        let keyed = |(key, row)| Row { key: Some(key), ..row };
        let mut rows: Vec<Row> = rows.into_iter().map(keyed).collect();
        match self.by {
            By::Day | By::Week | By::Month => {}
            By::Block => rows.iter_mut().for_each(|row| row.block = block(row, now)),
            By::Turn => rows.sort_by_cached_key(turn),
            // A stable sort: rows that cost the same stay in the order of their names.
            By::Session | By::Model | By::Project | By::Tool | By::Agent => {
                rows.sort_by_key(|row| std::cmp::Reverse(row.cost));
            }
        }
        Report { rows, totals }
    }

    fn find_blocks(&mut self) {
        let mut quarters: Vec<(i64, usize)> = self.quarters.iter().map(|(quarter, row)| (*quarter, *row)).collect();
        quarters.sort_unstable();
        let mut block = None;
        for (_, row) in quarters {
            let row = &mut self.rows[row];
            row.key = row.span.map(|(first, last)| start_of(&mut block, first, last).to_string());
        }
    }
}

/// The start of the block a quarter of an hour falls into: the full hour of the first
/// message after the last block ended, or after five hours of silence.
fn start_of(block: &mut Option<(Timestamp, Timestamp)>, first: Timestamp, last: Timestamp) -> Timestamp {
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

/// What is left of a block.
fn block(row: &Row, now: Timestamp) -> Option<Block> {
    let (first, last) = row.span?;
    let start: Timestamp = row.key.as_deref()?.parse().ok()?;
    let end = start.checked_add(BLOCK).ok()?;
    let minutes = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64() / 60.0;
    let minutes_left = (start <= now && now < end).then(|| minutes(now, end));
    Some(Block { start, end, minutes: minutes(first, last).max(1.0), minutes_left })
}

/// Session and number of a turn.
fn turn(row: &Row) -> (String, u32) {
    let key = row.key.as_deref().unwrap_or_default();
    let (session, turn) = key.rsplit_once(':').unwrap_or((key, ""));
    (session.to_owned(), turn.parse().unwrap_or_default())
}
