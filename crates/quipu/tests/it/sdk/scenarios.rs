//! The scenarios. Each has the same outcome with every agent.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use quipu_sdk::control::request;
use quipu_sdk::hook::{HookOutput, PostToolUse, PreToolUse, PreToolUseOutput, Stop, UserPromptSubmit};
use quipu_sdk::message::stream::{TurnOutcome, TurnResult};
use quipu_sdk::message::system::System;
use quipu_sdk::{AgentDefinition, Client, Decision, Entry, Error, Hook, Options, PermissionMode, mcp};
use serde_json::json;

use super::agent_under_test::AgentUnderTest;

/// What a turn says, and how it ends.
async fn turn(client: &mut Client) -> (Vec<Entry>, TurnResult) {
    let mut messages = Vec::new();
    loop {
        match client.next_in_turn().await.unwrap() {
            Some(Entry::Result(result)) => {
                assert_eq!(client.next_in_turn().await.unwrap(), None);
                return (messages, *result);
            }
            Some(message) => messages.push(message),
            None => panic!("no result: {messages:#?}"),
        }
    }
}

async fn send_prompt(client: &mut Client, text: &str) -> (Vec<Entry>, TurnResult) {
    client.send(text).await.unwrap();
    turn(client).await
}

/// The results of the tools, as the model gets them.
fn results(messages: &[Entry]) -> String {
    let users = messages.iter().filter_map(|message| match message {
        Entry::User(user) => Some(user.message.content.blocks().to_vec()),
        _ => None,
    });
    users.flatten().map(|block| serde_json::to_string(&block).unwrap()).collect::<Vec<_>>().join("\n")
}

pub(super) async fn a_query_is_answered(agents: &mut AgentUnderTest) {
    let mut query = agents.query("go greet", Options::new());
    let mut kinds = Vec::new();
    let mut answer = None;
    while let Some(message) = query.next().await {
        let message = message.unwrap();
        kinds.push(message.kind());
        if let Entry::Result(result) = message {
            answer = result.result.text().map(str::to_owned);
        }
    }
    let order: Vec<&str> = kinds
        .iter()
        .map(String::as_str)
        .filter(|kind| !kind.contains("state") && *kind != "command_lifecycle")
        .collect();
    assert_eq!(order[..3], ["system/init", "assistant", "result/success"], "{kinds:?}");
    assert_eq!(answer.as_deref(), Some("Good day."));
}

pub(super) async fn a_conversation_has_turns(agents: &mut AgentUnderTest) {
    let mut client = agents.connect(Options::new()).await;
    assert!(!client.initialize_response().commands.is_empty());
    let (first, one) = send_prompt(&mut client, "go greet").await;
    let (_, two) = send_prompt(&mut client, "go remember").await;
    assert_eq!((one.result.text(), two.result.text()), (Some("Good day."), Some("I remember.")));
    let session = |result: &TurnResult| result.envelope.session_id.get().cloned();
    assert!(session(&one).is_some() && session(&one) == session(&two));
    assert!(first.iter().any(|message| matches!(message, Entry::Assistant(_))));
    let exit = client.close().await.unwrap();
    assert!(exit.is_success(), "{exit}");
}

pub(super) async fn permissions_are_asked(agents: &mut AgentUnderTest) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&requests);
    let options = Options::new().can_use_tool(move |call, _| {
        let mut notes = notes.lock().unwrap();
        notes.push(call.tool_name.clone());
        let decision = match notes.len() {
            1 => Decision::deny("not today"),
            2 => Decision::allow_with(&json!({ "command": "echo changed" })),
            _ => Decision::allow(),
        };
        async move { decision }
    });
    let mut client = agents.connect(options).await;
    let (messages, denied) = send_prompt(&mut client, "go other").await;
    assert_eq!(denied.result.text(), Some("It did not run."));
    assert!(results(&messages).contains("not today"));
    assert_ne!(agents.has_made("made"), Some(true));
    let (_, changed) = send_prompt(&mut client, "go other").await;
    assert_eq!(changed.result.text(), Some("It was changed."));
    assert_ne!(agents.has_made("made"), Some(true));
    let (_, plain) = send_prompt(&mut client, "go plain").await;
    assert_eq!(plain.result.text(), Some("It ran as it was."));
    assert_ne!(agents.has_made("made"), Some(false));
    assert_eq!(*requests.lock().unwrap(), ["Bash", "Bash", "Bash"]);
    client.close().await.unwrap();
}

