//! The filters that `ls`, `usage` and `search` share.

use std::path::Path;

use serde_json::Value;

use crate::quipu;

fn json(args: &[&str]) -> Value {
    // Without a hit `search` exits with 1.
    let out = quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).arg("--json").args(args).assert();
    serde_json::from_slice(&out.get_output().stdout).unwrap()
}

/// The sessions that each of the three commands selects.
fn sessions(filter: &[&str]) -> [Vec<String>; 3] {
    [(&["ls"][..], "session_id"), (&["usage", "session"], "key"), (&["search", "the", "-n", "500"], "session_id")].map(
        |(command, field)| {
            let out = json(&[command, filter].concat());
            let rows = out.get("rows").unwrap_or(&out).as_array().unwrap().clone();
            let mut ids: Vec<String> = rows.iter().map(|row| row[field].as_str().unwrap()[..8].to_owned()).collect();
            ids.sort();
            ids.dedup();
            ids
        },
    )
}

#[track_caller]
fn check(filter: &[&str], expect: &[&str]) {
    let [ls, usage, search] = sessions(filter);
    assert_eq!(ls, expect, "ls {filter:?}");
    assert_eq!(usage, expect, "usage {filter:?}");
    assert_eq!(search, expect, "search {filter:?}");
}

#[test]
fn one_filter_selects_the_same_sessions_everywhere() {
    check(&["--project", "/home/sam/shoreline-web"], &["449527a5", "eeaa8ea9"]);
    check(&["-p", "TIDEPOOL"], &["05ef09b2", "1efa34bf", "7dc934ad"]);
    check(&["--session", "449"], &["449527a5"]);
    check(&["--session", "449", "--project", "tidepool"], &[]);
    check(&["--until", "2026-10"], &["05ef09b2", "1efa34bf", "7dc934ad"]);
    check(&["--since", "2026-11-03", "--until", "2026-11-03"], &["449527a5"]);
}

#[test]
fn a_dot_is_the_current_folder() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap().join("my_app");
    std::fs::create_dir_all(&here).unwrap();
    let write = |project: &str, id: &str, cwd: &Path| {
        let folder = dir.path().join("projects").join(project);
        std::fs::create_dir_all(&folder).unwrap();
        let cwd = cwd.display();
        let line = format!(
            r#"{{"type":"user","uuid":"u","cwd":"{cwd}","timestamp":"2026-11-15T10:00:00Z","message":{{"role":"user","content":"hi"}}}}"#
        );
        std::fs::write(folder.join(format!("{id}.jsonl")), line + "\n").unwrap();
    };
    write("-my-app", "here", &here);
    write("-other", "there", Path::new("/other"));
    for args in [
        &["ls", "."][..],
        &["ls", "-p", "."],
        &["search", "hi", "--project", "."],
        &["search", "--exact", "hi", "-p", "."],
    ] {
        let out =
            quipu().current_dir(&here).arg("--claude-dir").arg(dir.path()).arg("--json").args(args).assert().success();
        let rows: Vec<Value> = serde_json::from_slice(&out.get_output().stdout).unwrap();
        assert_eq!(rows.len(), 1, "{args:?}");
        assert_eq!(rows[0]["session_id"], "here");
    }
}

#[test]
fn times_and_zones_that_cannot_be_read_are_wrong_usage() {
    for args in [
        &["ls", "--since", "2 weekz"][..],
        &["usage", "--until", "99999999999d"],
        &["search", "x", "--since", ""],
        &["usage", "--timezone", "Middle/Earth"],
    ] {
        quipu().args(args).assert().code(2);
    }
    let out = quipu().args(["--json", "ls", "--since", "2 weekz"]).assert().code(2);
    let error: Value = serde_json::from_slice(&out.get_output().stderr).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("invalid value '2 weekz' for '--since"), "{message}");
    assert!(message.ends_with("expected a date, a time or a span such as '2 weeks ago'"), "{message}");
}

#[test]
fn usage_counts_the_days_of_an_offset_and_the_messages_of_a_model() {
    let day = |zone: &str| json(&["usage", "--timezone", zone])["rows"][0]["key"].clone();
    assert_eq!(day("+14:00"), "2026-10-03");
    assert_eq!(day("-12:00"), "2026-10-02");
    let models = json(&["usage", "model", "--model", "haiku"]);
    assert!(models["rows"].as_array().unwrap().iter().all(|row| row["key"].as_str().unwrap().contains("haiku")));
    let scanned = json(&["usage", "model", "--model", "haiku", "-p", "shoreline", "--no-index"]);
    assert_eq!(json(&["usage", "model", "--model", "haiku", "-p", "shoreline"])["rows"], scanned["rows"]);
    assert!(scanned["totals"]["messages"].as_u64() > Some(0));
}
