//! Time and money of sessions.

use quipu_conversation::price::Prices;
use quipu_message::View;
use quipu_trace::explain::{Activity, ExplainBuilder, Explanation};
use serde_json::{Value, json};

fn explain_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Explanation {
    let mut builder = ExplainBuilder::default();
    for (n, line) in lines.into_iter().enumerate() {
        let text = quipu_message::line::replace_lone_surrogates(line);
        if let Ok(view) = View::read(&text) {
            builder.push(n as u64 + 1, &text, &view);
        }
    }
    builder.finish(&Prices::bundled())
}

fn entry(second: f64, value: Value) -> String {
    let time = jiff::Timestamp::from_millisecond(1_790_000_000_000 + (second * 1000.0) as i64).unwrap();
    let mut value = value;
    value["timestamp"] = time.to_string().into();
    value["sessionId"] = "s".into();
    value.to_string()
}

fn prompt(second: f64, text: &str) -> String {
    entry(second, json!({"type": "user", "message": {"role": "user", "content": text}}))
}

fn response(second: f64, id: &str, block: Value, stop_reason: &str, output: u64) -> String {
    entry(
        second,
        json!({"type": "assistant", "message": {"id": id, "role": "assistant", "model": "claude-opus-5", "content": [block],
            "stop_reason": stop_reason, "usage": {"input_tokens": 1000, "output_tokens": output}}}),
    )
}

fn call(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
}

fn result(second: f64, id: &str, more: Value) -> String {
    let mut value = json!({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]}});
    if let (Some(value), Some(more)) = (value.as_object_mut(), more.as_object()) {
        value.extend(more.clone());
    }
    entry(second, value)
}

fn check_time(lines: &[String], expected: &[(Activity, u64)]) {
    let explanation = explain_lines(lines.iter().map(String::as_str));
    let spans: Vec<_> =
        explanation.timeline.spans.iter().map(|span| (span.activity.clone(), span.duration_ms)).collect();
    assert_eq!(spans, expected);
    assert_eq!(spans.iter().map(|(_, time)| time).sum::<u64>(), explanation.timeline.wall_ms);
}

/// The prompt and line of each turn.
fn prompts(lines: &[String]) -> Vec<(u32, String, u64)> {
    let turns = explain_lines(lines.iter().map(String::as_str)).money.turns;
    turns.into_iter().map(|turn| (turn.turn, turn.prompt, turn.line)).collect()
}

#[test]
fn a_turn_has_the_prompt_of_its_own_path() {
    let linked = |line: String, uuid: &str, parent: Option<&str>| {
        let mut value: Value = serde_json::from_str(&line).unwrap();
        (value["uuid"], value["parentUuid"]) = (uuid.into(), parent.into());
        value.to_string()
    };
    let lines = [
        linked(prompt(0.0, "one"), "u1", None),
        linked(response(1.0, "m1", text(), "end_turn", 10), "a1", Some("u1")),
        linked(prompt(2.0, "two"), "u2", Some("a1")),
        linked(response(3.0, "m2", text(), "end_turn", 10), "a2", Some("u2")),
        linked(prompt(4.0, "three"), "u3", Some("a2")),
        linked(response(5.0, "m3", text(), "end_turn", 10), "a3", Some("u3")),
        // Back to the first answer.
        linked(prompt(6.0, "another two"), "u4", Some("a1")),
        linked(response(7.0, "m4", text(), "end_turn", 10), "a4", Some("u4")),
    ];
    let expected = [(1, "one", 1), (2, "another two", 7), (3, "three", 5)];
    assert_eq!(prompts(&lines), expected.map(|(turn, prompt, line)| (turn, prompt.to_owned(), line)));
}

#[test]
fn a_command_that_the_model_answers_is_the_prompt_of_a_turn() {
    let command = "<command-name>/review</command-name>\n<command-message>review</command-message>\n<command-args></command-args>";
    let lines = [prompt(0.0, command), response(1.0, "m1", text(), "end_turn", 10)];
    let turns = prompts(&lines);
    assert!(turns.len() == 1 && turns[0].1.contains("/review") && turns[0].2 == 1, "{turns:?}");
}

#[test]
fn a_message_that_the_program_wrote_is_no_api_call() {
    let synthetic = response(2.0, "m2", text(), "stop_sequence", 0).replace("claude-opus-5", "<synthetic>");
    let lines = [prompt(0.0, "hi"), response(1.0, "m1", text(), "end_turn", 10), synthetic];
    let explanation = explain_lines(lines.iter().map(String::as_str));
    assert_eq!((explanation.money.turns[0].calls, explanation.context.len()), (1, 1));
}

fn text() -> Value {
    json!({"type": "text", "text": "done"})
}

