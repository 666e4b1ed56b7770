//! Our prices against what the real program says its calls cost.

use std::collections::BTreeSet;
use std::fs;

use quipu_conversation::Tokens;
use quipu_conversation::price::{BilledRequest, Prices};
use quipu_message::Entry;

#[test]
fn our_table_gives_the_cost_of_every_recorded_result() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let prices = Prices::bundled();
    let mut compared = 0;
    let mut unpriced = BTreeSet::new();
    for path in quipu_testkit::files_under(&shared.join("recordings"), |p| p.ends_with("stdout.jsonl")) {
        for line in fs::read_to_string(&path).unwrap().lines() {
            let Ok(Entry::Result(result)) = Entry::read(line) else { continue };
            for (model, used) in result.model_usage.get().into_iter().flatten() {
                let count = |field: &quipu_message::Maybe<u64>| field.get().copied().unwrap_or_default();
                let tokens = Tokens {
                    input: count(&used.input_tokens),
                    output: count(&used.output_tokens),
                    cache_write_5m: count(&used.cache_creation_5m),
                    cache_write_1h: count(&used.cache_creation_1h),
                    cache_read: count(&used.cache_read_input_tokens),
                };
                let tokens = tokens.with_cache_write_total(count(&used.cache_creation_input_tokens));
                let web_searches = count(&used.web_search_requests);
                let request = BilledRequest { model, tokens, web_searches, ..BilledRequest::default() };
                let Some(ours) = prices.cost(&request).usd() else {
                    unpriced.insert(model.clone());
                    continue;
                };
                let ours = ours.as_f64();
                let theirs = used.cost_usd.get().and_then(serde_json::Number::as_f64).unwrap();
                assert!((ours - theirs).abs() < 1e-12, "{}: {model}: {ours} against {theirs}", path.display());
                compared += 1;
            }
        }
    }
    // The price page gives no cache rates for it, and one recorded sum cannot give two rates.
    assert_eq!(unpriced.into_iter().collect::<Vec<_>>(), ["claude-haiku-5-5"]);
    assert_eq!(compared, 116);
}
