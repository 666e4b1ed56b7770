//! The documented rules on constructed calls and on a real capture.

use quipu_conversation::Tokens;
use quipu_conversation::price::Prices;
use quipu_trace::cache::{CacheAnalysis, Cause, Policy};
use quipu_trace::{RawCall, RawResponse, Structure, Trace, TraceBuilder};
use serde_json::{Value, json};

use super::kit::*;

const PROMPT: &str = "Fix the failing test in the parser, then run all tests again.";

/// A conversation of three calls with these pauses, every call reading what the one before
/// cached.
fn conversation(pause: i64) -> [Exchange; 3] {
    let mut messages = vec![user(PROMPT)];
    let first = Exchange::new(0, request(json!(messages)), [4, 9_000, 0, 0]).answered(json!([tool_use("toolu_1")]));
    messages.extend([calls_tool("toolu_1"), tool_result("toolu_1")]);
    let second = Exchange::new(pause, request(json!(messages)), [5, 300, 0, 9_000]);
    let second = second.answered(json!([tool_use("toolu_2")]));
    messages.extend([calls_tool("toolu_2"), tool_result("toolu_2")]);
    [first, second, Exchange::new(2 * pause, request(json!(messages)), [6, 200, 0, 9_300])]
}

fn simulate(trace: &Trace, policy: Policy) -> Vec<Option<[u64; 4]>> {
    let structure = Structure::new(trace);
    let counts = |tokens: Tokens| [tokens.input, tokens.cache_write_5m, tokens.cache_write_1h, tokens.cache_read];
    CacheAnalysis::new(trace, &structure).simulate(policy).into_iter().map(|tokens| tokens.map(counts)).collect()
}

#[track_caller]
fn check(exchanges: &[Exchange], policy: Policy, expected: &[[u64; 4]]) {
    let found: Vec<[u64; 4]> = simulate(&trace_of(exchanges), policy).into_iter().map(Option::unwrap).collect();
    assert_eq!(found, expected);
}

#[test]
fn calls_in_time_read_what_their_predecessors_wrote() {
    check(&conversation(10), Policy::Recorded, &[[4, 9_000, 0, 0], [5, 300, 0, 9_000], [6, 200, 0, 9_300]]);
    let recorded = conversation(10).map(|call| call.usage.unwrap());
    check(&conversation(10), Policy::FiveMinutes, &recorded);
}

#[test]
fn entries_expire_after_their_lifetime_and_reads_refresh_them() {
    check(&conversation(299), Policy::Recorded, &[[4, 9_000, 0, 0], [5, 300, 0, 9_000], [6, 200, 0, 9_300]]);
    check(&conversation(301), Policy::Recorded, &[[4, 9_000, 0, 0], [5, 9_300, 0, 0], [6, 9_500, 0, 0]]);
    check(&conversation(301), Policy::OneHour, &[[4, 0, 9_000, 0], [5, 0, 300, 9_000], [6, 0, 200, 9_300]]);
    check(&conversation(3_601), Policy::OneHour, &[[4, 0, 9_000, 0], [5, 0, 9_300, 0], [6, 0, 9_500, 0]]);
}

#[test]
fn the_cost_of_a_policy_is_that_of_its_tokens() {
    let trace = trace_of(&conversation(301));
    let structure = Structure::new(&trace);
    let analysis = CacheAnalysis::new(&trace, &structure);
    let cost = |policy| analysis.what_if(policy, &Prices::bundled()).cost.as_f64();
    // claude-sonnet-4-6: input 3, output 15, writes 3.75 and 6, read 0.30 dollars per million.
    let other = 15.0 * 3.0 + 300.0 * 15.0;
    assert_eq!(cost(Policy::Recorded), (other + 27_800.0 * 3.75) / 1e6);
    assert_eq!(cost(Policy::OneHour), (other + 9_500.0 * 6.0 + 18_300.0 * 0.30) / 1e6);
    let recorded = analysis.recorded_cost(&Prices::bundled());
    assert_eq!(recorded.cost.as_f64(), (other + 9_500.0 * 3.75 + 18_300.0 * 0.30) / 1e6);
    assert_eq!(recorded.calls, 3);
}

