//! Repair: makes a backup first and reports every change.

use std::fs;

use quipu_transcript::{Check, Entries, repair};
use tempfile::tempdir;

#[test]
fn a_broken_file_is_repaired_and_its_backup_kept() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let entry = |uuid: &str, parent: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"n": 1.0,"message":{{"role":"user","content":"x"}}}}"#
        )
    };
    let broken = format!(
        "\u{FEFF}{}\r\nnonsense\n\n{}\n\0\0\0\n{}",
        entry("a", "null"),
        entry("b", "\"gone\""),
        entry("c", "\"b\"")
    );
    fs::write(&path, &broken).unwrap();
    let done = repair(&path).unwrap().unwrap();
    assert_eq!(fs::read_to_string(&done.backup).unwrap(), broken);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!("{}\n{}\n{}\n", entry("a", "null"), entry("b", "\"a\""), entry("c", "\"b\""))
    );
    let changes: Vec<_> = done.changes.iter().map(|c| (c.line, c.kind.code())).collect();
    assert_eq!(
        changes,
        [
            (1, "file.bom"),
            (1, "file.crlf"),
            (2, "line.unreadable"),
            (3, "line.blank"),
            (4, "tree.no_parent"),
            (5, "line.unreadable"),
            (6, "file.no_final_newline")
        ]
    );
    assert_eq!(repair(&path).unwrap(), None, "nothing left to do");
}

#[test]
fn every_broken_fixture_is_clean_after_repair() {
    let dir = tempdir().unwrap();
    for source in
        quipu_testkit::files_under(&quipu_testkit::fixture("broken"), |p| p.extension().is_some_and(|e| e == "jsonl"))
    {
        let path = dir.path().join(source.file_name().unwrap());
        fs::copy(&source, &path).unwrap();
        repair(&path).unwrap();
        let report = Check { roundtrip: true }.run(Entries::open(&path).unwrap(), "x");
        let left = report.problems.iter().find(|p| {
            !matches!(
                p.kind.code(),
                "entry.unknown"
                    | "block.unknown"
                    | "attachment.unknown"
                    | "line.foreign"
                    | "entry.malformed"
                    | "line.not_compared"
                    | "tool.no_call"
            )
        });
        assert_eq!(left, None, "{}", source.display());
    }
}
