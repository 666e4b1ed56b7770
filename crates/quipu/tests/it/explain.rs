//! `quipu explain`

use serde_json::Value;

use crate::quipu;

fn demo(args: &[&str]) -> String {
    let assert = quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).args(args).assert().success();
    String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
}

#[test]
fn the_parts_of_time_and_money_add_up() {
    let json: Value = serde_json::from_str(&demo(&["explain", "05ef09b2", "--json"])).unwrap();
    let time = &json["time"];
    let fixed = ["model", "waiting", "hooks", "retries", "compaction", "idle"];
    let tools: u64 = time["tools"].as_object().unwrap().values().map(|ms| ms.as_u64().unwrap()).sum();
    let sum: u64 = fixed.iter().map(|name| time[name].as_u64().unwrap()).sum::<u64>() + tools;
    assert_eq!(sum, json["wall_ms"].as_u64().unwrap());
    let usage: Value = serde_json::from_str(&demo(&["usage", "session", "--session", "05ef09b2", "--json"])).unwrap();
    let cost = usage["totals"]["cost_usd"].as_f64().unwrap();
    assert!((json["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9, "{json:#}");
    for part in ["tools", "agents"] {
        let costs = json["money"][part].as_object().unwrap().values();
        assert!((costs.map(|cost| cost.as_f64().unwrap()).sum::<f64>() - cost).abs() < 1e-9, "{part}");
    }
}

#[test]
fn the_page_has_a_timeline_and_no_script() {
    let page = demo(&["explain", "05ef09b2", "--as", "html"]);
    assert!(page.contains("<svg"), "{page}");
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("<script"));
}