pub(super) async fn hooks_are_called(agents: &mut AgentUnderTest) {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = |what: &'static str| {
        let seen = Arc::clone(&seen);
        move |more: &str| seen.lock().unwrap().push(format!("{what} {more}").trim().to_owned())
    };
    let (before, after, prompt, stop) = (note("before"), note("after"), note("prompt"), note("stop"));
    let options = Options::new()
        .hook(
            Hook::on(move |call: PreToolUse, _| {
                before(call.tool_name.as_str());
                let command = json!({ "command": "echo changed" });
                async move { PreToolUseOutput::allow().with_updated_input(command) }
            })
            .matching("Bash"),
        )
        .hook(Hook::on(move |call: PostToolUse, _| {
            after(call.tool_name.as_str());
            async { HookOutput::empty() }
        }))
        .hook(Hook::on(move |said: UserPromptSubmit, _| {
            prompt(&said.prompt);
            async { HookOutput::empty() }
        }))
        .hook(Hook::on(move |_: Stop, _| {
            stop("");
            async { HookOutput::empty() }
        }));
    let mut client = agents.connect(options).await;
    let (messages, result) = send_prompt(&mut client, "go other").await;
    assert_eq!(result.result.text(), Some("It was changed."), "{}", results(&messages));
    assert_eq!(*seen.lock().unwrap(), ["prompt go other", "before Bash", "after Bash", "stop"]);
    client.close().await.unwrap();
}

pub(super) async fn a_guard_that_fails_keeps_things_from_happening(agents: &mut AgentUnderTest) {
    let guard = Hook::on_event("PreToolUse", |_, _| async { Err("the guard fell asleep".to_owned()) });
    let options = Options::new().hook(guard.blocking_on_failure()).allow_tool("Bash");
    let mut client = agents.connect(options).await;
    let (messages, result) = send_prompt(&mut client, "go plain").await;
    assert_eq!(result.result.text(), Some("It did not run."), "{}", results(&messages));
    assert_ne!(agents.has_made("made"), Some(true));
    client.close().await.unwrap();
}

pub(super) async fn prompts_are_taken_as_they_are(agents: &mut AgentUnderTest) {
    let mut client = agents.connect(Options::new().verbatim_prompts()).await;
    // As a command this would not reach the model.
    let (_, result) = send_prompt(&mut client, "/cost go greet").await;
    assert_eq!(result.result.text(), Some("Good day."));
    client.close().await.unwrap();
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: f64,
    b: f64,
}

pub(super) async fn tools_of_this_program_are_called(agents: &mut AgentUnderTest) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&calls);
    let calculator = mcp::Server::new("calc").tool("add", "Adds two numbers.", move |sum: Sum| {
        notes.lock().unwrap().push((sum.a, sum.b));
        async move { Ok::<_, String>((sum.a + sum.b).to_string()) }
    });
    let options = Options::new().mcp_server(calculator).allow_tool("mcp__calc__add");
    let mut client = agents.connect(options).await;
    let (messages, result) = send_prompt(&mut client, "go sum").await;
    assert_eq!(result.result.text(), Some("The sum is five."), "{}", results(&messages));
    assert_eq!(*calls.lock().unwrap(), [(2.0, 3.0)]);
    let servers = client.handle().mcp_status().await.unwrap().servers;
    assert_eq!((servers[0].name.as_str(), servers[0].status.as_str()), ("calc", "connected"));
    client.close().await.unwrap();
}

pub(super) async fn answers_have_a_form(agents: &mut AgentUnderTest) {
    let form = json!({ "type": "object", "required": ["name", "born"],
        "properties": { "name": { "type": "string" }, "born": { "type": "integer" } } });
    let mut query = agents.query("go form", Options::new().output_schema(&form));
    let mut given = None;
    while let Some(message) = query.next().await {
        if let Entry::Result(result) = message.unwrap() {
            given = result.structured_output.get().map(|json| json.to_value());
        }
    }
    assert_eq!(given, Some(json!({ "name": "Ada", "born": 1815 })));
}

pub(super) async fn a_turn_is_interrupted(agents: &mut AgentUnderTest) {
    let mut client = agents.connect(Options::new().include_partial_messages()).await;
    client.send("go slow").await.unwrap();
    // The answer has started.
    loop {
        let message = client.next().await.unwrap().unwrap();
        if matches!(&message, Entry::StreamEvent(piece) if piece.event.tag() == "content_block_delta") {
            break;
        }
    }
    client.interrupt().await.unwrap();
    let broken = client.read_result().await.unwrap();
    assert_eq!(broken.subtype, TurnOutcome::DuringExecution);
    client.send("go greet").await.unwrap();
    assert_eq!(client.read_result().await.unwrap().result.text(), Some("Good day."));
    client.close().await.unwrap();
}

