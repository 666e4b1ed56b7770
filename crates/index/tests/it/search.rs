//! What was said is found: words, identifiers, paths, phrases and Chinese.

use std::fs;
use std::path::Path;

use quipu_conversation::price::Prices;
use quipu_index::{Catalogue, Hit, Pattern, Query, Role, SessionKey, hits_at, places};
use quipu_transcript::find;
use tempfile::tempdir;

fn user(uuid: &str, content: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","timestamp":"2026-11-15T10:00:00Z","message":{{"role":"user","content":{content}}}}}"#
    )
}

fn assistant(uuid: &str, blocks: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","timestamp":"2026-11-15T10:00:01Z","message":{{"role":"assistant","content":[{blocks}]}}}}"#
    )
}

fn story() -> Vec<String> {
    vec![
        user("u1", r#""When does the tide turn in 抽奖脚本?""#),
        assistant("a1", r#"{"type":"thinking","thinking":"the harbour empties at noon"}"#),
        assistant(
            "a2",
            r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"grep -n getUserById src/tide/table.rs"}}"#,
        ),
        user(
            "u2",
            r#"[{"type":"tool_result","tool_use_id":"t1","content":"12: fn getUserById(user_id: u32) \"quoted\""}]"#,
        ),
        user(
            "u3",
            r#"[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"HTTPServer is down"}]}]"#,
        ),
        assistant("a3", r#"{"type":"text","text":"It turns at noon, see src/tide/table.rs; 12 passed. Größe"}"#),
    ]
}

fn write(dir: &Path, name: &str, lines: &[String]) {
    let folder = dir.join("projects/-home-dev-tidepool");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.jsonl")), lines.join("\n") + "\n").unwrap();
}

fn indexed(dir: &Path) -> Catalogue {
    let mut catalogue = Catalogue::open(&dir.join("cache"), &[dir.to_owned()], Prices::bundled()).unwrap();
    catalogue.refresh(&|_, _| ()).unwrap();
    assert!(catalogue.index_text(&|_, _| ()).unwrap().is_empty());
    catalogue
}

fn query(text: &str) -> Query {
    Query { text: text.to_owned(), limit: 20, ..Query::default() }
}

fn ids(hits: &[Hit]) -> Vec<&str> {
    let mut ids: Vec<&str> = hits.iter().filter_map(|hit| hit.uuid.as_deref()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn words_identifiers_paths_phrases_and_chinese_are_found() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &story());
    let catalogue = indexed(dir.path());
    let check = |text: &str, expect: &[&str]| {
        let hits = catalogue.search(&query(text)).unwrap();
        assert_eq!(ids(&hits), expect, "{text}");
    };
    check("tide", &["a2", "a3", "u1"]);
    check("TIDE turn", &["u1"]);
    check("\"turns at noon\"", &["a3"]);
    check("\"noon at turns\"", &[]);
    check("getUserById", &["a2", "u2"]);
    check("user", &["a2", "u2"]);
    check("user_id", &["u2"]);
    check("httpserver", &[]);
    check("HTTPServer", &["u3"]);
    check("server", &["u3"]);
    check("src/tide/table.rs", &["a2", "a3"]);
    check("抽奖", &["u1"]);
    check("奖脚本", &["u1"]);
    check("抽脚", &[]);
    check("本", &["u1"]);
    check("harb*", &["a1"]);
    check("größe", &["a3"]);
}

#[test]
fn hits_say_where_they_are_and_show_what_was_looked_for() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &story());
    let hits = indexed(dir.path()).search(&query("server")).unwrap();
    let Hit { session_id, line, role, tool, snippet, timestamp, score, .. } = &hits[0];
    assert_eq!((session_id.as_str(), *line, *role), ("s", 5, "tool"));
    assert_eq!((tool.as_deref(), timestamp.as_deref()), (None, Some("2026-11-15T10:00:00Z")));
    assert_eq!(snippet, "HTTP«Server» is down");
    assert!(*score > 0.0);
    let shape = serde_json::to_value(&hits[0]).unwrap();
    for key in ["session_id", "uuid", "path", "line", "timestamp", "role", "tool", "snippet", "score"] {
        assert!(shape.get(key).is_some(), "{key}");
    }
}

