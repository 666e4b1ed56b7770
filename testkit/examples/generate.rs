//! Writes a made-up tree of sessions: `generate DIR BYTES [SEED]`. Prints its true totals.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for benches")]

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, bytes, seed @ ..] = &args[..] else { panic!("usage: generate DIR BYTES [SEED]") };
    let seed = seed.first().map_or(42, |seed| seed.parse().unwrap());
    let truth = quipu_testkit::generate::tree(dir.as_ref(), seed, bytes.parse().unwrap()).unwrap();
    let total = &truth.total;
    println!(
        r#"{{"files":{},"bytes":{},"messages":{},"output_tokens":{},"nano_usd":{}}}"#,
        truth.files, truth.bytes, total.messages, total.output, total.nano_usd
    );
}
