//! One constructed case for each cause of a cache miss, and cases in which nothing is wrong.

use quipu_conversation::price::Prices;
use quipu_trace::Structure;
use quipu_trace::cache::{CacheAnalysis, CallVerdict, Cause, MissTotals};
use serde_json::{Value, json};

use super::kit::*;

const PROMPT: &str = "Fix the failing test in the parser, then run all tests again.";

/// The first call of a conversation: 9,000 tokens written.
fn first() -> Exchange {
    Exchange::new(0, request(json!([user(PROMPT)])), [4, 9_000, 0, 0]).answered(json!([tool_use("toolu_1")]))
}

/// The messages of the second call: prompt, tool call, tool result.
fn second_messages() -> Value {
    json!([user(PROMPT), calls_tool("toolu_1"), tool_result("toolu_1")])
}

/// The second call, ten seconds later, which missed everything.
fn second() -> Exchange {
    Exchange::new(10, request(second_messages()), [5, 9_300, 0, 0]).answered(json!([tool_use("toolu_2")]))
}

/// The third call, which missed everything.
fn third() -> Exchange {
    let mut messages = second_messages();
    let more = [calls_tool("toolu_2"), tool_result("toolu_2")];
    messages.as_array_mut().unwrap().extend(more);
    Exchange::new(20, request(messages), [6, 9_600, 0, 0])
}

/// The second call, which read what the first one wrote.
fn second_hit() -> Exchange {
    Exchange { usage: Some([5, 300, 0, 9_000]), ..second() }
}

fn last_of(exchanges: &[Exchange]) -> CallVerdict {
    verdicts_of(exchanges).pop().unwrap()
}

/// Cause and place of the miss of the last call.
fn miss_of(exchanges: &[Exchange]) -> Option<(Cause, Option<String>)> {
    last_of(exchanges).miss.map(|miss| (miss.cause, miss.at))
}

#[track_caller]
fn check(exchanges: &[Exchange], cause: Cause, at: Option<&str>) {
    assert_eq!(miss_of(exchanges), Some((cause, at.map(str::to_owned))));
}

#[test]
fn a_call_that_read_what_its_predecessor_cached_has_no_miss() {
    let verdict = last_of(&[first(), second_hit()]);
    assert_eq!((verdict.read, verdict.written, verdict.expected_read), (Some(9_000), Some(300), 9_000));
    assert!(!verdict.is_estimate);
    assert_eq!(verdict.miss, None);
}

#[test]
fn the_first_call_of_a_session_or_a_subagent_has_no_miss() {
    assert_eq!(miss_of(&[first()]), None);
    let subagent = Exchange::new(20, request(json!([user("Look for callers of parse()")])), [4, 8_000, 0, 0])
        .with_header("x-claude-code-agent-id", "a1");
    let verdict = last_of(&[first(), subagent]);
    assert_eq!(verdict.miss, None);
    // It has the tools and the system prompt of the main conversation.
    assert!(verdict.expected_read > 4_000, "{}", verdict.expected_read);
    assert!(verdict.is_estimate);
}

#[test]
fn a_call_without_breakpoints_is_not_expected_to_read() {
    let mut probe = second();
    probe.usage = Some([9_300, 0, 0, 0]);
    probe.body["system"] = json!("You are a careful engineer. ");
    probe.body["messages"] = second_messages();
    let verdict = last_of(&[first(), probe]);
    assert_eq!((verdict.expected_read, verdict.miss), (0, None));
}

#[test]
fn tokens_and_cost_of_a_miss_follow_from_the_counts_and_the_prices() {
    let verdict = last_of(&[first(), second().with("/model", json!("claude-sonnet-4-5"))]);
    let miss = verdict.miss.unwrap();
    assert_eq!((verdict.expected_read, miss.tokens), (9_000, 9_000));
    // 9,000 tokens at 3.75 instead of 0.30 dollars per million.
    assert_eq!(miss.cost.unwrap().as_f64(), 9_000.0 * (3.75 - 0.30) / 1e6);
    let one_hour = Exchange { usage: Some([5, 0, 9_300, 0]), ..second() };
    let one_hour = Exchange { body: with_one_hour(one_hour.body.clone()), ..one_hour };
    let miss = last_of(&[first(), one_hour.with("/tool_choice", json!({ "type": "any" }))]).miss.unwrap();
    assert_eq!(miss.cost.unwrap().as_f64(), 9_000.0 * (6.0 - 0.30) / 1e6);
}

