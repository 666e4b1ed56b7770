//! An agent that dies, floods, stalls or prints garbage: the caller gets a typed error, or the conversation
//! continues.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quipu_sdk::control::request;
use quipu_sdk::{BadLine, Client, Entry, Error, Options};
use serde_json::json;

use crate::scripted_agent::{
    assistant_line, connect_shell, connected, result_line, scripted_agent, shell_agent, short_timeouts, wait_until,
};

/// Options that remember bad lines.
fn noting(bad: &Arc<Mutex<Vec<BadLine>>>) -> Options {
    let bad = Arc::clone(bad);
    short_timeouts().on_bad_line(move |line| bad.lock().unwrap().push(line))
}

#[tokio::test]
async fn an_agent_that_dies_in_a_turn_ends_it_with_an_error_and_its_cause() {
    let mut client = connect_shell("read -r prompt; echo boom >&2; exit 3", short_timeouts()).await.unwrap();
    client.send("hello").await.unwrap();
    let Err(Error::Ended(exit)) = client.next().await else { panic!("no error") };
    assert_eq!((exit.code, exit.stderr.as_str()), (Some(3), "boom"));
    assert_eq!(client.next().await.unwrap(), None, "the error is told once");
    assert_eq!(client.send("more").await.unwrap_err().code(), "sdk.ended");
    assert_eq!(client.interrupt().await.unwrap_err().code(), "sdk.ended");
}

#[tokio::test]
async fn an_agent_that_is_killed_is_named_by_its_signal() {
    let mut client = connect_shell("read -r prompt; kill -9 $$", short_timeouts()).await.unwrap();
    client.send("hello").await.unwrap();
    let Err(Error::Ended(exit)) = client.next().await else { panic!("no error") };
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
}

#[tokio::test]
async fn a_program_that_is_no_agent_is_an_error_with_its_stderr() {
    let error = Client::connect_over(shell_agent("echo usage: sh >&2; exit 2"), short_timeouts()).await.unwrap_err();
    assert_eq!(error.to_string(), "the agent ended: exit code 2; on stderr: usage: sh");
    let missing = Client::connect(short_timeouts().cli("/nowhere/agent")).await.unwrap_err();
    assert_eq!(missing.code(), "sdk.cannot_start");
    let nowhere = Client::connect(short_timeouts().cli("/bin/sh").cwd("/nowhere")).await.unwrap_err();
    assert_eq!(nowhere.to_string(), "/nowhere is no folder to work in");
}

#[tokio::test]
async fn an_agent_that_never_answers_costs_no_more_than_the_timeout() {
    let (client, mut agent) = connected(short_timeouts()).await;
    let interrupted = client.interrupt().await;
    assert_eq!(interrupted.unwrap_err().code(), "sdk.timeout");
    let late = agent.receive().await.unwrap();
    // A late response is dropped.
    agent.respond(&late, json!({ "still_queued": [] })).await;
    let handle = client.handle();
    let (interrupted, ()) = tokio::join!(handle.mcp_status(), async {
        let question = agent.receive().await.unwrap();
        agent.respond(&question, json!({ "mcpServers": [] })).await;
    });
    assert!(interrupted.unwrap().servers.is_empty());
}

#[tokio::test]
async fn an_agent_that_stalls_at_the_start_is_given_up() {
    let (near, agent) = scripted_agent();
    let options = short_timeouts().start_timeout(Duration::from_millis(50));
    let error = Client::connect_over(near, options).await.unwrap_err();
    assert_eq!(error.to_string(), "initialize took longer than 50ms");
    drop(agent);
}

/// A way to an agent that leads nowhere.
struct Nowhere;

impl quipu_sdk::transport::Transport for Nowhere {
    fn connect(
        self: Box<Self>,
    ) -> futures_util::future::BoxFuture<'static, Result<quipu_sdk::transport::Connection, Error>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_transport_that_does_not_connect_is_given_up() {
    let options = short_timeouts().start_timeout(Duration::from_millis(50));
    let error = Client::connect_over(Nowhere, options).await.unwrap_err();
    assert_eq!(error.to_string(), "connecting took longer than 50ms");
}

