//! What an agent asks its host, and what the host's closures may do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quipu_sdk::hook::{HookOutput, PreToolUse, PreToolUseOutput, Stop};
use quipu_sdk::{Decision, Hook, mcp};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::scripted_agent::{assistant_line, connected, scripted_agent, short_timeouts};

fn permission_request(tool: &str, id: &str) -> Value {
    json!({ "subtype": "can_use_tool", "tool_name": tool, "input": { "command": "ls" }, "tool_use_id": id })
}

#[tokio::test]
async fn decisions_travel_as_the_agent_reads_them() {
    let options = short_timeouts().can_use_tool(|call, _| async move {
        match call.tool_name.as_str() {
            "Bash" => Decision::allow(),
            "Edit" => Decision::allow_with(&json!({ "path": "other" })),
            "Read" => Decision::allow_and_remember(call.suggestions()),
            "Write" => Decision::deny("not here"),
            _ => Decision::interrupt("stop it"),
        }
    });
    let (_client, mut agent) = connected(options).await;
    let mut check = async |request: Value, expect: Value| {
        assert_eq!(agent.request("q", request).await["response"], expect);
    };
    check(permission_request("Bash", "1"), json!({ "behavior": "allow", "updatedInput": { "command": "ls" } })).await;
    check(permission_request("Edit", "2"), json!({ "behavior": "allow", "updatedInput": { "path": "other" } })).await;
    check(permission_request("Write", "3"), json!({ "behavior": "deny", "message": "not here" })).await;
    check(permission_request("Other", "4"), json!({ "behavior": "deny", "message": "stop it", "interrupt": true }))
        .await;
    let rules = json!([{ "type": "addRules", "rules": [{ "toolName": "Read" }], "behavior": "allow", "destination": "session" }]);
    let mut read = permission_request("Read", "5");
    read["permission_suggestions"] = rules.clone();
    check(read, json!({ "behavior": "allow", "updatedInput": { "command": "ls" }, "updatedPermissions": rules })).await;
}

#[tokio::test]
async fn several_questions_are_open_at_once_and_messages_come_meanwhile() {
    let gate = Arc::new(Semaphore::new(0));
    let waits = Arc::clone(&gate);
    let options = short_timeouts().can_use_tool(move |_, _| {
        let waits = Arc::clone(&waits);
        async move {
            waits.acquire().await.unwrap().forget();
            Decision::allow()
        }
    });
    let (mut client, mut agent) = connected(options).await;
    for n in 0..50 {
        let id = format!("q{n}");
        agent
            .send(&json!({ "type": "control_request", "request_id": id, "request": permission_request("Bash", &id) }))
            .await;
    }
    agent.send(&assistant_line("still talking")).await;
    assert!(client.next().await.unwrap().is_some(), "a question must not hold up the messages behind it");
    gate.add_permits(50);
    let mut answered = std::collections::BTreeSet::new();
    while answered.len() < 50 {
        answered.insert(agent.receive().await.unwrap()["response"]["request_id"].to_string());
    }
}

#[tokio::test]
async fn a_callback_that_panics_costs_its_own_answer_alone() {
    let options = short_timeouts()
        .can_use_tool(|call, _| async move {
            assert_ne!(call.tool_name, "Bash", "not this one");
            Decision::allow()
        })
        .hook(Hook::on(|_: Stop, _| async { panic!("a hook") }))
        .on_bad_line(|_| panic!("a listener"));
    let (mut client, mut agent) = connected(options).await;
    assert_eq!(agent.request("a", permission_request("Bash", "1")).await["error"], "the callback panicked");
    let stop = json!({ "hook_event_name": "Stop", "session_id": "s", "transcript_path": "t", "cwd": "/", "stop_hook_active": false });
    let due = json!({ "subtype": "hook_callback", "callback_id": "hook_0", "input": stop });
    assert_eq!(agent.request("b", due).await["error"], "the callback panicked");
    agent.write(b"nonsense\n").await;
    assert_eq!(agent.request("c", permission_request("Read", "2")).await["response"]["behavior"], "allow");
    agent.send(&assistant_line("alive")).await;
    assert!(client.next().await.unwrap().is_some());
}

