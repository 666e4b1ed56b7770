//! `quipu search`

use std::process::Output;

use serde_json::Value;

use crate::quipu;

fn demo(args: &[&str]) -> Output {
    quipu().arg("--claude-dir").arg(quipu_testkit::fixture("demo")).args(args).output().unwrap()
}

fn search(args: &[&str]) -> Vec<Value> {
    let out = demo(&[&["--json", "search"], args].concat());
    let hits: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(i32::from(hits.is_empty())), "like grep");
    hits
}

#[test]
fn texts_are_found_with_their_position() {
    let hits = search(&["tide"]);
    assert!(!hits.is_empty());
    for hit in &hits {
        let snippet = hit["snippet"].as_str().unwrap();
        assert!(snippet.to_lowercase().contains("«tide»"), "{snippet}");
        let path = hit["path"].as_str().unwrap();
        let line = hit["line"].as_u64().unwrap() as usize;
        let text = std::fs::read_to_string(path).unwrap();
        let found = text.lines().nth(line - 1).unwrap();
        assert!(hit["uuid"].as_str().is_none_or(|uuid| found.contains(uuid)), "the line is the one it says");
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
    let error = |args: &[&str]| -> String {
        let out = demo(&[&["--json", "search"], args].concat());
        assert_eq!(out.status.code(), Some(2));
        let error: Value = serde_json::from_slice(&out.stderr).unwrap();
        error["error"]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(error(&["--regex", "("]), "search.bad_pattern");
    for empty in [&["--exact", ""][..], &["--regex", ""], &[""], &["  "], &["\"\""]] {
        assert_eq!(error(empty), "search.empty");
    }
    let words: Vec<String> = (0..200).map(|n| format!("word{n}")).collect();
    assert_eq!(error(&[&words.join(" ")]), "search.too_long");
    assert_eq!(error(&["tide", "--limt", "5"]), "usage");
    assert!(!search(&["--", "--oneline"]).is_empty());
}

#[test]
fn a_word_with_a_dash_that_may_be_a_mistyped_option_is_refused() {
    for args in [&["-harbour"][..], &["tide", "-harbour"], &["tide", "-limit", "5"], &["tide", "-none"], &["-104"]] {
        let out = demo(&[&["--json", "search"], args].concat());
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "{args:?}");
        let error: Value = serde_json::from_slice(&out.stderr).unwrap();
        assert_eq!(error["error"]["code"], "usage.dashed_word", "{args:?}");
        assert!(error["error"]["hint"].as_str().unwrap().contains("quipu search 'tide -harbour'"));
    }
    let all = search(&["tide", "-n", "500"]).len();
    let quoted = search(&["tide -harbour", "-n500"]);
    assert!(!quoted.is_empty() && quoted.len() < all);
    assert_eq!(search(&["-n=500", "--", "tide", "-harbour"]), quoted);
    assert!(String::from_utf8(demo(&["search", "-h"]).stdout).unwrap().contains("Usage:"));
    assert_eq!(search(&["tide", "-ptidepool", "-qn3"]).len(), 3);
}

#[test]
fn only_a_session_with_more_hits_reports_them_also_without_the_index() {
    let shown = |args: &[&str]| String::from_utf8(demo(&[&["search", "--exact"], args].concat()).stdout).unwrap();
    let capped = |text: &str| text.matches("more in this session").count();
    let text = shown(&["to_radians", "--session", "05ef09b2"]);
    let hits = printed_places(&shown(&["tide", "-n", "200"])).len();
    assert!(capped(&shown(&["tide", "-n", "200"])) > 0 && hits > 5, "{hits}");
    assert_eq!(capped(&text), 0, "{text}");
}

#[test]
fn a_search_without_a_hit_is_short() {
    let long = "nowhere".repeat(14_000);
    for (args, quiet) in [(&["search", &long][..], false), (&["-q", "search", &long], true)] {
        let out = demo(args);
        assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0));
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert_eq!(stderr.is_empty(), quiet);
        assert!(stderr.len() < 200 && !stderr.contains("warning"), "{stderr}");
    }
}

#[test]
fn signs_and_emoji_are_found_without_being_asked_for() {
    let texts = |args: &[&str]| search(args).iter().map(|hit| hit["snippet"].to_string()).collect::<Vec<_>>();
    for query in ["🎉", "->", "f64::MAX", "抽奖", "SYSTEMTIME", "draw.py"] {
        let found = texts(&[query]);
        assert!(!found.is_empty() && found.iter().all(|text| text.contains('«')), "{query} {found:?}");
    }
    assert!(texts(&["--exact", "->"]).iter().all(|text| text.contains("«->»")));
    assert!(search(&["--exact", "<f64>"]).iter().all(|hit| hit["snippet"].as_str().unwrap().contains("«<f64>»")));
}

#[test]
fn what_was_typed_while_the_agent_worked_is_the_users() {
    for args in
        [&["\"CI saw it only once\"", "--role", "user"][..], &["--exact", "CI saw it only once", "--role", "user"]]
    {
        assert_eq!(search(args).len(), 1, "{args:?}");
    }
}

/// The places of the hits in the text that `search` prints.
fn printed_places(text: &str) -> Vec<String> {
    let places = text.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    places
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.contains(':'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn hits_are_listed_under_their_session_and_can_be_opened() {
    let out = demo(&["search", "tide"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("A smooth tide curve for the web page  shoreline-web\n  449527a5:"), "{text}");
    assert!(text.contains("more in this session: --session "), "{text}");
    let places = printed_places(&text);
    let count = |session: &str| places.iter().filter(|place| place.starts_with(session)).count();
    assert!(count("449527a5") > 0 && count("05ef09b2") > 0);
    assert!(places.iter().all(|place| count(place.split(':').next().unwrap()) <= 5));
    let mut places = places;
    let out = demo(&["search", "gauge readings"]);
    let text = String::from_utf8(out.stdout).unwrap();
    let agents = printed_places(&text).into_iter().filter(|place| place.starts_with("agent-"));
    places.extend(agents);
    assert!(places.iter().any(|place| place.starts_with("agent-")) && text.contains("(subagent)"), "{text}");
    for place in places {
        let out = demo(&["show", &place, "--around", "5"]);
        assert!(out.status.success(), "{place}");
        assert!(!out.stdout.is_empty(), "{place}");
    }
}

#[test]
fn an_opened_hit_shows_what_was_found() {
    for hit in search(&["gauge", "--limit", "50"]) {
        let name = hit["agent"].as_str().unwrap_or_else(|| hit["session_id"].as_str().unwrap());
        if hit["role"] == "system" {
            continue;
        }
        let out = demo(&["show", &format!("{name}:{}", hit["line"])]);
        let text = String::from_utf8(out.stdout).unwrap().to_lowercase();
        assert!(text.contains("gauge"), "{hit} {text}");
    }
}
