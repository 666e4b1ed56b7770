//! One session: its structure, windows, branches, subagents and raw lines.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_conversation::UiOptions;
use quipu_transcript::load_session;
use serde_json::{Value, json};

use crate::client::{TestServer, demo};
use crate::scratch::{Scratch, assistant, result, text, user};

/// The items of a session, by windows of `count` positions.
pub(crate) fn all_items(server: &TestServer, key: &str, count: usize) -> Vec<Value> {
    let (mut items, mut from) = (Vec::new(), 0);
    loop {
        let window = server.json(&format!("/api/sessions/{key}/items?from={from}&count={count}&full=1"));
        items.extend(window["items"].as_array().unwrap().clone());
        from += count;
        if from >= window["entries"].as_u64().unwrap() as usize {
            return items;
        }
    }
}

/// What the whole conversation shows, as the API gives it: without positions.
pub(crate) fn expected_items(path: &Path) -> Vec<Value> {
    let options = UiOptions { leave_out_subagents: true, ..UiOptions::default() };
    let items = load_session(path).unwrap().for_ui_with(options);
    items.iter().map(|item| serde_json::to_value(item).unwrap()).collect()
}

pub(crate) fn without_position(mut item: Value) -> Value {
    let fields = item.as_object_mut().unwrap();
    assert!(fields.remove("position").is_some());
    fields.remove("message_id");
    fields.remove("block_index");
    item
}

fn demo_sessions() -> Vec<PathBuf> {
    let projects = quipu_testkit::fixture("demo/projects");
    quipu_transcript::find::list_sessions(&[quipu_testkit::fixture("demo")])
        .0
        .into_iter()
        .map(|s| s.path)
        .collect::<Vec<_>>()
        .into_iter()
        .inspect(|path| assert!(path.starts_with(&projects)))
        .collect()
}

#[test]
fn windows_have_the_items_of_the_whole_conversation() {
    let server = demo();
    let sessions = demo_sessions();
    assert_eq!(sessions.len(), 6);
    for path in sessions {
        let key = path.file_stem().unwrap().to_str().unwrap();
        for count in [1, 7, 500] {
            let items = all_items(&server, key, count);
            let positions: Vec<_> = items.iter().map(|item| item["position"].as_u64().unwrap()).collect();
            assert!(positions.is_sorted(), "{key}");
            let items: Vec<_> = items.into_iter().map(without_position).collect();
            assert_eq!(items, expected_items(&path), "{key} by {count}");
        }
    }
}

fn texts(window: &Value) -> Vec<&str> {
    window["items"].as_array().unwrap().iter().filter_map(|item| item["text"].as_str()).collect()
}

#[test]
fn a_session_that_grows_is_read_on() {
    let scratch = Scratch::new(&[user("a", None, "one")]);
    let server = scratch.server();
    let before = server.json("/api/sessions/s/items");
    assert_eq!((texts(&before), before["entries"].clone()), (vec!["one"], json!(1)));
    let call = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}});
    scratch.append("s", &[assistant("b", "a", call)]);
    let pending = server.json("/api/sessions/s/items");
    assert_ne!(pending["version"], before["version"]);
    assert_eq!(pending["items"][1]["tool"]["status"], "pending");
    scratch.append("s", &[result("c", "b", "t", "done"), assistant("d", "c", text("two"))]);
    let after = server.json("/api/sessions/s/items");
    assert_eq!(texts(&after), ["one", "two"]);
    assert_eq!(after["items"][1]["tool"]["status"], "success");
    assert_eq!(after["items"][1]["tool"]["finished_at"], "2026-11-16T10:00:07Z");
    // The result has no item of its own: its card is at the position of the call.
    assert_eq!(after["items"][2]["position"], 3);
    assert_eq!(server.json("/api/sessions/s/items")["version"], after["version"]);
    // Half a line is a problem until it is complete.
    let line = user("e", Some("d"), "three").to_string();
    scratch.append_text("s", &line[..20]);
    let items = server.json("/api/sessions/s/items");
    assert_eq!(items["items"].as_array().unwrap().last().unwrap()["kind"], "problem");
    scratch.append_text("s", &format!("{}\n", &line[20..]));
    assert_eq!(texts(&server.json("/api/sessions/s/items")), ["one", "two", "three"]);
    // A file that was rewritten is read from its start.
    fs::write(scratch.path("s"), format!("{}\n", user("z", None, "new"))).unwrap();
    assert_eq!(texts(&server.json("/api/sessions/s/items")), ["new"]);
    fs::remove_file(scratch.path("s")).unwrap();
    assert_eq!(server.get("/api/sessions/s/items").status, 404);
}