#[tokio::test]
async fn an_agent_that_sends_requests_and_reads_nothing_costs_bounded_memory() {
    let unanswered = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&unanswered);
    let options = short_timeouts().on_bad_line(move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
    });
    let (mut client, mut agent) = connected(options).await;
    for n in 0..20_000 {
        let request = json!({ "subtype": "sing" });
        agent.send(&json!({ "type": "control_request", "request_id": format!("q{n}"), "request": request })).await;
    }
    agent.send(&assistant_line("still here")).await;
    assert!(matches!(client.next().await.unwrap(), Some(Entry::Assistant(_))));
    wait_until("the last are not answered", || unanswered.load(Ordering::SeqCst) > 0).await;
    // A later request is answered again.
    for _ in 0..10_000 {
        assert_eq!(agent.receive().await.unwrap()["response"]["subtype"], "error");
    }
    assert_eq!(agent.request("again", json!({ "subtype": "sing" })).await["subtype"], "error");
}

#[tokio::test]
async fn a_request_to_an_agent_that_reads_nothing_times_out() {
    let client = connect_shell("exec sleep 1000", short_timeouts()).await.unwrap();
    let long = "x".repeat(1 << 20);
    assert_eq!(client.send(long).await.unwrap_err().code(), "sdk.timeout");
}

