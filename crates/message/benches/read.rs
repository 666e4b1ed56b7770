//! How fast the three tiers read, against `serde_json::Value`, on the same lines.
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

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quipu_message::line::replace_lone_surrogates;
use quipu_message::{Entry, Head, View};
use serde_json::{Value, json};

criterion_group! { name = benches; config = Criterion::default().with_measurement(CpuTime); targets = bench_generated_lines, bench_corpus_lines }
criterion_main!(benches);

fn bench_generated_lines(c: &mut Criterion<CpuTime>) {
    bench_tiers(c, "synthetic", &generate_lines(if is_measuring() { 20 << 20 } else { 1 << 20 }));
}

fn bench_corpus_lines(c: &mut Criterion<CpuTime>) {
    let Some(shared) = quipu_testkit::shared_dir().filter(|_| is_measuring()) else { return };
    let files = quipu_testkit::corpus_files(&shared, &["session"]);
    let texts: Vec<String> = files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let lines = texts.iter().flat_map(|text| text.lines()).map(|line| replace_lone_surrogates(line).into_owned());
    bench_tiers(c, "real", &lines.filter(|line| Entry::read(line).is_ok()).collect::<Vec<_>>());
}

/// Whether to measure, or, under `cargo test`, only to see that it runs.
fn is_measuring() -> bool {
    std::env::args().any(|arg| arg == "--bench")
}

fn bench_tiers(c: &mut Criterion<CpuTime>, name: &str, lines: &[String]) {
    let mut sizes: Vec<usize> = lines.iter().map(String::len).collect();
    sizes.sort_unstable();
    let bytes: usize = sizes.iter().sum();
    let at = |percent: usize| sizes[(sizes.len() - 1) * percent / 100];
    eprintln!("{name}: {} lines, {bytes} bytes, p50 {}, p90 {}, p99 {}", sizes.len(), at(50), at(90), at(99));

    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Bytes(bytes as u64)).sample_size(20).measurement_time(Duration::from_secs(4));
    group.bench_function("value", |b| {
        b.iter(|| lines.iter().for_each(|line| drop(black_box(serde_json::from_str::<Value>(line)))));
    });
    group.bench_function("head", |b| b.iter(|| lines.iter().for_each(|line| drop(black_box(Head::read(line))))));
    group.bench_function("view", |b| b.iter(|| lines.iter().for_each(|line| drop(black_box(View::read(line))))));
    group.bench_function("entry", |b| b.iter(|| lines.iter().for_each(|line| drop(black_box(Entry::read(line))))));
    group.finish();
}

/// Time on the processor, which other programs on the machine do not lengthen much.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;
    fn start(&self) -> Duration {
        quipu_testkit::cpu_time()
    }
    fn end(&self, start: Duration) -> Duration {
        quipu_testkit::cpu_time() - start
    }
    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// Lines as a session holds them, the same in every run.
fn generate_lines(bytes: usize) -> Vec<String> {
    let mut dice = Rng(0x9E37_79B9_7F4A_7C15);
    let (mut lines, mut size) = (Vec::new(), 0);
    while size < bytes {
        let line = generate_line(&mut dice, lines.len()).to_string();
        // What we time must be what the readers are for.
        assert!(Entry::read(&line).is_ok_and(|entry| entry.is_known_kind()), "{line}");
        size += line.len();
        lines.push(line);
    }
    lines
}

fn generate_line(dice: &mut Rng, n: usize) -> Value {
    let mut line = json!({
        "parentUuid": uuid(n.wrapping_sub(1)), "isSidechain": false, "userType": "external", "cwd": "/home/sam/tidepool",
        "sessionId": "05ef09b2-9c3d-4897-965b-0c47c2889d7b", "version": "2.1.325", "gitBranch": "main",
    });
    let body = match dice.below(100) {
        0..40 => progress(dice),
        40..52 => assistant(json!({"type": "text", "text": generate_prose(dice, 20, 300)}), dice),
        52..58 => {
            let thinking = json!({"type": "thinking", "thinking": generate_prose(dice, 40, 500), "signature": generate_base64(dice, 600)});
            assistant(thinking, dice)
        }
        58..74 => tool_use(dice),
        74..94 => tool_result(dice),
        94..97 => json!({"type": "user", "message": {"role": "user", "content": generate_prose(dice, 5, 60)}}),
        _ => json!({"attachment": {"type": "file", "filename": "src/tide.rs", "content": {"type": "text",
            "file": {"filePath": "src/tide.rs", "content": generate_code(dice, 30), "numLines": 30, "startLine": 1, "totalLines": 30}}},
            "type": "attachment"}),
    };
    for fields in [body, json!({"uuid": uuid(n), "timestamp": "2026-11-15T08:26:31.512Z"})] {
        let Value::Object(fields) = fields else { unreachable!("made as an object") };
        line.as_object_mut().unwrap().extend(fields);
    }
    line
}

