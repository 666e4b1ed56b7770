//! `quipu usage`

use quipu_testkit::generate::generate_tree;
use serde_json::Value;

use crate::quipu;

fn usage(dir: &std::path::Path, args: &[&str]) -> Value {
    let out = quipu()
        .arg("--claude-dir")
        .arg(dir)
        .args(["usage", "--json", "--timezone", "UTC"])
        .args(args)
        .assert()
        .success();
    serde_json::from_slice(&out.get_output().stdout).unwrap()
}

#[test]
fn totals_equal_the_truth_in_every_report() {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate_tree(dir.path(), 7, 1_500_000).unwrap();
    for group in ["daily", "weekly", "monthly", "session", "model", "project", "block", "tool", "agent", "turn"] {
        let report = usage(dir.path(), &[group]);
        let totals = &report["totals"];
        assert_eq!(totals["output_tokens"], truth.total.output, "{group}");
        assert_eq!(totals["cache_read_tokens"], truth.total.cache_read, "{group}");
        assert_eq!(totals["messages"], truth.total.messages, "{group}");
        let cost = totals["cost_usd"].as_f64().unwrap();
        assert!((cost - truth.total.nano_usd as f64 / 1e9).abs() < 1e-9, "{group}");
        let sum: f64 = report["rows"].as_array().unwrap().iter().map(|row| row["cost_usd"].as_f64().unwrap()).sum();
        assert!((sum - cost).abs() < 1e-9, "{group}");
    }
    let sessions = usage(dir.path(), &["session"]);
    assert_eq!(sessions["rows"].as_array().unwrap().len(), truth.by_session.len());
}

#[test]
fn keys_are_days_mondays_months_and_blocks() {
    let dir = quipu_testkit::fixture("demo");
    let keys = |group: &str| -> Vec<String> {
        let report = usage(&dir, &[group]);
        report["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys("daily")[0], "2026-10-02");
    assert_eq!(keys("weekly")[0], "2026-09-28");
    assert_eq!(keys("monthly"), ["2026-10", "2026-11"]);
    assert!(keys("block")[0].starts_with("2026-10-02T") && keys("block")[0].ends_with(":00:00Z"));
    assert!(keys("project").contains(&"-home-sam-tidepool".to_owned()));
    assert_eq!(usage(&dir, &["--since", "2026-11-01"])["rows"].as_array().unwrap().len(), 3);
}

#[test]
fn prices_of_the_user_count() {
    let config = tempfile::tempdir().unwrap();
    std::fs::create_dir(config.path().join("quipu")).unwrap();
    let file = config.path().join("quipu/prices.toml");
    std::fs::write(&file, "nonsense = [").unwrap();
    let run = || {
        let mut command = quipu();
        command
            .env("XDG_CONFIG_HOME", config.path())
            .arg("--claude-dir")
            .arg(quipu_testkit::fixture("demo"))
            .args(["usage", "--json"]);
        command
    };
    let out = run().assert().code(1);
    assert!(String::from_utf8_lossy(&out.get_output().stderr).contains("prices.format"));
    std::fs::write(&file, "").unwrap();
    run().assert().success();
}

#[test]
fn the_table_has_a_total_and_is_plain_when_piped() {
    let out = quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).arg("usage").assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(text.contains("\ntotal ") && !text.contains('\u{1b}'), "{text}");
    let notes = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(notes.contains("the prompt cache saved $"), "{notes}");
}

#[test]
fn rows_of_sessions_turns_and_models_have_their_keys() {
    let dir = quipu_testkit::fixture("demo");
    let sessions = usage(&dir, &["session"]);
    let costs: Vec<f64> =
        sessions["rows"].as_array().unwrap().iter().map(|row| row["cost_usd"].as_f64().unwrap()).collect();
    assert!(costs.is_sorted_by(|a, b| a >= b), "the most expensive first: {costs:?}");
    let first = &sessions["rows"][0];
    assert!(first["session_id"] == first["key"] && first["title"].is_string() && first["last_at"].is_string());
    let split = usage(&dir, &["monthly", "--breakdown"]);
    for row in split["rows"].as_array().unwrap() {
        let parts = row["breakdown"].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["output_tokens"].as_u64().unwrap()).sum();
        assert!(!parts.is_empty() && row["output_tokens"] == sum);
    }
    let session = first["session_id"].as_str().unwrap();
    let turns = usage(&dir, &["turn", "--session", session]);
    assert_eq!(turns["totals"]["output_tokens"], first["output_tokens"]);
    assert!(turns["rows"].as_array().unwrap().iter().all(|row| row["session_id"] == session && row["turn"].is_u64()));
}

