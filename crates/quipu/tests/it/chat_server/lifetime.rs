//! How chats and their agents begin and end.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::harness::{ChatHome, processes_in};

const SCRIPT: &str = "
- when: {tools: false}
  reply: Title
- when: {says: slow}
  reply: This takes its time.
  hang_after: 3
- reply: Done.
";

/// Waits until no program runs in the project.
fn wait_for_agents_to_end(home: &ChatHome) {
    let start = Instant::now();
    while !processes_in(&home.path("project")).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "agents outlive the server");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn agents_end_with_the_server_and_sessions_go_on_after_it() {
    let home = ChatHome::new(SCRIPT);
    let mut server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let (id, key) = (chat["id"].as_str().unwrap(), chat["key"].as_str().unwrap());
    let mut events = server.events(id);
    server.run_turn(&mut events, id, "quick");
    server.send(id, "slow");
    events.until(|event| event["type"] == "delta" || event["type"] == "block_start");
    assert_eq!(processes_in(&home.path("project")).len(), 1);
    server.signal(Signal::TERM);
    assert_eq!(server.wait(), Some(0));
    assert!(processes_in(&home.path("project")).is_empty());
    let server = home.serve();
    let resumed = server.post("/api/chats", json!({"resume": key, "ignore_live": true}));
    assert_eq!((&resumed["key"], &resumed["cwd"]), (&json!(key), &json!(home.project())));
    let id = resumed["id"].as_str().unwrap();
    let mut events = server.events(id);
    server.run_turn(&mut events, id, "again");
    let texts = server.conversation(key);
    assert_eq!((texts[0].as_str(), texts[1].as_str()), ("user: quick", "assistant: Done."));
    assert!(texts.contains(&"user: slow".to_owned()), "{texts:?}");
    assert_eq!(texts[texts.len() - 2..], ["user: again", "assistant: Done."]);
}

#[test]
fn agents_end_by_themselves_if_the_server_is_killed() {
    let home = ChatHome::new(SCRIPT);
    let mut server = home.serve();
    let idle = server.start_chat(&home, json!({}));
    let busy = server.start_chat(&home, json!({}));
    let (idle, busy_id) = (idle["id"].as_str().unwrap(), busy["id"].as_str().unwrap());
    server.run_turn(&mut server.events(idle), idle, "quick");
    server.send(busy_id, "slow");
    server.events(busy_id).until(|event| event["type"] == "delta" || event["chat"]["state"] == "running");
    assert_eq!(processes_in(&home.path("project")).len(), 2);
    server.signal(Signal::KILL);
    server.wait();
    wait_for_agents_to_end(&home);
    // Nothing is lost: the prompt that was being answered is in the session.
    let server = home.serve();
    assert_eq!(server.conversation(busy["key"].as_str().unwrap())[0], "user: slow");
}

#[test]
fn two_chats_run_at_once_and_one_session_has_one_chat() {
    let home = ChatHome::new(SCRIPT);
    let server = home.serve();
    let first = server.start_chat(&home, json!({}));
    let second = server.start_chat(&home, json!({}));
    let ids = [first["id"].as_str().unwrap(), second["id"].as_str().unwrap()];
    let mut events = ids.map(|id| server.events(id));
    server.send(ids[0], "slow");
    events[0].chat(|chat| chat["state"] == "running");
    server.run_turn(&mut events[1], ids[1], "quick");
    let listed = server.get("/api/chats");
    let states: Vec<&Value> = listed.as_array().unwrap().iter().map(|chat| &chat["state"]).collect();
    assert_eq!(states, ["idle", "running"]);
    // Resuming a session that has a chat gives that chat.
    let (status, same) = server.call("POST", "/api/chats", json!({"resume": second["key"]}));
    assert_eq!((status, &same["id"]), (200, &second["id"]));
    // A fork is another session.
    let (status, fork) = server.call("POST", "/api/chats", json!({"resume": second["key"], "fork": true}));
    assert_eq!(status, 201, "{fork}");
    assert_ne!(fork["key"], second["key"]);
    let fork_id = fork["id"].as_str().unwrap();
    let mut events = server.events(fork_id);
    server.run_turn(&mut events, fork_id, "in the copy");
    assert_eq!(server.conversation(second["key"].as_str().unwrap()).len(), 2);
    assert_eq!(server.conversation(fork["key"].as_str().unwrap()).len(), 4);
}

#[test]
fn a_chat_is_ended_removed_and_resumed() {
    let home = ChatHome::new(SCRIPT);
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let (id, path) = (chat["id"].as_str().unwrap(), format!("/api/chats/{}", chat["id"].as_str().unwrap()));
    let mut events = server.events(id);
    server.send(id, "slow");
    events.chat(|chat| chat["state"] == "running");
    let (status, ended) = server.call("DELETE", &path, Value::Null);
    assert_eq!((status, &ended["state"], &ended["ended"]["reason"]), (200, &json!("ended"), &json!("stopped")));
    assert!(processes_in(&home.path("project")).is_empty());
    let (status, error) = server.call("POST", &format!("{path}/messages"), json!({"text": "hello"}));
    assert_eq!((status, &error["error"]["code"]), (409, &json!("chat.ended")));
    // This server ended it, so it knows that no turn runs in the session.
    let resumed = server.post("/api/chats", json!({"resume": chat["key"]}));
    assert_ne!(resumed["id"], chat["id"]);
    assert_eq!(server.get("/api/chats").as_array().unwrap().len(), 1);
    assert_eq!(server.call("GET", &path, Value::Null).0, 404);
}

#[test]
fn an_agent_that_dies_or_is_not_there_is_reported() {
    let home = ChatHome::new(SCRIPT);
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let id = chat["id"].as_str().unwrap();
    let mut events = server.events(id);
    events.chat(|chat| chat["state"] == "idle");
    server.send(id, "slow");
    events.chat(|chat| chat["state"] == "running");
    let pid = i32::try_from(processes_in(&home.path("project"))[0]).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let ended = events.chat(|chat| chat["state"] == "ended");
    assert_eq!(ended["ended"]["reason"], "failed");
    assert!(ended["ended"]["message"].as_str().unwrap().contains("signal 9"), "{ended}");
    let missing = json!({"agent": "claude", "cwd": home.project()});
    let (status, error) = server.call("POST", "/api/chats", missing);
    assert_eq!((status, &error["error"]["code"]), (400, &json!("agent.not_found")));
    let not_an_agent = server.start_chat(&home, json!({"agent": "/bin/false"}));
    let ended = server.events(not_an_agent["id"].as_str().unwrap()).chat(|chat| chat["state"] == "ended");
    assert_eq!(ended["ended"]["reason"], "start_failed", "{ended}");
}

#[test]
fn a_chat_that_is_not_used_ends() {
    let home = ChatHome::new(SCRIPT);
    home.configure("[chat]\nidle_minutes = 0.01\n");
    let server = home.serve();
    let chat = server.start_chat(&home, json!({}));
    let id = chat["id"].as_str().unwrap();
    let mut events = server.events(id);
    server.run_turn(&mut events, id, "quick");
    std::thread::sleep(Duration::from_millis(1500));
    // A page shows it.
    assert_eq!(server.get(&format!("/api/chats/{id}"))["state"], "idle");
    drop(events);
    let start = Instant::now();
    while server.get(&format!("/api/chats/{id}"))["ended"]["reason"] != "idle" {
        assert!(start.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(50));
    }
    wait_for_agents_to_end(&home);
}