#[test]
fn one_hour_breakpoints_are_charged_before_five_minute_ones() {
    let mut calls = conversation(10);
    calls[0].body["system"][1]["cache_control"]["ttl"] = json!("1h");
    let [input, five, hour, read] = simulate(&trace_of(&calls[..1]), Policy::Recorded)[0].unwrap();
    assert_eq!((input, five + hour, read), (4, 9_000, 0));
    assert!(hour > five && five > 0, "tools and system prompt are most of the request: {hour} and {five}");
}

#[test]
fn a_breakpoint_looks_back_over_twenty_positions() {
    let with_blocks = |count: usize| {
        let mut calls = conversation(10);
        let blocks: Vec<Value> =
            (0..count).map(|number| json!({ "type": "text", "text": format!("part {number}") })).collect();
        let mut messages = vec![user(PROMPT), calls_tool("toolu_1"), tool_result("toolu_1")];
        messages.extend([calls_tool("toolu_2"), json!({ "role": "user", "content": blocks })]);
        calls[2].body = request(json!(messages));
        simulate(&trace_of(&calls), Policy::Recorded)[2].unwrap()
    };
    assert_eq!(with_blocks(18)[3], 9_300);
    // The system prompt has a breakpoint of its own.
    let read = with_blocks(19)[3];
    assert!((4_000..9_000).contains(&read), "{read}");
}

#[test]
fn an_entry_is_readable_when_the_response_to_its_writer_has_begun() {
    let mut calls = conversation(10);
    calls[0].first_event_ms = 10_001;
    check(&calls, Policy::Recorded, &[[4, 9_000, 0, 0], [5, 9_300, 0, 0], [6, 200, 0, 9_300]]);
}

#[test]
fn subagents_share_tools_and_system_prompt() {
    let agent = |id: &str, seconds| {
        let call = Exchange::new(seconds, request(json!([user(&format!("Task of {id}"))])), [4, 8_000, 0, 0]);
        call.with_header("x-claude-code-agent-id", id)
    };
    // The first two are sent at the same time.
    let trace = trace_of(&[agent("a", 0), agent("b", 0), agent("c", 5)]);
    let found: Vec<u64> = simulate(&trace, Policy::Recorded).into_iter().map(|tokens| tokens.unwrap()[3]).collect();
    assert_eq!(found[..2], [0, 0]);
    assert!(found[2] > 7_000, "{found:?}");
    // Another credential has another cache.
    let other = agent("d", 8).with_header("x-api-key", "key-b");
    let trace = trace_of(&[agent("a", 0), other]);
    assert_eq!(simulate(&trace, Policy::Recorded)[1].unwrap()[3], 0);
}

#[test]
fn prefixes_below_the_minimum_are_not_cached() {
    let mut calls = conversation(10);
    for (call, input) in calls.iter_mut().zip([900, 950, 1_200]) {
        call.usage = Some([input, 0, 0, 0]);
    }
    check(&calls, Policy::Recorded, &[[900, 0, 0, 0], [950, 0, 0, 0], [0, 1_200, 0, 0]]);
}

#[test]
fn moved_breakpoints() {
    check(&conversation(10), Policy::LastMessage, &[[4, 9_000, 0, 0], [5, 300, 0, 9_000], [6, 200, 0, 9_300]]);
    let found = simulate(&trace_of(&conversation(10)), Policy::ToolsAndSystem);
    let [first, second, third] = [0, 1, 2].map(|index| found[index].unwrap());
    assert_eq!((second[1], third[1]), (0, 0), "only the first call writes");
    assert_eq!((second[3], third[3]), (first[1], first[1]), "the others read what it wrote");
    assert_eq!(third.iter().sum::<u64>(), 9_506, "the size of the prompt stays the same");
}

