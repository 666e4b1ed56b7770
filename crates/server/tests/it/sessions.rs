//! The list of sessions.

use std::fs;

use serde_json::Value;

use crate::client::{TestServer, demo};

fn ids(page: &Value) -> Vec<&str> {
    page["sessions"].as_array().unwrap().iter().map(|row| row["session_id"].as_str().unwrap()).collect()
}

#[test]
fn sessions_are_listed_before_and_after_they_are_indexed() {
    let server = demo();
    // The first request after the start.
    assert_eq!(server.json("/api/sessions")["total"], 6);
    server.wait_for_index();
    let page = server.json("/api/sessions");
    assert_eq!(page["total"], 6);
    let first = &page["sessions"][0];
    assert_eq!(first["key"], first["session_id"]);
    assert_eq!(first["is_indexed"], true);
    let by_cost = server.json("/api/sessions?sort=cost&limit=2");
    assert_eq!(ids(&by_cost).len(), 2);
    assert!(by_cost["sessions"][0]["cost_usd"].as_f64() >= by_cost["sessions"][1]["cost_usd"].as_f64());
    let rest = server.json("/api/sessions?sort=cost&offset=2");
    assert_eq!(ids(&rest).len(), 4);
    let tidepool = server.json("/api/sessions?project=TIDEPOOL");
    assert_eq!(tidepool["total"], 3);
    assert_eq!(server.json("/api/sessions?q=no-such-title")["total"], 0);
    let refused = server.get("/api/sessions?limit=x");
    assert_eq!((refused.status, refused.json()["error"]["code"].clone()), (400, "query".into()));
}

#[test]
fn rows_are_those_of_the_command() {
    let server = demo();
    server.wait_for_index();
    let page = server.json("/api/sessions");
    let mut catalogue = quipu_index::Catalogue::in_memory(
        &[quipu_testkit::fixture("demo")],
        quipu_conversation::price::Prices::bundled(),
    )
    .unwrap();
    catalogue.refresh(&|_, _| ()).unwrap();
    let rows = serde_json::to_value(catalogue.sessions().unwrap()).unwrap();
    for (row, listed) in page["sessions"].as_array().unwrap().iter().zip(rows.as_array().unwrap()) {
        for (name, value) in listed.as_object().unwrap() {
            assert_eq!(&row[name], value, "{name}");
        }
    }
}

#[test]
fn sessions_with_the_same_id_are_told_apart_by_their_project() {
    let folder = tempfile::tempdir().unwrap();
    for project in ["-home-a", "-home-b"] {
        let path = folder.path().join("projects").join(project);
        fs::create_dir_all(&path).unwrap();
        let line = format!(r#"{{"type":"user","uuid":"u","message":{{"role":"user","content":"in {project}"}}}}"#);
        fs::write(path.join("same.jsonl"), line + "\n").unwrap();
    }
    let server = TestServer::start(folder.path());
    server.wait_for_index();
    let page = server.json("/api/sessions");
    let mut keys: Vec<_> =
        page["sessions"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["-home-a:same", "-home-b:same"]);
    let window = server.json("/api/sessions/-home-b:same/items");
    assert_eq!(window["items"][0]["text"], "in -home-b");
    let refused = server.get("/api/sessions/same");
    assert_eq!((refused.status, refused.json()["error"]["code"].clone()), (409, "session.ambiguous".into()));
}

#[test]
fn a_folder_without_sessions_is_an_empty_list() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(folder.path());
    server.wait_for_index();
    assert_eq!(server.json("/api/sessions")["total"], 0);
    assert_eq!(server.json("/api/status")["index"]["sessions"], 0);
}
