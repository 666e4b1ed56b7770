//! Hashing of numbers.

use std::hash::Hasher;

/// Spreads the bits of a number. The name of the database depends on it, so it must not change.
pub(crate) fn mix_bits(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// Hasher for integer keys, most of which are hashes already.
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