fn assistant(block: Value, dice: &mut Rng) -> Value {
    json!({"message": {"model": "claude-opus-5-5", "id": generate_id(dice, "msg_01"), "type": "message", "role": "assistant",
        "content": [block], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": dice.below(9000),
        "cache_creation_input_tokens": dice.below(9000), "cache_read_input_tokens": dice.below(150_000),
        "cache_creation": {"ephemeral_5m_input_tokens": dice.below(9000), "ephemeral_1h_input_tokens": 0},
        "output_tokens": dice.below(2000), "service_tier": "standard", "inference_geo": "not_available"},
        "context_management": null}, "requestId": generate_id(dice, "req_01"), "type": "assistant"})
}

fn tool_use(dice: &mut Rng) -> Value {
    let (name, input) = match dice.below(3) {
        0 => (
            "Bash",
            json!({"command": "cargo test -p tidepool 2>&1 | tail -20", "description": generate_prose(dice, 4, 8)}),
        ),
        1 => ("Read", json!({"file_path": "/home/sam/tidepool/src/tide.rs", "offset": dice.below(900), "limit": 80})),
        _ => (
            "Edit",
            json!({"file_path": "/home/sam/tidepool/src/tide.rs", "old_string": generate_code(dice, 12),
            "new_string": generate_code(dice, 18), "replace_all": false}),
        ),
    };
    let id = generate_id(dice, "toolu_01");
    assistant(json!({"type": "tool_use", "id": id, "name": name, "input": input}), dice)
}

/// A result says everything twice: to the model, and in the tool's own form.
fn tool_result(dice: &mut Rng) -> Value {
    let lines = match dice.below(100) {
        0..30 => 3,
        30..40 => 25,
        40..95 => 60,
        _ => 400,
    };
    let lines = lines + dice.below(lines);
    // Terminals colour what they print, and the escape character is `\u001b`. In
    // published sessions that is rare: agents run programs without a terminal.
    let text = match dice.below(20) {
        0 => generate_output(dice, lines, "\u{1b}[32mok\u{1b}[0m"),
        1..5 => generate_output(dice, lines, "ok"),
        _ => generate_code(dice, lines),
    };
    let result = json!({"tool_use_id": generate_id(dice, "toolu_01"), "type": "tool_result", "content": text, "is_error": false});
    json!({"type": "user", "message": {"role": "user", "content": [result]}, "toolUseResult":
        {"stdout": text, "stderr": "", "interrupted": false, "isImage": false}})
}

fn progress(dice: &mut Rng) -> Value {
    let data = match dice.below(3) {
        0..2 => {
            json!({"type": "hook_progress", "hookEvent": "PostToolUse", "hookName": "PostToolUse:Read", "command": "callback"})
        }
        _ => {
            json!({"type": "bash_progress", "output": generate_output(dice, 4, "ok"), "fullOutput": generate_output(dice, 12, "ok"),
            "elapsedTimeSeconds": 3, "totalLines": 16, "timeoutMs": 180_000})
        }
    };
    json!({"type": "progress", "data": data, "parentToolUseID": generate_id(dice, "toolu_01"), "toolUseID": "bash-progress-1"})
}

fn uuid(n: usize) -> String {
    format!("{:08x}-9c3d-4897-965b-{:012x}", n as u32, n)
}

fn generate_id(dice: &mut Rng, prefix: &str) -> String {
    format!("{prefix}{:022x}", dice.next())
}

const WORDS: [&str; 24] = [
    "the",
    "tide",
    "gauge",
    "reads",
    "wrong",
    "after",
    "midnight",
    "so",
    "I",
    "will",
    "look",
    "at",
    "parser",
    "first",
    "and",
    "then",
    "run",
    "tests",
    "again",
    "`tide::read`",
    "潮汐",
    "café",
    "“harbour”",
    "fixed",
];

fn generate_prose(dice: &mut Rng, least: usize, most: usize) -> String {
    let mut text = String::new();
    for _ in 0..least + dice.below(most - least) {
        text.push_str(WORDS[dice.below(WORDS.len())]);
        text.push_str(if dice.below(16) == 0 { ".\n\n" } else { " " });
    }
    text
}

fn generate_code(dice: &mut Rng, lines: usize) -> String {
    let mut text = String::new();
    for n in 1..=lines {
        let (a, b) = (WORDS[dice.below(18)], WORDS[dice.below(18)]);
        text.push_str(&match dice.below(4) {
            0 => format!("{n:>6}→    let {a}_{b} = read_{b}(&{a}, {n})?;\n"),
            1 => format!("{n:>6}→    println!(\"{a} {b}: {{}}\", {b});\n"),
            2 => format!("{n:>6}→\n"),
            _ => format!("{n:>6}→        // {a} {b} {a} before it comes in from the sea\n"),
        });
    }
    text
}

fn generate_output(dice: &mut Rng, lines: usize, end: &str) -> String {
    let mut text = String::new();
    for n in 0..lines {
        let name = WORDS[dice.below(18)];
        text.push_str(&format!("test harbour::{name}_{n} ... {end}\n"));
    }
    text
}

fn generate_base64(dice: &mut Rng, most: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..200 + dice.below(most)).map(|_| char::from(LETTERS[dice.below(64)])).collect()
}

/// Numbers that look random and are the same every time (xorshift).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}
