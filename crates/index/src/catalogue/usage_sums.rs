//! The sums that a session is credited with, packed into a blob.

use std::collections::BTreeMap;

use jiff::Timestamp;
use quipu_conversation::Tokens;
use quipu_conversation::price::Usd;

use super::message_rows::QUARTER_MS;
use crate::packed_messages::{PackedReader, write_varint, write_zigzag};
use crate::usage::{UnpricedKind, UsageAmounts};
use quipu_conversation::usage::stable_hash;

/// Messages with the same key are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SumKey {
    /// Quarter of an hour since 1970; `None` for messages without a time.
    pub(super) quarter: Option<i64>,
    /// Row id in the table `served`.
    pub(super) serving_id: i64,
    /// Why the messages have no price; `None` if they have one.
    pub(super) unpriced: Option<UnpricedKind>,
}

/// Packs the sums of a session into a blob with a checksum at its end.
pub(super) fn pack_sums(sums: &BTreeMap<SumKey, UsageAmounts>) -> Vec<u8> {
    let mut out = Vec::new();
    for (SumKey { quarter, serving_id, unpriced }, sum) in sums {
        let unpriced = unpriced.map_or(0, |reason| reason as u64);
        write_varint(&mut out, serving_id.cast_unsigned() << 4 | unpriced << 1 | u64::from(quarter.is_some()));
        if let Some((quarter, (first, last))) = quarter.zip(sum.span) {
            let start = quarter * QUARTER_MS;
            write_zigzag(&mut out, quarter);
            write_varint(&mut out, (first.as_millisecond() - start).cast_unsigned());
            write_varint(&mut out, (last.as_millisecond() - start).cast_unsigned());
        }
        let Tokens { input, output, cache_write_5m, cache_write_1h, cache_read } = sum.tokens;
        for count in [sum.messages, input, output, cache_write_5m, cache_write_1h, cache_read, sum.web_searches] {
            write_varint(&mut out, count);
        }
        out.extend(sum.cost.unwrap_or_default().to_bytes());
        out.extend(sum.cache_savings.to_bytes());
    }
    let checksum = stable_hash(&out);
    out.extend(checksum.to_le_bytes());
    out
}

/// Unpacks sums and passes each to `visit`. Fails if the checksum is wrong, because SQLite
/// does not notice damage inside a blob.
pub(super) fn for_each_sum(bytes: &[u8], mut visit: impl FnMut(SumKey, UsageAmounts)) -> rusqlite::Result<()> {
    let packed =
        bytes.split_last_chunk().filter(|(packed, checksum)| stable_hash(packed) == u64::from_le_bytes(**checksum));
    let Some((packed, _)) = packed else {
        return Err(rusqlite::Error::InvalidColumnType(1, "sums".to_owned(), rusqlite::types::Type::Blob));
    };
    let mut from = PackedReader(packed);
    while !from.0.is_empty() {
        let shape = from.read_varint();
        let (serving_id, unpriced) = ((shape >> 4).cast_signed(), UnpricedKind::from_code(shape >> 1 & 7));
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
        let amounts = UsageAmounts {
            span,
            messages,
            tokens: Tokens { input, output, cache_write_5m, cache_write_1h, cache_read },
            web_searches,
            cost: unpriced.map_or(Ok(cost), Err),
            cache_savings,
        };
        visit(SumKey { quarter, serving_id, unpriced }, amounts);
    }
    Ok(())
}