#[test]
fn stable_tools_read_what_changed_tools_miss() {
    let mut calls = conversation(10);
    calls[1].body["tools"].as_array_mut().unwrap().push(tool("mcp__x__late"));
    calls[2].body["tools"] = calls[1].body["tools"].clone();
    // The tool has about 1,900 tokens.
    calls[1].usage = Some([5, 12_250, 0, 0]);
    calls[2].usage = Some([6, 1_250, 0, 12_250]);
    let trace = trace_of(&calls);
    assert_eq!(simulate(&trace, Policy::Recorded)[1].unwrap(), [5, 12_250, 0, 0]);
    let stable = simulate(&trace, Policy::StableTools);
    let [first, second, third] = [0, 1, 2].map(|index| stable[index].unwrap());
    assert!((10_700..11_100).contains(&first[1]), "the first call has one more tool: {first:?}");
    assert!(second[3].abs_diff(first[1]) < 300 && second[1] < 1_600, "{second:?} after {first:?}");
    assert_eq!(third, [6, 1_250, 0, 12_250]);
}

#[test]
fn side_calls_are_left_out_on_request() {
    let mut title = Exchange::new(3, json!({ "model": "claude-haiku-4-5", "max_tokens": 50 }), [200, 0, 0, 0]);
    title.body["messages"] = json!([user("Write a title for this conversation")]);
    let [first, second, third] = conversation(10);
    let trace = trace_of(&[first, title, second, third]);
    assert!(simulate(&trace, Policy::Recorded).iter().all(Option::is_some));
    let found: Vec<bool> = simulate(&trace, Policy::NoSideCalls).iter().map(Option::is_some).collect();
    assert_eq!(found, [true, false, true, true]);
}

/// The one published capture of a session against the real API: the rules give the reads and
/// writes that the server counted, for all 64 calls.
#[test]
fn the_rules_reproduce_a_real_capture() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let path = shared.join("corpus/data/badlogic+lemmy/bb5d89d016/apps/claude-trace/test/test-traffic.jsonl");
    let mut builder = TraceBuilder::default();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let pair: Value = serde_json::from_str(line).unwrap();
        let (request, response) = (&pair["request"], &pair["response"]);
        let time = |at: &Value| jiff::Timestamp::from_millisecond((at.as_f64().unwrap() * 1000.0) as i64).ok();
        let response_body = match response["body_raw"].as_str() {
            Some(events) => RawResponse::Sse(events.to_owned().into()),
            None => RawResponse::Json(response["body"].to_string().into()),
        };
        builder.push(&RawCall {
            started_at: time(&request["timestamp"]),
            ended_at: time(&response["timestamp"]),
            method: "POST".into(),
            url: request["url"].as_str().unwrap().to_owned().into(),
            request_body: request["body"].to_string().into(),
            status: Some(200),
            response: response_body,
            ..RawCall::default()
        });
    }
    let trace = builder.finish();
    let recorded: Vec<Option<[u64; 4]>> = trace
        .calls
        .iter()
        .map(|call| call.response.tokens.map(|t| [t.input, t.cache_write_5m, t.cache_write_1h, t.cache_read]))
        .collect();
    assert_eq!(recorded.len(), 64);
    assert_eq!(recorded.iter().filter(|tokens| tokens.unwrap()[3] > 0).count(), 15);
    let structure = Structure::new(&trace);
    let verdicts = CacheAnalysis::new(&trace, &structure).verdicts(&Prices::bundled());
    let misses = verdicts.into_iter().filter_map(|verdict| Some((verdict.call, verdict.miss?)));
    let misses: Vec<_> = misses.map(|(call, miss)| (call, miss.cause, miss.at.unwrap(), miss.tokens)).collect();
    // The summary was made with one tool only, and the conversation continued from it.
    assert_eq!(
        misses,
        [
            (34, Cause::ToolsChanged, "tools[0] Task".to_owned(), 12_072),
            (57, Cause::Compacted, "messages[0].content[1]".to_owned(), 8_284),
        ]
    );
    let simulated = simulate(&trace, Policy::Recorded);
    for (index, (found, expected)) in simulated.iter().zip(&recorded).enumerate() {
        assert_eq!(found, expected, "call {index}");
    }
}
