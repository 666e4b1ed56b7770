//! Requests in their parts.

use quipu_trace::{AnatomyPart, RawCall, RawResponse, TraceBuilder, anatomy};
use serde_json::{Value, json};

fn anatomies(calls: &[(Value, u64)]) -> Vec<Vec<AnatomyPart>> {
    let mut builder = TraceBuilder::default();
    for (body, prompt_tokens) in calls {
        let response = json!({"role": "assistant", "content": [], "usage": {"input_tokens": prompt_tokens}});
        builder.push(&RawCall {
            url: "/v1/messages".into(),
            request_body: body.to_string().into(),
            response: RawResponse::Json(response.to_string().into()),
            ..RawCall::default()
        });
    }
    let trace = builder.finish();
    let with_previous = trace.calls.iter().enumerate();
    with_previous.map(|(i, call)| anatomy(&trace, call, i.checked_sub(1).map(|before| &trace.calls[before]))).collect()
}

fn request(question: &[Value], instructions: &str) -> Value {
    let reminder = format!("<system-reminder>\n# claudeMd\n{instructions}\n</system-reminder>");
    let mut messages = vec![
        json!({"role": "user", "content": [{"type": "text", "text": reminder}, {"type": "text", "text": "first"}]}),
    ];
    messages.extend(question.iter().cloned());
    json!({
        "model": "m",
        "system": [{"type": "text", "text": "x-anthropic-billing-header: v"}, {"type": "text", "text": "You are an agent."}],
        "tools": [
            {"name": "Bash", "input_schema": {}},
            {"name": "mcp__github__search", "input_schema": {}},
            {"name": "mcp__github__read", "input_schema": {}},
        ],
        "messages": messages,
    })
}

#[test]
fn the_parts_are_named_and_add_up_to_the_recorded_tokens() {
    let answer = json!({"role": "assistant", "content": "yes"});
    let question = json!({"role": "user", "content": "second"});
    let all = anatomies(&[(request(&[], "Use tabs."), 1000), (request(&[answer, question], "Use tabs."), 1234)]);
    let names: Vec<&str> = all[1].iter().map(|part| part.part.as_str()).collect();
    let expected = ["system", "tools", "tools of MCP server github", "context: instructions", "history", "question"];
    assert_eq!(names, expected);
    assert_eq!(all[1].iter().map(|part| part.tokens).sum::<u64>(), 1234);
    let changed: Vec<&str> = all[1].iter().filter(|part| part.changed).map(|part| part.part.as_str()).collect();
    assert_eq!(changed, ["history", "question"], "the first call has no history");
}

#[test]
fn changed_instructions_are_marked_and_a_grown_history_is_not() {
    let turn = |n: u32| {
        vec![
            json!({"role": "assistant", "content": format!("a{n}")}),
            json!({"role": "user", "content": format!("q{n}")}),
        ]
    };
    let two = [turn(1), turn(2)].concat();
    let all = anatomies(&[(request(&turn(1), "Use tabs."), 10), (request(&two, "Use spaces."), 10)]);
    let changed: Vec<&str> = all[1].iter().filter(|part| part.changed).map(|part| part.part.as_str()).collect();
    assert_eq!(changed, ["context: instructions", "question"]);
}
