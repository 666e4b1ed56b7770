//! `quipu usage`

use quipu_testkit as kit;
use quipu_testkit::generate::tree;
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
    let truth = tree(dir.path(), 7, 1_500_000).unwrap();
    for group in ["daily", "weekly", "monthly", "session", "model", "project", "block"] {
        let report = usage(dir.path(), &[group]);
        let totals = &report["totals"];
        assert_eq!(totals["output_tokens"], truth.total.output, "{group}");
        assert_eq!(totals["cache_read_tokens"], truth.total.read, "{group}");
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
    let dir = kit::fixture("demo");
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
fn a_persons_own_prices_count() {
    let config = tempfile::tempdir().unwrap();
    std::fs::create_dir(config.path().join("quipu")).unwrap();
    let file = config.path().join("quipu/prices.toml");
    std::fs::write(&file, "nonsense = [").unwrap();
    let run = || {
        let mut command = quipu();
        command
            .env("XDG_CONFIG_HOME", config.path())
            .arg("--claude-dir")
            .arg(kit::fixture("demo"))
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
    let out = quipu().arg("--claude-dir").arg(kit::fixture("demo")).arg("usage").assert().success();
    let text = String::from_utf8_lossy(&out.get_output().stdout).into_owned();
    assert!(
        text.contains("\ntotal ") && text.contains("the prompt cache saved $") && !text.contains('\u{1b}'),
        "{text}"
    );
}
