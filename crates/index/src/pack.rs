//! Messages in few bytes: a history holds hundreds of thousands.

use std::sync::Arc;

use jiff::Timestamp;
use quipu_conversation::{Key, MessageUse, Served, Tokens};

/// The messages of one session, packed.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// How many messages there are.
    len: u32,
    /// Where their keys begin, after how they were served and the names of tools and
    /// subagents; then come the messages.
    keys: u32,
    bytes: Box<[u8]>,
}

/// Of a line's id so many bytes are kept: enough to tell the lines of two messages
/// apart that share a key.
const LINE: usize = 6;

impl Packed {
    pub(crate) fn new<'a>(messages: impl Iterator<Item = &'a MessageUse>) -> Self {
        let mut served: Vec<&Arc<Served>> = Vec::new();
        let mut names: Vec<&Arc<str>> = Vec::new();
        let (mut body, mut keys) = (Vec::new(), Vec::new());
        let mut before = 0;
        for message in messages {
            keys.extend(message.key.unwrap_or_default().to_le_bytes());
            let known = served.iter().position(|known| **known == message.served);
            let how = known.unwrap_or_else(|| {
                served.push(&message.served);
                served.len() - 1
            });
            put(&mut body, message, how, &mut names, &mut before);
        }
        let mut bytes = Vec::new();
        number(&mut bytes, served.len() as u64);
        for Served { model, speed, geo } in served.into_iter().map(|served| &**served) {
            for text in [Some(&**model), speed.as_deref(), geo.as_deref()] {
                // None, or one more than the length.
                number(&mut bytes, text.map_or(0, |text| text.len() as u64 + 1));
                bytes.extend(text.unwrap_or_default().as_bytes());
            }
        }
        number(&mut bytes, names.len() as u64);
        for name in names {
            number(&mut bytes, name.len() as u64);
            bytes.extend(name.as_bytes());
        }
        let (len, at) = ((keys.len() / size_of::<Key>()) as u32, bytes.len() as u32);
        Self { len, keys: at, bytes: [bytes, keys, body].concat().into() }
    }

    /// The keys of the messages, 0 where there is none.
    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = Key> {
        let (keys, _) = self.bytes[self.keys as usize..].as_chunks();
        keys.iter().take(self.len as usize).map(|key| Key::from_le_bytes(*key))
    }

    /// The messages, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = MessageUse> {
        let mut head = Reader(&self.bytes);
        let served: Vec<Arc<Served>> = (0..head.number()).map(|_| Arc::new(head.served())).collect();
        let names: Vec<Arc<str>> = (0..head.number()).map(|_| head.name()).collect();
        let mut body = Reader(&self.bytes[self.keys as usize + self.len as usize * size_of::<Key>()..]);
        let mut before = 0;
        self.keys().map(move |key| {
            let (how, mut message) = body.message(&names, &mut before);
            message.key = (key != 0).then_some(key);
            message.served = served.get(how).map(Arc::clone).unwrap_or_default();
            message
        })
    }
}

/// Flags before a message.
const RECORDED: usize = 1;
const PROGRESS: usize = 2;
const ATTRIBUTED: usize = 4;
const FLAG_BITS: u32 = 3;

fn put<'a>(out: &mut Vec<u8>, message: &'a MessageUse, how: usize, names: &mut Vec<&'a Arc<str>>, before: &mut i64) {
    let Tokens { input, output, cache_write_5m, cache_write_1h, cache_read } = message.tokens;
    let is_attributed = !message.tools.is_empty() || message.agent.is_some() || message.turn != 0;
    let flags = [(message.recorded.is_some(), RECORDED), (message.is_progress, PROGRESS), (is_attributed, ATTRIBUTED)];
    let flags: usize = flags.iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum();
    number(out, (how << FLAG_BITS | flags) as u64);
    if is_attributed {
        let mut named = |name: &'a Arc<str>| {
            names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            }) as u64
        };
        number(out, u64::from(message.turn));
        let agent = message.agent.as_ref().map_or(0, |agent| named(agent) + 1);
        number(out, agent);
        number(out, message.tools.len() as u64);
        for tool in &message.tools {
            number(out, named(tool));
        }
    }
    out.extend(message.recorded.map(f64::to_le_bytes).into_iter().flatten());
    for count in [input, output, cache_write_5m, cache_write_1h, cache_read] {
        number(out, count);
    }
    number(out, message.searches_told);
    number(out, message.searches_found);
    out.extend(message.lines.iter().flat_map(|line| line.to_le_bytes().into_iter().take(LINE)));
    number(out, message.times.len() as u64);
    for time in &message.times {
        signed(out, time.wrapping_sub(*before));
        *before = *time;
    }
}

