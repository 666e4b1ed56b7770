//! How the two views of a conversation grow with it: the time for each entry
//! must not.
#![allow(missing_docs, reason = "the macros of criterion make functions without docs")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a benchmark prints its results"
)]

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Bencher, BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use quipu_conversation::Conversation;
use quipu_message::Entry;
use serde_json::{Value, json};

criterion_group!(benches, scale);
criterion_main!(benches);

fn scale(c: &mut Criterion) {
    let mut group = c.benchmark_group("scale");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    // Under `cargo test` the bench only has to run.
    let in_earnest = std::env::args().any(|arg| arg == "--bench");
    // A conversation that fits the processor's cache is dearer when it is not in
    // it: taking turns with others keeps it out.
    let cases: &[(u64, usize)] =
        if in_earnest { &[(1_000, 1), (10_000, 1), (10_000, 20), (100_000, 1), (1_000_000, 1)] } else { &[(1_000, 2)] };
    for &(size, copies) in cases {
        let conversations: Vec<Conversation> = (0..copies).map(|_| made_up(size)).collect();
        let case = if copies == 1 { size.to_string() } else { format!("{size}x{copies}") };
        eprintln!("memory: {case} entries: held {}", memory("VmRSS:"));
        group.throughput(Throughput::Elements(size));
        group.bench_function(BenchmarkId::new("for_ui", &case), |b| timed(b, &conversations, Conversation::for_ui));
        group.bench_function(BenchmarkId::new("for_api", &case), |b| timed(b, &conversations, Conversation::for_api));
        eprintln!("memory: {case} entries: peak {}", memory("VmHWM:"));
    }
    group.finish();
}

/// Times the work on the processor, without the release of what it made.
fn timed<T>(b: &mut Bencher<'_>, conversations: &[Conversation], work: impl Fn(&Conversation) -> T) {
    let mut turn = conversations.iter().cycle();
    b.iter_custom(|times| {
        let mut spent = Duration::ZERO;
        for conversation in turn.by_ref().take(times as usize) {
            let start = quipu_testkit::cpu_time();
            let made = black_box(work(conversation));
            spent += quipu_testkit::cpu_time() - start;
            drop(made);
        }
        spent
    });
}

/// A line of the kernel's account of this process; nothing where there is none.
fn memory(name: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("unknown").trim().to_owned()
}

/// A conversation of so many entries, in turns of eight.
fn made_up(size: u64) -> Conversation {
    let mut conversation = Conversation::default();
    for n in 0..size {
        let entry = Entry::read(&line(n).to_string()).unwrap();
        assert!(entry.is_known_kind());
        conversation.push(n + 1, entry);
    }
    assert_eq!(conversation.path().len() as u64, size);
    conversation
}

/// One line of a turn: a prompt, an answer of three blocks with two calls, a hook,
/// both results, the first of them beside the chain as in real files, an answer.
fn line(n: u64) -> Value {
    const TIDES: &str = "high water 06:12, low water 12:31";
    let (turn, step) = (n / 8, n % 8);
    let id = |what: &str| format!("{what}{turn:022x}");
    let call = |id: String| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": id}});
    let words = |text: &str| json!({"type": "text", "text": text});
    let answer = |id: String, block: Value| {
        let usage = json!({"input_tokens": 4, "output_tokens": 179});
        json!({"type": "assistant", "message": {"id": id, "type": "message", "role": "assistant",
            "model": "claude-opus-5-5", "content": [block], "stop_reason": null, "usage": usage}})
    };
    let result = |id: String| {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": TIDES});
        json!({"type": "user", "message": {"role": "user", "content": [block]},
            "toolUseResult": {"stdout": TIDES, "stderr": "", "interrupted": false}})
    };
    let mut line = match step {
        0 => json!({"type": "user", "message": {"role": "user", "content": id("and what of harbour ")}}),
        1 => answer(id("msg_01"), words("I will look at the readings of the gauge first, then at the tables.")),
        2 => answer(id("msg_01"), call(id("toolu_01"))),
        3 => answer(id("msg_01"), call(id("toolu_02"))),
        4 => json!({"type": "progress", "toolUseID": id("toolu_02"), "parentToolUseID": id("toolu_02"), "data":
            {"type": "hook_progress", "hookEvent": "PostToolUse", "hookName": "PostToolUse:Bash", "command": "callback"}}),
        5 => result(id("toolu_01")),
        6 => result(id("toolu_02")),
        _ => answer(id("msg_02"), words("High water is at 06:12 and low water at 12:31.")),
    };
    // Each result hangs on its own call.
    let parent = if matches!(step, 5 | 6) { Some(n - 3) } else { n.checked_sub(1) };
    line["uuid"] = uuid(n).into();
    line["parentUuid"] = parent.map(uuid).into();
    line["sessionId"] = "05ef09b2-9c3d-4897-965b-0c47c2889d7b".into();
    line["timestamp"] = "2026-11-15T08:26:31.512Z".into();
    line
}

fn uuid(n: u64) -> String {
    format!("{n:08x}-9c3d-4897-965b-{n:012x}")
}
