//! The one hash that is stored.

/// Hashes bytes to 64 bits. The result is the same in every run, build and version.
///
/// The index stores it, and so does `usage.jsonl`, the only record of sessions whose files
/// were deleted. It must therefore never change: archived messages could no longer be
/// recognised as copies of existing ones and would be counted twice.
pub fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let mixed = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

#[cfg(test)]
mod tests {
    use super::stable_hash;

    #[test]
    fn hashes_are_those_that_archives_hold() {
        for (text, hash) in
            [("", 0), ("msg_01", 0xfc74_58aa_9d26_136d), ("msg_01AbCdEfGhIjKlMnOpQrSt", 0xf44a_338e_44ec_6c4a)]
        {
            assert_eq!(stable_hash(text.as_bytes()), hash, "{text}");
        }
    }
}