#[test]
fn the_active_block_shows_time_left_and_projection() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let at = |n: u32, time: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"u{n}","timestamp":"2026-11-15T{time}Z","message":{{"id":"m{n}","model":"claude-opus-5-5","content":[],"usage":{{"output_tokens":50000}}}}}}"#
        ) + "\n"
    };
    std::fs::write(folder.join("a.jsonl"), at(1, "10:10:00") + &at(2, "11:10:00")).unwrap();
    let run = |now: &str, args: &[&str]| {
        let mut command = quipu();
        command.env("QUIPU_TEST_NOW", now).env("TZ", "UTC").arg("--claude-dir").arg(dir.path());
        command.args(["usage", "block"]).args(args).assert().success()
    };
    let out = run("2026-11-15T12:00:00Z", &["--json"]);
    let row = &serde_json::from_slice::<Value>(&out.get_output().stdout).unwrap()["rows"][0];
    assert_eq!((&row["key"], &row["end"]), (&"2026-11-15T10:00:00Z".into(), &"2026-11-15T15:00:00Z".into()));
    assert_eq!((row["active"].as_bool(), row["minutes_left"].as_f64()), (Some(true), Some(180.0)));
    // Two dollars in an hour, and three hours to go.
    assert!((row["projected_cost_usd"].as_f64().unwrap() - 8.0).abs() < 1e-9);
    let out = run("2026-11-15T12:00:00Z", &[]);
    let notes = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(notes.contains("active block: 3h 00m left") && notes.contains("$8.00 by 15:00"), "{notes}");
    assert!(String::from_utf8_lossy(&out.get_output().stdout).contains("2026-11-15 10:00–15:00"));
    let out = run("2026-11-17T12:00:00Z", &["--json"]);
    let row = &serde_json::from_slice::<Value>(&out.get_output().stdout).unwrap()["rows"][0];
    assert_eq!((&row["active"], &row["minutes_left"]), (&Value::Bool(false), &Value::Null));
}

#[test]
fn a_limit_of_tokens_is_compared_with_every_block() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let at = |n: u32, time: &str, output: u32| {
        format!(
            r#"{{"type":"assistant","uuid":"u{n}","timestamp":"2026-11-{time}:00Z","message":{{"id":"m{n}","model":"claude-opus-5-5","content":[],"usage":{{"input_tokens":10000,"output_tokens":{output}}}}}}}"#
        ) + "\n"
    };
    let lines = at(1, "14T10:10", 190_000) + &at(2, "15T10:10", 40_000) + &at(3, "15T11:10", 40_000);
    std::fs::write(folder.join("a.jsonl"), lines).unwrap();
    let run = |args: &[&str]| {
        let mut command = quipu();
        command.env("QUIPU_TEST_NOW", "2026-11-15T12:00:00Z").env("TZ", "UTC").arg("--claude-dir").arg(dir.path());
        command.arg("usage").args(args).assert()
    };
    let used = |limit: &str| -> Vec<(u64, f64)> {
        let out = run(&["block", "--json", "--token-limit", limit]).success();
        let report: Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
        let rows = report["rows"].as_array().unwrap().iter();
        rows.map(|row| (row["token_limit"].as_u64().unwrap(), row["token_limit_used"].as_f64().unwrap())).collect()
    };
    // Blocks of 200,000 and, still active, 100,000 tokens.
    assert_eq!(used("400k"), [(400_000, 0.5), (400_000, 0.25)]);
    assert_eq!(used("max"), [(200_000, 1.0), (200_000, 0.5)]);
    let out = run(&["block", "--token-limit", "max"]).success();
    let note = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    // In the hour of its two messages it used half, and three hours are left.
    let expect = "limit: 100.0k of 200.0k tokens used (50%), 400.0k (200%) by 15:00 at this rate: more than the limit";
    assert!(note.contains(expect), "{note}");
    assert!(String::from_utf8_lossy(&out.get_output().stdout).contains("of limit"));
    run(&["--token-limit", "max"]).code(2);
    run(&["block", "--token-limit", "lots"]).code(2);
    // The only block of that day is still active.
    let out = run(&["block", "--token-limit", "max", "--since", "2026-11-15"]).success();
    let note = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(note.contains("`--token-limit max` has nothing to compare with"), "{note}");
    assert!(!String::from_utf8_lossy(&out.get_output().stdout).contains("of limit"));
}

