//! Reading and checking: our own broken files, and every real one.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a failed unwrap is a failed test"
)]

mod append_errors;
mod backups;
mod check_links;
mod crash;
mod follow;
mod record;
mod repair;
mod skeleton;
mod state_machine;
mod support;
mod torn_tail;

use std::io::Read;

use proptest::prelude::*;
use quipu_transcript::{Check, CheckReport, Entries, LineEnding, LineReader, RawLine, load_session};

fn check_bytes(bytes: &[u8]) -> CheckReport {
    Check { roundtrip: true }.run(Entries::new(bytes, "-"), "-")
}

fn codes(report: &CheckReport) -> Vec<(&str, u64, u64)> {
    report.problems.iter().map(|p| (p.kind.code(), p.line, p.offset)).collect()
}

#[track_caller]
fn assert_problems(bytes: &[u8], lines: u64, malformed: u64, expect: &[(&str, u64, u64)]) {
    let report = check_bytes(bytes);
    assert_eq!(codes(&report), expect);
    assert_eq!((report.lines, report.malformed, report.bytes), (lines, malformed, bytes.len() as u64));
    assert_eq!(report.roundtrip_failures, 0);
}

const MODE: &str = r#"{"type":"mode","mode":"default","sessionId":"s"}"#;

#[test]
fn bad_lines_are_named_with_their_place_and_the_rest_is_read() {
    assert_problems(format!("{MODE}\nnot json\n{MODE}\n").as_bytes(), 3, 1, &[("line.not_json", 2, 49)]);
    assert_problems(format!("{MODE}\n{{\"type\":\"mo").as_bytes(), 2, 1, &[("line.torn", 2, 49)]);
    assert_problems(format!("{MODE}\n\n{MODE}\n").as_bytes(), 3, 0, &[("line.blank", 2, 49)]);
    assert_problems(format!("{MODE}\r\n{MODE}\r\n").as_bytes(), 2, 0, &[("file.crlf", 1, 0)]);
    assert_problems(format!("\u{FEFF}{MODE}\n").as_bytes(), 1, 0, &[("file.bom", 1, 0)]);
    assert_problems(format!("{MODE}\n\0\0\0\0\n").as_bytes(), 2, 1, &[("line.nul", 2, 49)]);
    assert_problems(MODE.as_bytes(), 1, 0, &[("file.no_final_newline", 1, 0)]);
    assert_problems(format!("{MODE}\r").as_bytes(), 1, 0, &[("file.no_final_newline", 1, 0)]);
    assert_problems(b"{\"type\":\"mode\",\"mode\":\"\xFF\"}\n", 1, 1, &[("line.not_utf8", 1, 0)]);
    assert_problems(b"{\"type\":\"assistant\"}\n", 1, 1, &[("entry.malformed", 1, 0)]);
    assert_problems(b"{\"type\":\"hologram\"}\n", 1, 0, &[("entry.unknown", 1, 0)]);
    assert_problems(
        b"[1,2]\n7\n{\"a\":1}\n",
        3,
        0,
        &[("line.foreign", 1, 0), ("line.foreign", 2, 6), ("line.foreign", 3, 8)],
    );
    assert_problems(b"", 0, 0, &[]);
}

#[test]
fn odd_but_legal_json_comes_back() {
    for text in [
        r#"{"type":"mode","mode":"\ud83d","x":1}"#,
        r#"{"type":"mode","mode":"a","big":123456789012345678901234567890,"e":1e400}"#,
        r#"{ "type" : "mode" , "mode" : "a" , "mode" : "b" }"#,
    ] {
        let report = check_bytes(format!("{text}\n").as_bytes());
        assert_eq!((report.roundtrip_failures, report.malformed), (0, 0), "{text}: {report:?}");
    }
}

#[test]
fn ten_thousand_levels_are_read() {
    let deep = format!("{{\"type\":\"mode\",\"mode\":\"a\",\"deep\":{}{}}}\n", "[".repeat(10_000), "]".repeat(10_000));
    let report = check_bytes(deep.as_bytes());
    assert_eq!(codes(&report), [("line.not_compared", 1, 0)]);
    assert_eq!(report.kinds["mode"], 1);
}

