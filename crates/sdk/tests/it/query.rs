//! One question at a time.

use futures_util::{StreamExt as _, stream};
use quipu_sdk::{Block, Decision, Entry, Error, Options, Prompt, query_over, user_message};
use serde_json::{Value, json};

use crate::scripted_agent::{assistant_line, result_line, scripted_agent, short_timeouts};

async fn kinds(query: quipu_sdk::Query) -> Vec<String> {
    query.map(|message| message.map_or_else(|error| error.code().to_owned(), |entry| entry.kind())).collect().await
}

#[tokio::test]
async fn a_query_ends_when_it_is_answered() {
    let (near, mut agent) = scripted_agent();
    let query = tokio::spawn(kinds(query_over(near, "What is it?", short_timeouts())));
    agent.initialize().await;
    let prompt = agent.receive().await.unwrap();
    assert_eq!(prompt["message"], json!({ "role": "user", "content": "What is it?" }));
    assert_eq!((prompt["session_id"].as_str(), &prompt["parent_tool_use_id"]), (Some(""), &Value::Null));
    agent.send(&assistant_line("It is this.")).await;
    agent.send(&result_line("It is this.")).await;
    assert_eq!(agent.receive().await, None, "the host has hung up");
    drop(agent);
    assert_eq!(query.await.unwrap(), ["assistant", "result/success"]);
}

#[tokio::test]
async fn stdin_stays_open_until_every_prompt_has_its_result() {
    let (near, mut agent) = scripted_agent();
    let prompts = Prompt::stream(stream::iter([user_message("one"), user_message(vec![Block::new_text("two")])]));
    let options = short_timeouts().can_use_tool(|_, _| async { Decision::allow() });
    let query = tokio::spawn(kinds(query_over(near, prompts, options)));
    agent.initialize().await;
    assert_eq!(agent.receive().await.unwrap()["message"]["content"], "one");
    agent.send(&result_line("one")).await;
    assert_eq!(agent.receive().await.unwrap()["message"]["content"], json!([{ "type": "text", "text": "two" }]));
    let call = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "1" });
    assert_eq!(agent.request("q", call).await["response"]["behavior"], "allow");
    agent.send(&result_line("two")).await;
    assert_eq!(agent.receive().await, None);
    drop(agent);
    assert_eq!(query.await.unwrap(), ["result/success", "result/success"]);
}

#[tokio::test]
async fn prompts_that_were_taken_together_have_one_result() {
    let (near, mut agent) = scripted_agent();
    let prompts = Prompt::stream(stream::iter([user_message("one"), user_message("two")]));
    let query = tokio::spawn(kinds(query_over(near, prompts, short_timeouts())));
    agent.initialize().await;
    agent.receive().await.unwrap();
    agent.receive().await.unwrap();
    agent.send(&result_line("both")).await;
    agent.send(&json!({ "type": "system", "subtype": "session_state_changed", "state": "idle" })).await;
    assert_eq!(agent.receive().await, None);
    drop(agent);
    assert_eq!(query.await.unwrap(), ["result/success", "system/session_state_changed"]);
}

#[tokio::test]
async fn a_query_that_cannot_begin_is_one_error() {
    let query = quipu_sdk::query("hi", Options::new().cli("/nowhere/agent"));
    assert_eq!(kinds(query).await, ["sdk.cannot_start"]);
    let query = quipu_sdk::query("hi", Options::new().resume("a").continue_latest());
    assert_eq!(kinds(query).await, ["sdk.options"]);
}

#[tokio::test]
async fn an_agent_that_dies_before_its_result_is_an_error_at_the_end() {
    let (near, mut agent) = scripted_agent();
    let mut query = query_over(near, "hi", short_timeouts());
    let host = tokio::spawn(async move {
        let first = query.next().await.unwrap().unwrap();
        assert!(matches!(first, Entry::Assistant(_)));
        let Some(Err(Error::Ended(_))) = query.next().await else { panic!("no error") };
        assert!(query.next().await.is_none());
    });
    agent.initialize().await;
    agent.receive().await.unwrap();
    agent.send(&assistant_line("I begin")).await;
    drop(agent);
    host.await.unwrap();
}

#[tokio::test]
async fn prompts_may_be_taken_as_they_are() {
    let (near, mut agent) = scripted_agent();
    let query = tokio::spawn(kinds(query_over(near, "@/etc/passwd", short_timeouts().verbatim_prompts())));
    agent.initialize().await;
    assert_eq!(agent.receive().await.unwrap()["client_composed"], true);
    agent.send(&result_line("no")).await;
    drop(agent);
    query.await.unwrap();
}

#[tokio::test]
async fn a_message_comes_with_the_line_it_was_read_from() {
    // Half a surrogate pair, a number too large for any type, a key twice, odd spaces.
    let line = r#"{ "type":"assistant", "n":12345678901234567890123,"message":{"role":"assistant","content":[{"type":"text","text":"\ud83d"}]}, "x":1,"x":2 }"#;
    let (near, mut agent) = scripted_agent();
    let received = tokio::spawn(query_over(near, "Go", short_timeouts()).received().collect::<Vec<_>>());
    agent.initialize().await;
    agent.receive().await.unwrap();
    agent.write(format!("{line}\r\n").as_bytes()).await;
    agent.send(&result_line("Done.")).await;
    agent.receive().await;
    drop(agent);
    let received = received.await.unwrap();
    let first = received[0].as_ref().unwrap();
    assert_eq!((first.entry.kind().as_str(), first.line.as_str()), ("assistant", line));
    assert_eq!(received[1].as_ref().unwrap().line, result_line("Done.").to_string());
}
