//! `quipu ls`

use serde_json::Value;

use crate::quipu;

fn ls(args: &[&str]) -> Vec<Value> {
    let out = quipu()
        .arg("--claude-dir")
        .arg(quipu_testkit::fixture("demo"))
        .args(["ls", "--json"])
        .args(args)
        .assert()
        .success();
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
    let Some(shared) = quipu_testkit::shared_dir() else { return };
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
    let out = quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).arg("ls").assert().success();
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

#[test]
fn what_is_attached_to_prompts_is_counted_and_can_be_attached_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let prompt = |n: u32, block: &str| {
        let text = serde_json::to_string(&format!("{block}look at it")).unwrap();
        format!(r#"{{"type":"user","uuid":"u{n}","message":{{"role":"user","content":{text}}}}}"#) + "\n"
    };
    let block = |path: &str| format!("> **上下文资料**\n> \n> - 📄 `{path}`\n\n");
    let lines = prompt(1, &block("a.rs")) + &prompt(2, &block("b.rs")) + &prompt(3, "");
    std::fs::write(folder.join("one.jsonl"), lines).unwrap();
    std::fs::write(folder.join("two.jsonl"), prompt(4, &block("b.rs"))).unwrap();
    let contexts = |dir: &std::path::Path| -> Vec<Value> {
        let out = quipu().arg("--claude-dir").arg(dir).args(["contexts", "--json"]).assert().success();
        serde_json::from_slice(&out.get_output().stdout).unwrap()
    };
    let found = contexts(dir.path());
    let counts: Vec<_> = found.iter().map(|one| (&one["label"], &one["times"], one["sessions"].clone())).collect();
    assert_eq!(counts[0], (&"📄 b.rs".into(), &2.into(), serde_json::json!(["one", "two"])));
    assert_eq!(counts[1], (&"📄 a.rs".into(), &1.into(), serde_json::json!(["one"])));
    // A prompt that begins with the block has the reference attached.
    let again = prompt(5, found[0]["block"].as_str().unwrap());
    std::fs::write(folder.join("three.jsonl"), again).unwrap();
    assert_eq!(contexts(dir.path())[0]["times"], 3);
}

#[test]
fn attached_files_are_distinguished_by_full_path_and_filtered_by_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let prompt = |n: u32, day: u32, cwd: &str| {
        let text = "> **上下文资料**\\n> \\n> - 📄 `a.rs`\\n\\nlook";
        format!(
            r#"{{"type":"user","uuid":"u{n}","cwd":"{cwd}","timestamp":"2026-11-{day:02}T10:00:00Z","message":{{"role":"user","content":"{text}"}}}}"#
        ) + "\n"
    };
    std::fs::write(folder.join("one.jsonl"), prompt(1, 1, "/srv/one") + &prompt(2, 9, "/srv/one")).unwrap();
    std::fs::write(folder.join("two.jsonl"), prompt(3, 9, "/srv/two")).unwrap();
    let contexts = |args: &[&str]| {
        let mut command = quipu();
        command.env("TZ", "UTC").arg("--claude-dir").arg(dir.path()).arg("contexts").args(args);
        String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
    };
    let counts = |args: &[&str]| -> Vec<(String, u64)> {
        let found: Vec<Value> = serde_json::from_str(&contexts(args)).unwrap();
        found.iter().map(|one| (one["path"].as_str().unwrap().to_owned(), one["times"].as_u64().unwrap())).collect()
    };
    assert_eq!(counts(&["--json"]), [("/srv/one/a.rs".to_owned(), 2), ("/srv/two/a.rs".to_owned(), 1)]);
    assert_eq!(counts(&["--json", "--until", "2026-11-02"]), [("/srv/one/a.rs".to_owned(), 1)]);
    assert_eq!(counts(&["--json", "--since", "2026-11-05", "--session", "one"]), [("/srv/one/a.rs".to_owned(), 1)]);
    assert!(contexts(&[]).contains("📄 a.rs (/srv/two/a.rs)"));
}
