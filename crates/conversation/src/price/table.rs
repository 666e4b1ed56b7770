//! Parses price files.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::Deserialize;
use toml::Spanned;

use super::money::Decimal;

/// Why a price file was rejected.
#[derive(Debug, thiserror::Error)]
pub enum PriceError {
    /// The text is not TOML, or a field is missing, misspelt or out of range.
    #[error("cannot read prices from {origin}, line {line} (`{text}`): {message}")]
    Format {
        /// Name of the file.
        origin: String,
        /// Line number, counted from 1.
        line: usize,
        /// Text of that line.
        text: String,
        /// What the parser reported.
        message: String,
    },
    /// Two rows of one file price a model from the same day.
    #[error("cannot read prices from {origin}, line {line}: `{model}` already has a row from {from}")]
    Duplicate {
        /// Name of the file.
        origin: String,
        /// Line number of the second row, counted from 1.
        line: usize,
        /// Model that has two rows.
        model: String,
        /// Day on which both rows take effect.
        from: Date,
    },
}

impl PriceError {
    /// A stable name for the kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Format { .. } => "prices.format",
            Self::Duplicate { .. } => "prices.duplicate",
        }
    }

    /// How to correct the file, for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Format { .. } => {
                "each [[price]] needs models, effective_from = 2026-01-31 (no quotes), source, input and output; \
                 write_5m, write_1h, read, fast and above are optional; rates are USD per million tokens"
            }
            Self::Duplicate { .. } => "remove one of the two rows, or give the later price its own effective_from",
        }
    }
}

/// Price of a model from one day on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// First day in UTC on which it applies.
    pub effective_from: Date,
    /// Where the rates were published.
    pub source: String,
    /// Rates of prompts below all bands.
    pub rates: Rates,
    /// Rates of larger prompts, smallest band first.
    pub bands: Vec<RateBand>,
    /// Factor for fast mode; `None` if the model has no fast mode.
    pub fast_multiplier: Option<Decimal>,
}

impl Price {
    /// The rates of a request with a prompt of this size; they apply to all its tokens.
    pub fn rates_for(&self, prompt_tokens: u64) -> &Rates {
        let mut bands = self.bands.iter().rev();
        bands.find(|band| prompt_tokens > band.above_prompt_tokens).map_or(&self.rates, |band| &band.rates)
    }
}

/// Rates of prompts above a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateBand {
    /// The band applies to prompts with more tokens than this.
    pub above_prompt_tokens: u64,
    /// Rates of all tokens of such a request.
    pub rates: Rates,
}

/// Rates in US dollars per million tokens; `None` if a rate is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Prompt tokens outside the cache.
    pub input: Decimal,
    /// Tokens the model writes.
    pub output: Decimal,
    /// Prompt tokens written to the five-minute cache.
    pub write_5m: Option<Decimal>,
    /// Prompt tokens written to the one-hour cache.
    pub write_1h: Option<Decimal>,
    /// Prompt tokens read from the cache.
    pub read: Option<Decimal>,
}

/// A price file, sorted by model and date.
pub(super) struct PriceTable {
    pub(super) web_search: Option<Decimal>,
    pub(super) geo: BTreeMap<String, Decimal>,
    pub(super) models: BTreeMap<String, Vec<Price>>,
}

impl PriceTable {
    pub(super) fn parse(text: &str, origin: &str) -> Result<Self, PriceError> {
        let file: PriceFile = toml::from_str(text).map_err(|error| {
            let line = line_number_at(text, error.span().map_or(0, |span| span.start));
            PriceError::Format {
                origin: origin.to_owned(),
                line,
                text: text.lines().nth(line - 1).unwrap_or("").trim().to_owned(),
                message: error.message().to_owned(),
            }
        })?;
        let mut models: BTreeMap<String, Vec<Price>> = BTreeMap::new();
        for row in file.price {
            let start = row.span().start;
            let PriceRow { names, price } = row.into_inner();
            for model in names {
                let prices = models.entry(model.clone()).or_default();
                let from = price.effective_from;
                let Err(at) = prices.binary_search_by_key(&from, |price| price.effective_from) else {
                    let (origin, line) = (origin.to_owned(), line_number_at(text, start));
                    return Err(PriceError::Duplicate { origin, line, model, from });
                };
                prices.insert(at, price.clone());
            }
        }
        Ok(Self { web_search: file.web_search, geo: file.geo, models })
    }
}

fn line_number_at(text: &str, offset: usize) -> usize {
    let before = text.bytes().take(offset);
    before.filter(|&byte| byte == b'\n').count() + 1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    web_search: Option<Decimal>,
    #[serde(default)]
    geo: BTreeMap<String, Decimal>,
    #[serde(default)]
    price: Vec<Spanned<PriceRow>>,
}

#[derive(Deserialize)]
#[serde(try_from = "FileRow")]
struct PriceRow {
    names: Vec<String>,
    price: Price,
}

// The rates are listed twice because `flatten` would let misspelt fields pass.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRow {
    models: Vec<String>,
    effective_from: toml::value::Date,
    source: String,
    input: Decimal,
    output: Decimal,
    write_5m: Option<Decimal>,
    write_1h: Option<Decimal>,
    read: Option<Decimal>,
    fast: Option<Decimal>,
    #[serde(default)]
    above: Vec<FileBand>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBand {
    prompt_over: u64,
    input: Decimal,
    output: Decimal,
    write_5m: Option<Decimal>,
    write_1h: Option<Decimal>,
    read: Option<Decimal>,
}

impl TryFrom<FileRow> for PriceRow {
    type Error = String;

    fn try_from(row: FileRow) -> Result<Self, Self::Error> {
        let FileRow { models, effective_from, source, fast, above, .. } = row;
        let FileRow { input, output, write_5m, write_1h, read, .. } = row;
        if models.is_empty() {
            return Err("`models` is empty".to_owned());
        }
        let effective_from = effective_from.to_string().parse();
        let mut above: Vec<RateBand> = above.into_iter().map(RateBand::from).collect();
        above.sort_by_key(|band| band.above_prompt_tokens);
        let price = Price {
            effective_from: effective_from.map_err(|error: jiff::Error| error.to_string())?,
            source,
            rates: Rates { input, output, write_5m, write_1h, read },
            bands: above,
            fast_multiplier: fast,
        };
        Ok(Self { names: models, price })
    }
}

impl From<FileBand> for RateBand {
    fn from(band: FileBand) -> Self {
        let FileBand { prompt_over, input, output, write_5m, write_1h, read } = band;
        let rates = Rates { input, output, write_5m, write_1h, read };
        Self { above_prompt_tokens: prompt_over, rates }
    }
}
