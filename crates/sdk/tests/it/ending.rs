//! However a conversation ends, nothing of it is left running.

use std::time::Duration;

use quipu_sdk::transport::Memory;
use quipu_sdk::{Client, Entry, Error, Options};
use quipu_testkit::fake;

use crate::stage::{brisk, greeted, result, runs, shell, until};

/// A script that tells the numbers of some processes it has started, in its first message.
const FAMILY: &str = r#"
    sleep 1000 & plain=$!
    setsid sleep 1000 & far=$!
    (trap '' TERM; sleep 1000; sleep 1000) & stubborn=$!
    echo "{\"type\":\"pids\",\"all\":\"$$ $plain $far $stubborn\"}"
"#;

async fn pids(client: &mut Client) -> Vec<String> {
    let Some(Entry::Unknown(line)) = client.next().await.unwrap() else { panic!("no pids") };
    line.json().value()["all"].as_str().unwrap().split(' ').map(str::to_owned).collect()
}

async fn all_gone(pids: &[String]) {
    for pid in pids {
        until(&format!("{pid} of {pids:?} has ended"), || !runs(pid)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_a_client_ends_its_process_tree() {
    for end in ["wait", "trap '' TERM; while :; do sleep 1; done"] {
        let mut client = shell(&format!("{FAMILY}{end}"), brisk()).await.unwrap();
        let pids = pids(&mut client).await;
        assert!(pids.iter().all(|pid| runs(pid)), "{pids:?}");
        drop(client);
        all_gone(&pids).await;
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_runtime_that_ends_takes_the_process_tree_with_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (client, pids) = runtime.block_on(async {
        let mut client = shell(&format!("{FAMILY}wait"), brisk()).await.unwrap();
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
    let agent = crate::stage::script(&format!("echo $$ > {}; exec sleep 1000", file.display()));
    let connecting = Client::connect_over(agent, brisk());
    let given_up = tokio::time::timeout(Duration::from_millis(300), connecting).await;
    assert!(given_up.is_err());
    let pid = std::fs::read_to_string(file).unwrap().trim().to_owned();
    all_gone(&[pid]).await;
}

#[tokio::test]
async fn closing_lets_the_agent_end_by_itself() {
    let client = shell("while read -r line; do :; done; echo bye >&2; exit 7", brisk()).await.unwrap();
    let exit = client.close().await.unwrap();
    assert_eq!((exit.code, exit.stderr.as_str()), (Some(7), "bye"));
}

#[tokio::test]
async fn an_agent_that_does_not_end_is_made_to() {
    let client = shell("trap '' TERM; while :; do sleep 1; done", brisk()).await.unwrap();
    let exit = client.close().await.unwrap();
    assert_eq!(exit.signal, Some(9));
}

#[tokio::test]
async fn a_handle_outlives_its_client_and_says_that_it_is_closed() {
    let (client, agent) = greeted(brisk()).await;
    let handle = client.handle();
    drop(client);
    handle.ended().await;
    assert_eq!(handle.send("hello").await.unwrap_err().code(), "sdk.closed");
    assert_eq!(handle.interrupt().await.unwrap_err().code(), "sdk.closed");
    drop(agent);
}

#[tokio::test]
async fn no_zombies_are_left() {
    for _ in 0..20 {
        let text = format!("read -r prompt; echo '{}'", result("done"));
        let mut client = shell(&text, brisk()).await.unwrap();
        client.send("hello").await.unwrap();
        client.result().await.unwrap();
    }
    let children = || {
        let me = format!(" {} ", std::process::id());
        let stats = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        stats.filter(|stat| stat.contains(&me) && stat.contains("(sh) Z")).count()
    };
    until("every child was waited for", || children() == 0).await;
}

#[tokio::test]
async fn five_hundred_clients_in_one_process() {
    let recording = quipu_testkit::fixture("sdk/a_conversation_has_turns.1.jsonl");
    let steps = fake::steps(&std::fs::read_to_string(recording).unwrap());
    let talks: Vec<_> = (0..500)
        .map(|_| {
            let (near, far) = Memory::pair(64 * 1024);
            let agent = tokio::spawn(fake::play(steps.clone(), far));
            tokio::spawn(async move {
                let mut client = Client::connect_over(near, Options::new()).await?;
                for (prompt, answer) in [("go greet", "Good day."), ("go remember", "I remember.")] {
                    client.send(prompt).await?;
                    assert_eq!(client.result().await?.result.text(), Some(answer));
                }
                client.close().await?;
                Ok::<_, Error>(agent.await.unwrap().unwrap().differences)
            })
        })
        .collect();
    for talk in talks {
        assert_eq!(talk.await.unwrap().unwrap(), Vec::<String>::new());
    }
}
