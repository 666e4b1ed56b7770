#![allow(clippy::unwrap_used)]

use jiff::civil::date;

use super::*;
use crate::tokens::Tokens;

const M: u64 = 1_000_000;

/// The cost in dollars of a request at standard speed, now.
#[track_caller]
fn check(model: &str, request: BilledRequest<'_>, dollars: f64) {
    let cost = Prices::bundled().cost(&BilledRequest { model, ..request });
    assert_eq!(cost.usd().map(Usd::as_f64), Some(dollars), "{cost:?}");
}

#[track_caller]
fn check_unpriced(prices: &Prices, model: &str, request: BilledRequest<'_>, reason: UnpricedReason) {
    let cost = prices.cost(&BilledRequest { model, ..request });
    let model = model.to_owned();
    assert_eq!(cost, Cost::Unpriced { model, reason });
}

fn input(input: u64) -> BilledRequest<'static> {
    request(Tokens { input, ..Tokens::default() })
}

fn request(tokens: Tokens) -> BilledRequest<'static> {
    BilledRequest { tokens, ..BilledRequest::default() }
}

/// Tokens with a total of cache writes that has no split.
fn written(total: u64) -> Tokens {
    Tokens::default().with_cache_write_total(total)
}

/// A user's file with one row, and whatever else the test adds to it.
fn custom(rest: &str) -> Prices {
    let row = r#"
        [[price]]
        models = ["mine"]
        effective_from = 2025-01-01
        source = "invoice"
        input = 1
        output = 2
    "#;
    Prices::with_overrides(&format!("{row}{rest}"), "prices.toml").unwrap()
}

#[test]
fn every_kind_of_token_has_its_own_rate() {
    let tokens = Tokens { input: M, output: M, cache_write_5m: M, cache_write_1h: M, cache_read: M };
    let request = BilledRequest { model: "claude-fable-5-1", web_searches: 3, ..request(tokens) };
    let cost = Prices::bundled().cost(&request);
    let breakdown = CostBreakdown {
        input: Usd::from_f64(10.0),
        output: Usd::from_f64(50.0),
        cache_write_5m: Usd::from_f64(12.5),
        cache_write_1h: Usd::from_f64(20.0),
        cache_read: Usd::from_f64(0.25),
        web_search: Usd::from_f64(0.03),
    };
    let usd = Usd::from_f64(92.78);
    assert_eq!(cost, Cost::Priced { usd, breakdown });
}

#[test]
fn the_bundled_table_is_the_one_of_the_price_page() {
    let mut table = String::new();
    for (name, prices) in Prices::bundled().models() {
        let [price] = prices else { panic!("{name} has {} rows", prices.len()) };
        assert_eq!(price.effective_from, date(2024, 1, 1), "{name}");
        assert_eq!(price.source, "official price page, read 2026-08", "{name}");
        let bands = price.bands.iter().map(|band| (band.above_prompt_tokens, &band.rates));
        for (over, rates) in [(0, &price.rates)].into_iter().chain(bands) {
            let optional = [rates.write_5m, rates.write_1h, rates.read, price.fast_multiplier];
            let optional = optional.map(|rate| rate.map_or("-".to_owned(), |rate| rate.to_string()));
            let Rates { input, output, .. } = rates;
            table += &format!("{name} >{over} {input} {output} {}\n", optional.join(" "));
        }
    }
    let expected = "\
claude-3-5-haiku >0 0.8 4 1 1.6 0.08 -
claude-3-5-sonnet >0 3 15 3.75 6 0.3 -
claude-3-7-sonnet >0 3 15 3.75 6 0.3 -
claude-3-haiku >0 0.25 1.25 0.3 0.5 0.03 -
claude-3-opus >0 15 75 18.75 30 1.5 -
claude-fable-5-1 >0 10 50 12.5 20 0.25 -
claude-haiku-4-5 >0 1 5 1.25 2 0.1 -
claude-haiku-5-5 >0 0.1 0.5 - - - -
claude-haiku-5-5 >100000 0.5 2.5 - - - -
claude-opus-4 >0 15 75 18.75 30 1.5 -
claude-opus-4-1 >0 15 75 18.75 30 1.5 -
claude-opus-4-5 >0 5 25 6.25 10 0.5 -
claude-opus-4-6 >0 5 25 6.25 10 0.5 6
claude-opus-4-7 >0 5 25 6.25 10 0.5 6
claude-opus-4-8 >0 5 25 6.25 10 0.5 2
claude-opus-5 >0 5 25 6.25 10 0.5 -
claude-opus-5-5 >0 4 20 5 8 0.2 -
claude-sonnet-4 >0 3 15 3.75 6 0.3 -
claude-sonnet-4 >200000 6 22.5 7.5 12 0.6 -
claude-sonnet-4-5 >0 3 15 3.75 6 0.3 -
claude-sonnet-4-5 >200000 6 22.5 7.5 12 0.6 -
claude-sonnet-4-6 >0 3 15 3.75 6 0.3 -
claude-sonnet-5-5 >0 2 10 2.5 4 0.2 -
";
    assert_eq!(table, expected);
}

