//! The token limit for five-hour blocks.

use std::str::FromStr;

use quipu_index::{UsageReport, UsageRow};

/// Value of `--token-limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenLimit {
    /// The largest number of tokens in a block that has ended.
    Max,
    /// A number of tokens.
    Tokens(u64),
}

impl FromStr for TokenLimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("max") {
            return Ok(Self::Max);
        }
        let (digits, unit) = match text.char_indices().last() {
            Some((at, 'k' | 'K')) => (&text[..at], 1e3),
            Some((at, 'm' | 'M')) => (&text[..at], 1e6),
            Some((at, 'b' | 'B')) => (&text[..at], 1e9),
            _ => (text, 1.0),
        };
        let number = digits.replace([',', '_'], "").parse::<f64>().ok();
        match number.map(|number| (number * unit).round()).filter(|tokens| (1.0..1e18).contains(tokens)) {
            Some(tokens) => Ok(Self::Tokens(tokens as u64)),
            None => Err("expected a number of tokens such as 500000, 500k or 2.5M, or `max`"),
        }
    }
}

impl TokenLimit {
    /// The limit in tokens; `None` for `max` if no block has ended yet.
    pub(crate) fn resolve(self, report: &UsageReport) -> Option<u64> {
        let is_over = |row: &&UsageRow| row.block.is_some_and(|block| block.minutes_left.is_none());
        match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Max => {
                report.rows.iter().filter(is_over).map(|row| row.tokens.total()).max().filter(|most| *most > 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TokenLimit;

    #[test]
    fn limits_are_numbers_with_a_unit_or_the_most_so_far() {
        let check = |text: &str, expect: Option<TokenLimit>| assert_eq!(text.parse().ok(), expect, "{text}");
        check("max", Some(TokenLimit::Max));
        check("500000", Some(TokenLimit::Tokens(500_000)));
        check("1,500,000", Some(TokenLimit::Tokens(1_500_000)));
        check("500k", Some(TokenLimit::Tokens(500_000)));
        check("2.5M", Some(TokenLimit::Tokens(2_500_000)));
        for wrong in ["", "0", "k", "-5", "lots", "inf", "NaN"] {
            check(wrong, None);
        }
    }
}
