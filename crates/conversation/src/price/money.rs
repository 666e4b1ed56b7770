//! Exact decimal arithmetic, so that sums do not depend on their order.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::Deserialize;

/// A rate or multiplier with up to six decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "f64")]
pub struct Decimal(u64);

impl Decimal {
    pub(super) const ONE: Self = Self(1_000_000);

    /// The nearest float, for display.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl TryFrom<f64> for Decimal {
    type Error = &'static str;

    fn try_from(value: f64) -> Result<Self, Self::Error> {
        if !(0.0..=1e6).contains(&value) {
            return Err("expected a number from 0 to 1000000");
        }
        let millionths = (value * 1e6).round();
        // A float near 1e6 carries about ten exact decimals, so this margin only
        // forgives the error of the multiplication.
        if (value * 1e6 - millionths).abs() > 1e-3 {
            return Err("expected at most six decimals");
        }
        Ok(Self(millionths as u64))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

/// An exact amount of US dollars; add these up and convert the sum.
///
/// Amounts beyond ±10¹⁴ dollars, which only nonsense counts reach, stay there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(
    /// In 10⁻²⁴ dollars: a rate per million tokens and two multipliers, each with
    /// six decimals, lose nothing.
    i128,
);

impl Usd {
    /// Zero US dollars.
    pub const ZERO: Self = Self(0);

    /// Converts a float that another program recorded, rounded to 10⁻¹² dollars to remove its
    /// rounding error.
    pub fn from_f64(dollars: f64) -> Self {
        Self(((dollars * 1e12).round() as i128).saturating_mul(1_000_000_000_000))
    }

    /// The float nearest to the amount.
    pub fn as_f64(self) -> f64 {
        match format!("{}e-24", self.0).parse() {
            Ok(dollars) => dollars,
            Err(_) => unreachable!("an integer with an exponent reads as a float"),
        }
    }

    /// An equal share of it; the first has what cannot be shared.
    pub fn share(self, parts: usize, is_first: bool) -> Self {
        let parts = (parts as i128).max(1);
        Self(self.0 / parts + if is_first { self.0 % parts } else { 0 })
    }

    /// The exact amount as bytes, for storage.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(i128::from_le_bytes(bytes))
    }

    /// The price of `tokens` at a rate per million, multiplied by both factors.
    pub(super) fn from_tokens(tokens: u64, rate: Decimal, factors: [Decimal; 2]) -> Self {
        let [first, second] = factors.map(|factor| i128::from(factor.0));
        Self((i128::from(tokens) * i128::from(rate.0)).saturating_mul(first).saturating_mul(second))
    }

    /// The price of `requests` at a price for each.
    pub(super) fn from_requests(requests: u64, each: Decimal) -> Self {
        let millionths = i128::from(requests) * i128::from(each.0);
        Self(millionths.saturating_mul(1_000_000_000_000_000_000))
    }
}

impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Usd {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::add)
    }
}