#[test]
fn the_whole_prompt_chooses_one_band_for_the_whole_request() {
    let at_limit = Tokens { input: 100_000, output: 1_000, cache_read: 50_000, ..written(50_000) };
    // 0.3 + 0.015 + 0.1875 + 0.015
    check("claude-sonnet-4-5", request(at_limit), 0.5175);
    let over = Tokens { cache_read: 50_001, ..at_limit };
    // 0.6 + 0.0225 + 0.375 + 0.0300006
    check("claude-sonnet-4-5", request(over), 1.0275006);
    // Output is no part of the prompt, and other models have no bands.
    let output = request(Tokens { output: M, ..Tokens::default() });
    check("claude-sonnet-4-5", output, 15.0);
    check("claude-sonnet-4-6", input(M), 3.0);
}

#[test]
fn the_highest_band_below_the_prompt_counts_whatever_their_order() {
    let prices =
        custom("above = [{ prompt_over = 20, input = 9, output = 0 }, { prompt_over = 10, input = 3, output = 0 }]");
    let cost = |tokens| prices.cost(&BilledRequest { model: "mine", ..input(tokens) }).usd();
    let expected = [(10, 10e-6), (11, 33e-6), (20, 60e-6), (21, 189e-6)];
    for (tokens, dollars) in expected {
        assert_eq!(cost(tokens), Some(Usd::from_f64(dollars)), "{tokens}");
    }
}

#[test]
fn the_unsplit_rest_of_a_cache_write_costs_the_five_minute_rate() {
    let tokens = |cache_write_5m, cache_write_1h, total| {
        Tokens { cache_write_5m, cache_write_1h, ..Tokens::default() }.with_cache_write_total(total)
    };
    let write = |five, hour, total| request(tokens(five, hour, total));
    let model = "claude-haiku-4-5";
    check(model, write(M, M, 2 * M), 3.25);
    check(model, write(M, M, 4 * M), 5.75);
    // A split of zeros does not hide the total.
    check(model, write(0, 0, M), 1.25);
    check(model, write(0, M, 3 * M), 4.5);
    // A total below the split, or none, does not hide the split.
    check(model, write(M, M, 1), 3.25);
    check(model, write(M, M, 0), 3.25);
    assert_eq!(tokens(M, M, 0).cache_write(), 2 * M);
    assert_eq!(tokens(M, M, 4 * M).cache_write(), 4 * M);
}

#[test]
fn fast_mode_multiplies_tokens_but_not_searches() {
    let prices = Prices::bundled();
    let cost = |model, speed| prices.cost(&BilledRequest { model, speed: Some(speed), web_searches: 1, ..input(M) });
    for (model, speed, dollars) in [
        ("claude-opus-4-6", "fast", 30.01),
        ("claude-opus-4-7", "fast", 30.01),
        ("claude-opus-4-8", "fast", 10.01),
        ("claude-opus-4-8", "standard", 5.01),
        ("claude-opus-4-8", "", 5.01),
    ] {
        let usd = cost(model, speed).usd();
        assert_eq!(usd, Some(Usd::from_f64(dollars)), "{model} {speed}");
    }
    for (model, speed) in [("claude-opus-5", "fast"), ("claude-opus-4-6", "warp")] {
        let cost = cost(model, speed);
        let (model, reason) = (model.to_owned(), UnpricedReason::UnknownSpeed);
        assert_eq!(cost, Cost::Unpriced { model, reason });
    }
}

#[test]
fn geo_multiplies_only_if_the_price_file_sets_it() {
    let model = "claude-opus-4-6";
    let cost = |prices: &Prices, geo| {
        let request = BilledRequest { model, speed: Some("fast"), geo: Some(geo), ..input(M) };
        let usd = prices.cost(&request).usd();
        usd.map(Usd::as_f64)
    };
    let bundled = Prices::bundled();
    let us = Prices::with_overrides("[geo]\nus = 1.1", "prices.toml").unwrap();
    assert_eq!(cost(&bundled, "us"), Some(30.0));
    assert_eq!(cost(&us, "us"), Some(33.0));
    assert_eq!(cost(&us, "not_available"), Some(30.0));
}

