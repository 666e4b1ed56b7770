//! The price table, and the cost of a request by it.
//!
//! ```text
//! prices.toml ─┐
//! user's file ─┴─> Prices ── model, time ──> Price ── prompt size ──> Rates
//!                                                     × speed × geo ──┴──> Cost
//! ```
//!
//! All rates come from price files: the code never derives one rate from another and never
//! guesses a model's price from its name. A request without a rate is `Unpriced`, never $0.

mod cost;
mod model_name;
mod money;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use jiff::tz::Offset;
use quipu_message::synthetic::SYNTHETIC_MODEL;

pub use self::cost::{BilledRequest, Cost, CostBreakdown, UnpricedReason};
pub use self::model_name::base_name;
pub use self::money::{Decimal, Usd};
use self::table::PriceTable;
pub use self::table::{Price, PriceError, RateBand, Rates};
use crate::hash::stable_hash;

/// Prices of all models, by date.
#[derive(Clone, Debug)]
pub struct Prices {
    /// Each model's prices, earliest first and never empty.
    models: BTreeMap<String, Vec<Price>>,
    geo_multipliers: BTreeMap<String, Decimal>,
    web_search_price: Decimal,
    fingerprint: u64,
}

const BUNDLED_TOML: &str = include_str!("price/prices.toml");

impl Prices {
    /// The prices that are built into quipu.
    pub fn bundled() -> Self {
        match PriceTable::parse(BUNDLED_TOML, "the bundled prices.toml") {
            Ok(PriceTable { models, geo, web_search: Some(web_search) }) => Self {
                models,
                geo_multipliers: geo,
                web_search_price: web_search,
                fingerprint: fingerprint_of(BUNDLED_TOML),
            },
            Ok(_) => unreachable!("the bundled table prices web searches"),
            Err(error) => unreachable!("a test reads the bundled table: {error}"),
        }
    }

    /// The bundled prices with those of a user's file, which has the same format.
    ///
    /// The rows of a model in the file replace all bundled rows of that model. `origin` is
    /// the name of the file in error messages.
    pub fn with_overrides(toml_text: &str, origin: &str) -> Result<Self, PriceError> {
        let table = PriceTable::parse(toml_text, origin)?;
        let mut prices = Self::bundled();
        prices.models.extend(table.models);
        prices.geo_multipliers.extend(table.geo);
        prices.web_search_price = table.web_search.unwrap_or(prices.web_search_price);
        prices.fingerprint ^= fingerprint_of(toml_text).rotate_left(1);
        Ok(prices)
    }

    /// A hash that changes with the prices. Stored costs are valid while it stays the same.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// All models in alphabetical order, each with its prices, earliest first.
    pub fn models(&self) -> impl Iterator<Item = (&str, &[Price])> {
        let rows = self.models.iter();
        rows.map(|(name, prices)| (name.as_str(), prices.as_slice()))
    }

    /// The cost of one request; [`Cost::Unpriced`] if the table lacks a rate it needs.
    ///
    /// Rates depend on the prompt size of a single request, so the tokens of several
    /// requests must not be summed first.
    pub fn cost(&self, request: &BilledRequest<'_>) -> Cost {
        self.cost_and_cache_savings(request).0
    }

    /// The [cost](Self::cost) of one request, and what the prompt cache saved: its tokens at the
    /// full input price, less what reading and writing them cost.
    ///
    /// The savings are negative if the written tokens were not read often enough, and 0 if the
    /// request has no price.
    pub fn cost_and_cache_savings(&self, request: &BilledRequest<'_>) -> (Cost, Usd) {
        if request.model == SYNTHETIC_MODEL {
            return (Cost::Priced { usd: Usd::ZERO, breakdown: CostBreakdown::default() }, Usd::ZERO);
        }
        let priced = self.effective_rates(request).and_then(|rates| Ok((self.breakdown(&rates, request)?, rates)));
        match priced {
            Ok((paid, EffectiveRates { rates, multipliers })) => {
                let cached = request.tokens.cache_write().saturating_add(request.tokens.cache_read);
                let uncached = Usd::from_tokens(cached, rates.input, multipliers);
                let savings = uncached - paid.cache_write_5m - paid.cache_write_1h - paid.cache_read;
                (Cost::Priced { usd: paid.total(), breakdown: paid }, savings)
            }
            Err(reason) => (Cost::Unpriced { model: request.model.to_owned(), reason }, Usd::ZERO),
        }
    }

    /// The cost of some web searches, which is the same for all models.
    pub fn web_search_cost(&self, searches: u64) -> Usd {
        Usd::from_requests(searches, self.web_search_price)
    }

    /// Chooses the rates of a request: by model, day and prompt size, then the multipliers
    /// for speed and region.
    fn effective_rates(&self, request: &BilledRequest<'_>) -> Result<EffectiveRates<'_>, UnpricedReason> {
        let model = request.model;
        // A user's file may price one snapshot or platform apart from its model.
        let prices =
            self.models.get(model).or_else(|| self.models.get(base_name(model))).ok_or(UnpricedReason::UnknownModel)?;
        let day = request.time.map(|time| Offset::UTC.to_datetime(time).date());
        let price = prices
            .iter()
            .rfind(|price| day.is_none_or(|day| price.effective_from <= day))
            .ok_or(UnpricedReason::NotInForce)?;
        let speed = match request.speed {
            None | Some("" | "standard") => Decimal::ONE,
            Some("fast") => price.fast_multiplier.ok_or(UnpricedReason::UnknownSpeed)?,
            Some(_) => return Err(UnpricedReason::UnknownSpeed),
        };
        let geo = request.geo.and_then(|geo| self.geo_multipliers.get(geo)).copied();
        Ok(EffectiveRates {
            rates: price.rates_for(request.tokens.prompt()),
            multipliers: [speed, geo.unwrap_or(Decimal::ONE)],
        })
    }

    fn breakdown(
        &self,
        effective: &EffectiveRates<'_>,
        request: &BilledRequest<'_>,
    ) -> Result<CostBreakdown, UnpricedReason> {
        let (rates, tokens) = (effective.rates, request.tokens);
        Ok(CostBreakdown {
            input: effective.charge(tokens.input, Some(rates.input), "input")?,
            output: effective.charge(tokens.output, Some(rates.output), "output")?,
            cache_write_5m: effective.charge(tokens.cache_write_5m, rates.write_5m, "5m cache write")?,
            cache_write_1h: effective.charge(tokens.cache_write_1h, rates.write_1h, "1h cache write")?,
            cache_read: effective.charge(tokens.cache_read, rates.read, "cache read")?,
            web_search: self.web_search_cost(request.web_searches),
        })
    }
}

/// Hashes the text of a price file. The index stores it, so it must not depend on the
/// version of the standard library, as `DefaultHasher` does.
fn fingerprint_of(text: &str) -> u64 {
    stable_hash(text.as_bytes())
}

/// The rates and multipliers chosen for one request.
struct EffectiveRates<'a> {
    rates: &'a Rates,
    multipliers: [Decimal; 2],
}

impl EffectiveRates<'_> {
    fn charge(&self, tokens: u64, rate: Option<Decimal>, kind: &'static str) -> Result<Usd, UnpricedReason> {
        match rate {
            Some(rate) => Ok(Usd::from_tokens(tokens, rate, self.multipliers)),
            None if tokens == 0 => Ok(Usd::ZERO),
            None => Err(UnpricedReason::NoRate { kind }),
        }
    }
}
