//! What a session is credited with, in few bytes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use quipu_conversation::Tokens;
use quipu_conversation::price::Usd;

use super::message_rows::QUARTER_MS;
use crate::packed_messages::{PackedReader, write_varint, write_zigzag};
use crate::usage::{UnpricedKind, UsageRecord};
use quipu_conversation::usage::stable_hash;

/// What is added up together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SumKey {
    /// The quarter of an hour since 1970; `None` for messages without a time.
    pub(super) quarter: Option<i64>,
    /// The number of the way of serving.
    pub(super) serving_id: i64,
    /// Why there is no price; `None` when there is one.
    pub(super) unpriced: Option<UnpricedKind>,
}

/// The sum of some messages.
#[derive(Debug, Default)]
pub(super) struct UsageSum {
    span: Option<(Timestamp, Timestamp)>,
    messages: u64,
    tokens: Tokens,
    searches: u64,
    cost: Usd,
    savings: Usd,
}

impl UsageSum {
    pub(super) fn add(&mut self, used: &UsageRecord<'_>) {
        self.messages += used.messages;
        self.tokens.add(used.tokens);
        self.searches += used.web_searches;
        self.cost += used.cost.unwrap_or_default();
        self.savings += used.cache_savings;
        if let Some((first, last)) = used.span {
            let (from, to) = self.span.unwrap_or((first, last));
            self.span = Some((from.min(first), to.max(last)));
        }
    }
}

pub(super) fn pack_sums(sums: &BTreeMap<SumKey, UsageSum>) -> Vec<u8> {
    let mut out = Vec::new();
    for (SumKey { quarter, serving_id: served, unpriced }, sum) in sums {
        let unpriced = unpriced.map_or(0, |reason| reason as u64);
        write_varint(&mut out, served.cast_unsigned() << 4 | unpriced << 1 | u64::from(quarter.is_some()));
        if let Some((quarter, (first, last))) = quarter.zip(sum.span) {
            let start = quarter * QUARTER_MS;
            write_zigzag(&mut out, quarter);
            write_varint(&mut out, (first.as_millisecond() - start).cast_unsigned());
            write_varint(&mut out, (last.as_millisecond() - start).cast_unsigned());
        }
        let Tokens { input, output, cache_write_5m, cache_write_1h, cache_read } = sum.tokens;
        for count in [sum.messages, input, output, cache_write_5m, cache_write_1h, cache_read, sum.searches] {
            write_varint(&mut out, count);
        }
        out.extend(sum.cost.to_bytes());
        out.extend(sum.savings.to_bytes());
    }
    let check = stable_hash(&out);
    out.extend(check.to_le_bytes());
    out
}

/// Hands out what was packed, without names. Fails when it is not what was written: a
/// database does not notice damage inside of what it holds.
pub(super) fn for_each_sum(bytes: &[u8], mut take: impl FnMut(SumKey, UsageRecord<'static>)) -> rusqlite::Result<()> {
    let packed = bytes.split_last_chunk().filter(|(packed, check)| stable_hash(packed) == u64::from_le_bytes(**check));
    let Some((packed, _)) = packed else {
        return Err(rusqlite::Error::InvalidColumnType(1, "sums".to_owned(), rusqlite::types::Type::Blob));
    };
    let mut from = PackedReader(packed);
    while !from.0.is_empty() {
        let shape = from.read_varint();
        let (served, unpriced) = ((shape >> 4).cast_signed(), UnpricedKind::from_code(shape >> 1 & 7));
        let (mut quarter, mut span) = (None, None);
        if shape & 1 != 0 {
            let at = from.read_zigzag();
            let mut time = || {
                let since = from.read_varint().cast_signed();
                Timestamp::from_millisecond(at.saturating_mul(QUARTER_MS).saturating_add(since)).unwrap_or_default()
            };
            (quarter, span) = (Some(at), Some((time(), time())));
        }
        let [messages, input, output, cache_write_5m, cache_write_1h, cache_read, web_searches] =
            std::array::from_fn(|_| from.read_varint());
        let mut usd = || Usd::from_bytes(from.read_bytes(16).try_into().unwrap_or_default());
        let (cost, cache_savings) = (usd(), usd());
        let used = UsageRecord {
            session: "",
            project: "",
            is_vanished: false,
            model: "",
            speed: None,
            tools: &[],
            agent: "",
            turn: 0,
            span,
            messages,
            tokens: Tokens { input, output, cache_write_5m, cache_write_1h, cache_read },
            web_searches,
            cost: unpriced.map_or(Ok(cost), Err),
            cache_savings,
        };
        take(SumKey { quarter, serving_id: served, unpriced }, used);
    }
    Ok(())
}