#[test]
fn a_miss_of_a_model_without_a_price_has_no_cost() {
    let unknown = |call: Exchange| call.with("/model", json!("claude-opus-9"));
    let miss = last_of(&[unknown(first()), unknown(second()).with("/tools/1", tool("Edit"))]).miss.unwrap();
    assert_eq!((miss.tokens, miss.cost), (9_000, None));
}

#[test]
fn a_pause_longer_than_the_lifetime_is_the_cause_before_all_others() {
    let late = Exchange { seconds: 301, ..second() };
    check(&[first(), late.clone()], Cause::TtlExpired, None);
    check(&[first(), late.with("/model", json!("claude-opus-4-6"))], Cause::TtlExpired, None);
    check(&[first(), Exchange { seconds: 300, ..second() }], Cause::Unknown, None);
}

#[test]
fn one_hour_entries_and_refreshed_entries_live_longer() {
    let hour = |call: Exchange| Exchange { body: with_one_hour(call.body.clone()), ..call };
    check(&[hour(first()), Exchange { seconds: 3_500, ..hour(second()) }], Cause::Unknown, None);
    check(&[hour(first()), Exchange { seconds: 3_601, ..hour(second()) }], Cause::TtlExpired, None);
    let (refresh, late) = (Exchange { seconds: 250, ..second_hit() }, Exchange { seconds: 500, ..third() });
    check(&[first(), refresh, late], Cause::Unknown, None);
}

#[test]
fn an_entry_that_another_branch_read_is_refreshed_too() {
    // A prompt suggestion: the conversation with one more instruction behind the breakpoint.
    let mut messages = second_messages();
    messages[2]["content"][0]["cache_control"] = json!({ "type": "ephemeral" });
    messages.as_array_mut().unwrap().extend([assistant("Done."), user("Suggest the next prompt")]);
    let mut body = request(messages);
    body["messages"][4]["content"] = json!("Suggest the next prompt");
    let suggestion = Exchange::new(250, body, [30, 0, 0, 9_300]);
    check(&[first(), second_hit(), suggestion.clone(), Exchange { seconds: 500, ..third() }], Cause::Unknown, None);
    check(&[first(), second_hit(), Exchange { seconds: 500, ..third() }], Cause::TtlExpired, None);
    // The suggestion itself read what the conversation had cached.
    assert_eq!(miss_of(&[first(), second_hit(), suggestion]), None);
}

#[test]
fn another_model() {
    check(&[first(), second().with("/model", json!("claude-opus-4-6"))], Cause::ModelChanged, Some("model"));
}

#[test]
fn tools_added_removed_moved_and_edited() {
    let tools = |tools: Value| second().with("/tools", tools);
    let [read, bash, grep] = ["Read", "Bash", "Grep"].map(tool);
    let check = |tools: Exchange, at| check(&[first(), tools], Cause::ToolsChanged, Some(at));
    check(tools(json!([read, bash, grep, tool("mcp__x__y")])), "tools[3] mcp__x__y");
    check(tools(json!([tool("Edit"), read, bash, grep])), "tools[0] Edit");
    check(tools(json!([read, grep])), "tools[1] Bash");
    check(tools(json!([read, bash])), "tools[2] Grep");
    check(tools(json!([read, grep, bash])), "tools[1] Grep");
    let mut edited = bash.clone();
    edited["description"] = json!("Runs a command.");
    check(tools(json!([read, edited, grep])), "tools[1] Bash");
}