#[test]
fn time_before_an_entry_is_assigned_by_what_it_ends() {
    let bash = || Activity::Tool("Bash".to_owned());
    check_time(
        &[
            prompt(0.0, "go"),
            response(2.0, "m1", call("t1", "Bash"), "tool_use", 10),
            result(5.0, "t1", json!({})),
            response(6.0, "m2", text(), "end_turn", 10),
            prompt(66.0, "again"),
            response(67.0, "m3", text(), "end_turn", 10),
        ],
        &[
            (Activity::Model, 2000),
            (bash(), 3000),
            (Activity::Model, 1000),
            (Activity::Idle, 60_000),
            (Activity::Model, 1000),
        ],
    );
}

#[test]
fn questions_and_permission_requests_wait_for_the_user() {
    check_time(
        &[
            prompt(0.0, "go"),
            response(1.0, "m1", call("t1", "AskUserQuestion"), "tool_use", 10),
            result(9.0, "t1", json!({})),
            response(10.0, "m2", call("t2", "Bash"), "tool_use", 10),
            result(
                20.0,
                "t2",
                json!({"toolUseResult": {"durationMs": 3000}, "permissionDecision": {"decision": "accept", "source": "user_temporary"}}),
            ),
            response(21.0, "m3", call("t3", "Bash"), "tool_use", 10),
            result(25.0, "t3", json!({"permissionDecision": {"decision": "reject", "source": "user_reject"}})),
        ],
        &[
            (Activity::Model, 1000),
            (Activity::Waiting, 8000),
            (Activity::Model, 1000),
            (Activity::Waiting, 7000),
            (Activity::Tool("Bash".to_owned()), 3000),
            (Activity::Model, 1000),
            (Activity::Waiting, 4000),
        ],
    );
}

#[test]
fn retries_compactions_and_hooks_have_their_own_time() {
    let error = json!({"type": "system", "subtype": "api_error", "retryInMs": 2000, "retryAttempt": 1});
    let boundary =
        json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "content": "Conversation compacted"});
    let hook = json!({"type": "attachment", "attachment": {"type": "hook_success", "hookName": "Stop", "hookEvent": "Stop", "durationMs": 500}});
    check_time(
        &[
            prompt(0.0, "go"),
            entry(1.0, error),
            response(5.0, "m1", text(), "end_turn", 10),
            entry(8.0, hook),
            entry(12.0, boundary),
        ],
        &[
            (Activity::Retries, 3000),
            (Activity::Model, 2000),
            (Activity::Idle, 2500),
            (Activity::Hooks, 500),
            (Activity::Compaction, 4000),
        ],
    );
}

#[test]
fn money_is_shared_by_turn_tool_and_server() {
    let lines = [
        prompt(0.0, "first"),
        response(1.0, "m1", call("t1", "mcp__github__search"), "tool_use", 1000),
        result(2.0, "t1", json!({})),
        response(3.0, "m2", text(), "end_turn", 2000),
        prompt(4.0, "second"),
        response(5.0, "m3", text(), "end_turn", 4000),
    ];
    let money = explain_lines(lines.iter().map(String::as_str)).money;
    let turns: Vec<_> = money
        .turns
        .iter()
        .map(|turn| (turn.turn, turn.prompt.as_str(), turn.line, turn.calls, turn.cost.as_f64()))
        .collect();
    // $5 a million input tokens, $25 output.
    assert_eq!(turns, [(1, "first", 1, 2, 0.085), (2, "second", 5, 1, 0.105)]);
    assert_eq!(money.mcp["github"].as_f64(), 0.03);
    assert_eq!(money.tools["(none)"].as_f64(), 0.16);
    assert_eq!(money.total.as_f64(), 0.19);
    let moments: Vec<_> = money.moments.iter().map(|moment| (moment.line, moment.cost.as_f64())).collect();
    assert_eq!(moments, [(6, 0.105), (4, 0.055), (2, 0.03)]);
}

#[test]
fn the_time_of_every_real_session_adds_up() {
    let Some(shared) = quipu_testkit::shared_dir() else { return };
    let files =
        quipu_testkit::files_under(&shared, |path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let mut with_time = 0;
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let explanation = explain_lines(text.lines());
        let sum: u64 = explanation.timeline.spans.iter().map(|span| span.duration_ms).sum();
        assert_eq!(sum, explanation.timeline.wall_ms, "{}", file.display());
        with_time += usize::from(sum > 0);
        let cost: f64 = explanation.money.turns.iter().map(|turn| turn.cost.as_f64()).sum();
        assert!((cost - explanation.money.total.as_f64()).abs() < 1e-9, "{}", file.display());
    }
    assert!(with_time > 100, "{with_time}");
}
