//! One question at a time.

use futures_util::{StreamExt as _, stream};
use quipu_sdk::{Block, Decision, Entry, Error, Options, Prompt, query_over, user};
use serde_json::{Value, json};

use crate::stage::{brisk, pair, result, said};

async fn kinds(query: quipu_sdk::Query) -> Vec<String> {
    query.map(|message| message.map_or_else(|error| error.code().to_owned(), |entry| entry.kind())).collect().await
}

#[tokio::test]
async fn a_query_ends_when_it_is_answered() {
    let (near, mut agent) = pair();
    let query = tokio::spawn(kinds(query_over(near, "What is it?", brisk())));
    agent.greet().await;
    let prompt = agent.hear().await.unwrap();
    assert_eq!(prompt["message"], json!({ "role": "user", "content": "What is it?" }));
    assert_eq!((prompt["session_id"].as_str(), &prompt["parent_tool_use_id"]), (Some(""), &Value::Null));
    agent.say(&said("It is this.")).await;
    agent.say(&result("It is this.")).await;
    assert_eq!(agent.hear().await, None, "the host has hung up");
    drop(agent);
    assert_eq!(query.await.unwrap(), ["assistant", "result/success"]);
}

#[tokio::test]
async fn the_way_back_stays_open_until_every_prompt_has_its_result() {
    let (near, mut agent) = pair();
    let prompts = Prompt::stream(stream::iter([user("one"), user(vec![Block::new_text("two")])]));
    let options = brisk().can_use_tool(|_, _| async { Decision::allow() });
    let query = tokio::spawn(kinds(query_over(near, prompts, options)));
    agent.greet().await;
    assert_eq!(agent.hear().await.unwrap()["message"]["content"], "one");
    agent.say(&result("one")).await;
    assert_eq!(agent.hear().await.unwrap()["message"]["content"], json!([{ "type": "text", "text": "two" }]));
    let call = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "1" });
    assert_eq!(agent.ask("q", call).await["response"]["behavior"], "allow");
    agent.say(&result("two")).await;
    assert_eq!(agent.hear().await, None);
    drop(agent);
    assert_eq!(query.await.unwrap(), ["result/success", "result/success"]);
}

#[tokio::test]
async fn prompts_that_were_taken_together_have_one_result() {
    let (near, mut agent) = pair();
    let prompts = Prompt::stream(stream::iter([user("one"), user("two")]));
    let query = tokio::spawn(kinds(query_over(near, prompts, brisk())));
    agent.greet().await;
    agent.hear().await.unwrap();
    agent.hear().await.unwrap();
    agent.say(&result("both")).await;
    agent.say(&json!({ "type": "system", "subtype": "session_state_changed", "state": "idle" })).await;
    assert_eq!(agent.hear().await, None);
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
    let (near, mut agent) = pair();
    let mut query = query_over(near, "hi", brisk());
    let host = tokio::spawn(async move {
        let first = query.next().await.unwrap().unwrap();
        assert!(matches!(first, Entry::Assistant(_)));
        let Some(Err(Error::Ended(_))) = query.next().await else { panic!("no error") };
        assert!(query.next().await.is_none());
    });
    agent.greet().await;
    agent.hear().await.unwrap();
    agent.say(&said("I begin")).await;
    drop(agent);
    host.await.unwrap();
}

#[tokio::test]
async fn prompts_may_be_taken_as_they_are() {
    let (near, mut agent) = pair();
    let query = tokio::spawn(kinds(query_over(near, "@/etc/passwd", brisk().verbatim_prompts())));
    agent.greet().await;
    assert_eq!(agent.hear().await.unwrap()["client_composed"], true);
    agent.say(&result("no")).await;
    drop(agent);
    query.await.unwrap();
}

#[tokio::test]
async fn a_message_comes_with_the_line_it_was_read_from() {
    // Half a surrogate pair, a number too large for any type, a key twice, odd spaces.
    let line = r#"{ "type":"assistant", "n":12345678901234567890123,"message":{"role":"assistant","content":[{"type":"text","text":"\ud83d"}]}, "x":1,"x":2 }"#;
    let (near, mut agent) = pair();
    let received = tokio::spawn(query_over(near, "Go", brisk()).received().collect::<Vec<_>>());
    agent.greet().await;
    agent.hear().await.unwrap();
    agent.write(format!("{line}\r\n").as_bytes()).await;
    agent.say(&result("Done.")).await;
    agent.hear().await;
    drop(agent);
    let received = received.await.unwrap();
    let first = received[0].as_ref().unwrap();
    assert_eq!((first.entry.kind().as_str(), first.line.as_str()), ("assistant", line));
    assert_eq!(received[1].as_ref().unwrap().line, result("Done.").to_string());
}
