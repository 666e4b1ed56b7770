//! Callers that change their minds at every moment, and many at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use quipu_sdk::control::request;
use quipu_sdk::{Client, Decision, Entry, Options};
use serde_json::json;

use crate::scripted_agent::{assistant_line, connected, result_line, short_timeouts};

/// Options with which a busy machine has time.
fn patient() -> Options {
    short_timeouts().response_timeout(Duration::from_secs(60))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_given_up_at_any_moment_loses_nothing() {
    let (mut client, mut agent) = connected(patient().max_buffered_bytes(2000)).await;
    let speaking = tokio::spawn(async move {
        for n in 0..3000 {
            agent.send(&assistant_line(&n.to_string())).await;
        }
        agent.send(&result_line("done")).await;
    });
    let mut received = 0;
    loop {
        // Asked once and given up, unless it is there already.
        let message = match client.next().now_or_never() {
            Some(message) => message.unwrap(),
            None => tokio::select! {
                biased;
                () = tokio::task::yield_now() => continue,
                message = client.next() => message.unwrap(),
            },
        };
        match message {
            Some(Entry::Assistant(said)) => assert_eq!(said.message.content.to_text(), received.to_string()),
            Some(Entry::Result(_)) => break,
            other => panic!("{other:?}"),
        }
        received += 1;
    }
    assert_eq!(received, 3000);
    speaking.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_questions_at_once_have_each_its_own_answer() {
    let (client, mut agent) = connected(patient()).await;
    let handle = client.handle();
    let asking: Vec<_> = (0..10_000)
        .map(|n| {
            let handle = handle.clone();
            tokio::spawn(async move {
                let question = json!({ "subtype": "echo", "n": n });
                let response = handle.request_raw(&question);
                // Every third is given up on its way.
                if n % 3 == 0 {
                    let _ = tokio::time::timeout(Duration::from_micros(n), response).await;
                } else {
                    assert_eq!(response.await.unwrap().to_value()["n"], n);
                }
            })
        })
        .collect();
    let answering = tokio::spawn(async move {
        while let Some(question) = agent.receive().await {
            // Besides the response, one for an unknown request and a duplicate.
            let n = &question["request"]["n"];
            agent.respond(&json!({ "request_id": format!("nobody-{n}") }), json!({ "n": 0 })).await;
            agent.respond(&question, json!({ "n": n })).await;
            agent.respond(&question, json!({ "n": -1 })).await;
        }
    });
    for response in asking {
        response.await.unwrap();
    }
    drop(client);
    answering.await.unwrap();
}

#[tokio::test]
async fn a_client_may_be_dropped_or_used_inside_its_own_callback() {
    for closes in [true, false] {
        let slot: Arc<Mutex<Option<Client>>> = Arc::default();
        let taken = Arc::clone(&slot);
        let (done, mut is_done) = tokio::sync::mpsc::unbounded_channel();
        let options = short_timeouts().can_use_tool(move |_, context| {
            let client = taken.lock().unwrap().take();
            let done = done.clone();
            async move {
                let handle = context.handle.clone();
                // It outlives the callback, which is dropped with the conversation.
                tokio::spawn(async move {
                    match client {
                        Some(client) if closes => drop(client.close().await),
                        client => drop(client),
                    }
                    handle.wait_for_exit().await;
                    let _ = done
                        .send(handle.request(request::McpStatus::default()).await.map_err(|error| error.code()).err());
                });
                context.cancelled.cancelled().await;
                Decision::allow()
            }
        });
        let (client, mut agent) = connected(options).await;
        *slot.lock().unwrap() = Some(client);
        let call = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "1" });
        agent.send(&json!({ "type": "control_request", "request_id": "q", "request": call })).await;
        let told = tokio::time::timeout(Duration::from_secs(20), is_done.recv()).await.unwrap();
        assert_eq!(told, Some(Some("sdk.closed")));
        assert_eq!(agent.receive().await, None, "nothing is answered any more");
    }
}

#[tokio::test]
async fn options_serve_several_clients_at_once() {
    let server = quipu_sdk::mcp::Server::new("desk")
        .tool("look", "Looks.", |_: HashMap<String, String>| async { Ok::<_, String>("looked") });
    let options = patient().mcp_server(server).can_use_tool(|call, _| async move { Decision::deny(call.tool_name) });
    let (one, two) = tokio::join!(connected(options.clone()), connected(options));
    for (name, (_client, mut agent)) in [("One", one), ("Two", two)] {
        let call = json!({ "subtype": "can_use_tool", "tool_name": name, "input": {}, "tool_use_id": "1" });
        assert_eq!(agent.request("a", call).await["response"]["message"], name);
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let list = json!({ "subtype": "mcp_message", "server_name": "desk", "message": list });
        assert_eq!(agent.request("b", list).await["response"]["mcp_response"]["result"]["tools"][0]["name"], "look");
    }
}