/// Seven bits a byte, lowest first.
pub(crate) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Zigzag: small numbers are short on both sides of zero.
pub(crate) fn signed(out: &mut Vec<u8>, value: i64) {
    number(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// Reads what was packed; what is missing at the end reads as zero.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn message(&mut self, names: &[Arc<str>], before: &mut i64) -> (usize, MessageUse) {
        let shape = self.number() as usize;
        let (mut turn, mut agent, mut tools) = (0, None, Vec::new());
        if shape & ATTRIBUTED != 0 {
            turn = self.number() as u32;
            agent = self.number().checked_sub(1).and_then(|at| names.get(at as usize)).cloned();
            tools = (0..self.number()).filter_map(|_| names.get(self.number() as usize).cloned()).collect();
        }
        let is_progress = shape & PROGRESS != 0;
        let recorded = (shape & RECORDED != 0).then(|| f64::from_bits(self.word(8)));
        let [input, output, cache_write_5m, cache_write_1h, cache_read] = std::array::from_fn(|_| self.number());
        let tokens = Tokens { input, output, cache_write_5m, cache_write_1h, cache_read };
        let (searches_told, searches_found) = (self.number(), self.number());
        let lines = [self.word(LINE), self.word(LINE)];
        let times = (0..self.number()).map(|_| {
            *before = before.wrapping_add(self.signed());
            *before
        });
        let times: Vec<i64> = times.collect();
        let time = times.iter().min().and_then(|time| Timestamp::from_millisecond(*time).ok());
        let message = MessageUse {
            is_told: true,
            is_progress,
            tokens,
            time,
            recorded,
            searches_told,
            searches_found,
            times,
            lines,
            tools,
            agent,
            turn,
            ..MessageUse::default()
        };
        (shape >> FLAG_BITS, message)
    }

    fn name(&mut self) -> Arc<str> {
        let len = self.number() as usize;
        std::str::from_utf8(self.take(len)).unwrap_or_default().into()
    }

    fn served(&mut self) -> Served {
        let [model, speed, geo] = std::array::from_fn(|_| {
            let len = self.number().checked_sub(1)?;
            std::str::from_utf8(self.take(len as usize)).ok()
        });
        Served { model: model.unwrap_or_default().to_owned(), speed: speed.map(Box::from), geo: geo.map(Box::from) }
    }

    fn word(&mut self, bytes: usize) -> u64 {
        let mut word = [0; 8];
        let taken = self.take(bytes);
        word[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(word)
    }

    pub(crate) fn number(&mut self) -> u64 {
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

    /// A number that may be below zero.
    pub(crate) fn signed(&mut self) -> i64 {
        let value = self.number();
        (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
    }

    pub(crate) fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let served = |model: &str| Arc::new(Served { model: model.to_owned(), geo: Some("us".into()), speed: None });
        let mut messages = [
            MessageUse { key: Some(u64::MAX), served: served("a"), recorded: Some(0.25), ..MessageUse::default() },
            MessageUse { served: served("b"), searches_told: 3, searches_found: 1, ..MessageUse::default() },
            MessageUse { key: Some(7), served: served("a"), is_progress: true, turn: 9, ..MessageUse::default() },
        ];
        messages[0].tools = vec!["Bash".into(), "Read".into()];
        messages[2].tools = vec!["Read".into()];
        messages[2].agent = Some("a1".into());
        messages[0].times = vec![1_794_722_225_900, 1_794_722_225_100, i64::MIN, i64::MAX];
        messages[1].lines = [7, (1 << 48) - 1];
        messages[1].tokens =
            Tokens { input: u64::MAX, output: 127, cache_write_5m: 128, cache_write_1h: 0, cache_read: 1 };
        let packed = Packed::new(messages.iter());
        assert_eq!(packed.keys().collect::<Vec<_>>(), [u64::MAX, 0, 7]);
        let again: Vec<MessageUse> = packed.iter().collect();
        for (was, is) in messages.iter().zip(&again) {
            assert_eq!((was.key, &was.served, was.tokens, was.recorded), (is.key, &is.served, is.tokens, is.recorded));
            assert_eq!((was.searches_told, was.searches_found), (is.searches_told, is.searches_found));
            assert_eq!((&was.times, was.lines), (&is.times, is.lines));
            assert_eq!((was.is_progress, was.turn, &was.agent), (is.is_progress, is.turn, &is.agent));
            assert_eq!(was.tools, is.tools);
        }
        assert_eq!(again.len(), 3);
    }
}
