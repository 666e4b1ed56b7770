//! Recorded calls are played as they were.

use std::fs;

use quipu_api::mock::{MockServer, Script};
use quipu_conversation::Accumulator;
use quipu_message::api::RecordedApiCall;
use quipu_message::sse::Parser;
use quipu_message::{Json, Message};

use crate::{event_outline, start_server, start_server_with, user_request};

/// Every call of every recording, asked again with its own body, gets its own answer.
#[tokio::test]
async fn every_recording_answers_as_it_did() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let files = quipu_testkit::files_under(&shared.join("recordings"), |path| path.ends_with("api.jsonl"));
    assert!(files.len() > 40, "{}", files.len());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut calls = 0;
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let Ok(script) = Script::parse(&text) else {
            // Runs that failed before they asked anything have nothing to play.
            assert!(!text.contains("\"/v1/messages"), "{}", path.display());
            continue;
        };
        let server = MockServer::start(script).await.unwrap();
        for line in text.lines() {
            let exchange: RecordedApiCall = serde_json::from_str(line).unwrap();
            if exchange.method.text() != Some("POST") {
                continue;
            }
            let mut request = http.post(format!("{}{}", server.url(), exchange.path.text().unwrap()));
            for (name, value) in exchange.headers.get().unwrap() {
                if name.to_lowercase().starts_with("x-claude") {
                    request = request.header(name, value);
                }
            }
            let answer = request.body(exchange.body.get().unwrap().text().to_owned()).send().await.unwrap();
            let place = format!("{} call {:?}", path.display(), exchange.number.get());
            assert_eq!(Some(&answer.status().as_u16()), exchange.status.get(), "{place}");
            check(answer, &exchange, &place).await;
            calls += 1;
        }
    }
    assert!(calls > 200, "{calls}");
}

async fn check(mut answer: reqwest::Response, exchange: &RecordedApiCall, place: &str) {
    let Some(recorded) = exchange.sse.get() else {
        let body = Json::parse(&answer.text().await.unwrap()).unwrap();
        assert_eq!(Some(&body), exchange.response.get(), "{place}");
        return;
    };
    let (mut parser, mut played) = (Parser::new(), Vec::new());
    let cut = loop {
        // A response whose client disconnected stays open until the next client disconnects.
        if exchange.client_gone.is_value() && played.len() == recorded.len() {
            break false;
        }
        match answer.chunk().await {
            Ok(Some(bytes)) => played.extend(parser.push(&bytes).into_iter().map(|event| event.unwrap().data)),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    let recorded: Vec<&str> = recorded.iter().map(Json::text).collect();
    assert_eq!(played, recorded, "{place}");
    assert_eq!(cut, exchange.cut.is_true(), "{place}");
}

/// The failures the real program was recorded with, event by our client.
#[tokio::test]
async fn recorded_failures_give_the_errors_of_the_real_program() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let cases: [(&str, u32, &[&str]); 7] = [
        (
            "12_retry_429_529",
            10,
            &["retry 1/10 562 ms 429 rate_limit", "retry 2/10 1125 ms 529 overloaded", "done \"recovered\""],
        ),
        ("13_api_error_400", 10, &["error api.status: 400 messages.0: bad thing"]),
        (
            "13b_api_error_401",
            1,
            &["retry 1/1 562 ms 401 authentication_failed", "error api.status: 401 invalid x-api-key"],
        ),
        (
            "14_overloaded_exhausted",
            2,
            &[
                "retry 1/2 562 ms 529 overloaded",
                "retry 2/2 1125 ms 529 overloaded",
                "error api.status: 529 Overloaded",
            ],
        ),
        ("14b_500_exhausted", 1, &["retry 1/1 562 ms 500 server_error", "error api.status: 500 Internal server error"]),
        ("15_cut_stream", 2, &["withdrawn", "retry 1/2 562 ms null unknown", "done \"after cut\""]),
        ("15b_sse_error_midstream", 2, &["withdrawn", "done \"after sse error\""]),
    ];
    for (folder, retries, expected) in cases {
        let text = fs::read_to_string(shared.join("recordings").join(folder).join("api.jsonl")).unwrap();
        let setup = start_server_with(&text, |endpoint| endpoint.retry_policy.max_retries = retries).await;
        let mut request = user_request("hi");
        request.tools = vec![quipu_message::api::Tool { name: "Read".into(), ..Default::default() }];
        assert_eq!(event_outline(&setup.client, &request).await, expected, "{folder}");
    }
}

#[tokio::test]
async fn calls_with_tools_and_side_calls_are_kept_apart() {
    let call = |tools: &str, said: &str, reply: &str| {
        format!(
            r#"{{"method":"POST","path":"/v1/messages","body":{{"model":"m","messages":[{{"role":"user","content":"{said}"}}]{tools}}},"status":200,"response":{{"role":"assistant","content":[{{"type":"text","text":"{reply}"}}]}}}}"#
        )
    };
    let tools = r#","tools":[{"name":"Read"}]"#;
    let text = [call(tools, "one", "main 1"), call("", "title?", "side"), call(tools, "two", "main 2")].join("\n");
    let setup = start_server(&text).await;
    let with_tools = |said: &str| {
        let tool = quipu_message::api::Tool { name: "Read".into(), ..Default::default() };
        quipu_api::Request { tools: vec![tool], ..user_request(said) }
    };
    // The same words find their call whatever the order; other words get the next of their kind.
    assert_eq!(event_outline(&setup.client, &user_request("a title, please")).await, ["done \"side\""]);
    assert_eq!(event_outline(&setup.client, &with_tools("two")).await, ["done \"main 2\""]);
    assert_eq!(event_outline(&setup.client, &with_tools("anything")).await, ["done \"main 1\""]);
    let error = crate::error_of(&setup.client, &with_tools("more")).await;
    assert!(error.to_string().starts_with("400 no rule of the script matches request 4"), "{error}");
}

#[tokio::test]
async fn a_streamed_recording_answers_a_request_that_does_not_stream() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let text = fs::read_to_string(shared.join("recordings/02_thinking_multiblock/api.jsonl")).unwrap();
    let exchange: RecordedApiCall = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let mut whole = Accumulator::default();
    for event in exchange.sse.get().unwrap() {
        whole.push(&event.read().unwrap()).unwrap();
    }
    let server = MockServer::start(Script::parse(&text).unwrap()).await.unwrap();
    let body = exchange.body.get().unwrap().text().replace(r#""stream":true"#, r#""stream":false"#);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = http.post(format!("{}/v1/messages", server.url())).body(body).send().await.unwrap();
    let message: Message = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(message, whole.finish().unwrap());
}