#[test]
fn a_window_is_named_by_position_or_line_or_is_the_last() {
    let lines: Vec<Value> = (0..50)
        .map(|n| user(&format!("u{n}"), (n > 0).then(|| format!("u{}", n - 1)).as_deref(), &n.to_string()))
        .collect();
    let scratch = Scratch::new(&lines);
    let server = scratch.server();
    let last = server.json("/api/sessions/s/items?count=3");
    assert_eq!((texts(&last), last["from"].clone()), (vec!["47", "48", "49"], json!(47)));
    let middle = server.json("/api/sessions/s/items?from=10&count=2");
    assert_eq!(texts(&middle), ["10", "11"]);
    let line = server.json("/api/sessions/s/items?line=31&count=5");
    assert_eq!((texts(&line), line["position"].clone()), (vec!["28", "29", "30", "31", "32"], json!(30)));
    let start = server.json("/api/sessions/s/items?line=1&count=2");
    assert_eq!(texts(&start), ["0", "1"]);
    let past = server.json("/api/sessions/s/items?from=900&count=5");
    assert_eq!((texts(&past).len(), past["count"].clone(), past["entries"].clone()), (0, json!(0), json!(50)));
    let much = server.json("/api/sessions/s/items?from=0&count=1000000");
    assert_eq!(much["count"], 50);
}

#[test]
fn the_structure_has_turns_branches_compactions_and_problems() {
    let scratch = Scratch::new(&[
        user("a", None, "first prompt"),
        assistant("b", "a", text("answer")),
        user("c", Some("b"), "left behind"),
        assistant("d", "c", text("left answer")),
    ]);
    scratch.append_text("s", "not JSON\n");
    scratch.append(
        "s",
        &[
            user("e", Some("b"), "second prompt"),
            json!({"type": "system", "subtype": "compact_boundary", "uuid": "f", "parentUuid": null, "logicalParentUuid": "e",
                   "content": "Conversation compacted", "compactMetadata": {"trigger": "auto", "preTokens": 9}}),
        ],
    );
    let server = scratch.server();
    let session = server.json("/api/sessions/s");
    let prompts: Vec<_> =
        session["turns"].as_array().unwrap().iter().map(|turn| turn["prompt"].as_str().unwrap()).collect();
    assert_eq!(prompts, ["first prompt", "second prompt"]);
    assert_eq!(session["turns"][1]["position"], 2);
    assert_eq!(session["turns"][1]["line"], 6);
    assert_eq!(session["branches"], json!([{"branch": 1, "position": 2, "entries": 2, "line": 3}]));
    assert_eq!(session["compactions"], json!([{"position": 3, "line": 7}]));
    assert_eq!(session["problems"][0]["line"], 5);
    assert_eq!(session["headline"], "first prompt");
    // No entry has a working directory.
    assert_eq!(session["resume"], json!(null));
    let branch = server.json("/api/sessions/s/items?branch=1");
    assert_eq!(texts(&branch), ["left behind", "left answer"]);
    assert_eq!(server.get("/api/sessions/s/items?branch=2").json()["error"]["code"], "branch.none");
    let window = server.json("/api/sessions/s/items");
    let announced = window["items"].as_array().unwrap().iter().find(|item| item["kind"] == "branch").unwrap();
    assert_eq!((announced["position"].clone(), announced["items"].clone()), (json!(2), json!(2)));
}