#[test]
fn filters_narrow_what_is_found() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &story());
    let catalogue = indexed(dir.path());
    let check = |query: Query, expect: &[&str]| assert_eq!(ids(&catalogue.search(&query).unwrap()), expect);
    check(Query { role: Some(Role::User), ..query("tide") }, &["u1"]);
    check(Query { role: Some(Role::Assistant), ..query("tide") }, &["a2", "a3"]);
    check(Query { role: Some(Role::Thinking), ..query("noon") }, &["a1"]);
    check(Query { tool: Some("bash".to_owned()), ..query("user") }, &["a2", "u2"]);
    let only =
        |project: &str| Some([SessionKey { project: project.to_owned(), id: "s".to_owned() }].into_iter().collect());
    check(Query { sessions: only("-home-dev-tidepool"), ..query("noon") }, &["a1", "a3"]);
    check(Query { sessions: only("-home-dev-other"), ..query("noon") }, &[]);
    check(Query { until: Some("2026-11-15T10:00:01Z".parse().unwrap()), ..query("tide") }, &["u1"]);
    check(Query { since: Some("2026-11-15T10:00:01Z".parse().unwrap()), ..query("tide") }, &["a2", "a3"]);
    check(Query { limit: 1, ..query("getUserById") }, &["u2"]);
}

#[test]
fn new_lines_are_found_and_old_ones_of_a_rewritten_file_are_not() {
    let dir = tempdir().unwrap();
    write(dir.path(), "s", &story()[..3]);
    assert_eq!(ids(&indexed(dir.path()).search(&query("getUserById")).unwrap()), ["a2"]);
    write(dir.path(), "s", &story());
    let hits = indexed(dir.path()).search(&query("getUserById")).unwrap();
    assert_eq!(ids(&hits), ["a2", "u2"]);
    let result = hits.iter().find(|hit| hit.uuid.as_deref() == Some("u2")).unwrap();
    assert_eq!((result.line, result.tool.as_deref()), (4, Some("Bash")), "the call was read the time before");
    write(dir.path(), "s", &[user("n1", "\"something else entirely\"")]);
    let catalogue = indexed(dir.path());
    assert!(catalogue.search(&query("getUserById")).unwrap().is_empty());
    assert_eq!(ids(&catalogue.search(&query("entirely")).unwrap()), ["n1"]);
    fs::remove_file(dir.path().join("projects/-home-dev-tidepool/s.jsonl")).unwrap();
    assert!(indexed(dir.path()).search(&query("entirely")).unwrap().is_empty());
}

#[test]
fn a_fork_is_found_once() {
    let dir = tempdir().unwrap();
    write(dir.path(), "a", &story());
    write(dir.path(), "b", &story());
    assert_eq!(indexed(dir.path()).search(&query("harbour")).unwrap().len(), 1);
}

#[test]
fn files_are_scanned_for_texts_and_patterns_as_they_were_said() {
    let dir = tempdir().unwrap();
    let mut lines = story();
    lines.push(user("e1", r#""one\ntwo \u62bd\u5956 \"three\"""#));
    write(dir.path(), "s", &lines);
    let (projects, _) = find::projects(&[dir.path().to_owned()]);
    let (histories, _) = find::histories(&projects, &());
    let check = |pattern: Pattern, query: Query, expect: &[&str]| {
        let (places, errors) = places(&histories[0], &pattern);
        assert!(errors.is_empty());
        let hits: Vec<Hit> = places.iter().flat_map(|place| hits_at(&histories[0], place, &pattern, &query)).collect();
        assert_eq!(ids(&hits), expect);
        hits
    };
    check(Pattern::exact("getUserById(user_id").unwrap(), query(""), &["u2"]);
    check(Pattern::exact("getuserbyid").unwrap(), query(""), &[]);
    check(Pattern::exact("\"quoted\"").unwrap(), query(""), &["u2"]);
    check(Pattern::exact("one\ntwo").unwrap(), query(""), &["e1"]);
    check(Pattern::exact("抽奖").unwrap(), query(""), &["e1", "u1"]);
    // Bytes of the line that nobody said.
    check(Pattern::exact("tool_result").unwrap(), query(""), &[]);
    check(Pattern::regex("^two").unwrap(), query(""), &["e1"]);
    check(Pattern::regex(r"get\w+ById").unwrap(), query(""), &["a2", "u2"]);
    let hits = check(Pattern::exact("12: fn").unwrap(), Query { tool: Some("Bash".to_owned()), ..query("") }, &["u2"]);
    assert_eq!((hits[0].tool.as_deref(), hits[0].line), (Some("Bash"), 4));
    assert_eq!(hits[0].snippet, "«12: fn» getUserById(user_id: u32) \"quoted\"");
    assert!(Pattern::regex("(").is_err());
}
