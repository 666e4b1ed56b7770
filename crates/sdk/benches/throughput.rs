//! Messages through the SDK, read and handed over, against reading the same lines as
//! `serde_json::Value` and nothing else. One thread; prints Markdown rows.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark prints its results"
)]

use std::hint::black_box;
use std::io::{self, Cursor};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use quipu_sdk::transport::{Connection, Peer, Transport};
use quipu_sdk::{Client, Error, Exit, Options};
use quipu_testkit::{cpu_time, fixture, shared_dir};
use serde_json::Value;

const ROUNDS: usize = 15;
const BYTES: usize = 32 << 20;

/// An agent that has said everything already.
struct Said(Arc<[u8]>);

impl Transport for Said {
    fn connect(self: Box<Self>) -> BoxFuture<'static, Result<Connection, Error>> {
        Box::pin(std::future::ready(Ok(Connection {
            reader: Box::new(Cursor::new(self.0)),
            writer: Box::new(tokio::io::sink()),
            stderr: None,
            peer: Box::new(Nobody),
        })))
    }
}

struct Nobody;

impl Peer for Nobody {
    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(std::future::ready(Ok(Exit::default())))
    }
    fn terminate(&mut self) {}
    fn kill(&mut self) {}
}

fn main() {
    println!(
        "| messages | bytes each | through the SDK | as `Value` alone | ratio | limit |\n|---|--:|--:|--:|--:|--:|"
    );
    let small = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"and then"}},"session_id":"e43986ca-11a9-4991-b62e-563ff967b64b","parent_tool_use_id":null,"uuid":"8f1f7a39-6b7a-4b6e-9d5e-3a1a79224d66"}"#;
    row("pieces of an answer", small, 300_000.0);
    row("a stream of ours with pieces", &std::fs::read_to_string(fixture("stream/partial.jsonl")).unwrap(), 0.0);
    row("a stream of ours", &std::fs::read_to_string(fixture("stream/plain.jsonl")).unwrap(), 0.0);
    if let Some(shared) = shared_dir() {
        let mut all = String::new();
        for file in quipu_testkit::files_under(&shared.join("recordings"), |path| path.ends_with("stdout.jsonl")) {
            all += &std::fs::read_to_string(file).unwrap();
        }
        row("recorded streams", &all, 0.0);
    }
}

fn row(what: &str, lines: &str, at_least: f64) {
    // Control traffic is not handed over, and what another format printed is no message.
    let lines: Vec<&str> =
        lines.lines().filter(|line| line.starts_with("{\"") && !line.contains("\"control_")).collect();
    let size: usize = lines.iter().map(|line| line.len() + 1).sum();
    let copies = BYTES.div_ceil(size);
    let one: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let text: Arc<[u8]> = format!("{GREETING}\n{}", one.repeat(copies)).into_bytes().into();
    let count = lines.len() * copies;
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(through_the_sdk(&text, count));
        times[1].push(as_values(&text, count));
    }
    let [ours, plain] = times.map(|mut times| {
        times.sort();
        count as f64 / times[ROUNDS / 2].as_secs_f64()
    });
    let limit = if at_least > 0.0 { format!("{at_least:.0}/s, 0.7×") } else { "0.7×".to_owned() };
    println!("| {what} | {} | {ours:.0}/s | {plain:.0}/s | {:.2}× | {limit} |", BYTES.max(size) / count, ours / plain);
}

const GREETING: &str =
    r#"{"type":"control_response","response":{"subtype":"success","request_id":"quipu-0","response":{"commands":[]}}}"#;

fn through_the_sdk(text: &Arc<[u8]>, count: usize) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // Before the response to `initialize`, because everything after it is read at once.
        let started = cpu_time();
        let mut client = Client::connect_over(Said(Arc::clone(text)), Options::new()).await.unwrap();
        let mut received = 0;
        while let Some(message) = client.next().await.unwrap() {
            black_box(&message);
            received += 1;
        }
        assert_eq!(received, count);
        cpu_time() - started
    })
}

fn as_values(text: &[u8], count: usize) -> Duration {
    let started = cpu_time();
    let mut received = 0;
    for line in text.split(|byte| *byte == b'\n').skip(1).filter(|line| !line.is_empty()) {
        black_box(serde_json::from_slice::<Value>(line).unwrap());
        received += 1;
    }
    assert_eq!(received, count);
    cpu_time() - started
}
