//! However a conversation ends, nothing of it is left running.

use std::time::Duration;

use quipu_sdk::transport::MemoryTransport;
use quipu_sdk::{Client, Entry, Error, Options};
use quipu_testkit::fake_agent;

use crate::scripted_agent::{connect_shell, connected, is_running, result_line, short_timeouts, wait_until};

/// A script whose first message has the pids of processes it has started.
const FAMILY: &str = r#"
    sleep 1000 & plain=$!
    setsid sleep 1000 & far=$!
    (trap '' TERM; sleep 1000; sleep 1000) & stubborn=$!
    echo "{\"type\":\"pids\",\"all\":\"$$ $plain $far $stubborn\"}"
"#;

async fn pids(client: &mut Client) -> Vec<String> {
    let Some(Entry::Unknown(line)) = client.next().await.unwrap() else { panic!("no pids") };
    line.json().to_value()["all"].as_str().unwrap().split(' ').map(str::to_owned).collect()
}

async fn all_gone(pids: &[String]) {
    for pid in pids {
        wait_until(&format!("{pid} of {pids:?} has ended"), || !is_running(pid)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_a_client_ends_its_process_tree() {
    for end in ["wait", "trap '' TERM; while :; do sleep 1; done"] {
        let mut client = connect_shell(&format!("{FAMILY}{end}"), short_timeouts()).await.unwrap();
        let pids = pids(&mut client).await;
        assert!(pids.iter().all(|pid| is_running(pid)), "{pids:?}");
        drop(client);
        all_gone(&pids).await;
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_runtime_that_ends_takes_the_process_tree_with_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (client, pids) = runtime.block_on(async {
        let mut client = connect_shell(&format!("{FAMILY}wait"), short_timeouts()).await.unwrap();
        let pids = pids(&mut client).await;
        (client, pids)
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    drop(client);
    tokio::runtime::Runtime::new().unwrap().block_on(all_gone(&pids));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_is_given_up_leaves_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let agent = crate::scripted_agent::shell_agent(&format!("echo $$ > {}; exec sleep 1000", file.display()));
    let connecting = Client::connect_over(agent, short_timeouts());
    let given_up = tokio::time::timeout(Duration::from_millis(300), connecting).await;
    assert!(given_up.is_err());
    let pid = std::fs::read_to_string(file).unwrap().trim().to_owned();
    all_gone(&[pid]).await;
}

#[tokio::test]
async fn closing_lets_the_agent_end_by_itself() {
    let client = connect_shell("while read -r line; do :; done; echo bye >&2; exit 7", short_timeouts()).await.unwrap();
    let exit = client.close().await.unwrap();
    assert_eq!((exit.code, exit.stderr.as_str()), (Some(7), "bye"));
}

#[tokio::test]
async fn an_agent_that_does_not_end_is_made_to() {
    let client = connect_shell("trap '' TERM; while :; do sleep 1; done", short_timeouts()).await.unwrap();
    let exit = client.close().await.unwrap();
    assert_eq!(exit.signal, Some(9));
}

#[tokio::test]
async fn a_handle_outlives_its_client_and_returns_closed() {
    let (client, agent) = connected(short_timeouts()).await;
    let handle = client.handle();
    drop(client);
    handle.wait_for_exit().await;
    assert_eq!(handle.send("hello").await.unwrap_err().code(), "sdk.closed");
    assert_eq!(handle.interrupt().await.unwrap_err().code(), "sdk.closed");
    drop(agent);
}

#[tokio::test]
async fn no_zombies_are_left() {
    for _ in 0..20 {
        let text = format!("read -r prompt; echo '{}'", result_line("done"));
        let mut client = connect_shell(&text, short_timeouts()).await.unwrap();
        client.send("hello").await.unwrap();
        client.read_result().await.unwrap();
    }
    let children = || {
        let me = format!(" {} ", std::process::id());
        let stats = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        stats.filter(|stat| stat.contains(&me) && stat.contains("(sh) Z")).count()
    };
    wait_until("every child was waited for", || children() == 0).await;
}

#[tokio::test]
async fn five_hundred_clients_in_one_process() {
    let recording = quipu_testkit::fixture("sdk/a_conversation_has_turns.1.jsonl");
    let steps = fake_agent::parse_steps(&std::fs::read_to_string(recording).unwrap());
    let conversations: Vec<_> = (0..500)
        .map(|_| {
            let (near, far) = MemoryTransport::pair(64 * 1024);
            let agent = tokio::spawn(fake_agent::play(steps.clone(), far));
            tokio::spawn(async move {
                let mut client = Client::connect_over(near, Options::new()).await?;
                for (prompt, answer) in [("go greet", "Good day."), ("go remember", "I remember.")] {
                    client.send(prompt).await?;
                    assert_eq!(client.read_result().await?.result.text(), Some(answer));
                }
                client.close().await?;
                Ok::<_, Error>(agent.await.unwrap().unwrap().differences)
            })
        })
        .collect();
    for conversation in conversations {
        assert_eq!(conversation.await.unwrap().unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_agent_that_reads_nothing_delays_neither_closing_nor_ending_the_input() {
    let client = connect_shell("exec sleep 1000", short_timeouts()).await.unwrap();
    let long = "x".repeat(64 * 1024);
    // More than the pipe and the queue before it can take.
    let sends = futures_util::future::join_all((0..100).map(|_| client.send(long.as_str()))).await;
    assert!(sends.iter().any(|sent| matches!(sent, Err(Error::Timeout { .. }))));
    client.handle().end_input();
    let exit = tokio::time::timeout(Duration::from_secs(20), client.close()).await.unwrap().unwrap();
    assert_eq!(exit.signal, Some(15));
}

#[tokio::test]
async fn after_the_end_of_input_messages_are_read_and_none_can_be_sent() {
    let (mut client, mut agent) = connected(short_timeouts()).await;
    client.send("hello").await.unwrap();
    client.handle().end_input();
    let at_once = Duration::from_secs(5);
    let refused = tokio::time::timeout(at_once, client.send("more")).await.unwrap();
    assert_eq!(refused.unwrap_err().code(), "sdk.closed");
    assert!(agent.receive().await.is_some(), "what was said before is written");
    assert_eq!(agent.receive().await, None);
    agent.send(&result_line("good bye")).await;
    drop(agent);
    assert_eq!(client.read_result().await.unwrap().result.text(), Some("good bye"));
    assert_eq!(client.next().await.unwrap(), None);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_agent_that_is_killed_is_missed_though_its_children_hold_its_pipes() {
    let text = "sleep 1000 & echo \"{\\\"type\\\":\\\"pids\\\",\\\"all\\\":\\\"$$ $!\\\"}\"; kill -9 $$";
    let mut client = connect_shell(text, short_timeouts()).await.unwrap();
    let pids = pids(&mut client).await;
    let missed = tokio::time::timeout(Duration::from_secs(20), client.next()).await.unwrap();
    let Err(Error::Ended(exit)) = missed else { panic!("no error") };
    assert_eq!(exit.signal, Some(9));
    all_gone(&pids).await;
}

#[tokio::test]
async fn processes_that_end_by_themselves_are_not_killed() {
    let text =
        "sleep 1000 >/dev/null 2>&1 & echo \"{\\\"type\\\":\\\"pids\\\",\\\"all\\\":\\\"$!\\\"}\"; read -r end; exit 0";
    let mut client = connect_shell(text, short_timeouts()).await.unwrap();
    let pids = pids(&mut client).await;
    assert!(client.close().await.unwrap().is_success());
    assert!(is_running(&pids[0]));
    std::process::Command::new("kill").arg(&pids[0]).status().unwrap();
}

#[test]
fn waiting_callers_get_an_error_if_the_runtime_ends() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut client, agent) = runtime.block_on(connected(short_timeouts()));
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        let at_once = Duration::from_secs(5);
        let sent = tokio::time::timeout(at_once, client.send("hello")).await.unwrap();
        assert_eq!(sent.unwrap_err().code(), "sdk.closed");
        let message = tokio::time::timeout(at_once, client.next()).await.unwrap();
        assert_eq!(message.unwrap_err().code(), "sdk.closed");
        assert_eq!(client.next().await.unwrap(), None);
        tokio::time::timeout(at_once, client.close()).await.unwrap().unwrap();
    });
    drop(agent);
}

#[tokio::test]
async fn nothing_of_the_callers_is_kept_after_the_end() {
    let kept = std::sync::Arc::new(());
    for closes in [true, false] {
        let (in_permission, in_hook, in_tool) = (kept.clone(), kept.clone(), kept.clone());
        let server = quipu_sdk::mcp::Server::new("desk").tool("look", "Looks.", move |_: serde_json::Value| {
            let _ = &in_tool;
            async { Ok::<_, String>("looked") }
        });
        let options = short_timeouts()
            .mcp_server(server)
            .hook(quipu_sdk::Hook::on_event("Stop", move |_, _| {
                let _ = &in_hook;
                async { Ok(quipu_sdk::Json::default()) }
            }))
            .can_use_tool(move |_, _| {
                let _ = &in_permission;
                async { quipu_sdk::Decision::allow() }
            });
        let (client, mut agent) = connected(options).await;
        let list = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let list = serde_json::json!({ "subtype": "mcp_message", "server_name": "desk", "message": list });
        agent.request("a", list).await;
        let call =
            serde_json::json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "1" });
        agent.request("b", call).await;
        let stop = serde_json::json!({ "subtype": "hook_callback", "callback_id": "hook_0", "input": {} });
        agent.request("c", stop).await;
        drop(agent);
        if closes {
            client.close().await.unwrap();
        }
    }
    wait_until("all is let go", || std::sync::Arc::strong_count(&kept) == 1).await;
}
