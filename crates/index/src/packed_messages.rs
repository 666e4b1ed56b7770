//! Packs messages into about fifty bytes each: a user may have hundreds of thousands.

use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::Tokens;
use quipu_conversation::usage::{LineTimes, MessageKey, MessageUsage, ServingInfo};

/// The messages of one session, packed.
#[derive(Debug, Default)]
pub(crate) struct PackedMessages {
    /// Number of messages.
    len: u32,
    /// Offset of the keys. Before them are the serving infos and the names of tools and
    /// subagents, after them the messages.
    keys_offset: u32,
    bytes: Box<[u8]>,
}

/// Bytes kept of a line hash: enough to distinguish the lines of messages with the same key.
const LINE_HASH_BYTES: usize = 6;

/// Times are stored as distances from this one, 2026-01-01, so that they are short.
const TIME_OFFSET_MS: i64 = 1_767_225_600_000;

impl PackedMessages {
    pub(crate) fn new<'a>(messages: impl Iterator<Item = &'a MessageUsage>) -> Self {
        let mut served: Vec<&Arc<ServingInfo>> = Vec::new();
        let mut names: Vec<&Arc<str>> = Vec::new();
        let (mut body, mut keys, mut packed) = (Vec::new(), Vec::new(), Vec::new());
        for message in messages {
            keys.extend(message.key.unwrap_or_default().to_le_bytes());
            let known = served.iter().position(|known| **known == message.serving);
            let how = known.unwrap_or_else(|| {
                served.push(&message.serving);
                served.len() - 1
            });
            packed.clear();
            pack_message(&mut packed, message, how, &mut names);
            write_varint(&mut body, packed.len() as u64);
            body.extend(&packed);
        }
        let mut bytes = Vec::new();
        write_varint(&mut bytes, served.len() as u64);
        for ServingInfo { model, speed, geo } in served.into_iter().map(|served| &**served) {
            for text in [Some(&**model), speed.as_deref(), geo.as_deref()] {
                // 0 for `None`, otherwise the length plus one.
                write_varint(&mut bytes, text.map_or(0, |text| text.len() as u64 + 1));
                bytes.extend(text.unwrap_or_default().as_bytes());
            }
        }
        write_varint(&mut bytes, names.len() as u64);
        for name in names {
            write_varint(&mut bytes, name.len() as u64);
            bytes.extend(name.as_bytes());
        }
        let (len, at) = ((keys.len() / size_of::<MessageKey>()) as u32, bytes.len() as u32);
        Self { len, keys_offset: at, bytes: [bytes, keys, body].concat().into() }
    }

    /// The keys of the messages; 0 for a message without one.
    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = MessageKey> {
        let (keys, _) = self.bytes[self.keys_offset as usize..].as_chunks();
        keys.iter().take(self.len as usize).map(|key| MessageKey::from_le_bytes(*key))
    }

    /// Unpacks the messages that `select` chooses by index and key, in their order. The others are passed over
    /// by their length.
    pub(crate) fn unpack(
        &self,
        mut select: impl FnMut(u32, MessageKey) -> bool,
    ) -> impl Iterator<Item = (u32, MessageUsage)> {
        let mut head = PackedReader(&self.bytes);
        let served: Vec<Arc<ServingInfo>> =
            (0..head.read_varint()).map(|_| Arc::new(head.read_serving_info())).collect();
        let names: Vec<Arc<str>> = (0..head.read_varint()).map(|_| head.read_name()).collect();
        let mut body =
            PackedReader(&self.bytes[self.keys_offset as usize + self.len as usize * size_of::<MessageKey>()..]);
        (0..).zip(self.keys()).filter_map(move |(index, key)| {
            let len = body.read_varint() as usize;
            let packed = body.read_bytes(len);
            select(index, key).then(|| {
                let (how, mut message) = PackedReader(packed).read_message(&names);
                message.key = (key != 0).then_some(key);
                message.serving = served.get(how).map(Arc::clone).unwrap_or_default();
                (index, message)
            })
        })
    }
}

