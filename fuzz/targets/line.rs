//! Any bytes as a session file: every byte is read, nothing is lost, and setting
//! a field leaves the others alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_message::line::replace_lone_surrogates;
use quipu_message::view::UsageLineView;
use quipu_message::{Entry, Head, Line, View};
use quipu_transcript::{Check, Entries, LineReader, RawLine};
use serde_json::value::RawValue;

fuzz_target!(|bytes: &[u8]| {
    lines(bytes);
    let mut entries = Entries::new(bytes, "fuzz");
    let read = entries.by_ref().flatten().count() as u64;
    assert_eq!(entries.bytes_read(), bytes.len() as u64);

    let report = Check { roundtrip: true }.run(Entries::new(bytes, "fuzz"), "fuzz");
    assert_eq!(report.bytes, bytes.len() as u64);
    assert_eq!(report.kinds.values().sum::<u64>(), read);
    assert_eq!(report.roundtrip_failures, 0, "{:?}", report.problems);
});

fn lines(bytes: &[u8]) {
    let mut lines = LineReader::new(bytes);
    let mut size = 0;
    while let Some(raw_line) = lines.next().expect("a slice can be read") {
        size += raw_line.byte_len();
        if let RawLine::Line { bytes, .. } = raw_line
            && let Ok(text) = str::from_utf8(bytes)
        {
            line(text);
        }
    }
    assert_eq!((size, lines.offset()), (bytes.len() as u64, bytes.len() as u64));
}

fn line(text: &str) {
    let readable = replace_lone_surrogates(text);
    assert_eq!(replace_lone_surrogates(&readable), readable);
    if let Ok(entry) = Entry::read(text) {
        // The smaller readings know every line that can be read as a tree.
        if serde_json::from_str::<serde_json::Value>(&readable).is_ok() {
            let head = Head::read(&readable).expect("a head can be read");
            let view = View::read(&readable).expect("a view can be read");
            assert_eq!((head.kind.as_deref(), view.kind.as_deref()), (Some(entry.tag()), Some(entry.tag())));
            assert_eq!((&head.uuid, head.session_id), (&view.uuid, view.session_id));
            let usage = UsageLineView::read(readable.as_bytes()).expect("usage can be read");
            assert_eq!((usage.uuid, usage.usage), (view.uuid, view.usage));
        }
        let written = serde_json::to_string(&entry).expect("what was read can be written");
        assert_eq!(Entry::read(&written).expect("what was written can be read"), entry, "{written}");
    }
    if let Ok(line) = Line::parse(text) {
        splice(&line);
    }
}

/// Sets one field, new or old by the line's length, and sets it back.
fn splice(line: &Line) {
    let Ok(fields) = serde_json::from_str::<Fields>(line.as_str()) else { return };
    let value = "\u{e9}\n";
    let written = r#""é\n""#;
    match fields.0.get(line.as_str().len() % (fields.0.len() + 1)) {
        None => {
            let key = "unknown field";
            if fields.0.iter().all(|(name, _)| name != key) {
                let longer = line.with_field(&[key], value).expect("an object takes a field");
                let comma = if fields.0.is_empty() { "" } else { "," };
                let field = format!(r#"{comma}"{key}":{written}"#);
                let at = longer.as_str().rfind(&field).expect("the field is there");
                assert_eq!([&longer.as_str()[..at], &longer.as_str()[at + field.len()..]].concat(), line.as_str());
            }
        }
        Some((key, _)) => {
            // Of duplicates the last is the one that readers see.
            let (_, old) = fields.0.iter().rev().find(|(name, _)| name == key).expect("it was just there");
            let set = line.with_field(&[key], value).expect("an object takes a field");
            assert_eq!(set.as_str().len() + old.get().len(), line.as_str().len() + written.len());
            assert_eq!(set.with_field(&[key], old).expect("an object takes a field"), *line);
        }
    }
}

struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> serde::de::Visitor<'de> for All {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        d.deserialize_map(All)
    }
}