#[test]
fn a_line_too_long_to_hold_costs_one_line_and_still_counts() {
    let long = std::io::repeat(b'x').take(5000);
    let mut lines = LineReader::with_max_line_bytes(b"a\n".chain(long).chain(&b"\r\nb\n"[..]), 1000);
    assert!(matches!(lines.next().unwrap(), Some(RawLine::Line { number: 1, .. })));
    assert_eq!(
        lines.next().unwrap(),
        Some(RawLine::TooLong { number: 2, offset: 2, len: 5000, ending: LineEnding::CrLf })
    );
    assert!(matches!(lines.next().unwrap(), Some(RawLine::Line { number: 3, offset: 5004, bytes: b"b", .. })));
    assert_eq!(lines.next().unwrap(), None);
}

/// Gives at most `most` bytes a read, with an interruption before each.
struct SmallReads<'a> {
    bytes: &'a [u8],
    most: usize,
    is_interrupted: bool,
}

impl Read for SmallReads<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let len = buffer.len().min(self.most);
        self.bytes.read(&mut buffer[..len])
    }
}

#[test]
fn lines_of_any_length_come_whole_from_reads_of_any_size() {
    let lengths = [0, 1, 114_686, 114_687, 114_688, 114_689, 3, 400_000, 0, 229_376, 7];
    let expect: Vec<Vec<u8>> = lengths.iter().zip(b'a'..).map(|(length, letter)| vec![letter; *length]).collect();
    let text = expect.join(&b'\n');
    for most in [50_001, 114_688, 1 << 20] {
        let mut lines = LineReader::new(SmallReads { bytes: &text, most, is_interrupted: false });
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let RawLine::Line { bytes, .. } = line else { panic!("{line:?}") };
            found.push(bytes.to_vec());
        }
        assert!(found == expect, "reads of {most} bytes");
    }
}

#[test]
fn every_demo_file_is_clean_but_for_what_it_shows_on_purpose() {
    let mut total = CheckReport::default();
    for path in
        quipu_testkit::files_under(&quipu_testkit::fixture("demo"), |p| p.extension().is_some_and(|e| e == "jsonl"))
    {
        total.merge(Check { roundtrip: true }.run(Entries::open(&path).unwrap(), &path.display().to_string()));
        assert!(!load_session(&path).unwrap().for_ui().is_empty(), "{}", path.display());
    }
    assert_eq!((total.malformed, total.foreign, total.roundtrip_failures, total.unproven_messages), (0, 0, 0, 0));
    assert!(
        total.unknown > 0 && total.unknown_blocks > 0 && total.unknown_attachments > 0 && total.proven_messages > 0
    );
    assert!(total.kinds.len() > 35, "{:?}", total.kinds);
}

#[test]
fn every_broken_file_is_read_to_its_end() {
    for path in
        quipu_testkit::files_under(&quipu_testkit::fixture("broken"), |p| p.extension().is_some_and(|e| e != "md"))
    {
        let report = Check { roundtrip: true }.run(Entries::open(&path).unwrap(), "x");
        assert_eq!(report.bytes, path.metadata().unwrap().len(), "{}", path.display());
        assert_eq!(report.roundtrip_failures, 0, "{}: {report:?}", path.display());
    }
}

#[test]
fn every_real_file_is_read_to_its_end() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let everything = |p: &std::path::Path| p.extension().is_some_and(|e| e == "jsonl" || e == "json");
    let mut files = quipu_testkit::files_under(&shared.join("corpus/data"), everything);
    files.extend(quipu_testkit::files_under(&shared.join("recordings"), everything));
    for path in files {
        let report = Check { roundtrip: true }.run(Entries::open(&path).unwrap(), "x");
        assert_eq!(report.bytes, path.metadata().unwrap().len(), "{}", path.display());
        assert_eq!(report.roundtrip_failures, 0, "{}", path.display());
    }
}

proptest! {
    #[test]
    fn bytes_in_are_bytes_out(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xEF), any::<u8>()], 0..200)) {
        let mut lines = LineReader::new(&bytes[..]);
        let mut out = Vec::new();
        while let Some(piece) = lines.next().unwrap() {
            prop_assert_eq!(match &piece { RawLine::Line { offset, .. } | RawLine::TooLong { offset, .. } => *offset }, out.len() as u64);
            let size = piece.byte_len();
            let before = out.len() as u64;
            let RawLine::Line { bytes, ending, has_bom, .. } = piece else { unreachable!("no line is that long") };
            if has_bom {
                out.extend_from_slice(b"\xEF\xBB\xBF");
            }
            out.extend_from_slice(bytes);
            out.extend_from_slice(ending.bytes());
            prop_assert_eq!(out.len() as u64 - before, size);
        }
        prop_assert_eq!(out, bytes);
    }
}