// Flags at the start of a message.
const FLAG_RECORDED_COST: usize = 1;
const FLAG_PROGRESS: usize = 2;
const FLAG_ATTRIBUTED: usize = 4;
const FLAG_BITS: u32 = 3;

fn pack_message<'a>(out: &mut Vec<u8>, message: &'a MessageUsage, how: usize, names: &mut Vec<&'a Arc<str>>) {
    let Tokens { input, output, cache_write_5m, cache_write_1h, cache_read } = message.tokens;
    let is_attributed = !message.tools.is_empty() || message.agent.is_some() || message.turn != 0;
    let flags = [
        (message.recorded_cost_usd.is_some(), FLAG_RECORDED_COST),
        (message.is_progress, FLAG_PROGRESS),
        (is_attributed, FLAG_ATTRIBUTED),
    ];
    let flags: usize = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum();
    write_varint(out, (how << FLAG_BITS | flags) as u64);
    if is_attributed {
        let mut named = |name: &'a Arc<str>| {
            names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            }) as u64
        };
        write_varint(out, u64::from(message.turn));
        let agent = message.agent.as_ref().map_or(0, |agent| named(agent) + 1);
        write_varint(out, agent);
        write_varint(out, message.tools.len() as u64);
        for tool in &message.tools {
            write_varint(out, named(tool));
        }
    }
    out.extend(message.recorded_cost_usd.map(f64::to_le_bytes).into_iter().flatten());
    for count in [input, output, cache_write_5m, cache_write_1h, cache_read] {
        write_varint(out, count);
    }
    write_varint(out, message.reported_searches);
    write_varint(out, message.answered_searches);
    out.extend(message.line_hashes.iter().flat_map(|line| line.to_le_bytes().into_iter().take(LINE_HASH_BYTES)));
    write_varint(out, message.line_times_ms.len() as u64);
    let mut before = TIME_OFFSET_MS;
    for time in &message.line_times_ms {
        write_zigzag(out, time.wrapping_sub(before));
        before = *time;
    }
}

