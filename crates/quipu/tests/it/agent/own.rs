//! Cases of our own, for where no recordings are.