#[tokio::test]
async fn a_question_that_is_withdrawn_is_not_answered() {
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Guard(Arc<AtomicUsize>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let counts = Arc::clone(&dropped);
    let started = Arc::new(Semaphore::new(0));
    let begins = Arc::clone(&started);
    let options = short_timeouts().can_use_tool(move |call, context| {
        let (counts, begins) = (Arc::clone(&counts), Arc::clone(&begins));
        async move {
            if call.tool_name == "Read" {
                return Decision::allow();
            }
            let _guard = Guard(counts);
            begins.add_permits(1);
            context.cancelled.cancelled().await;
            std::future::pending().await
        }
    });
    let (_client, mut agent) = connected(options).await;
    agent
        .send(&json!({ "type": "control_request", "request_id": "gone", "request": permission_request("Bash", "1") }))
        .await;
    started.acquire().await.unwrap().forget();
    agent.send(&json!({ "type": "control_cancel_request", "request_id": "gone" })).await;
    agent
        .send(&json!({ "type": "control_request", "request_id": "here", "request": permission_request("Read", "2") }))
        .await;
    assert_eq!(agent.receive().await.unwrap()["response"]["request_id"], "here");
    crate::scripted_agent::wait_until("the callback is dropped", || dropped.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn late_is_no() {
    let slow = Hook::on_event("Stop", |_, _| std::future::pending()).timeout(Duration::from_millis(20));
    let options = short_timeouts()
        .can_use_tool(|_, _| std::future::pending::<Decision>())
        .permission_timeout(Duration::from_millis(20))
        .hook(slow);
    let (near, mut agent) = scripted_agent();
    let connecting = tokio::spawn(quipu_sdk::Client::connect_over(near, options));
    let hello = agent.receive().await.unwrap();
    let hooks = json!({ "Stop": [{ "matcher": null, "hookCallbackIds": ["hook_0"], "timeout": 0.02 }] });
    assert_eq!(hello["request"]["hooks"], hooks);
    agent.respond(&hello, json!({ "commands": [] })).await;
    let _client = connecting.await.unwrap().unwrap();
    let refused = agent.request("a", permission_request("Bash", "1")).await;
    assert_eq!(refused["response"]["behavior"], "deny");
    let due = json!({ "subtype": "hook_callback", "callback_id": "hook_0", "input": {} });
    assert_eq!(agent.request("b", due).await["error"], "the hook timed out");
}

#[tokio::test]
async fn without_a_callback_a_permission_request_is_an_error() {
    let (_client, mut agent) = connected(short_timeouts()).await;
    assert_eq!(agent.request("a", permission_request("Bash", "1")).await["subtype"], "error");
}

#[tokio::test]
async fn hooks_get_the_event_and_may_change_it() {
    let options = short_timeouts()
        .hook(
            Hook::on(|call: PreToolUse, _| async move {
                match call.tool_name.as_str() {
                    "Bash" => PreToolUseOutput::deny("policy"),
                    _ => HookOutput::empty(),
                }
            })
            .matching("Bash|Read"),
        )
        .hook(Hook::on(|_: Stop, context: quipu_sdk::CallbackContext| async move {
            // A hook may send a control request to the agent.
            let mode = context.handle.set_permission_mode("plan").await;
            HookOutput::empty()
                .with_system_message(mode.map_or_else(|error| error.to_string(), |set| set.mode.to_string()))
        }));
    let (_client, mut agent) = connected(options).await;
    let base = json!({ "session_id": "s", "transcript_path": "t", "cwd": "/" });
    let due = |id: &str, more: Value| {
        let mut input = base.clone();
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "subtype": "hook_callback", "callback_id": id, "input": input })
    };
    let call = |tool: &str| json!({ "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {}, "tool_use_id": "1" });
    let denied = agent.request("a", due("hook_0", call("Bash"))).await["response"].clone();
    assert_eq!(
        denied["hookSpecificOutput"],
        json!({ "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "policy" })
    );
    assert_eq!(agent.request("b", due("hook_0", call("Read"))).await["response"], json!({}));
    let stop = due("hook_1", json!({ "hook_event_name": "Stop", "stop_hook_active": false }));
    agent.send(&json!({ "type": "control_request", "request_id": "c", "request": stop })).await;
    let question = agent.receive().await.unwrap();
    assert_eq!(question["request"]["subtype"], "set_permission_mode");
    agent.respond(&question, json!({ "mode": "plan" })).await;
    assert_eq!(agent.receive().await.unwrap()["response"]["response"], json!({ "systemMessage": "plan" }));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wait {
    /// How many others there are.
    others: u32,
}

#[tokio::test]
async fn mcp_tools_run_beside_each_other_and_may_fail() {
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let server = mcp::Server::new("desk")
        .tool("meet", "Waits for the others.", move |wait: Wait| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                Ok::<_, String>(format!("met {}", wait.others))
            }
        })
        .tool("fall", "Falls.", |_: Wait| async { panic!("fell") as Result<String, String> })
        .tool("stumble", "Falls before it begins.", |wait: Wait| {
            assert_ne!(wait.others, 0, "stumbled");
            async { Ok::<_, String>("went") }
        });
    let (_client, mut agent) = connected(short_timeouts().mcp_server(server)).await;
    let call = |id: u32, tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        json!({ "subtype": "mcp_message", "server_name": "desk", "message": message })
    };
    // The server was not initialized: the host does so itself.
    for id in 1..=3 {
        let request = call(id, "meet", json!({ "others": 2 }));
        agent.send(&json!({ "type": "control_request", "request_id": format!("m{id}"), "request": request })).await;
    }
    for _ in 0..3 {
        let answer = agent.receive().await.unwrap();
        let result = &answer["response"]["response"]["mcp_response"]["result"];
        assert_eq!(result["content"][0]["text"], "met 2", "{answer}");
    }
    for tool in ["fall", "stumble"] {
        let fell = agent.request(tool, call(4, tool, json!({ "others": 0 }))).await;
        let result = &fell["response"]["mcp_response"]["result"];
        assert_eq!(
            (result["isError"].as_bool(), result["content"][0]["text"].as_str()),
            (Some(true), Some("the tool panicked"))
        );
    }
    let wrong = agent.request("w", call(5, "meet", json!({ "others": "two" }))).await;
    assert_eq!(wrong["response"]["mcp_response"]["result"]["isError"], true);
    let missing = agent.request("n", call(6, "sing", json!({}))).await;
    assert!(missing["response"]["mcp_response"]["error"]["message"].as_str().unwrap().contains("sing"), "{missing}");
}

#[tokio::test]
async fn a_tool_call_that_is_withdrawn_is_dropped_either_way() {
    struct Guard(Arc<Semaphore>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.add_permits(1);
        }
    }
    let (begun, dropped) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begins, drops) = (Arc::clone(&begun), Arc::clone(&dropped));
    let server = mcp::Server::new("desk").tool("wait", "Waits.", move |_: Wait| {
        let (begins, guard) = (Arc::clone(&begins), Guard(Arc::clone(&drops)));
        async move {
            let _guard = guard;
            begins.add_permits(1);
            std::future::pending::<Result<String, String>>().await
        }
    });
    let (client, mut agent) = connected(short_timeouts().mcp_server(server)).await;
    let message = |message: Value| json!({ "subtype": "mcp_message", "server_name": "desk", "message": message });
    let call = |id: u32| {
        let params = json!({ "name": "wait", "arguments": { "others": 1 } });
        message(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
    };
    let request = |id: &str, request: Value| json!({ "type": "control_request", "request_id": id, "request": request });
    // Withdrawn as MCP does it: the call has an answer.
    agent.send(&request("a", call(1))).await;
    begun.acquire().await.unwrap().forget();
    let params = json!({ "requestId": 1 });
    let cancel = message(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    agent.send(&request("b", cancel)).await;
    let answers = [agent.receive().await.unwrap(), agent.receive().await.unwrap()];
    let of_call = answers.iter().find(|answer| answer["response"]["request_id"] == "a").unwrap();
    assert_eq!(of_call["response"]["response"]["mcp_response"]["error"]["code"], -32800, "{of_call}");
    dropped.acquire().await.unwrap().forget();
    // Withdrawn as the control protocol does it: no response is wanted.
    agent.send(&request("c", call(2))).await;
    begun.acquire().await.unwrap().forget();
    agent.send(&json!({ "type": "control_cancel_request", "request_id": "c" })).await;
    dropped.acquire().await.unwrap().forget();
    // And at the end of the conversation.
    agent.send(&request("d", call(3))).await;
    begun.acquire().await.unwrap().forget();
    drop(client);
    dropped.acquire().await.unwrap().forget();
}
