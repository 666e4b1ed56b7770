//! The recordings of other SDKs, played by the fake agent: ours receives every message and
//! answers every question as they did.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_sdk::control::{HostDecision, PermissionUpdate, RequestBody};
use quipu_sdk::transport::MemoryTransport;
use quipu_sdk::{Client, Decision, Entry, Error, Hook, Json, Options, mcp};
use quipu_testkit::fake_agent::{self, Step};
use serde_json::Value;

/// What a replay showed.
struct Replayed {
    /// What we said otherwise than the recorded host.
    differences: Vec<String>,
    messages: usize,
    answers: usize,
    /// Permission callbacks that were dropped before they answered.
    dropped: usize,
}

async fn replay(steps: Vec<Step>) -> Replayed {
    let dropped = Arc::new(AtomicUsize::new(0));
    let (near, far) = MemoryTransport::pair(1 << 16);
    let agent = tokio::spawn(fake_agent::play(steps.clone(), far));
    let mut client = Client::connect_over(near, options(&steps, &dropped)).await.unwrap();
    let greeting = steps.iter().position(|step| matches!(step, Step::Send(line) if line["type"] == "control_response"));
    let greeted_by_fake = !steps.iter().any(is_initialize);
    let from = if greeted_by_fake { 0 } else { greeting.unwrap() + 1 };
    let (mut messages, mut asked) = (0, Vec::new());
    for step in &steps[from..] {
        match step {
            Step::Expect(line) if line["type"] == "user" => {
                let Entry::User(user) = read(line) else { panic!("{line}") };
                client.send_message(*user).await.unwrap();
            }
            Step::Expect(line) if line["type"] == "control_request" => {
                let body: RequestBody = Json::from(line["request"].clone()).read().unwrap();
                let (handle, question) = (client.handle(), body.clone());
                let answer = tokio::spawn(async move { handle.request_raw(&question).await });
                // Questions reach the agent in the order they were asked.
                tokio::task::yield_now().await;
                asked.push((body, answer, recorded_answer(&steps, line)));
            }
            // The callbacks say these.
            Step::Expect(line) if line["type"] == "control_response" => {}
            Step::Expect(line) => client.handle().send_line(line).await.unwrap(),
            Step::Send(line) if line["type"].as_str().unwrap().starts_with("control_") => {}
            Step::Send(line) => {
                let message = client.next().await.unwrap_or_else(|error| panic!("{error} instead of {line}"));
                assert_eq!(message, Some(read(line)));
                messages += 1;
            }
            Step::WriteBytes(_) => unreachable!("recordings have none"),
        }
    }
    let answers = asked.len();
    for (question, answer, recorded) in asked {
        check_answer(&question, answer.await.unwrap(), recorded);
    }
    let report = agent.await.unwrap().unwrap();
    assert_eq!(report.unexpected, Vec::<Value>::new());
    drop(client);
    Replayed { differences: report.differences, messages, answers, dropped: dropped.load(Ordering::SeqCst) }
}

fn read(line: &Value) -> Entry {
    Entry::read(&line.to_string()).unwrap()
}

fn is_initialize(step: &Step) -> bool {
    matches!(step, Step::Expect(line) if line["request"]["subtype"] == "initialize")
}

fn recorded_answer(steps: &[Step], question: &Value) -> Option<Value> {
    steps.iter().find_map(|step| match step {
        Step::Send(line) if line["response"]["request_id"] == question["request_id"] => Some(line["response"].clone()),
        _ => None,
    })
}

/// The answer is the recorded one, and has the type that belongs to the question.
fn check_answer(question: &RequestBody, answer: Result<Json, Error>, recorded: Option<Value>) {
    let what = question.tag();
    match (answer, recorded) {
        (Ok(answer), Some(recorded)) if recorded["subtype"] == "success" => {
            assert_eq!(answer.to_value(), recorded.get("response").cloned().unwrap_or_default(), "{what}");
            let typed = if answer.is_null() { Json::parse("{}").unwrap() } else { answer };
            question.check_response(&typed).unwrap_or_else(|| panic!("{what} has no type")).unwrap();
        }
        (Err(Error::Refused { error, code, .. }), Some(recorded)) if recorded["subtype"] == "error" => {
            assert_eq!(error, recorded["error"], "{what}");
            assert_eq!(code.as_deref(), recorded["error_code"].as_str(), "{what}");
        }
        (answer, recorded) => panic!("{what}: {answer:?} and recorded {recorded:?}"),
    }
}

