//! Which rule answers which request.

use quipu_api::mock::{MockServer, Script};
use quipu_message::api::Tool;
use quipu_message::{Block, Content, Json, Message, Role, ToolUse};

use crate::{error_of, start_server, user_request};

async fn answer(setup: &crate::TestSetup, request: &quipu_api::Request) -> String {
    setup.client.call(request).response().await.unwrap().message.content.to_text()
}

fn after_tool(name: &str, result: &str) -> quipu_api::Request {
    let call =
        ToolUse { id: "toolu_1".into(), name: name.into(), input: Json::parse("{}").unwrap(), ..ToolUse::default() };
    let result = Block::new_tool_result("toolu_1".into(), result.into(), false);
    let mut request = user_request("begin");
    request.messages.push(Message::new(Role::Assistant, Content::Blocks(vec![Block::ToolUse(Box::new(call))])));
    request.messages.push(Message::new(Role::User, Content::Blocks(vec![result])));
    request
}

#[tokio::test]
async fn the_first_rule_that_fits_answers() {
    let setup = start_server(
        "
- {when: {says: apple}, reply: an apple}
- {when: {matches: '^p.ar$'}, reply: a pear}
- {when: {model: other}, reply: another model}
- {when: {system_says: pirate}, reply: arr}
- {when: {tool: Read}, reply: can read}
- {when: {tools: true}, reply: has tools}
- {when: {subagent: true}, reply: a subagent}
- {when: {turn: 2}, reply: second turn}
- {when: {call: 9}, reply: ninth call}
- {reply: anything}
",
    )
    .await;
    let mut requests = vec![user_request("an apple a day"), user_request("pear")];
    let mut change = |change: &dyn Fn(&mut quipu_api::Request)| {
        let mut request = user_request("x");
        change(&mut request);
        requests.push(request);
    };
    change(&|request| request.model = "other-1".to_owned());
    change(&|request| request.system = vec!["be a pirate".to_owned()]);
    let tool = |name: &str| Tool { name: name.into(), ..Tool::default() };
    change(&|request| request.tools = vec![tool("Write"), tool("Read")]);
    change(&|request| request.tools = vec![tool("Write")]);
    change(&|request| request.agent_id = Some("a1".into()));
    change(&|request| {
        request.messages.push(Message::new(Role::Assistant, "y"));
        request.messages.push(Message::new(Role::User, "z"));
    });
    change(&|_| {});
    change(&|_| {});
    let mut answers = Vec::new();
    for request in &requests {
        answers.push(answer(&setup, request).await);
    }
    let expected = [
        "an apple",
        "a pear",
        "another model",
        "arr",
        "can read",
        "has tools",
        "a subagent",
        "second turn",
        "ninth call",
        "anything",
    ];
    assert_eq!(answers, expected);
    assert_eq!(setup.server.requests()[0].matched_rule.as_deref(), Some("rule 1"));
}

#[tokio::test]
async fn results_of_tools_are_matched_by_tool_and_by_text() {
    let setup = start_server(
        "
- {when: {result_of: Read, result_says: secret plan}, reply: found it}
- {when: {result_of: Read}, reply: read something}
- {when: {result_of: '*'}, reply: some tool}
- {when: {step: 1}, reply: first step}
",
    )
    .await;
    assert_eq!(answer(&setup, &after_tool("Read", "the secret plan")).await, "found it");
    assert_eq!(answer(&setup, &after_tool("Read", "nothing")).await, "read something");
    assert_eq!(answer(&setup, &after_tool("Bash", "nothing")).await, "some tool");
    assert_eq!(answer(&setup, &user_request("begin")).await, "first step");
    let error = error_of(&setup.client, &{
        let mut request = user_request("a");
        request.messages.push(Message::new(Role::Assistant, "b"));
        request.messages.push(Message::new(Role::User, "and then?"));
        request
    })
    .await;
    let expected =
        r#"400 no rule of the script matches request 5 (claude-test-1, 0 tools, turn 2, step 2, "and then?")"#;
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_rule_with_times_is_used_up() {
    let setup = start_server("- {times: 2, name: early, reply: early}\n- reply: late").await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(answer(&setup, &user_request("x")).await);
    }
    assert_eq!(answers, ["early", "early", "late"]);
    assert_eq!(setup.server.requests()[1].matched_rule.as_deref(), Some("early"));
}

#[tokio::test]
async fn ids_are_unique_and_can_be_given() {
    let script = "- reply: [{tool: Read}, {tool: Read}, {tool: Write, id: toolu_mine}]";
    let (one, other) = (start_server(script).await, start_server(script).await);
    let mut ids = Vec::new();
    for setup in [&one, &other, &one] {
        let answer = setup.client.call(&user_request("x")).response().await.unwrap();
        ids.push(answer.request_id.unwrap().to_string());
        ids.push(answer.message.id.text().unwrap().to_owned());
        let calls = answer.message.content.blocks().iter().filter_map(Block::tool_use);
        let calls: Vec<String> = calls.map(|call| call.id.to_string()).collect();
        assert_eq!(calls[2], "toolu_mine");
        ids.extend(calls.into_iter().take(2));
    }
    assert!(ids.iter().all(|id| ["msg_", "toolu_", "req_"].iter().any(|prefix| id.starts_with(prefix))), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 12);
}

#[tokio::test]
async fn other_paths_and_broken_bodies_are_refused_clearly() {
    let server = MockServer::start(Script::parse("- reply: hi").unwrap()).await.unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = http.get(format!("{}/v1/models", server.url())).send().await.unwrap();
    assert_eq!(get.status(), 404);
    assert!(get.text().await.unwrap().contains("the mock server has no GET /v1/models"));
    let bad = http.post(format!("{}/v1/messages", server.url())).body("{\"model\":1}").send().await.unwrap();
    assert_eq!(bad.status(), 400);
    assert!(bad.text().await.unwrap().contains("request 2 is invalid: model"));
}

#[tokio::test]
async fn the_observer_is_called_for_each_request() {
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let tell = move |seen: &quipu_api::mock::ReceivedRequest| {
        sender.send((seen.number, seen.status, seen.matched_rule.clone())).unwrap()
    };
    let script = Script::parse("- {when: {says: yes}, reply: ok}").unwrap();
    let server = MockServer::listen(script, "127.0.0.1:0".parse().unwrap(), tell).await.unwrap();
    let client = quipu_api::Client::new(quipu_api::Endpoint::new(&server.url()).unwrap()).unwrap();
    client.call(&user_request("yes")).response().await.unwrap();
    client.call(&user_request("no")).response().await.unwrap_err();
    assert_eq!(told.recv().await, Some((1, 200, Some("rule 1".to_owned()))));
    assert_eq!(told.recv().await, Some((2, 400, None)));
}
