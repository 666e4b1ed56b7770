use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::view::UsageLineView;

/// Checks that the fast reader returns the same as serde, or nothing. Returns whether it read the line.
fn check(line: &[u8]) -> bool {
    let Some(fast) = fast_read_line::<UsageLineView<'_>>(line) else { return false };
    let text = String::from_utf8_lossy(line);
    let slow = UsageLineView::read_with_serde(line).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(format!("{fast:?}"), format!("{slow:?}"), "{text}");
    true
}

#[test]
fn usual_lines_need_no_serde() {
    let usage =
        r#"{"input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":2},"server_tool_use":null,"speed":"fast"}"#;
    let message = format!(
        r#"{{"id":"msg_1","model":"m","content":[{{"type":"text","text":"a \"quote\", \ud83d\n"}},[],{{}}], "usage":{usage}}}"#
    );
    let line = format!(
        r#" {{"type":"assistant", "uuid":"u","timestamp":"2026-11-16T16:00:00Z","n":[-1.5e+3,true,false],"message":{message}}}"#
    );
    let read = fast_read_line::<UsageLineView<'_>>(line.as_bytes()).unwrap();
    let message = read.message.as_ref().unwrap();
    let usage = message.usage.as_ref().unwrap();
    assert!(read.is_assistant());
    assert_eq!((message.id.as_deref(), read.request_id.as_deref()), (Some("msg_1"), None));
    assert_eq!((usage.input, usage.cache_write_1h, usage.speed.as_deref()), (3, 2, Some("fast")));
    assert!(check(line.as_bytes()));
    let progress = format!(r#"{{"type":"progress","data":{{"type":"agent_progress","message": {line} }}}}"#);
    assert!(check(progress.as_bytes()));
    let repeated = UsageLineView::read(progress.as_bytes()).unwrap().repeated_assistant_line();
    assert_eq!(repeated.unwrap().uuid.as_deref(), Some("u"));
}

#[test]
fn unusual_lines_are_left_to_serde() {
    let unusual = [
        r#"{"\u0074ype":"assistant"}"#,
        r#"{"type":"assist\u0061nt"}"#,
        r#"{"type":5}"#,
        r#"{"timestamp":1731600000000}"#,
        r#"{"message":"text"}"#,
        r#"{"usage":{"input_tokens":1.0}}"#,
        r#"{"usage":{"input_tokens":99999999999999999999}}"#,
        r#"{"cost":0.5}"#,
        r#"[]"#,
        r#"{"type":"user"}{"#,
        r#"{"type":"user",}"#,
        r#"{"type":"user""#,
        r#"{"n":01}"#,
        r#"{"n":-}"#,
        r#"{"n":1.}"#,
        r#"{"n":nul}"#,
        r#"{"n":"\x"}"#,
        r#"{"n":"\u12"}"#,
        "{\"n\":\"\t\"}",
        "",
    ];
    for line in unusual {
        assert!(fast_read_line::<UsageLineView<'_>>(line.as_bytes()).is_none(), "{line}");
    }
    let deep = format!(r#"{{"n":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    assert!(!check(deep.as_bytes()));
    assert!(UsageLineView::read(deep.as_bytes()).is_ok());
    assert!(!check(b"{\"\xff\":1}"));
    assert!(check(b"{\"n\":\"\xff\"}"));
}

#[test]
fn every_recorded_and_published_line_reads_the_same() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let mut files = quipu_testkit::recorded_files(&shared);
    files.extend(quipu_testkit::corpus_files(&shared, &["session", "stream-json"]));
    let (mut fast, mut all) = (0, 0);
    for path in files {
        for line in fs::read(path).unwrap().split(|byte| *byte == b'\n') {
            let is_read = check(line);
            if UsageLineView::read_with_serde(line).is_ok_and(|line| line.is_assistant()) {
                fast += usize::from(is_read);
                all += 1;
            }
        }
    }
    assert!(all > 3_000 && fast * 100 >= all * 98, "{fast} of {all}");
}

const USUAL_FIELDS: [&str; 17] = [
    r#""type":"assistant""#,
    r#""type":null"#,
    r#""uuid":"u1""#,
    r#""timestamp":"2026-11-16T16:00:00Z""#,
    r#""requestId":"r1""#,
    r#""request_id":"r2""#,
    r#""id":"m1""#,
    r#""model":"é""#,
    r#""input_tokens":12"#,
    r#""output_tokens":0"#,
    r#""cache_read_input_tokens":18446744073709551615"#,
    r#""ephemeral_5m_input_tokens":3"#,
    r#""web_search_requests":1"#,
    r#""speed":"fast""#,
    r#""other":[-1.5e+3,true,false,"a text of more than eight bytes",[],{}]"#,
    r#""é\u0069d":"a \"quote\" \/ \u00e9 \ud83d\n""#,
    r#""content":[{"type":"tool_use","input":{"usage":{"output_tokens":77}}}]"#,
];

const OBJECT_KEYS: [&str; 7] =
    ["message", "usage", "cache_creation", "server_tool_use", "other", "data", r"us\u0061ge"];

const UNUSUAL_VALUES: [&str; 14] = [
    "[]",
    "-0",
    "-7",
    "1.5",
    "1e400",
    "01",
    "1.",
    "18446744073709551616",
    "nul",
    r#""\ud83d""#,
    r#""\u00g0""#,
    r#""\x""#,
    "\"a\ttab\"",
    r#""open"#,
];

/// Objects with usual and unusual fields in any order, some of them more than once.
fn line_text() -> impl Strategy<Value = String> {
    let space = || select(["", " ", "\t", "\r"].as_slice());
    let object = |fields: Vec<String>, space: &str| format!("{{{space}{}}}", fields.join(&format!(",{space}")));
    let usual = || select(USUAL_FIELDS.as_slice()).prop_map(str::to_owned);
    let unusual = || {
        (select(USUAL_FIELDS.as_slice()), select(UNUSUAL_VALUES.as_slice())).prop_map(|(field, value)| {
            let key = field.split(':').next().unwrap_or_default();
            format!("{key}:{value}")
        })
    };
    let flat = (vec(usual(), 0..4), space()).prop_map(move |(fields, space)| object(fields, space));
    flat.prop_recursive(4, 32, 4, move |inner| {
        let nested = (select(OBJECT_KEYS.as_slice()), space(), inner)
            .prop_map(|(key, space, value)| format!("\"{key}\"{space}:{value}"));
        let field = prop_oneof![30 => usual(), 15 => nested, 1 => unusual()];
        (vec(field, 0..8), space()).prop_map(move |(fields, space)| object(fields, space))
    })
}

proptest! {
    #[test]
    fn the_fast_reader_returns_what_serde_returns(
        text in line_text(),
        changes in vec((any::<Index>(), any::<u8>()), 1..3),
    ) {
        let mut line = text.into_bytes();
        check(&line);
        for (index, byte) in changes {
            let index = index.index(line.len());
            line[index] = byte;
        }
        check(&line);
    }
}
