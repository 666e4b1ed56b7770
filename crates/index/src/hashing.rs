//! Numbers that stand for things: the same in every run, for the index keeps them.

use std::hash::Hasher;

pub(crate) fn mix_bits(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// For tables whose keys are numbers, most of them hashes already.
#[derive(Debug, Default)]
pub(crate) struct IntegerHasher(u64);

impl Hasher for IntegerHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix_bits(number);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
