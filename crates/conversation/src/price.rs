//! What a message cost.
//!
//! ```text
//! prices.toml ─┐
//! user's file ─┴─> Prices ── model, time ──> Price ── prompt size ──> Rates
//!                                                     × speed × geo ──┴──> Cost
//! ```
//!
//! Figures are data: nothing here derives one rate from another or guesses a
//! model's price from its name. What cannot be priced is `Unpriced`, never $0.

mod cost;
mod model_name;
mod money;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use jiff::tz::Offset;

pub use self::cost::{Cost, CostBreakdown, UnpricedReason, UsageCounts};
pub use self::model_name::base_name;
pub use self::money::{Decimal, Usd};
use self::table::PriceTable;
pub use self::table::{Price, PriceError, RateBand, Rates};

/// The model name of lines that the agent wrote itself; they cost nothing.
pub const SYNTHETIC_MODEL: &str = "<synthetic>";

/// The price table.
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
    /// The table that quipu ships.
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

    /// The bundled table, changed by the text of a user's file in the same format.
    ///
    /// A model named there loses all its bundled rows. `origin` is the file's name
    /// for error messages.
    pub fn with_overrides(toml_text: &str, origin: &str) -> Result<Self, PriceError> {
        let table = PriceTable::parse(toml_text, origin)?;
        let mut prices = Self::bundled();
        prices.models.extend(table.models);
        prices.geo_multipliers.extend(table.geo);
        prices.web_search_price = table.web_search.unwrap_or(prices.web_search_price);
        prices.fingerprint ^= fingerprint_of(toml_text).rotate_left(1);
        Ok(prices)
    }

    /// Tells one table from another, for those who keep what they priced.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Every model with its prices, earliest first, in the order of their names.
    pub fn models(&self) -> impl Iterator<Item = (&str, &[Price])> {
        let rows = self.models.iter();
        rows.map(|(name, prices)| (name.as_str(), prices.as_slice()))
    }

    /// The price of one request.
    ///
    /// `at` is the message's time; without one the latest price counts. `speed` and `geo` are the usage's `speed` and `inference_geo`. Bands
    /// go by the prompt of a single request, so counts must not be summed before.
    pub fn cost(
        &self,
        model: &str,
        at: Option<Timestamp>,
        counts: &UsageCounts,
        speed: Option<&str>,
        geo: Option<&str>,
    ) -> Cost {
        if model == SYNTHETIC_MODEL {
            return Cost::Priced { usd: Usd::ZERO, breakdown: CostBreakdown::default() };
        }
        let priced =
            self.effective_rates(model, at, counts, speed, geo).and_then(|tariff| self.breakdown(&tariff, counts));
        match priced {
            Ok(breakdown) => Cost::Priced { usd: breakdown.total(), breakdown },
            Err(reason) => Cost::Unpriced { model: model.to_owned(), reason },
        }
    }

    /// What the prompt cache saved: its tokens at the full input price, less what
    /// reading and writing them cost.
    ///
    /// Negative when the writes were not read often enough; `None` when unpriced.
    pub fn cache_savings(
        &self,
        model: &str,
        at: Option<Timestamp>,
        counts: &UsageCounts,
        speed: Option<&str>,
        geo: Option<&str>,
    ) -> Option<Usd> {
        if model == SYNTHETIC_MODEL {
            return Some(Usd::ZERO);
        }
        let tariff = self.effective_rates(model, at, counts, speed, geo).ok()?;
        let paid = self.breakdown(&tariff, counts).ok()?;
        let cached = counts.cache_write_tokens().saturating_add(counts.cache_read);
        let full = Usd::from_tokens(cached, tariff.rates.input, tariff.multipliers);
        Some(full - paid.cache_write_5m - paid.cache_write_1h - paid.cache_read)
    }

    /// What some web searches cost, whatever the model.
    pub fn web_search_cost(&self, requests: u64) -> Usd {
        Usd::from_requests(requests, self.web_search_price)
    }

    /// Chooses the one set of rates for a request: by band, then speed, then geo.
    fn effective_rates(
        &self,
        model: &str,
        at: Option<Timestamp>,
        counts: &UsageCounts,
        speed: Option<&str>,
        geo: Option<&str>,
    ) -> Result<EffectiveRates<'_>, UnpricedReason> {
        // A user's file may price one snapshot or platform apart from its model.
        let prices =
            self.models.get(model).or_else(|| self.models.get(base_name(model))).ok_or(UnpricedReason::UnknownModel)?;
        let day = at.map(|at| Offset::UTC.to_datetime(at).date());
        let price = prices
            .iter()
            .rfind(|price| day.is_none_or(|day| price.effective_from <= day))
            .ok_or(UnpricedReason::NotInForce)?;
        let speed = match speed {
            None | Some("" | "standard") => Decimal::ONE,
            Some("fast") => price.fast_multiplier.ok_or(UnpricedReason::UnknownSpeed)?,
            Some(_) => return Err(UnpricedReason::UnknownSpeed),
        };
        let geo = geo.and_then(|geo| self.geo_multipliers.get(geo)).copied();
        Ok(EffectiveRates {
            rates: price.rates_for(counts.prompt_tokens()),
            multipliers: [speed, geo.unwrap_or(Decimal::ONE)],
        })
    }

    fn breakdown(&self, tariff: &EffectiveRates<'_>, counts: &UsageCounts) -> Result<CostBreakdown, UnpricedReason> {
        let rates = tariff.rates;
        Ok(CostBreakdown {
            input: tariff.charge(counts.input, Some(rates.input), "input")?,
            output: tariff.charge(counts.output, Some(rates.output), "output")?,
            cache_write_5m: tariff.charge(counts.charged_cache_write_5m(), rates.write_5m, "5m cache write")?,
            cache_write_1h: tariff.charge(counts.cache_write_1h, rates.write_1h, "1h cache write")?,
            cache_read: tariff.charge(counts.cache_read, rates.read, "cache read")?,
            web_search: self.web_search_cost(counts.web_searches),
        })
    }
}

fn fingerprint_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
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