#[test]
fn fast_mode_and_beta_headers() {
    check(&[first(), second().with("/speed", json!("fast"))], Cause::BetaChanged, Some("speed"));
    assert_eq!(
        miss_of(&[first().with("/speed", json!("standard")), second()]),
        Some((Cause::Unknown, None)),
        "the standard speed is the default"
    );
    let with_beta = second().with_header("anthropic-beta", "a-2025,b-2026");
    let before = first().with_header("anthropic-beta", "a-2025");
    check(&[before.clone(), with_beta], Cause::BetaChanged, Some("anthropic-beta b-2026"));
    let same = second().with_header("anthropic-beta", "a-2025");
    check(&[before, same], Cause::Unknown, None);
}

#[test]
fn a_beta_header_is_not_the_cause_if_most_of_the_prompt_was_read() {
    let mut changed = third().with_header("anthropic-beta", "b-2026");
    changed.usage = Some([6, 600, 0, 9_000]);
    changed.body["messages"][2]["content"][0]["content"] = json!("cleared");
    check(&[first(), second_hit(), changed], Cause::MessageEdited, Some("messages[2].content[0]"));
}

#[test]
fn system_text_web_search_and_citations() {
    let system = second().with("/system/1/text", json!("You are brief."));
    check(&[first(), system], Cause::SystemChanged, Some("system[1]"));
    let billing = second().with("/system/0/text", json!("x-anthropic-billing-header: cc_version=1; cch=2;"));
    check(&[first(), billing], Cause::Unknown, None);
    let search = json!({ "type": "web_search_20250305", "name": "web_search" });
    let with_search = second().with("/tools", json!([tool("Read"), tool("Bash"), tool("Grep"), search]));
    check(&[first(), with_search], Cause::SystemChanged, Some("tools[3] web_search"));
    let mut messages = second_messages();
    let document =
        json!({ "type": "document", "source": { "type": "text", "data": "x" }, "citations": { "enabled": true } });
    messages[2]["content"].as_array_mut().unwrap().push(document);
    let cited = Exchange { body: request(messages), ..second() };
    check(&[first(), cited], Cause::SystemChanged, Some("messages[2].content[1]"));
}

#[test]
fn thinking_and_effort() {
    let thinking = json!({ "type": "enabled", "budget_tokens": 4_000 });
    check(&[first(), second().with("/thinking", thinking)], Cause::ThinkingChanged, Some("thinking"));
    let effort = |effort: &str| json!({ "effort": effort });
    let calls = [first().with("/output_config", effort("low")), second().with("/output_config", effort("high"))];
    check(&calls, Cause::ThinkingChanged, Some("output_config.effort"));
}

#[test]
fn parameters_that_change_nothing_that_is_cached() {
    let display = json!({ "type": "adaptive", "display": "summarized" });
    let calls = [first().with("/thinking", json!({ "type": "adaptive" })), second().with("/thinking", display)];
    check(&calls, Cause::Unknown, None);
    check(&[first(), second().with("/tool_choice", json!({ "type": "auto" }))], Cause::Unknown, None);
    let budget = json!({ "task_budget": { "type": "tokens", "total": 9, "remaining": 3 } });
    check(&[first(), second().with("/output_config", budget)], Cause::Unknown, None);
    check(&[first(), second().with("/max_tokens", json!(2_000))], Cause::Unknown, None);
}

#[test]
fn another_format_of_the_response_changes_the_system_prompt() {
    let format = json!({ "format": { "type": "json_schema", "schema": { "type": "object" } } });
    let calls = [first(), second().with("/output_config", format)];
    check(&calls, Cause::SystemChanged, Some("output_config.format"));
}

#[test]
fn another_tool_choice() {
    let forced = second().with("/tool_choice", json!({ "type": "any" }));
    check(&[first(), forced], Cause::ToolChoiceChanged, Some("tool_choice"));
}

fn image() -> Value {
    json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "aGVsbG8=" } })
}