pub(super) async fn pieces_come_before_the_whole(agents: &mut AgentUnderTest) {
    let mut client = agents.connect(Options::new().include_partial_messages()).await;
    let (messages, _) = send_prompt(&mut client, "go greet").await;
    let at = |is: &dyn Fn(&Entry) -> bool| messages.iter().position(is).unwrap();
    let piece = at(&|message| matches!(message, Entry::StreamEvent(_)));
    let whole = at(&|message| matches!(message, Entry::Assistant(_)));
    assert!(piece < whole);
    client.close().await.unwrap();
}

pub(super) async fn requests_are_answered(agents: &mut AgentUnderTest) {
    let mut client = agents.connect(Options::new()).await;
    assert_eq!(client.handle().set_permission_mode(PermissionMode::AcceptEdits).await.unwrap().mode, "acceptEdits");
    let refused = client.handle().set_permission_mode("bogus").await;
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    assert_eq!(client.handle().set_model(Some("claude-haiku-4-5")).await.unwrap().model, "claude-haiku-4-5");
    client.handle().set_max_thinking_tokens(Some(2048)).await.unwrap();
    client.handle().stop_task("nope").await.unwrap();
    assert!(!client.handle().request(request::ListModels::default()).await.unwrap().models.is_empty());
    let Err(Error::Refused { code, .. }) = client.handle().request_raw(&json!({ "subtype": "sing" })).await else {
        panic!()
    };
    assert_eq!(code.as_deref(), Some("unsupported_request"));
    let (messages, result) = send_prompt(&mut client, "go greet").await;
    assert_eq!(result.result.text(), Some("Good day."));
    let model = messages.iter().find_map(|message| match message {
        Entry::System(system) => match &**system {
            System::Init(init) => init.model.text().map(str::to_owned),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(model.as_deref(), Some("claude-haiku-4-5"));
    assert!(client.handle().usage().await.unwrap().session.total_cost_usd.is_value());
    client.close().await.unwrap();
}

pub(super) async fn a_session_goes_on_and_is_forked(agents: &mut AgentUnderTest) {
    let mut client = agents.connect(Options::new()).await;
    let (_, first) = send_prompt(&mut client, "go greet").await;
    let session = first.envelope.session_id.get().unwrap().clone();
    client.close().await.unwrap();
    for forks in [false, true] {
        let options = Options::new().resume(session.as_str());
        let options = if forks { options.fork_session() } else { options };
        let mut client = agents.connect(options).await;
        let (_, result) = send_prompt(&mut client, "go remember").await;
        assert_eq!(result.result.text(), Some("I remember."));
        assert_eq!(result.envelope.session_id.get() != Some(&session), forks);
        client.close().await.unwrap();
    }
}

pub(super) async fn a_subagent_is_heard(agents: &mut AgentUnderTest) {
    let helper = AgentDefinition {
        description: "Looks into things.".to_owned(),
        prompt: "You look into things.".to_owned(),
        ..AgentDefinition::default()
    };
    let options = Options::new().agent("helper", helper).forward_subagent_text().allow_tool("Agent");
    let mut client = agents.connect(options).await;
    assert!(client.initialize_response().agents.get().unwrap().iter().any(|agent| agent.name == "helper"));
    let (messages, result) = send_prompt(&mut client, "go delegate").await;
    assert_eq!(result.result.text(), Some("The helper has reported."), "{}", results(&messages));
    let helped = messages.iter().any(|message| match message {
        Entry::Assistant(said) => {
            said.envelope.parent_tool_use_id.is_value() && said.message.content.to_text().contains("report")
        }
        _ => false,
    });
    assert!(helped, "{messages:#?}");
    client.close().await.unwrap();
}

pub(super) async fn a_failed_call_is_a_result(agents: &mut AgentUnderTest) {
    let mut query = agents.query("go break", Options::new());
    let mut failed = None;
    while let Some(message) = query.next().await {
        if let Entry::Result(result) = message.unwrap() {
            failed = Some((result.is_error, result.api_error_status.get().and_then(|status| status.as_u64())));
        }
    }
    assert_eq!(failed, Some((true, Some(400))));
}