#[tokio::test]
async fn answers_of_a_wrong_form_are_errors_and_two_answers_are_one() {
    let (client, mut agent) = connected(short_timeouts()).await;
    let agent_side = async {
        let first = agent.receive().await.unwrap();
        agent.respond(&first, json!({ "mode": 5 })).await;
        let second = agent.receive().await.unwrap();
        agent.respond(&second, json!({ "mode": "plan" })).await;
        agent.respond(&second, json!({ "mode": "default" })).await;
        let third = agent.receive().await.unwrap();
        let body =
            json!({ "subtype": "error", "request_id": third["request_id"], "error": "no", "error_code": "never" });
        agent.send(&json!({ "type": "control_response", "response": body })).await;
        let fourth = agent.receive().await.unwrap();
        let body = json!({ "subtype": "perhaps", "request_id": fourth["request_id"] });
        agent.send(&json!({ "type": "control_response", "response": body })).await;
    };
    let host_side = async {
        let Err(Error::BadResponse { request, response, .. }) = client.handle().set_permission_mode("plan").await
        else {
            panic!()
        };
        assert_eq!((request.as_str(), response.text()), ("set_permission_mode", r#"{"mode":5}"#));
        assert_eq!(client.handle().set_permission_mode("plan").await.unwrap().mode, "plan");
        let Err(Error::Refused { error, code, .. }) = client.handle().set_model(None).await else { panic!() };
        assert_eq!((error.as_str(), code.as_deref()), ("no", Some("never")));
        let Err(Error::BadResponse { response, .. }) = client.interrupt().await else { panic!() };
        assert_eq!(response.to_value()["subtype"], "perhaps");
    };
    tokio::join!(agent_side, host_side);
}

#[tokio::test]
async fn invalid_partial_and_foreign_lines_are_reported_and_skipped() {
    let bad = Arc::default();
    let (mut client, mut agent) = connected(noting(&bad)).await;
    agent.write(b"Warning: something\n\xff\xfe\n{\"type\":\"assistant\"}\n[1,2]\n\n").await;
    agent.send(&json!({ "type": "weather", "is": "fine" })).await;
    agent.write(b"{\"type\":\"us").await;
    drop(agent);
    let Some(Entry::Unknown(unknown)) = client.next().await.unwrap() else { panic!("not passed on") };
    assert_eq!((unknown.tag(), unknown.json().text()), ("weather", r#"{"type":"weather","is":"fine"}"#));
    assert_eq!(client.next().await.unwrap(), None);
    let reasons: Vec<String> = bad.lock().unwrap().iter().map(|line| line.reason.clone()).collect();
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    assert!(reasons[0].starts_with("not JSON") && reasons[1] == "not UTF-8", "{reasons:?}");
    assert!(reasons[2].contains("malformed") && reasons[4] == "broken off", "{reasons:?}");
}

#[tokio::test]
async fn a_long_line_is_read_and_one_that_is_too_long_is_passed_over() {
    let bad = Arc::default();
    let (mut client, mut agent) = connected(noting(&bad).max_line_bytes(60 << 20)).await;
    let speak = tokio::spawn(async move {
        agent.send(&assistant_line(&"x".repeat(50 << 20))).await;
        agent.send(&assistant_line(&"y".repeat(61 << 20))).await;
        agent.send(&assistant_line("after")).await;
    });
    let Some(Entry::Assistant(long)) = client.next().await.unwrap() else { panic!() };
    assert_eq!(long.message.content.to_text().len(), 50 << 20);
    let Some(Entry::Assistant(after)) = client.next().await.unwrap() else { panic!() };
    assert_eq!(after.message.content.to_text(), "after");
    assert_eq!(bad.lock().unwrap()[0].reason, "longer than the limit");
    speak.await.unwrap();
}

#[tokio::test]
async fn a_flood_of_messages_waits_for_its_reader() {
    let (mut client, mut agent) = connected(short_timeouts().max_buffered_bytes(1 << 20)).await;
    let written = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&written);
    let flood = tokio::spawn(async move {
        let line = format!("{}\n", assistant_line(&"x".repeat(10_000)));
        for _ in 0..10_000 {
            agent.write(line.as_bytes()).await;
            counted.fetch_add(line.len(), Ordering::SeqCst);
        }
    });
    // No task reads: what is on its way is the mailbox, the pipe, and what is being read.
    let mut last = usize::MAX;
    wait_until("the flood has come to a halt", || {
        let now = written.load(Ordering::SeqCst);
        now > 0 && std::mem::replace(&mut last, now) == now
    })
    .await;
    let halted = written.load(Ordering::SeqCst);
    assert!((1 << 19..2 << 20).contains(&halted), "{halted}");
    let mut received = 0;
    while client.next().await.unwrap().is_some() {
        received += 1;
    }
    assert_eq!(received, 10_000);
    flood.await.unwrap();
}

#[tokio::test]
async fn a_control_request_is_answered_behind_unread_messages() {
    let (mut client, mut agent) = connected(short_timeouts().max_buffered_bytes(100_000)).await;
    let speak = tokio::spawn(async move {
        let line = assistant_line(&"x".repeat(10_000));
        for _ in 0..40 {
            agent.send(&line).await;
        }
        let question = agent.receive().await.unwrap();
        agent.respond(&question, json!({ "still_queued": [] })).await;
    });
    client.interrupt().await.unwrap();
    speak.await.unwrap();
    for _ in 0..40 {
        assert!(client.next().await.unwrap().is_some());
    }
    assert_eq!(client.next().await.unwrap(), None);
}

#[tokio::test]
async fn unknown_and_unreadable_questions_of_an_agent_are_answered_with_errors() {
    let (client, mut agent) = connected(short_timeouts()).await;
    let unknown = agent.request("a", json!({ "subtype": "sing" })).await;
    assert_eq!(
        (unknown["subtype"].as_str(), unknown["error_code"].as_str()),
        (Some("error"), Some("unsupported_request"))
    );
    let unreadable = agent.request("b", json!({ "subtype": "can_use_tool" })).await;
    assert_eq!(unreadable["subtype"], "error");
    let hook = agent.request("c", json!({ "subtype": "hook_callback", "callback_id": "none", "input": {} })).await;
    assert_eq!(hook["error"], "no hook has the callback ID none");
    let server = agent.request("d", json!({ "subtype": "mcp_message", "server_name": "none", "message": {} })).await;
    assert_eq!(server["error"], "no MCP server is named none");
    drop(client);
}

#[tokio::test]
async fn an_error_message_ends_the_conversation_with_a_typed_error() {
    let (mut client, mut agent) = connected(short_timeouts()).await;
    agent.send(&json!({ "type": "error", "error": { "message": "out of paper" } })).await;
    let Err(Error::Agent(line)) = client.next().await else { panic!("no error") };
    assert!(line.error.is_value());
    assert_eq!(Error::Agent(line).to_string(), "the agent failed: out of paper");
    assert_eq!(client.next().await.unwrap(), None);
    assert_eq!(client.handle().request(request::McpStatus::default()).await.unwrap_err().code(), "sdk.agent");
}

#[tokio::test]
async fn a_result_with_an_exit_code_is_no_error() {
    let text = format!("read -r prompt; echo '{}'; exit 1", result_line("failed as it should"));
    let mut client = connect_shell(&text, short_timeouts()).await.unwrap();
    client.send("hello").await.unwrap();
    assert!(matches!(client.next().await.unwrap(), Some(Entry::Result(_))));
    assert_eq!(client.next().await.unwrap(), None);
}

#[tokio::test]
async fn an_agent_that_closes_its_side_and_lives_on_is_ended() {
    let mut client = connect_shell("exec >&-; exec sleep 1000", short_timeouts()).await.unwrap();
    assert_eq!(client.next().await.map_err(|error| error.code()), Err("sdk.ended"));
}

#[tokio::test]
async fn an_old_agent_is_refused_unless_any_will_do() {
    for (options, fine) in [(short_timeouts(), false), (short_timeouts().skip_version_check(), true)] {
        let (near, mut agent) = scripted_agent();
        let greet = async {
            let hello = agent.receive().await.unwrap();
            agent.respond(&hello, json!({ "commands": [], "claude_code_version": "1.0.51" })).await;
        };
        let (client, ()) = tokio::join!(Client::connect_over(near, options), greet);
        assert_eq!(client.is_ok(), fine);
    }
}

#[tokio::test]
async fn a_program_is_named_from_here_and_works_elsewhere() {
    let here = tempfile::tempdir_in(".").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let program = here.path().join("agent");
    std::fs::write(&program, format!("#!/bin/sh\n{}; pwd >&2; exit 4\n", crate::scripted_agent::INITIALIZE_SCRIPT))
        .unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = Path::new(".").join(here.path().file_name().unwrap()).join("agent");
    let mut client = Client::connect(short_timeouts().cli(program).cwd(elsewhere.path())).await.unwrap();
    let Err(Error::Ended(exit)) = client.next().await else { panic!("no error") };
    assert_eq!(Path::new(&exit.stderr).canonicalize().unwrap(), elsewhere.path().canonicalize().unwrap());
}

#[tokio::test]
async fn an_agent_that_ends_in_the_second_of_two_turns_has_ended_early() {
    let (mut client, mut agent) = connected(short_timeouts()).await;
    client.send("one").await.unwrap();
    client.send("two").await.unwrap();
    agent.send(&result_line("one")).await;
    agent.send(&assistant_line("I begin the second")).await;
    drop(agent);
    client.read_result().await.unwrap();
    client.next().await.unwrap();
    assert_eq!(client.next().await.unwrap_err().code(), "sdk.ended");
}

#[tokio::test]
async fn a_turn_may_be_left_at_its_result() {
    let (mut client, mut agent) = connected(short_timeouts()).await;
    let mut agent_side = async |answer: &str| {
        agent.receive().await.unwrap();
        agent.send(&result_line(answer)).await;
    };
    for answer in ["one", "two"] {
        client.send("next").await.unwrap();
        agent_side(answer).await;
        let Some(Entry::Result(result)) = client.next_in_turn().await.unwrap() else { panic!("no result") };
        assert_eq!(result.result.text(), Some(answer));
    }
    assert_eq!(client.next_in_turn().await.unwrap(), None);
    // What others say is another turn, and does not hide the end of this one.
    client.send("next").await.unwrap();
    agent_side("three").await;
    assert!(client.next_in_turn().await.unwrap().is_some());
    client.handle().send("next").await.unwrap();
    agent_side("four").await;
    assert_eq!(client.next_in_turn().await.unwrap(), None);
    assert!(client.next_in_turn().await.unwrap().is_some());
    // Nor does it stay when the turn is read to its end in another way.
    client.send("next").await.unwrap();
    agent_side("five").await;
    client.read_result().await.unwrap();
    client.handle().send("next").await.unwrap();
    agent_side("six").await;
    assert!(client.next_in_turn().await.unwrap().is_some());
}