#[test]
fn web_searches_cost_a_cent_each_unless_the_price_file_sets_another() {
    let request = BilledRequest { model: "claude-opus-5", web_searches: 7, ..BilledRequest::default() };
    check("claude-opus-5", request, 0.07);
    let prices = Prices::with_overrides("web_search = 0.02", "prices.toml").unwrap();
    let usd = prices.cost(&request).usd();
    assert_eq!(usd, Some(Usd::from_f64(0.14)));
}

#[test]
fn an_unknown_model_is_unpriced_and_never_its_sibling() {
    let prices = Prices::bundled();
    for model in [
        "claude-opus-4-9",
        "claude-opus-4-10",
        "claude-opus",
        "claude-haiku-4-20250514",
        "claude-3-5-haiku-latest",
        "glm-5.1",
        "opus",
        "",
    ] {
        check_unpriced(&prices, model, input(1), UnpricedReason::UnknownModel);
    }
}

#[test]
fn a_synthetic_message_is_free() {
    check("<synthetic>", input(5), 0.0);
}

#[test]
fn tokens_without_a_rate_make_the_cost_unknown() {
    let prices = Prices::bundled();
    let model = "claude-haiku-5-5";
    check(model, input(M), 0.5);
    check(model, input(100_000), 0.01);
    let read = request(Tokens { input: 1, cache_read: 1, ..Tokens::default() });
    check_unpriced(&prices, model, read, UnpricedReason::NoRate { kind: "cache read" });
    let write = request(Tokens { input: 1, ..written(1) });
    check_unpriced(&prices, model, write, UnpricedReason::NoRate { kind: "5m cache write" });
    assert_eq!(prices.cost_and_cache_savings(&BilledRequest { model, ..read }).1, Usd::ZERO);
}

#[test]
fn the_row_in_force_at_the_messages_time_is_used() {
    let later = r#"
        [[price]]
        models = ["mine"]
        effective_from = 2026-03-01
        source = "invoice"
        input = 10
        output = 20
    "#;
    let prices = custom(later);
    let cost = |at: Option<&str>| {
        let time = at.map(|at| at.parse().unwrap());
        prices.cost(&BilledRequest { model: "mine", time, ..input(M) })
    };
    for (at, dollars) in [
        (Some("2025-01-01T00:00:00Z"), 1.0),
        (Some("2026-02-28T23:59:59.999Z"), 1.0),
        (Some("2026-03-01T00:00:00.000Z"), 10.0),
        (Some("2026-03-01T01:00:00+02:00"), 1.0),
        (None, 10.0),
    ] {
        assert_eq!(cost(at).usd(), Some(Usd::from_f64(dollars)), "{at:?}");
    }
    let (model, reason) = ("mine".to_owned(), UnpricedReason::NotInForce);
    let early = cost(Some("2024-12-31T23:59:59Z"));
    assert_eq!(early, Cost::Unpriced { model, reason });
}

#[test]
fn a_users_file_replaces_whole_models_and_adds_new_ones() {
    let text = r#"
        [[price]]
        models = ["claude-sonnet-4-5", "glm-5.1", "claude-opus-5-20260101"]
        effective_from = 2024-01-01
        source = "invoice"
        input = 1
        output = 2
    "#;
    let prices = Prices::with_overrides(text, "prices.toml").unwrap();
    let usd = |model| prices.cost(&BilledRequest { model, ..input(M) }).usd();
    // The band and the cache rates of the bundled row are gone with it.
    assert_eq!(usd("claude-sonnet-4-5-20250929"), Some(Usd::from_f64(1.0)));
    let read = request(Tokens { cache_read: 1, ..Tokens::default() });
    let reason = UnpricedReason::NoRate { kind: "cache read" };
    check_unpriced(&prices, "claude-sonnet-4-5", read, reason);
    assert_eq!(usd("glm-5.1"), Some(Usd::from_f64(1.0)));
    // A dated name prices that snapshot alone.
    assert_eq!(usd("claude-opus-5-20260101"), Some(Usd::from_f64(1.0)));
    assert_eq!(usd("claude-opus-5"), Some(Usd::from_f64(5.0)));
    assert_eq!(usd("claude-sonnet-4"), Some(Usd::from_f64(6.0)));
    assert_eq!(prices.models().count(), Prices::bundled().models().count() + 2);
}