#[test]
fn a_subagent_is_a_conversation_of_its_own() {
    let call =
        json!({"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "look", "description": "Look"}});
    let scratch = Scratch::new(&[user("a", None, "go"), assistant("b", "a", call)]);
    let server = scratch.server();
    assert_eq!(server.json("/api/sessions/s")["subagents"], json!([]));
    let name = "s/subagents/agent-x";
    let line = |uuid: &str, parent: Option<&str>, text: &str| {
        let mut line = user(uuid, parent, text);
        line["isSidechain"] = json!(true);
        line["agentId"] = json!("x");
        line
    };
    fs::create_dir_all(scratch.path(name).parent().unwrap()).unwrap();
    let meta = r#"{"agentType":"Explore","description":"Look","toolUseId":"t"}"#;
    fs::write(scratch.path(name).with_extension("meta.json"), meta).unwrap();
    scratch.append(name, &[line("x1", None, "look")]);
    // It started after the session was opened.
    let session = server.json("/api/sessions/s");
    let row =
        json!({"agent_id": "x", "agent_type": "Explore", "description": "Look", "tool_use_id": "t", "entries": 1});
    assert_eq!(session["subagents"], json!([row]));
    let window = server.json("/api/sessions/s/items");
    assert_eq!(window["items"][1]["tool"]["subagent"], json!({"agent_id": "x", "entries": 1, "items": []}));
    scratch.append(name, &[line("x2", Some("x1"), "more")]);
    for agent in ["x", "t"] {
        let window = server.json(&format!("/api/sessions/s/items?agent={agent}"));
        assert_eq!((texts(&window), window["entries"].clone()), (vec!["look", "more"], json!(2)));
    }
    assert_eq!(server.get("/api/sessions/s/items?agent=y").status, 404);
    assert!(server.get("/api/sessions/s/raw?agent=x&line=2").text().contains(r#""uuid":"x2""#));
}

#[test]
fn raw_lines_are_text_and_byte_for_byte() {
    let scratch = Scratch::new(&[user("a", None, "<script>alert(1)</script>")]);
    scratch.append_text("s", "{\"type\":\"user\",  \"uuid\":\"b\",\"x\":\"\\ud800\"}\n");
    let server = scratch.server();
    let bytes = fs::read(scratch.path("s")).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for (query, line) in [("line=1", lines[0]), ("line=2", lines[1]), ("uuid=a", lines[0]), ("uuid=b", lines[1])] {
        let reply = server.get(&format!("/api/sessions/s/raw?{query}"));
        assert_eq!((reply.status, &reply.body[..]), (200, line), "{query}");
        assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
    }
    for query in ["line=3", "line=0", "uuid=none"] {
        assert_eq!(server.get(&format!("/api/sessions/s/raw?{query}")).status, 404, "{query}");
    }
    assert_eq!(server.get("/api/sessions/s/raw").status, 400);
}

#[test]
fn two_files_of_a_fork_are_two_sessions() {
    let scratch = Scratch::new(&[user("a", None, "shared"), assistant("b", "a", text("one"))]);
    scratch.append("fork", &[user("a", None, "shared"), assistant("c", "a", text("two"))]);
    let server = scratch.server();
    server.wait_for_index();
    assert_eq!(texts(&server.json("/api/sessions/s/items")), ["shared", "one"]);
    assert_eq!(texts(&server.json("/api/sessions/fork/items")), ["shared", "two"]);
    assert_eq!(server.json("/api/sessions")["total"], 2);
}

#[test]
fn long_texts_are_cut_unless_they_are_wanted_whole() {
    let long = "a word ".repeat(100_000);
    let call = json!({"type": "tool_use", "id": "t", "name": "Write", "input": {"file_path": "f", "content": long}});
    let scratch = Scratch::new(&[user("a", None, &long), assistant("b", "a", call), user("c", Some("b"), "short")]);
    let server = scratch.server();
    let reply = server.get("/api/sessions/s/items");
    assert!(reply.body.len() < 100_000, "{}", reply.body.len());
    let items = reply.json()["items"].clone();
    assert_eq!([&items[0]["cut"], &items[1]["cut"], &items[2]["cut"]], [&json!(true), &json!(true), &json!(null)]);
    assert_eq!(items[1]["tool"]["input"]["file_path"], "f");
    let full = server.json("/api/sessions/s/items?full=1");
    assert_eq!(full["items"][0]["text"].as_str().map(str::len), Some(long.trim_end().len()));
    assert_eq!(full["items"][0]["cut"], json!(null));
}