#[test]
fn the_overview_counts_no_undated_or_future_message_and_shows_no_negative_zero() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |n: u32, time: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"u{n}"{time},"message":{{"id":"m{n}","model":"claude-opus-5-5","content":[],"usage":{{"output_tokens":50000}}}}}}"#
        ) + "\n"
    };
    let lines = line(1, "") + &line(2, r#","timestamp":"2026-12-24T10:00:00Z""#);
    std::fs::write(folder.join("a.jsonl"), lines).unwrap();
    let mut command = quipu();
    command.env("QUIPU_TEST_NOW", "2026-11-15T12:00:00Z").env("TZ", "UTC").arg("--claude-dir").arg(dir.path());
    let out = command.arg("--json").assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    let spend = &serde_json::from_str::<Value>(&text).unwrap()["spend_usd"];
    assert_eq!(spend, &serde_json::json!({"today": 0.0, "this_week": 0.0, "this_month": 0.0}));
    assert!(!text.contains("-0.0"), "{text}");
}

#[test]
fn the_overview_warns_of_sessions_that_will_be_deleted_soon() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-p");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("a.jsonl");
    std::fs::write(&file, "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n").unwrap();
    let overview = || {
        let out = quipu().arg("--claude-dir").arg(dir.path()).assert().success();
        String::from_utf8_lossy(&out.get_output().stdout).into_owned()
    };
    assert!(!overview().contains("will be deleted"));
    let written = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 24 * 3600);
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(written).unwrap();
    let text = overview();
    assert!(
        text.contains("1 session will be deleted by Claude Code within 7 days (cleanupPeriodDays is 30)"),
        "{text}"
    );
    std::fs::write(dir.path().join("settings.json"), "{\"cleanupPeriodDays\": 365}").unwrap();
    assert!(!overview().contains("will be deleted"));
}

#[test]
fn the_examples_of_the_documentation_are_price_files() {
    let config = tempfile::tempdir().unwrap();
    std::fs::create_dir(config.path().join("quipu")).unwrap();
    for page in ["docs/prices.md", "README.md", "README.zh.md"] {
        let text = std::fs::read_to_string(quipu_testkit::repository_root().join(page)).unwrap();
        let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        std::fs::write(config.path().join("quipu/prices.toml"), example.unwrap()).unwrap();
        let mut command = quipu();
        command.env("XDG_CONFIG_HOME", config.path()).arg("--claude-dir").arg(quipu_testkit::fixture("demo"));
        command.arg("usage").assert().success();
    }
}

#[test]
fn statistics_count_each_message_and_the_time_it_was_sent() {
    let dir = tempfile::tempdir().unwrap();
    let truth = generate_tree(dir.path(), 9, 1_500_000).unwrap();
    let run = |args: &[&str]| -> Value {
        let mut command = quipu();
        let out = command.env("TZ", "UTC").arg("--claude-dir").arg(dir.path()).args(["stats", "--json"]).args(args);
        serde_json::from_slice(&out.assert().success().get_output().stdout).unwrap()
    };
    let stats = run(&[]);
    assert_eq!(stats["messages"], truth.total.messages);
    let sum = |name: &str| stats[name].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("hours"), sum("weekdays")), (truth.total.messages, truth.total.messages));
    assert_eq!(stats["subagent_messages"], truth.by_agent["Explore"].messages);
    assert!(stats["tools"]["Bash"].as_u64() > stats["tools"]["WebSearch"].as_u64());
    assert!(stats["largest_context"]["tokens"].as_u64() > Some(200_000));
    assert!(stats["length_secs"]["median"].as_f64() <= stats["length_secs"]["longest"].as_f64());
    let day = truth.by_day.keys().next().unwrap();
    let first = run(&["--since", day, "--until", day]);
    assert_eq!(first["messages"], truth.by_day[day].messages);
}
