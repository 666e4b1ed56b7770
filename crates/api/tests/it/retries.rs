//! When a call is made again: the shapes that the real program was recorded with.

use quipu_api::{ApiError, FallbackModel};
use quipu_message::user_assistant::AssistantErrorKind;
use quipu_message::values::ApiErrorType;

use crate::{error_of, event_outline, start_server, start_server_with, user_request};

#[tokio::test]
async fn a_rate_limit_waits_as_long_as_asked_and_an_overload_backs_off() {
    let script = "
- {times: 1, error: 429, headers: {retry-after: 1}}
- {times: 1, error: 529}
- reply: recovered
";
    let setup = start_server(script).await;
    let lines = event_outline(&setup.client, &user_request("hi")).await;
    assert_eq!(lines, ["retry 1/10 1000 ms 429 rate_limit", "retry 2/10 1125 ms 529 overloaded", "done \"recovered\""]);
    assert_eq!(setup.clock.waits(), [1000, 1125]);
}

#[tokio::test]
async fn an_overload_that_stays_ends_in_an_error_after_the_allowed_retries() {
    let setup = start_server_with("- error: 529", |endpoint| endpoint.retry_policy.max_retries = 2).await;
    let lines = event_outline(&setup.client, &user_request("hi")).await;
    assert_eq!(
        lines,
        ["retry 1/2 562 ms 529 overloaded", "retry 2/2 1125 ms 529 overloaded", "error api.status: 529 Overloaded"]
    );
    let error = error_of(&setup.client, &user_request("hi")).await;
    assert_eq!(error.error_kind(), AssistantErrorKind::Server);
    assert_eq!(error.api_type(), Some(&ApiErrorType::Overloaded));
    assert!(error.request_id().unwrap().as_str().starts_with("req_"), "{error:?}");
}

#[tokio::test]
async fn a_server_error_is_tried_again() {
    let setup = start_server_with("- error: 500", |endpoint| endpoint.retry_policy.max_retries = 1).await;
    let lines = event_outline(&setup.client, &user_request("hi")).await;
    assert_eq!(lines, ["retry 1/1 562 ms 500 server_error", "error api.status: 500 Internal server error"]);
}

#[tokio::test]
async fn waits_double_up_to_a_limit() {
    let setup = start_server("- error: 500").await;
    error_of(&setup.client, &user_request("hi")).await;
    assert_eq!(setup.clock.waits(), [562, 1125, 2250, 4500, 9000, 18000, 36000, 36000, 36000, 36000]);
    assert_eq!(setup.server.requests().len(), 11);
}

#[tokio::test]
async fn a_wrong_request_is_not_tried_again() {
    let setup = start_server("- error: {status: 400, message: 'messages.0: bad thing'}").await;
    let error = error_of(&setup.client, &user_request("hi")).await;
    assert_eq!(error.to_string(), "400 messages.0: bad thing");
    assert_eq!((error.error_kind(), error.status()), (AssistantErrorKind::Unknown, Some(400)));
    assert_eq!(setup.server.requests().len(), 1);
}

#[tokio::test]
async fn a_refused_key_is_tried_once_more() {
    let setup = start_server("- error: 401").await;
    let lines = event_outline(&setup.client, &user_request("hi")).await;
    assert_eq!(lines, ["retry 1/10 562 ms 401 authentication_failed", "error api.status: 401 invalid x-api-key"]);
}

#[tokio::test]
async fn a_cut_answer_is_withdrawn_and_asked_for_again() {
    let script = "
- {times: 1, reply: half an answer, cut_after: 3}
- reply: after cut
";
    let setup = start_server_with(script, |endpoint| endpoint.retry_policy.max_retries = 2).await;
    let lines = event_outline(&setup.client, &user_request("hi")).await;
    assert_eq!(lines, ["withdrawn", "retry 1/2 562 ms null unknown", "done \"after cut\""]);
}

#[tokio::test]
async fn an_error_event_is_followed_by_one_call_that_does_not_stream() {
    let script = "
- {times: 1, reply: half an answer, fail: {after: 3}}
- reply: after sse error
";
    let setup = start_server(script).await;
    let lines = event_outline(&setup.client, &user_request("hi")).await;
    assert_eq!(lines, ["withdrawn", "done \"after sse error\""]);
    assert!(setup.clock.waits().is_empty());
    let seen = setup.server.requests();
    let sent = |at: usize| {
        let request = seen[at].request.as_ref().unwrap();
        (request.stream.is_true(), request.max_tokens.get().copied().unwrap())
    };
    assert_eq!((sent(0), sent(1)), ((true, 100_000), (false, 64_000)));
}