#[test]
fn images_added_and_removed() {
    let mut messages = second_messages();
    messages[2]["content"][0]["content"] = json!([image()]);
    let with_image = Exchange { body: request(messages.clone()), ..second() };
    check(&[first(), with_image.clone()], Cause::ImagesChanged, Some("messages[2].content[0]"));
    // The client replaces an image by a text.
    let mut later = messages;
    later[2]["content"][0]["content"] = json!("[image removed]");
    later.as_array_mut().unwrap().extend([calls_tool("toolu_2"), tool_result("toolu_2")]);
    let removed = Exchange { body: request(later), ..third() };
    let hit = Exchange { usage: Some([5, 300, 0, 9_000]), ..with_image };
    check(&[first(), hit, removed], Cause::ImagesChanged, Some("messages[2].content[0]"));
}

#[test]
fn another_first_message() {
    let mut messages = second_messages();
    messages[0] = json!({ "role": "user", "content": [{ "type": "text", "text": "<system-reminder>new</system-reminder>" }, { "type": "text", "text": PROMPT }] });
    let changed = Exchange { body: request(messages), ..second() };
    check(&[first(), changed], Cause::FirstMessageChanged, Some("messages[0].content[0]"));
    let mut messages = third().body["messages"].clone();
    messages[0]["content"] = json!("<system-reminder>new</system-reminder>");
    let changed = Exchange { body: request(messages), ..third() };
    check(&[first(), second_hit(), changed], Cause::FirstMessageChanged, Some("messages[0].content[0]"));
}

#[test]
fn an_edited_message_and_another_order_of_keys() {
    let edited = third().with("/messages/2/content/0/content", json!("cleared"));
    check(&[first(), second_hit(), edited], Cause::MessageEdited, Some("messages[2].content[0]"));
    let reordered = third().with("/messages/1/content/0/input", json!({ "timeout": 5, "command": "ls" }));
    check(&[first(), second_hit(), reordered], Cause::MessageEdited, Some("messages[1].content[0]"));
}

#[test]
fn a_moved_breakpoint_and_a_string_instead_of_a_block_are_no_changes() {
    let mut messages = third().body["messages"].clone();
    messages[0] = user(PROMPT);
    messages[2]["content"][0].as_object_mut().unwrap().remove("cache_control");
    let hit = Exchange { body: request(messages), usage: Some([6, 300, 0, 9_300]), ..third() };
    assert_eq!(miss_of(&[first(), second_hit(), hit.clone()]), None);
    let miss = Exchange { usage: Some([6, 9_600, 0, 0]), ..hit };
    check(&[first(), second_hit(), miss], Cause::Unknown, None);
}

#[test]
fn oldest_messages_removed() {
    let mut messages = third().body["messages"].as_array().unwrap().clone();
    messages.drain(0..2);
    let mut truncated = Exchange { body: request(json!(messages)), ..third() };
    truncated.usage = Some([6, 5_000, 0, 4_000]);
    check(&[first(), second_hit(), truncated], Cause::Truncated, Some("messages[0].content[0]"));
}

#[test]
fn messages_removed_behind_the_first_one() {
    let answers = ["Look at the lexer.", "It skips empty lines.", "The test is wrong."].map(assistant);
    let prompts = ["What fails?", "Why?", "Fix it.", "Thanks, and now?"].map(user);
    let [a1, a2, a3] = &answers;
    let [u1, u2, u3, u4] = &prompts;
    let call = |seconds, messages: Value, usage, answer: &Value| {
        Exchange::new(seconds, request(messages), usage).answered(answer["content"].clone())
    };
    let calls = [
        call(0, json!([u1]), [4, 9_000, 0, 0], a1),
        call(10, json!([u1, a1, u2]), [4, 100, 0, 9_000], a2),
        call(20, json!([u1, a1, u2, a2, u3]), [4, 100, 0, 9_100], a3),
        call(30, json!([u1, a2, u3, a3, u4]), [4, 300, 0, 8_900], a3),
    ];
    check(&calls, Cause::Truncated, Some("messages[1].content[0]"));
}