#[test]
fn a_wrong_file_is_refused_with_the_line_and_the_field() {
    let check = |line: &str, with: &str, expected: &str| {
        let text = "[[price]]\nmodels = [\"m\"]\neffective_from = 2024-01-01\nsource = \"s\"\ninput = 1\noutput = 2\n";
        assert!(text.contains(line), "{line}");
        let error = Prices::with_overrides(&text.replace(line, with), "p.toml").unwrap_err();
        let start = "cannot read prices from p.toml, line ";
        assert_eq!(error.to_string().strip_prefix(start), Some(expected));
        assert!(!error.hint().is_empty());
    };
    check("input = 1", "input = -1", "5 (`input = -1`): expected a number from 0 to 1000000");
    check("input = 1", "input = 0.0000001", "5 (`input = 0.0000001`): expected at most six decimals");
    check("output = 2", "output = \"2\"", "6 (`output = \"2\"`): invalid type: string \"2\", expected f64");
    check("output = 2\n", "", "1 (`[[price]]`): missing field `output`");
    check("[\"m\"]", "[]", "1 (`[[price]]`): `models` is empty");
    check(
        "output = 2",
        "output = 2\nreed = 1",
        "7 (`reed = 1`): unknown field `reed`, expected one of `models`, `effective_from`, `source`, \
         `input`, `output`, `write_5m`, `write_1h`, `read`, `fast`, `above`",
    );
    check("[\"m\"]", "[\"m\", \"m\"]", "1: `m` already has a row from 2024-01-01");
}

#[test]
fn only_affixes_of_platforms_are_removed_from_a_name() {
    for (model, base) in [
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("claude-3-7-sonnet-20250219", "claude-3-7-sonnet"),
        ("claude-3-5-haiku-20241022", "claude-3-5-haiku"),
        ("claude-opus-4-8[1m]", "claude-opus-4-8"),
        ("claude-sonnet-4-20250514[1m]", "claude-sonnet-4"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic.claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4-1"),
        ("eu.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("apac.anthropic.claude-sonnet-4-20250514-v1:0[1m]", "claude-sonnet-4"),
        ("global.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("us-gov.anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-20250514-v1:0",
            "claude-opus-4",
        ),
        // Not an affix, or not one of a known shape.
        ("claude-3-5-haiku-latest", "claude-3-5-haiku-latest"),
        ("claude-opus-4-6@default", "claude-opus-4-6@default"),
        ("claude-opus-4-6-v1", "claude-opus-4-6-v1"),
        ("claude-opus-4-2025051", "claude-opus-4-2025051"),
        ("anthropic/claude-opus-4-6", "anthropic/claude-opus-4-6"),
        (
            "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab12",
            "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab12",
        ),
        ("[1m]", ""),
        ("é@20251101", "é"),
    ] {
        assert_eq!(base_name(model), base, "{model}");
    }
}

#[test]
fn savings_are_reads_at_full_price_less_what_the_cache_cost() {
    let prices = Prices::bundled();
    let savings = |model, request| prices.cost_and_cache_savings(&BilledRequest { model, ..request }).1.as_f64();
    let read = request(Tokens { cache_read: M, ..Tokens::default() });
    let write = request(Tokens { cache_write_5m: M, cache_write_1h: M, ..Tokens::default() });
    assert_eq!(savings("claude-opus-4-5", read), 4.5);
    assert_eq!(savings("claude-opus-4-5", write), -6.25);
    assert_eq!(savings("claude-sonnet-4", read), 5.4);
    assert_eq!(savings("claude-opus-4-5", input(M)), 0.0);
    assert_eq!(savings("<synthetic>", read), 0.0);
    assert_eq!(savings("claude-opus-4-9", read), 0.0);
    assert_eq!(savings("claude-opus-4-6", BilledRequest { speed: Some("fast"), ..read }), 27.0);
}

#[test]
fn sums_are_exact_in_any_order() {
    let one = request(Tokens { input: 11, output: 7, cache_read: 33, ..written(22) });
    let cost = Prices::bundled().cost(&BilledRequest { model: "claude-opus-5-5", ..one });
    let sum: Usd = (0..1000).filter_map(|_| cost.usd()).sum();
    assert_eq!(sum.as_f64(), 0.3006);
    // What the agent recorded for four of these.
    let recorded = Usd::from_f64(0.0012023999999999997);
    let four: Usd = (0..4).filter_map(|_| cost.usd()).sum();
    assert_eq!(four, recorded);
}

#[test]
fn absurd_counts_neither_panic_nor_wrap() {
    let tokens = Tokens {
        input: u64::MAX,
        output: u64::MAX,
        cache_write_5m: u64::MAX,
        cache_write_1h: u64::MAX,
        cache_read: u64::MAX,
    };
    let request =
        BilledRequest { model: "claude-opus-4-6", speed: Some("fast"), web_searches: u64::MAX, ..request(tokens) };
    let cost = Prices::bundled().cost(&request);
    assert!(cost.usd().is_some_and(|usd| usd.as_f64() > 1e14));
}