#[tokio::test]
async fn after_a_failed_call_without_streaming_the_waits_begin() {
    let script = "
- {times: 1, reply: half, fail: {after: 2}}
- {times: 1, error: 529}
- reply: at last
";
    let setup = start_server(script).await;
    let lines = event_outline(&setup.client, &user_request("hi")).await;
    assert_eq!(lines, ["withdrawn", "retry 1/10 562 ms 529 overloaded", "done \"at last\""]);
    let streams: Vec<bool> =
        setup.server.requests().iter().map(|s| s.request.as_ref().unwrap().stream.is_true()).collect();
    assert_eq!(streams, [true, false, true]);
}

#[tokio::test]
async fn a_model_that_stays_overloaded_hands_over_to_the_next() {
    let script = "
- {when: {model: first}, error: 529}
- {when: {model: second}, reply: I take over}
";
    let setup = start_server(script).await;
    let mut request = user_request("hi");
    request.model = "first".to_owned();
    request.fallbacks = vec![FallbackModel { model: "second".to_owned(), max_tokens: 100, ..FallbackModel::default() }];
    assert_eq!(
        event_outline(&setup.client, &request).await,
        [
            "retry 1/10 562 ms 529 overloaded",
            "retry 2/10 1125 ms 529 overloaded",
            "fell back from first to second",
            "done \"I take over\""
        ]
    );
}

#[tokio::test]
async fn the_next_model_is_asked_also_when_no_retry_is_left() {
    let script = "
- {when: {model: first}, error: 529}
- {when: {model: second}, error: 400}
";
    let setup = start_server_with(script, |endpoint| endpoint.retry_policy.max_retries = 0).await;
    let next = vec![FallbackModel { model: "second".to_owned(), max_tokens: 100, ..FallbackModel::default() }];
    let request = quipu_api::Request { model: "first".to_owned(), fallbacks: next, ..user_request("hi") };
    let lines = event_outline(&setup.client, &request).await;
    assert_eq!(lines, ["fell back from first to second", "error api.status: 400 the request is wrong"]);
}

#[tokio::test]
async fn the_header_x_should_retry_is_obeyed() {
    let setup = start_server("- {error: 500, headers: {x-should-retry: 'false'}}").await;
    assert_eq!(event_outline(&setup.client, &user_request("hi")).await.len(), 1);
    let script = "
- {times: 1, error: 404, headers: {x-should-retry: 'true', retry-after-ms: 20}}
- reply: found
";
    let setup = crate::start_server(script).await;
    assert_eq!(
        event_outline(&setup.client, &user_request("hi")).await,
        ["retry 1/10 20 ms 404 model_not_found", "done \"found\""]
    );
}

#[tokio::test]
async fn a_wait_of_hours_is_an_error_at_once() {
    let setup = start_server("- {error: 429, headers: {retry-after: 7200}}").await;
    let error = error_of(&setup.client, &user_request("hi")).await;
    assert_eq!(error.retry_after().unwrap().as_secs(), 7200);
    assert_eq!(setup.server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_may_name_a_date_to_wait_for() {
    let script = "
- {times: 1, error: 429, headers: {retry-after: 'Thu, 01 Jan 1970 00:00:07 GMT'}}
- reply: now
";
    let setup = start_server(script).await;
    assert_eq!(event_outline(&setup.client, &user_request("hi")).await[0], "retry 1/10 7000 ms 429 rate_limit");
}

#[tokio::test]
async fn an_error_without_a_body_is_described_by_its_status() {
    let setup = start_server("- error: {status: 502, body: '<html>proxy broke</html>'}").await;
    let error = error_of(&setup.client, &user_request("hi")).await;
    assert_eq!(error.to_string(), "502 Bad Gateway");
    assert!(matches!(error, ApiError::Status { kind: None, body, .. } if body.contains("proxy broke")));
}

#[tokio::test]
async fn the_size_of_a_prompt_is_asked_for_with_retries_too() {
    let setup = start_server("- {when: {model: test}, count: 1234}").await;
    assert_eq!(setup.client.count_tokens(&user_request("hi")).await.unwrap(), 1234);
    let seen = setup.server.requests();
    assert_eq!(seen[0].path, "/v1/messages/count_tokens");
    assert!(!seen[0].body.contains("max_tokens"), "{}", seen[0].body);
    let unscripted = crate::start_server("- reply: hi").await;
    assert!(unscripted.client.count_tokens(&user_request("hi")).await.unwrap() > 10);
}
