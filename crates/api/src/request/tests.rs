use serde_json::{Value, json};

use super::*;

fn wire(request: &Request) -> Value {
    let mut taken = request.clone();
    let mut wire = taken.take_wire_request();
    taken.set_model_and_stream(&mut wire, true);
    serde_json::to_value(wire).unwrap()
}

fn text_message(role: Role, text: &str) -> Message {
    Message::new(role, text)
}

#[test]
fn a_small_request_has_no_more_in_it_than_needed() {
    let request = Request {
        model: "m".to_owned(),
        messages: vec![text_message(Role::User, "hi")],
        max_tokens: 10,
        cache_ttl: CacheTtl::Off,
        ..Request::default()
    };
    let expected = json!({
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 10, "stream": true
    });
    assert_eq!(wire(&request), expected);
}

#[test]
fn four_breakpoints_mark_tools_system_and_the_last_two_of_ours() {
    let tool = |name: &str, deferred: bool| Tool {
        name: name.into(),
        defer_loading: if deferred { Maybe::Value(true) } else { Maybe::Absent },
        ..Tool::default()
    };
    let request = Request {
        system: vec!["who you are".to_owned(), String::new(), "what to do".to_owned()],
        tools: vec![tool("Read", false), tool("Write", false), tool("Later", true)],
        messages: vec![
            text_message(Role::User, "one"),
            text_message(Role::Assistant, "two"),
            text_message(Role::User, "three"),
            text_message(Role::Assistant, "four"),
            text_message(Role::User, "five"),
        ],
        ..Request::default()
    };
    let wire = wire(&request);
    let mark = json!({"type": "ephemeral"});
    assert_eq!(wire["tools"][1]["cache_control"], mark);
    assert_eq!(wire["system"][1], json!({"type": "text", "text": "what to do", "cache_control": mark}));
    assert_eq!(wire["messages"][2]["content"][0]["cache_control"], mark);
    assert_eq!(wire["messages"][4]["content"], json!([{"type": "text", "text": "five", "cache_control": mark}]));
    assert_eq!(wire.to_string().matches("cache_control").count(), 4);
}

#[test]
fn a_trailing_system_message_is_marked_as_what_is_new() {
    let request = Request {
        messages: vec![text_message(Role::User, "one"), text_message(Role::System, "note")],
        cache_ttl: CacheTtl::OneHour,
        ..Request::default()
    };
    let wire = wire(&request);
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    assert_eq!(wire["messages"][0]["content"][0]["cache_control"], mark);
    assert_eq!(wire["messages"][1]["content"][0]["cache_control"], mark);
}

#[test]
fn a_question_beside_the_conversation_is_not_cached() {
    let messages =
        vec![text_message(Role::User, "one"), text_message(Role::Assistant, "two"), text_message(Role::User, "sum up")];
    let wire = wire(&Request { messages, has_uncached_tail: true, ..says() });
    let cached = |at: usize| wire["messages"][at]["content"][0].get("cache_control").is_some();
    assert_eq!([cached(0), cached(1), cached(2)], [true, true, false]);
}

