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

#[test]
fn a_capture_with_other_sessions_explains_its_own_calls_only() {
    let folder = tempfile::tempdir().unwrap();
    let session = quipu_testkit::fixture("demo/projects").join("-home-sam-tidepool");
    let id = "05ef09b2-9c3d-4897-965b-0c47c2889d7b";
    let call = |session_id: &str, n: usize| {
        format!(
            r#"{{"timestamp":"2026-10-12T08:1{n}:00.000Z","request":{{"timestamp":1760256840.0,"method":"POST","url":"https://api.anthropic.com/v1/messages","headers":{{"x-claude-code-session-id":"{session_id}"}},"body":{{"model":"claude-opus-5-5","max_tokens":9,"messages":[{{"role":"user","content":"hi {n}"}}]}}}},"response":{{"timestamp":1760256841.0,"status_code":200,"headers":{{}},"body":{{"id":"msg_{n}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{{"type":"text","text":"ok"}}],"stop_reason":"end_turn","usage":{{"input_tokens":1,"output_tokens":1}}}}}},"logged_at":"2026-10-12T08:14:00.000Z"}}"#
        )
    };
    let capture = folder.path().join("log.jsonl");
    std::fs::write(&capture, format!("{}\n{}\n{}\n", call(id, 1), call("other", 2), call("other", 3))).unwrap();
    let explain = |session_file: &str| -> Value {
        let path = session.join(format!("{session_file}.jsonl"));
        let args = ["explain", path.to_str().unwrap(), "--capture", capture.to_str().unwrap(), "--json"];
        serde_json::from_str(&demo(&args)).unwrap()
    };
    assert_eq!(explain(id)["cache"]["calls"], 1);
}
