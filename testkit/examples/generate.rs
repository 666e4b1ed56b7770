//! Writes a made-up tree of sessions: `generate DIR BYTES [SEED]`. Prints its true totals,
//! and writes the truth in every grouping to `DIR/truth.json`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::print_stdout, reason = "a tool for benches")]

use std::collections::BTreeMap;

use quipu_testkit::generate::{ExpectedSum, generate_tree};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, bytes, seed @ ..] = &args[..] else { panic!("usage: generate DIR BYTES [SEED]") };
    let seed = seed.first().map_or(42, |seed| seed.parse().unwrap());
    let truth = generate_tree(dir.as_ref(), seed, bytes.parse().unwrap()).unwrap();
    let total = &truth.total;
    println!(
        r#"{{"files":{},"bytes":{},"messages":{},"output_tokens":{},"nano_usd":{}}}"#,
        truth.files, truth.bytes, total.messages, total.output, total.nano_usd
    );
    let groups = [
        ("daily", &truth.by_day),
        ("session", &truth.by_session),
        ("model", &truth.by_model),
        ("project", &truth.by_project),
        ("block", &truth.by_block),
        ("tool", &truth.by_tool),
        ("agent", &truth.by_agent),
        ("turn", &truth.by_turn),
    ];
    let groups: Vec<String> = groups.iter().map(|(name, rows)| format!("\"{name}\":{}", json(rows))).collect();
    std::fs::write(format!("{dir}/truth.json"), format!("{{{}}}\n", groups.join(","))).unwrap();
}

/// Rows by key: input, output, both kinds of cache writes, cache reads, searches, messages
/// and billionths of a dollar.
fn json(rows: &BTreeMap<String, ExpectedSum>) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|(key, s)| {
            let counts = [
                s.input,
                s.output,
                s.cache_write_5m,
                s.cache_write_1h,
                s.cache_read,
                s.searches,
                s.messages,
                s.nano_usd,
            ];
            format!("\"{key}\":{counts:?}")
        })
        .collect();
    format!("{{{}}}", rows.join(","))
}