/// Options whose callbacks answer as the recorded host did.
fn options(steps: &[Step], dropped: &Arc<AtomicUsize>) -> Options {
    let answers: HashMap<String, Value> = steps.iter().filter_map(host_answer).collect();
    let requests: Vec<(String, Value)> = steps.iter().filter_map(question).collect();
    let find = move |is: &dyn Fn(&Value) -> bool| {
        let (id, _) = requests.iter().find(|(_, body)| is(body))?;
        answers.get(id).cloned()
    };
    let find = Arc::new(find);
    let mut options = Options::new().mcp_server(calculator());
    let hello = steps.iter().find(|step| is_initialize(step));
    if let Some(Step::Expect(line)) = hello {
        for (event, matchers) in line["request"]["hooks"].as_object().into_iter().flatten() {
            for matcher in matchers.as_array().unwrap() {
                let find = Arc::clone(&find);
                let hook = Hook::on_event(event.clone(), move |input, _| {
                    let input = input.to_value();
                    let answer = find(&|body| body["input"] == input).unwrap();
                    std::future::ready(Ok(Json::from(answer["response"].clone())))
                });
                options = options.hook(match matcher["matcher"].as_str() {
                    Some(words) => hook.matching(words),
                    None => hook,
                });
            }
        }
    }
    let dropped = Arc::clone(dropped);
    options.can_use_tool(move |call, _| {
        let id = call.tool_use_id.text().unwrap().to_owned();
        let answer = find(&|body| body["tool_use_id"] == *id && body["subtype"] == "can_use_tool");
        let dropped = Arc::clone(&dropped);
        async move {
            match answer {
                Some(answer) => decision(&answer),
                None => {
                    let _guard = Dropped(dropped);
                    std::future::pending().await
                }
            }
        }
    })
}

struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn host_answer(step: &Step) -> Option<(String, Value)> {
    match step {
        Step::Expect(line) if line["type"] == "control_response" => {
            Some((line["response"]["request_id"].as_str()?.to_owned(), line["response"].clone()))
        }
        _ => None,
    }
}

fn question(step: &Step) -> Option<(String, Value)> {
    match step {
        Step::Send(line) if line["type"] == "control_request" => {
            Some((line["request_id"].as_str()?.to_owned(), line["request"].clone()))
        }
        _ => None,
    }
}