/// Appends a number with seven bits in each byte, lowest first.
pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number so that small positive and negative numbers are short.
pub(crate) fn write_zigzag(out: &mut Vec<u8>, value: i64) {
    write_varint(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// Reads packed values; missing bytes at the end read as zero.
pub(crate) struct PackedReader<'a>(pub(crate) &'a [u8]);

impl<'a> PackedReader<'a> {
    fn read_message(&mut self, names: &[Arc<str>]) -> (usize, MessageUsage) {
        let shape = self.read_varint() as usize;
        let (mut turn, mut agent, mut tools) = (0, None, Vec::new());
        if shape & FLAG_ATTRIBUTED != 0 {
            turn = self.read_varint() as u32;
            agent = self.read_varint().checked_sub(1).and_then(|at| names.get(at as usize)).cloned();
            tools = (0..self.read_varint()).filter_map(|_| names.get(self.read_varint() as usize).cloned()).collect();
        }
        let is_progress = shape & FLAG_PROGRESS != 0;
        let recorded = (shape & FLAG_RECORDED_COST != 0).then(|| f64::from_bits(self.read_u64(8)));
        let [input, output, cache_write_5m, cache_write_1h, cache_read] = std::array::from_fn(|_| self.read_varint());
        let tokens = Tokens { input, output, cache_write_5m, cache_write_1h, cache_read };
        let (searches_told, searches_found) = (self.read_varint(), self.read_varint());
        let lines = [self.read_u64(LINE_HASH_BYTES), self.read_u64(LINE_HASH_BYTES)];
        let mut before = TIME_OFFSET_MS;
        let times = (0..self.read_varint()).map(|_| {
            before = before.wrapping_add(self.read_zigzag());
            before
        });
        let times: LineTimes = times.collect();
        let time = times.iter().min().and_then(|time| Timestamp::from_millisecond(*time).ok());
        let message = MessageUsage {
            has_usage: true,
            is_progress,
            tokens,
            earliest_time: time,
            recorded_cost_usd: recorded,
            reported_searches: searches_told,
            answered_searches: searches_found,
            line_times_ms: times,
            line_hashes: lines,
            tools,
            agent,
            turn,
            ..MessageUsage::default()
        };
        (shape >> FLAG_BITS, message)
    }

    fn read_name(&mut self) -> Arc<str> {
        let len = self.read_varint() as usize;
        std::str::from_utf8(self.read_bytes(len)).unwrap_or_default().into()
    }

    fn read_serving_info(&mut self) -> ServingInfo {
        let [model, speed, geo] = std::array::from_fn(|_| {
            let len = self.read_varint().checked_sub(1)?;
            std::str::from_utf8(self.read_bytes(len as usize)).ok()
        });
        ServingInfo {
            model: model.unwrap_or_default().to_owned(),
            speed: speed.map(Box::from),
            geo: geo.map(Box::from),
        }
    }

    fn read_u64(&mut self, bytes: usize) -> u64 {
        let mut word = [0; 8];
        let taken = self.read_bytes(bytes);
        word[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(word)
    }

    pub(crate) fn read_varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some((byte, rest)) = self.0.split_first() else { break };
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }

    /// Reads a signed number.
    pub(crate) fn read_zigzag(&mut self) -> i64 {
        let value = self.read_varint();
        (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
    }

    pub(crate) fn read_bytes(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_messages_unpack_unchanged() {
        let served =
            |model: &str| Arc::new(ServingInfo { model: model.to_owned(), geo: Some("us".into()), speed: None });
        let mut messages = [
            MessageUsage {
                key: Some(u64::MAX),
                serving: served("a"),
                recorded_cost_usd: Some(0.25),
                ..MessageUsage::default()
            },
            MessageUsage {
                serving: served("b"),
                reported_searches: 3,
                answered_searches: 1,
                ..MessageUsage::default()
            },
            MessageUsage { key: Some(7), serving: served("a"), is_progress: true, turn: 9, ..MessageUsage::default() },
        ];
        messages[0].tools = vec!["Bash".into(), "Read".into()];
        messages[2].tools = vec!["Read".into()];
        messages[2].agent = Some("a1".into());
        messages[0].line_times_ms = [1_794_722_225_900, 1_794_722_225_100, i64::MIN, i64::MAX].into_iter().collect();
        messages[1].line_hashes = [7, (1 << 48) - 1];
        messages[1].tokens =
            Tokens { input: u64::MAX, output: 127, cache_write_5m: 128, cache_write_1h: 0, cache_read: 1 };
        let packed = PackedMessages::new(messages.iter());
        assert_eq!(packed.keys().collect::<Vec<_>>(), [u64::MAX, 0, 7]);
        let again: Vec<(u32, MessageUsage)> = packed.unpack(|_, _| true).collect();
        for (was, (_, is)) in messages.iter().zip(&again) {
            assert_eq!(
                (was.key, &was.serving, was.tokens, was.recorded_cost_usd),
                (is.key, &is.serving, is.tokens, is.recorded_cost_usd)
            );
            assert_eq!((was.reported_searches, was.answered_searches), (is.reported_searches, is.answered_searches));
            assert_eq!((&was.line_times_ms, was.line_hashes), (&is.line_times_ms, is.line_hashes));
            assert_eq!((was.is_progress, was.turn, &was.agent), (is.is_progress, is.turn, &is.agent));
            assert_eq!(was.tools, is.tools);
        }
        assert_eq!(again.len(), 3);
        let others: Vec<(u32, u64)> =
            packed.unpack(|index, key| index != 1 || key != 0).map(|(index, m)| (index, m.turn.into())).collect();
        assert_eq!(others, [(0, 0), (2, 9)]);
    }
}
