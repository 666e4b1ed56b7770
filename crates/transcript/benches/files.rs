//! Writing, resuming and following, as ratios to the plainest way of doing the same
//! in the same run. Prints Markdown rows.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark prints its results"
)]

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_message::line::replace_lone_surrogates;
use quipu_message::user_assistant::Assistant;
use quipu_message::{Entry, Head, Line, StampSource, Uuid, factory};
use quipu_transcript::{
    ChangeWatcher, Durability, EnvelopeDefaults, Follower, LineReader, RawLine, Recorder, TranscriptState,
};

struct SequentialStamps(u64);

impl StampSource for SequentialStamps {
    fn new_uuid(&mut self) -> Uuid {
        self.0 += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.0).into()
    }
    fn now(&mut self) -> String {
        "2026-11-15T10:00:00.000Z".to_owned()
    }
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    println!("| what | ours | plainest way | ratio |\n|---|--:|--:|--:|");
    bench_durable_append(dir.path());
    bench_queued_append(dir.path());
    bench_resume(dir.path());
    bench_follow_latency(dir.path());
}

fn print_row(what: &str, ours: f64, plain: f64, unit: &str) {
    println!("| {what} | {ours:.0} {unit} | {plain:.0} {unit} | {:.2}× |", ours / plain);
}

/// Runs both ways by turns, so that both see the same moods of the machine, and
/// takes the better half of each.
fn measure_interleaved(
    rounds: usize,
    mut ours: impl FnMut(usize) -> Duration,
    mut plain: impl FnMut(usize) -> Duration,
) -> (f64, f64) {
    let (mut a, mut b): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        a.push(ours(round).as_secs_f64());
        b.push(plain(round).as_secs_f64());
    }
    let middle = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    (middle(&mut a), middle(&mut b))
}

fn envelope_defaults() -> EnvelopeDefaults {
    EnvelopeDefaults {
        session_id: "5e551011-0000-4000-8000-000000000000".into(),
        cwd: "/home/dev/tidepool".into(),
        version: "2.1.325".into(),
        git_branch: "main".into(),
        entrypoint: "cli".into(),
        agent_id: None,
    }
}

fn sample_text() -> String {
    "The tide table wants the phase in degrees and the speed in degrees an hour. ".repeat(8)
}

fn bench_durable_append(dir: &Path) {
    const N: usize = 100;
    let mut stamp = SequentialStamps(0);
    let ours = |round: usize| {
        let path = dir.join(format!("durable-{round}.jsonl"));
        let mut recorder = Recorder::create(&path, envelope_defaults(), Durability::default()).unwrap();
        let entries: Vec<Entry> =
            (0..N).map(|_| Entry::User(Box::new(factory::user(sample_text(), &mut stamp)))).collect();
        let start = Instant::now();
        for entry in &entries {
            recorder.record(std::slice::from_ref(entry)).unwrap();
        }
        start.elapsed()
    };
    let plain = |round: usize| {
        let mut file = OpenOptions::new().append(true).create(true).open(dir.join(format!("bare-{round}"))).unwrap();
        let written = std::fs::read_to_string(dir.join(format!("durable-{round}.jsonl"))).unwrap();
        let line = format!("{}\n", written.lines().next().unwrap());
        let start = Instant::now();
        for _ in 0..N {
            file.write_all(line.as_bytes()).unwrap();
            file.sync_data().unwrap();
        }
        start.elapsed()
    };
    let (ours, plain) = measure_interleaved(15, ours, plain);
    print_row("durable append, against write + fdatasync", N as f64 / ours, N as f64 / plain, "lines/s");
}