/// Three calls of a conversation, and a prompt that replaces the third one.
fn rewound(usage: [u64; 4]) -> [Exchange; 4] {
    let mut messages = second_messages();
    messages.as_array_mut().unwrap().extend([assistant("No, look elsewhere."), user("Look in src/lexer.rs")]);
    let third = Exchange { usage: Some([6, 300, 0, 9_300]), ..third() };
    [first(), second_hit(), third, Exchange::new(60, request(messages), usage)]
}

#[test]
fn going_back_should_read_what_was_cached_there() {
    let verdict = last_of(&rewound([3, 200, 0, 9_300]));
    assert_eq!((verdict.expected_read, verdict.miss), (9_300, None));
    check(&rewound([3, 9_500, 0, 0]), Cause::Unknown, None);
    let mut late = rewound([3, 9_500, 0, 0]);
    late[3].seconds = 600;
    check(&late, Cause::TtlExpired, None);
}

#[test]
fn going_back_to_a_message_without_a_breakpoint() {
    let calls = rewound([3, 2_000, 0, 6_000]);
    // The trace begins with the call that is taken back.
    let whole = Exchange { usage: Some([6, 9_600, 0, 0]), ..calls[2].clone() };
    check(&[whole, calls[3].clone()], Cause::Truncated, Some("messages[3].content[0]"));
}

#[test]
fn a_summary_instead_of_the_history() {
    let summary = "The parser fails on empty input; the fix is in src/parser.rs and the tests pass now.";
    let mut messages = third().body["messages"].clone();
    messages[4]["content"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "type": "text", "text": "Summarise the conversation." }));
    let mut summarise = Exchange { body: request(messages), usage: Some([6, 600, 0, 9_300]), ..third() };
    summarise.content = json!([{ "type": "text", "text": format!("<summary>{summary}</summary>") }]);
    let after = Exchange::new(60, request(json!([user(summary)])), [4, 1_000, 0, 8_000]);
    let calls = [first(), second_hit(), summarise, after.clone()];
    check(&calls, Cause::Compacted, Some("messages[0].content[0]"));
    let verdict = last_of(&calls);
    assert_eq!((verdict.expected_read, verdict.miss.unwrap().tokens), (9_000, 1_000));
    // Session files do not log the call that made the summary.
    let text = quipu_message::synthetic::compact_summary_text(summary);
    let logged = Exchange { body: request(json!([user(&text)])), ..after.clone() };
    check(&[first(), second_hit(), logged], Cause::Compacted, Some("messages[0].content[0]"));
    // A new conversation in the same session has no predecessor.
    assert_eq!(miss_of(&[first(), second_hit(), Exchange { body: request(json!([user("Hello")])), ..after }]), None);
}

#[test]
fn context_that_the_server_cleared() {
    let edits = json!({ "context_management": { "applied_edits": [{ "type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": 300 }] } });
    let cleared = Exchange { extra: edits.clone(), ..third() };
    check(&[first(), second_hit(), cleared.clone()], Cause::ContextEdited, None);
    // The same edits as before leave the prompt as it was.
    check(&[first(), Exchange { extra: edits, ..second_hit() }, cleared], Cause::Unknown, None);
}

#[test]
fn thinking_that_older_models_drop() {
    let calls = |model: &str, last: Value| {
        let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" });
        let mut messages = second_messages();
        messages[1]["content"] = json!([thinking, tool_use("toolu_1")]);
        let turn = Exchange { body: request(messages.clone()), ..second_hit() };
        messages.as_array_mut().unwrap().extend([calls_tool("toolu_2"), last]);
        let next = Exchange { body: request(messages), ..third() };
        [first(), turn, next].map(|call| call.with("/model", json!(model)))
    };
    let prompt = || user("Stop. Do the lexer first.");
    check(&calls("claude-sonnet-4-5", prompt()), Cause::ThinkingDropped, Some("messages[1].content[0]"));
    check(&calls("claude-sonnet-4-6", prompt()), Cause::Unknown, None);
    // Within a turn the thinking is kept.
    check(&calls("claude-sonnet-4-5", tool_result("toolu_2")), Cause::Unknown, None);
}

