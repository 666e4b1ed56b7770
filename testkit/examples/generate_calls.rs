//! Writes a made-up capture of API calls: `generate_calls FILE [SESSIONS CALLS BYTES]`; without
//! a size, 40 sessions of 250 calls with 800 bytes each, about 1 GB.
#![allow(clippy::unwrap_used, reason = "a tool for benches")]

use std::fs::File;
use std::io::{BufWriter, Write};

use quipu_testkit::generate_calls::{CaptureSize, generate_capture};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, size @ ..] = &args[..] else { panic!("usage: generate_calls FILE [SESSIONS CALLS BYTES]") };
    let number = |i: usize, default: usize| size.get(i).map_or(default, |text| text.parse().unwrap());
    let size = CaptureSize { sessions: number(0, 40), calls: number(1, 250), bytes_per_call: number(2, 800) };
    let mut out = BufWriter::new(File::create(file).unwrap());
    generate_capture(size, &mut out).unwrap();
    out.flush().unwrap();
}