fn decision(answer: &Value) -> Decision {
    match HostDecision::from_json(&Json::from(answer["response"].clone())) {
        HostDecision::Allow(allow) => {
            let updates: Vec<PermissionUpdate> =
                allow.updated_permissions.get().map(|json| json.read().unwrap()).unwrap_or_default();
            Decision::Allow { input: allow.updated_input.into_option(), updates }
        }
        HostDecision::Deny(deny) if deny.interrupt.is_true() => {
            Decision::interrupt(deny.message.text().unwrap_or_default())
        }
        HostDecision::Deny(deny) => Decision::deny(deny.message.text().unwrap_or_default()),
        HostDecision::Invalid { reason } => Decision::deny(reason),
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: f64,
    b: f64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn calculator() -> mcp::Server {
    mcp::Server::new("calc")
        .tool("add", "Add", |sum: Sum| async move { Ok::<_, String>((sum.a + sum.b).to_string()) })
        .tool("boom", "Raises", |_: Nothing| async move { Err::<String, _>("boom!") })
}

/// Replays a recording and looks at what came of it.
async fn check(name: &str, expect: impl FnOnce(Replayed)) {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let steps = fake_agent::recorded_steps(&shared.join("recordings").join(name));
    assert!(steps.len() > 4, "{name}");
    expect(replay(steps).await);
}

fn same(replayed: Replayed) {
    assert_eq!(replayed.differences, Vec::<String>::new());
    assert!(replayed.messages > 3, "{}", replayed.messages);
}

#[tokio::test]
async fn hooks_are_called_and_answer() {
    check("40_sdk_hooks", same).await;
}

#[tokio::test]
async fn permissions_are_asked_and_granted_or_not() {
    check("41_sdk_can_use_tool", same).await;
}

#[tokio::test]
async fn mcp_servers_answer_while_initialize_is_under_way() {
    check("42_sdk_mcp", |replayed| {
        assert_eq!(replayed.answers, 1);
        // Each server describes itself and its tools in its own way.
        let [hello, list] = &replayed.differences[..] else { panic!("{:#?}", replayed.differences) };
        assert!(hello.contains("serverInfo") && list.contains("inputSchema"), "{hello} {list}");
    })
    .await;
}

#[tokio::test]
async fn a_turn_is_interrupted_and_the_next_runs() {
    check("43_sdk_interrupt", same).await;
}

#[tokio::test]
async fn control_requests_are_answered_between_turns() {
    check("44_sdk_control_methods", |replayed| {
        assert_eq!(replayed.answers, 8);
        same(replayed);
    })
    .await;
}

#[tokio::test]
async fn files_are_rewound() {
    check("45_sdk_rewind", same).await;
}

#[tokio::test]
async fn a_query_with_many_options_is_answered() {
    check("46_sdk_query_many_options", same).await;
}

#[tokio::test]
async fn every_control_exchange_has_a_typed_answer() {
    check("50_control_all_subtypes", |replayed| {
        assert_eq!(replayed.answers, 51);
        same(replayed);
    })
    .await;
}

#[tokio::test]
async fn the_table_of_control_exchanges_is_typed() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let table = std::fs::read(shared.join("recordings/50_control_all_subtypes/control_table.json")).unwrap();
    let table: Vec<Value> = serde_json::from_slice(&table).unwrap();
    let mut typed = 0;
    for row in &table {
        let question: RequestBody = Json::from(row["request"].clone()).read().unwrap();
        if row["response"]["subtype"] == "success" {
            let answer = row["response"].get("response").filter(|answer| !answer.is_null());
            let answer = Json::from(answer.cloned().unwrap_or_else(|| serde_json::json!({})));
            question.check_response(&answer).unwrap_or_else(|| panic!("{row}")).unwrap();
            typed += 1;
        }
    }
    assert!(typed >= 35 && table.len() >= 50, "{typed} of {}", table.len());
}

#[tokio::test]
async fn odd_answers_to_permission_requests_are_plain_refusals_here() {
    check("51_permission_raw", |replayed| {
        // Theirs leaves the input out, answers with an error, and with a word of its own.
        let [allow, error, word] = &replayed.differences[..] else { panic!("{:#?}", replayed.differences) };
        assert!(allow.contains("updatedInput") && error.contains("host exploded") && word.contains("nonsense"));
    })
    .await;
}

#[tokio::test]
async fn a_withdrawn_permission_request_drops_its_callback() {
    check("52_interrupt_while_permission_pending", |replayed| {
        assert_eq!(replayed.dropped, 1);
        same(replayed);
    })
    .await;
}

#[tokio::test]
async fn a_turn_ends_after_the_input_has() {
    check("54_stdin_eof_midturn", same).await;
}

#[tokio::test]
async fn a_turn_ends_by_a_signal() {
    check("55_sigint_midturn", same).await;
}

#[tokio::test]
async fn an_agent_that_knows_a_server_already_only_calls_its_tools() {
    check("57_ts_sdk", |replayed| {
        assert!(replayed.messages > 30);
        // Theirs names the call in its answer, and leaves out that a tool has not failed.
        let [first, second, result] = &replayed.differences[..] else { panic!("{:#?}", replayed.differences) };
        assert!(first.contains("toolUseID") && second.contains("toolUseID") && result.contains("isError"));
    })
    .await;
}

#[tokio::test]
async fn every_written_entry_is_reported_with_session_mirror() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let steps = fake_agent::recorded_steps(&shared.join("recordings/58_sdk_session_store_mirror"));
    // Two runs stand in this recording, one after the other.
    let second = 1 + steps[1..].iter().position(is_initialize).unwrap();
    for run in [&steps[..second], &steps[second..]] {
        same(replay(run.to_vec()).await);
    }
}
