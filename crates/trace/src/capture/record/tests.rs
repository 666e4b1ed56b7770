use std::io::Cursor;

use proptest::prelude::*;

use super::{Damage, Record, RecordKind, RecordReader, parse_header, write_record};

fn file(payloads: &[&[u8]]) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for (index, payload) in payloads.iter().enumerate() {
        write_record(&mut bytes, RecordKind::Frame, index as u64, 7, &[payload]);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn read(bytes: &[u8]) -> (Vec<Record>, Vec<Damage>) {
    let mut reader = RecordReader::new(Cursor::new(bytes));
    let (mut records, mut damages) = (Vec::new(), Vec::new());
    while let Some(next) = reader.next().unwrap() {
        match next {
            Ok(record) => records.push(record),
            Err(damage) => damages.push(damage),
        }
    }
    (records, damages)
}

const PAYLOADS: [&[u8]; 4] = [b"first", b"", b"@frame 1 2 3 00000000\nabc\n", b"\xff\x00\n\n"];

#[test]
fn records_are_read_as_they_were_written() {
    let (bytes, _) = file(&PAYLOADS);
    let (records, damages) = read(&bytes);
    assert_eq!(records.iter().map(|record| record.payload.as_slice()).collect::<Vec<_>>(), PAYLOADS);
    assert_eq!((records[2].call, records[2].micros, damages.len()), (2, 7, 0));
}

#[test]
fn a_file_cut_at_any_byte_reads_as_a_prefix() {
    let (bytes, ends) = file(&PAYLOADS);
    for length in 0..bytes.len() {
        let (records, damages) = read(&bytes[..length]);
        let whole = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(records.len(), whole, "cut at {length}");
        let kept = if whole == 0 { 0 } else { ends[whole - 1] };
        let torn = Damage { offset: kept as u64, length: (length - kept) as u64, is_tail: true };
        assert_eq!(damages, if kept == length { Vec::new() } else { vec![torn] });
    }
}

#[test]
fn a_checksum_has_one_spelling() {
    let (bytes, _) = file(&[b"one"]);
    let header = String::from_utf8(bytes[..bytes.iter().position(|byte| *byte == b'\n').unwrap()].to_vec()).unwrap();
    let (fields, checksum) = header.rsplit_once(' ').unwrap();
    let parses = |checksum: &str| parse_header(format!("{fields} {checksum}").as_bytes()).is_some();
    assert!(parses(checksum) && parses("0000000a"));
    for other in ["0000000A", "+000000a", "00000000a", "a"] {
        assert!(!parses(other), "{other}");
    }
}

proptest! {
    #[test]
    fn a_changed_byte_costs_one_record(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let (mut bytes, ends) = file(&[b"one\n", b"two\n@frame", b"three", b"four"]);
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != value);
        bytes[at] = value;
        let (records, damages) = read(&bytes);
        let hit = ends.iter().filter(|end| **end <= at).count();
        let is_end_of_record = ends.contains(&(at + 1));
        let expected: Vec<u64> = (0..4).filter(|index| is_end_of_record || *index != hit as u64).collect();
        prop_assert_eq!(records.iter().map(|record| record.call).collect::<Vec<_>>(), expected);
        prop_assert_eq!(damages.len(), usize::from(!is_end_of_record));
    }
}
