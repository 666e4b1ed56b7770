//! The examples of docs/answer.md do what the page says.

use std::fs;

use quipu_api::Request;
use quipu_message::api::Tool;
use quipu_message::{Block, Content, Json, Message, Role, ToolUse};

use crate::{event_lines, event_outline, start_server, user_request};

/// The examples of the page in their order, `console` ones apart.
fn examples() -> Vec<String> {
    let page = fs::read_to_string(quipu_testkit::repository_root().join("docs/answer.md")).unwrap();
    let fences = page.split("\n```").skip(1).step_by(2);
    fences
        .filter_map(|fence| fence.strip_prefix("yaml\n").or(fence.strip_prefix("json\n")))
        .map(str::to_owned)
        .collect()
}

fn example(words: &str) -> String {
    let mut fitting = examples().into_iter().filter(|example| example.contains(words));
    let found = fitting.next().unwrap_or_else(|| panic!("no example with {words:?}"));
    assert_eq!(fitting.next(), None, "{words:?} is in several examples");
    found
}

fn with_tool(said: &str) -> Request {
    Request { tools: vec![Tool { name: "Read".into(), ..Tool::default() }], ..user_request(said) }
}

#[test]
fn there_are_as_many_examples_as_are_tested() {
    assert_eq!(examples().len(), 9);
}

#[tokio::test]
async fn the_shortest_script_answers_everything() {
    let setup = start_server(&examples()[0]).await;
    assert_eq!(event_outline(&setup.client, &user_request("anything")).await, ["done \"Hello.\""]);
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_answered() {
    let setup = start_server(&example("The file must be read first")).await;
    let mut request = with_tool("what is in notes.txt?");
    let lines = event_lines(&setup.client, &request).await;
    let blocks: Vec<&str> = lines.iter().map(String::as_str).filter(|line| line.starts_with("block")).collect();
    assert_eq!(blocks, ["block 0 thinking", "block 1 text", "block 2 tool_use"]);
    let call =
        ToolUse { id: "toolu_1".into(), name: "Read".into(), input: Json::parse("{}").unwrap(), ..ToolUse::default() };
    let result = Block::new_tool_result("toolu_1".into(), "words".into(), false);
    request.messages.push(Message::new(Role::Assistant, Content::Blocks(vec![Block::ToolUse(Box::new(call))])));
    request.messages.push(Message::new(Role::User, Content::Blocks(vec![result])));
    assert_eq!(event_outline(&setup.client, &request).await, ["done \"The file says what you think it says.\""]);
}

#[tokio::test]
async fn conditions_distinguish_requests() {
    let setup = start_server(&example("A title for the conversation")).await;
    assert_eq!(event_outline(&setup.client, &user_request("hi")).await, ["done \"A title for the conversation\""]);
    let subagent = Request { agent_id: Some("a1".into()), ..with_tool("hi") };
    assert_eq!(event_outline(&setup.client, &subagent).await, ["done \"The subagent's report.\""]);
    let mut second = with_tool("one");
    second.messages.push(Message::new(Role::Assistant, "two"));
    second.messages.push(Message::new(Role::User, "three"));
    assert_eq!(event_outline(&setup.client, &second).await, ["done \"That was your second question.\""]);
    let hello = Request { model: "claude-opus-5-5".to_owned(), ..with_tool("hello there") };
    assert_eq!(event_outline(&setup.client, &hello).await, ["done \"Good day.\""]);
}

#[tokio::test]
async fn answers_break_off_fail_and_come_in_one_piece() {
    let setup = start_server(&example("This sentence breaks off.")).await;
    let lines = event_outline(&setup.client, &user_request("go")).await;
    assert_eq!(
        lines,
        ["withdrawn", "retry 1/10 562 ms null unknown", "withdrawn", "done \"This one comes in one piece.\""]
    );
}

#[tokio::test]
async fn stop_reasons_are_as_written() {
    let setup = start_server(&example("Once upon a")).await;
    let cases = [("an essay", "max_tokens", 1), ("poison", "refusal", 0), ("files", "tool_use", 2)];
    for (said, stop, blocks) in cases {
        let message = setup.client.call(&user_request(said)).response().await.unwrap().message;
        assert_eq!((message.stop_reason.text(), message.content.blocks().len()), (Some(stop), blocks), "{said}");
    }
}

#[tokio::test]
async fn errors_come_in_their_order() {
    let setup = start_server(&example("Bad gateway")).await;
    let lines = event_outline(&setup.client, &user_request("go")).await;
    assert_eq!(
        lines,
        [
            "retry 1/10 1000 ms 429 rate_limit",
            "retry 2/10 1125 ms 529 overloaded",
            "error api.status: 400 messages.0: bad thing"
        ]
    );
    let lines = event_outline(&setup.client, &user_request("go")).await;
    assert_eq!(lines, ["retry 1/10 562 ms 502 server_error", "done \"recovered\""]);
}

#[tokio::test]
async fn sizes_are_counted() {
    let setup = start_server(&example("1234")).await;
    let request = Request { model: "claude-haiku-4-5".to_owned(), ..user_request("hi") };
    assert_eq!(setup.client.count_tokens(&request).await.unwrap(), 1234);
    assert_eq!(event_outline(&setup.client, &request).await, ["done \"Hello.\""]);
}

#[tokio::test]
async fn json_and_recorded_calls_are_read_too() {
    let setup = start_server(&example("One moment.")).await;
    assert_eq!(event_outline(&setup.client, &user_request("hello")).await, ["done \"Hello yourself.\""]);
    assert_eq!(event_outline(&setup.client, &user_request("else")).await, ["done \"One moment.\""]);
    let setup = crate::start_server(&example("recorded")).await;
    assert_eq!(event_outline(&setup.client, &user_request("hi")).await, ["done \"recorded\""]);
}
