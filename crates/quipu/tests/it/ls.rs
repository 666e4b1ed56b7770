//! `quipu ls`

use quipu_testkit as kit;
use serde_json::Value;

use crate::quipu;

fn ls(args: &[&str]) -> Vec<Value> {
    let out =
        quipu().arg("--claude-dir").arg(kit::fixture("demo")).args(["ls", "--json"]).args(args).assert().success();
    serde_json::from_slice(&out.get_output().stdout).unwrap()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| &row["session_id"].as_str().unwrap()[..8]).collect()
}

#[test]
fn sessions_are_listed_with_the_promised_fields() {
    let rows = ls(&[]);
    assert_eq!(ids(&rows), ["eeaa8ea9", "25d0a370", "449527a5", "1efa34bf", "05ef09b2", "7dc934ad"]);
    let fields = [
        "session_id",
        "project",
        "cwd",
        "path",
        "title",
        "first_prompt",
        "started_at",
        "ended_at",
        "turns",
        "messages",
        "models",
        "tokens",
        "cost_usd",
        "unpriced_models",
        "compacted",
        "forked_from",
        "subagents",
        "git_branch",
        "version",
    ];
    for row in &rows {
        assert!(fields.iter().all(|field| row.get(field).is_some()), "{row}");
    }
    let tide = &rows[4];
    assert_eq!(
        (tide["title"].as_str(), &tide["compacted"], &tide["subagents"]),
        (Some("tide command"), &true.into(), &1.into())
    );
    assert!(tide["cost_usd"].as_f64() > Some(0.1) && tide["tokens"]["cache_read"].as_u64() > Some(0));
}

#[test]
fn filters_and_orders_apply() {
    assert_eq!(ids(&ls(&["--project", "tidepool", "--limit", "1"])), ["1efa34bf"]);
    assert_eq!(ids(&ls(&["--sort", "cost", "--limit", "2"])), ["05ef09b2", "7dc934ad"]);
    assert_eq!(ids(&ls(&["--model", "haiku", "--since", "2026-11-01"])), ["eeaa8ea9"]);
    assert_eq!(ids(&ls(&["--until", "2026-10-10T00:00:00Z"])), ["7dc934ad"]);
}

#[test]
fn a_fork_names_the_session_it_comes_from() {
    let Some(shared) = kit::shared() else { return };
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("projects/-home-dev");
    std::fs::create_dir_all(&project).unwrap();
    for (from, to) in [("transcript.jsonl", "d05e3a74.jsonl"), ("transcript_2.jsonl", "bc4b31d2.jsonl")] {
        std::fs::copy(shared.join("recordings/10_resume_continue_fork").join(from), project.join(to)).unwrap();
    }
    let out = quipu().arg("--claude-dir").arg(dir.path()).args(["ls", "--json"]).assert().success();
    let rows: Vec<Value> = serde_json::from_slice(&out.get_output().stdout).unwrap();
    let fork = rows.iter().find(|row| row["session_id"] == "bc4b31d2").unwrap();
    assert_eq!(fork["forked_from"], "d05e3a74");
    assert!(rows.iter().any(|row| row["forked_from"].is_null()));
}

#[test]
fn the_table_is_plain_when_piped() {
    let out = quipu().arg("--claude-dir").arg(kit::fixture("demo")).arg("ls").assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(text.contains("tide command") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(text.lines().count(), 7);
}

#[test]
fn an_old_style_compaction_names_the_session_it_continues() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("projects/-home-dev");
    std::fs::create_dir_all(&project).unwrap();
    let user = r#"{"type":"user","uuid":"last","parentUuid":null,"message":{"role":"user","content":"x"}}"#;
    let summary = r#"{"type":"summary","summary":"In short.","leafUuid":"last","isCompactSummary":true}"#;
    std::fs::write(project.join("old.jsonl"), format!("{user}\n")).unwrap();
    std::fs::write(project.join("new.jsonl"), format!("{summary}\n{}\n", user.replace("last", "next"))).unwrap();
    let out = quipu().arg("--claude-dir").arg(dir.path()).args(["ls", "--json"]).assert().success();
    let rows: Vec<Value> = serde_json::from_slice(&out.get_output().stdout).unwrap();
    let new = rows.iter().find(|row| row["session_id"] == "new").unwrap();
    assert_eq!((&new["continues"], &new["compacted"]), (&"old".into(), &true.into()));
}
