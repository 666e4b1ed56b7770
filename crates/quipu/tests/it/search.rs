//! `quipu search`

use quipu_testkit as kit;
use serde_json::Value;

use crate::quipu;

fn search(args: &[&str]) -> Vec<Value> {
    let out = quipu().arg("--claude-dir").arg(kit::fixture("demo")).args(["--json", "search"]).args(args).assert();
    serde_json::from_slice(&out.success().get_output().stdout).unwrap()
}

#[test]
fn what_was_said_is_found_with_its_place() {
    let hits = search(&["tide"]);
    assert!(!hits.is_empty());
    for hit in &hits {
        let snippet = hit["snippet"].as_str().unwrap();
        assert!(snippet.to_lowercase().contains("«tide»"), "{snippet}");
        let path = hit["path"].as_str().unwrap();
        let line = hit["line"].as_u64().unwrap() as usize;
        let text = std::fs::read_to_string(path).unwrap();
        let found = text.lines().nth(line - 1).unwrap();
        assert!(found.contains(hit["uuid"].as_str().unwrap()), "the line is the one it says");
    }
    assert!(search(&["tide", "--limit", "1"]).len() == 1);
    assert!(search(&["tide", "--role", "user"]).iter().all(|hit| hit["role"] == "user"));
}

#[test]
fn exact_and_regex_agree_with_the_index_on_plain_words() {
    let ids = |args: &[&str]| {
        let mut ids: Vec<String> = search(args).iter().map(|hit| hit["uuid"].to_string()).collect();
        ids.sort();
        ids.dedup();
        ids
    };
    let exact = ids(&["--exact", "tide", "--limit", "500"]);
    assert!(!exact.is_empty());
    assert_eq!(exact, ids(&["--regex", "tide", "--limit", "500"]));
    assert_eq!(ids(&["--exact", "no such thing anywhere"]), [""; 0]);
}

#[test]
fn bad_queries_are_explained() {
    let error = |args: &[&str]| -> Value {
        let dir = kit::fixture("demo");
        let out = quipu().arg("--claude-dir").arg(dir).args(["--json", "search"]).args(args).assert().failure();
        serde_json::from_slice(&out.get_output().stderr).unwrap()
    };
    assert_eq!(error(&["--regex", "("])["error"]["code"], "search.bad_pattern");
    assert_eq!(error(&["..."])["error"]["code"], "search.no_word");
}