#[test]
fn a_block_that_cannot_be_marked_is_passed_over() {
    let blocks = vec![Block::new_text("words"), Block::new_text("")];
    let request = Request { messages: vec![Message::new(Role::User, Content::Blocks(blocks))], ..Request::default() };
    let wire = wire(&request);
    assert_eq!(wire["messages"][0]["content"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(wire["messages"][0]["content"][1].get("cache_control"), None);
}

#[test]
fn thinking_choice_effort_and_stops_take_the_apis_form() {
    let mut request = Request {
        max_tokens: 5000,
        thinking: Some(ThinkingMode::Budget(8000)),
        effort: Some("high".to_owned()),
        tool_choice: Some(ToolChoiceMode::Tool(ToolName::Read)),
        stop_sequences: vec!["END".to_owned()],
        ..Request::default()
    };
    let sent = wire(&request);
    assert_eq!(sent["thinking"], json!({"type": "enabled", "budget_tokens": 4999}));
    assert_eq!(sent["output_config"], json!({"effort": "high"}));
    assert_eq!(sent["tool_choice"], json!({"type": "tool", "name": "Read"}));
    assert_eq!(sent["stop_sequences"], json!(["END"]));
    request.thinking = Some(ThinkingMode::Adaptive);
    assert_eq!(wire(&request)["thinking"], json!({"type": "adaptive"}));
    request.thinking = Some(ThinkingMode::Off);
    assert_eq!(wire(&request)["thinking"], json!({"type": "disabled"}));
}

#[test]
fn a_task_budget_is_sent_beside_the_effort() {
    let request = Request { effort: Some("low".to_owned()), task_budget: Some(9000), ..says() };
    let config = json!({"effort": "low", "task_budget": {"type": "tokens", "total": 9000}});
    assert_eq!(wire(&request)["output_config"], config);
}

#[test]
fn thinking_that_is_off_is_not_shown_in_any_way() {
    let display = Some(ThinkingDisplay::Omitted);
    let mut request = Request { thinking: Some(ThinkingMode::Adaptive), thinking_display: display, ..says() };
    assert_eq!(wire(&request)["thinking"], json!({"type": "adaptive", "display": "omitted"}));
    request.thinking = Some(ThinkingMode::Off);
    assert_eq!(wire(&request)["thinking"], json!({"type": "disabled"}));
}

#[test]
fn fields_that_need_a_beta_bring_it() {
    assert!(says().required_betas().is_empty());
    let request = Request {
        thinking: Some(ThinkingMode::Adaptive),
        thinking_display: Some(ThinkingDisplay::Updates),
        effort: Some("low".to_owned()),
        task_budget: Some(9000),
        context_management: Some(Json::from_serialize(&json!({"edits": []}))),
        ..says()
    };
    let betas = [
        "context-management-2025-06-27",
        "effort-2025-11-24",
        "thinking-display-updates-2026-08-18",
        "task-budgets-2026-03-13",
    ];
    assert_eq!(request.required_betas(), betas);
    let off = Request { thinking: Some(ThinkingMode::Off), thinking_display: Some(ThinkingDisplay::Updates), ..says() };
    assert!(off.required_betas().is_empty());
}

#[test]
fn fields_of_the_user_replace_ours() {
    let extra = json!({"max_tokens": 5, "speed": "fast"});
    let mut request = Request { max_tokens: 10, extra_body: extra.as_object().cloned(), ..says() };
    request.history.append(&[text_message(Role::User, "before")]).unwrap();
    let mut wire = request.take_wire_request();
    request.set_model_and_stream(&mut wire, true);
    let body: Value = serde_json::from_str(&request.to_body(&wire).unwrap().text()).unwrap();
    assert_eq!((&body["max_tokens"], &body["speed"]), (&json!(5), &json!("fast")));
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn a_fallback_is_asked_with_its_own_parameters() {
    let same = FallbackModel { model: "m".to_owned(), ..FallbackModel::default() };
    let second = FallbackModel { model: "second".to_owned(), max_tokens: 100, ..FallbackModel::default() };
    let third = FallbackModel {
        model: "third".to_owned(),
        betas: vec!["b".to_owned()],
        max_tokens: 7,
        ..FallbackModel::default()
    };
    let mut request = Request {
        max_tokens: 500,
        thinking: Some(ThinkingMode::Adaptive),
        effort: Some("high".to_owned()),
        context_management: Some(Json::from_serialize(&json!({"edits": []}))),
        betas: vec!["a".to_owned()],
        fallbacks: vec![same, second, third],
        ..says()
    };
    let mut wire = request.take_wire_request();
    assert!(wire.context_management.is_value());
    assert_eq!(request.switch_to_fallback(), Some(("m".to_owned(), "second".to_owned())));
    request.set_model_and_stream(&mut wire, true);
    let sent = serde_json::to_value(&wire).unwrap();
    assert_eq!((&sent["model"], &sent["max_tokens"]), (&json!("second"), &json!(100)));
    let left = ["thinking", "output_config", "context_management"].map(|name| sent.get(name));
    assert_eq!(left, [None; 3]);
    assert!(request.required_betas().is_empty() && request.betas.is_empty());
    assert_eq!(request.switch_to_fallback(), Some(("second".to_owned(), "third".to_owned())));
    assert_eq!((request.max_tokens, &request.betas[..]), (7, &["b".to_owned()][..]));
    assert_eq!(request.switch_to_fallback(), None);
}

#[test]
fn what_counts_tokens_is_the_prompt_alone() {
    let request = Request { max_tokens: 9, effort: Some("low".to_owned()), system: vec!["s".into()], ..says() };
    let count = serde_json::to_value(request.to_count_request()).unwrap();
    let keys: Vec<&str> = count.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["model", "messages", "system"]);
}

fn says() -> Request {
    Request { model: "m".to_owned(), messages: vec![text_message(Role::User, "hi")], ..Request::default() }
}

#[test]
fn encoded_history_comes_before_the_other_messages() {
    let ask = |settled: &[Message], messages: Vec<Message>| {
        let mut request = Request { model: "m".into(), messages, ..Request::default() };
        request.history.append(settled).unwrap();
        let wire = request.take_wire_request();
        let body = request.to_body(&wire).unwrap().text();
        serde_json::from_str::<Value>(&body).unwrap()["messages"].clone()
    };
    let says = |words: &str| Message::new(Role::User, vec![Block::new_text(words)]);
    let settled = [says("\"messages\":[")];
    let both = ask(&settled, vec![says("b")]);
    assert_eq!(both[0]["content"][0]["text"], "\"messages\":[");
    assert_eq!((both[1]["content"][0]["text"].as_str(), both.as_array().map(Vec::len)), (Some("b"), Some(2)));
    assert_eq!(ask(&settled, Vec::new()).as_array().map(Vec::len), Some(1));
    assert_eq!(ask(&[], vec![says("b")]).as_array().map(Vec::len), Some(1));
}