fn many_results(count: usize) -> Exchange {
    let ids: Vec<String> = (0..count).map(|number| format!("toolu_m{number}")).collect();
    let mut messages = second_messages();
    let calls: Vec<Value> = ids.iter().map(|id| tool_use(id)).collect();
    let results: Vec<Value> = ids.iter().map(|id| tool_result(id)["content"][0].clone()).collect();
    let more = [json!({ "role": "assistant", "content": calls }), json!({ "role": "user", "content": results })];
    messages.as_array_mut().unwrap().extend(more);
    Exchange { body: request(messages), ..third() }
}

#[test]
fn more_blocks_than_a_breakpoint_looks_back() {
    // 9 calls and 9 results: the last entry is 18 positions before the breakpoint.
    check(&[first(), second_hit(), many_results(9)], Cause::Unknown, None);
    check(&[first(), second_hit(), many_results(10)], Cause::Lookback, Some("messages[2].content[0]"));
}

#[test]
fn a_request_sent_before_the_first_response_began() {
    let slow = Exchange { first_event_ms: 12_000, ..first() };
    check(&[slow.clone(), second()], Cause::Concurrent, None);
    check(&[slow, Exchange { seconds: 12, ..second() }], Cause::Unknown, None);
}

#[test]
fn a_prompt_below_the_minimum_length() {
    let short = |call: Exchange, input| Exchange { usage: Some([input, 0, 0, 0]), ..call };
    check(&[short(first(), 900), short(second(), 1_000)], Cause::BelowMinimum, None);
    let long = [short(first(), 1_900), short(second(), 2_000)];
    assert_eq!(miss_of(&long), None, "long enough, but nothing was cached: there is nothing to read");
    let unknown =
        [short(first(), 900), short(second(), 1_000)].map(|call| call.with("/model", json!("claude-opus-5-5")));
    assert_eq!(miss_of(&unknown), None, "the minimum of this model is not known");
}

#[test]
fn another_account() {
    check(&[first(), second().with_header("x-api-key", "key-b")], Cause::AccountChanged, None);
}

#[test]
fn an_identical_request_in_time_is_evicted_or_unknown() {
    check(&[first(), second()], Cause::Unknown, None);
}

#[test]
fn a_failed_call_is_no_predecessor_and_has_no_counts() {
    let failed = Exchange { usage: None, seconds: 5, ..second() };
    let verdicts = verdicts_of(&[first(), failed, second_hit()]);
    assert_eq!((verdicts[1].read, verdicts[1].written, verdicts[1].miss.clone()), (None, None, None));
    assert_eq!((verdicts[2].expected_read, verdicts[2].miss.clone()), (9_000, None));
}

#[test]
fn the_servers_diagnosis_is_beside_the_verdict() {
    let diagnosis = json!({ "diagnostics": { "cache_miss_reason": { "type": "system_changed", "cache_missed_input_tokens": 8_900 } } });
    let changed = Exchange { extra: diagnosis, ..second().with("/system/1/text", json!("You are brief.")) };
    let verdict = last_of(&[first(), changed]);
    assert_eq!(verdict.miss.unwrap().cause, Cause::SystemChanged);
    assert_eq!(verdict.server_diagnosis.unwrap().kind.text(), Some("system_changed"));
}

#[test]
fn misses_are_summed_by_cause() {
    let trace = trace_of(&[first(), second(), third().with("/tools/0", tool("Write"))]);
    let structure = Structure::new(&trace);
    let verdicts = CacheAnalysis::new(&trace, &structure).verdicts(&Prices::bundled());
    let totals = MissTotals::by_cause(&verdicts);
    let rows: Vec<(Cause, usize, u64)> = totals.iter().map(|(cause, sum)| (*cause, sum.misses, sum.tokens)).collect();
    assert_eq!(rows, [(Cause::ToolsChanged, 1, 9_300), (Cause::Unknown, 1, 9_000)]);
}