fn bench_queued_append(dir: &Path) {
    const N: usize = 20_000;
    let make = |stamp: &mut SequentialStamps| -> Vec<Assistant> {
        (0..N).map(|_| factory::synthetic_assistant(sample_text(), stamp)).collect()
    };
    let ours = |round: usize| {
        let path = dir.join(format!("queued-{round}.jsonl"));
        let durability = Durability { sync: false, ..Durability::default() };
        let mut recorder = Recorder::create(&path, envelope_defaults(), durability).unwrap();
        let answers = make(&mut SequentialStamps(0));
        let start = Instant::now();
        for answer in answers {
            recorder.queue_assistant(answer).unwrap();
        }
        recorder.close().unwrap();
        start.elapsed()
    };
    // The same lines: what the recorder fills in is there already.
    let plain = |round: usize| {
        let written = std::fs::read_to_string(dir.join(format!("queued-{round}.jsonl"))).unwrap();
        let answers: Vec<Assistant> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut file = OpenOptions::new().append(true).create(true).open(dir.join(format!("loop-{round}"))).unwrap();
        let start = Instant::now();
        for answer in answers {
            let mut line = serde_json::to_string(&answer).unwrap();
            line.push('\n');
            file.write_all(line.as_bytes()).unwrap();
        }
        start.elapsed()
    };
    let (ours, plain) = measure_interleaved(7, ours, plain);
    print_row("queued append, against serialise + write", N as f64 / ours, N as f64 / plain, "lines/s");
}

fn bench_resume(dir: &Path) {
    let path = dir.join("large.jsonl");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    let (mut stamp, mut written) = (SequentialStamps(0), 0);
    while written < 200_000_000 {
        let line = Line::from_serialize(&factory::user(sample_text().repeat(4), &mut stamp)).unwrap();
        written += line.as_str().len() + 1;
        writeln!(out, "{}", line.as_str()).unwrap();
    }
    out.flush().unwrap();
    let ours = |_| {
        let start = Instant::now();
        assert!(black_box(TranscriptState::read(&path).unwrap()).leaf_uuid.is_some());
        start.elapsed()
    };
    let plain = |_| {
        let start = Instant::now();
        let mut lines = LineReader::new(File::open(&path).unwrap());
        while let Some(piece) = lines.next().unwrap() {
            let RawLine::Line { bytes, .. } = piece else { continue };
            let text = replace_lone_surrogates(std::str::from_utf8(bytes).unwrap());
            black_box(Head::read(&text).unwrap());
        }
        start.elapsed()
    };
    let (ours, plain) = measure_interleaved(5, ours, plain);
    print_row("opening 200 MB for resume, against one pass of heads", ours * 1e3, plain * 1e3, "ms");
}

fn bench_follow_latency(dir: &Path) {
    const N: usize = 500;
    let path = dir.join("followed.jsonl");
    let mut file = File::create(&path).unwrap();
    let mut follower = Follower::open(&path).unwrap();
    let mut changes = ChangeWatcher::new();
    changes.watch(dir, false);
    let start = Instant::now();
    let writer = std::thread::spawn(move || {
        let mut at = Vec::new();
        for n in 0..N {
            std::thread::sleep(Duration::from_millis(2 + n as u64 % 3));
            at.push(start.elapsed());
            writeln!(file, "{{\"type\":\"keep_alive\",\"n\":{n}}}").unwrap();
        }
        at
    });
    let mut seen = Vec::new();
    while seen.len() < N {
        let lines = follower.poll().unwrap();
        if lines.is_empty() {
            changes.wait(Duration::from_secs(5));
        }
        seen.extend(lines.iter().map(|_| start.elapsed()));
    }
    let written = writer.join().unwrap();
    let mut late: Vec<f64> = seen.iter().zip(&written).map(|(s, w)| s.saturating_sub(*w).as_secs_f64() * 1e3).collect();
    late.sort_by(f64::total_cmp);
    let at = |p: usize| late[late.len() * p / 100];
    println!(
        "| follow, from write to line: p50 {:.2} ms, p99 {:.2} ms, worst {:.2} ms | | | |",
        at(50),
        at(99),
        late[N - 1]
    );
}
