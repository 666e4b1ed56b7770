//! Ids as numbers, so that a link costs eight bytes.

use std::num::NonZeroU64;

use crate::hash::stable_hash;

/// A UUID, message id or tool call id as a 64-bit hash. Among a million ids, two have the same
/// hash by accident in one of thirty million files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IdKey(NonZeroU64);

impl IdKey {
    pub(crate) fn new(id: &str) -> Self {
        Self(NonZeroU64::new(stable_hash(id.as_bytes())).unwrap_or(NonZeroU64::MAX))
    }

    /// The key that [`number`](Self::number) returned; `None` for 0.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }
}
