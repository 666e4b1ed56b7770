//! Every real line we have, through every reading tier.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use quipu_message::line::replace_lone_surrogates;
use quipu_message::{Block, Entry, Head, ReadError, View, is_same_json};

#[derive(Default, Debug)]
struct LineCounts {
    lines: usize,
    not_json: usize,
    unknown: BTreeMap<String, usize>,
    problems: Vec<String>,
}

fn count_lines(files: &[PathBuf]) -> LineCounts {
    let mut tally = LineCounts::default();
    for path in files {
        for (n, line) in fs::read(path).unwrap().split(|&b| b == b'\n').enumerate() {
            let Ok(text) = std::str::from_utf8(line) else { continue };
            if text.trim().is_empty() {
                continue;
            }
            tally.lines += 1;
            let place = format!("{}:{}", path.display(), n + 1);
            match Entry::read(text) {
                Err(ReadError::NotJson(_)) => tally.not_json += 1,
                Err(ReadError::Foreign) => *tally.unknown.entry("foreign".into()).or_default() += 1,
                Err(error @ ReadError::Malformed(_)) => tally.problems.push(format!("{place}: {error}")),
                Ok(entry) => {
                    if !entry.is_known_kind()
                        || entry.count_unknown_blocks() > 0
                        || entry.unknown_attachment().is_some()
                    {
                        *tally.unknown.entry(entry.kind()).or_default() += 1;
                    }
                    let back = serde_json::to_string(&entry).unwrap();
                    if is_same_json(&replace_lone_surrogates(text), &back) != Some(true) {
                        tally.problems.push(format!("{place}: {} does not come back", entry.kind()));
                    }
                    let mended = replace_lone_surrogates(text);
                    let (head, view) = (Head::read(&mended).unwrap(), View::read(&mended).unwrap());
                    assert_eq!(head.kind.as_deref(), Some(entry.tag()), "{place}");
                    assert_eq!(view.uuid, head.uuid, "{place}");
                    let uuid = entry.envelope().and_then(|e| e.uuid.text());
                    assert!(uuid.is_none() || uuid == head.uuid.as_deref(), "{place}");
                }
            }
        }
    }
    tally
}

#[test]
fn every_recorded_and_published_line_has_a_model_and_comes_back() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let mut files = quipu_testkit::recorded_files(&shared);
    files.extend(quipu_testkit::corpus_files(&shared, &["session", "stream-json"]));
    let tally = count_lines(&files);
    assert!(tally.lines > 13_000, "only {} lines", tally.lines);
    assert!(tally.problems.is_empty(), "{:#?}", tally.problems);
    // Recording 21 holds `--output-format json --verbose`: one array, not lines.
    let foreign = tally.unknown.get("foreign").copied().unwrap_or_default();
    assert_eq!(tally.unknown.len(), usize::from(foreign > 0), "{:?}", tally.unknown);
    assert_eq!((tally.not_json, foreign), (10, 1));
}

/// `open` over and over, closed as often.
fn nested(open: &str) -> String {
    open.repeat(10_000) + &"]}".repeat(10_000)
}

#[test]
fn what_nests_without_end_is_kept_whole() {
    let text = nested(r#"{"type":"tool_result","tool_use_id":"a","content":["#);
    let block: Block = serde_json::from_str(&text).unwrap();
    assert_eq!(block.count_unknown_blocks(), 1);
    assert_eq!(serde_json::to_string(&block).unwrap(), text);

    let text = nested(r#"{"type":"transcript_mirror","filePath":"x","entries":["#);
    assert_eq!(serde_json::to_string(&Entry::read(&text).unwrap()).unwrap(), text);
}
