//! Small stories, each of one thing that must hold.

use quipu_conversation::price::Prices;
use quipu_conversation::{Conversation, ItemKind, MetricsBuilder, ToolStatus};
use quipu_message::View;
use serde_json::{Value, json};

pub(crate) fn conversation_from(lines: &[Value]) -> Conversation {
    let mut conversation = Conversation::default();
    lines.iter().enumerate().for_each(|(i, line)| conversation.push_line(i as u64 + 1, &line.to_string()));
    conversation
}

pub(crate) fn user_entry(uuid: &str, parent: Option<&str>, content: Value) -> Value {
    json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": content}})
}

pub(crate) fn assistant_entry(uuid: &str, parent: &str, id: &str, block: Value) -> Value {
    json!({"type": "assistant", "uuid": uuid, "parentUuid": parent,
        "message": {"role": "assistant", "id": id, "model": "claude-opus-5-5", "content": [block]}})
}

pub(crate) fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})
}

pub(crate) fn tool_result(id: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": format!("from {id}")}])
}

pub(crate) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn screen_texts(conversation: &Conversation) -> Vec<String> {
    let show = |item: quipu_conversation::ScreenItem| match item.tool {
        Some(tool) => format!("{} {:?}", tool.id, tool.status),
        None => item.text.unwrap_or_default(),
    };
    conversation.for_ui().into_iter().map(show).collect()
}

#[test]
fn nested_progress_is_read_to_a_limited_depth() {
    let open = r#"{"type":"progress","parentToolUseID":"t","data":{"type":"agent_progress","message":"#;
    let text = open.repeat(2000) + &user_entry("u", None, json!("hi")).to_string() + &"}}".repeat(2000);
    let mut conversation = conversation_from(&[user_entry("p", None, json!("go"))]);
    conversation.push_line(2, &text);
    assert_eq!((screen_texts(&conversation), conversation.problems().len()), (vec!["go".to_owned()], 0));
}

#[test]
fn parallel_calls_are_no_branches_and_a_rewind_is() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a1", "p", "m1", tool_use("t1")),
        assistant_entry("a2", "a1", "m1", tool_use("t2")),
        user_entry("r2", Some("a2"), tool_result("t2")),
        user_entry("r1", Some("a1"), tool_result("t1")),
        assistant_entry("a3", "r1", "m2", text_block("left behind")),
        user_entry("q", Some("r2"), json!("again")),
        assistant_entry("a4", "q", "m3", text_block("kept")),
    ]);
    assert_eq!(
        screen_texts(&conversation),
        ["go", "t1 Success", "t2 Success", "Branch 1 was left here: 1 item", "again", "kept"]
    );
    let branches: Vec<_> =
        conversation.branches().iter().filter_map(|b| b.nodes[0].uuid()).map(|u| u.to_string()).collect();
    assert_eq!(branches, ["a3"]);
}

#[test]
fn results_may_come_first_or_late_or_never() {
    let conversation = conversation_from(&[
        user_entry("r", None, tool_result("t1")),
        assistant_entry("a", "r", "m", tool_use("t1")),
        assistant_entry("b", "a", "m", tool_use("t2")),
        user_entry("q", Some("b"), json!("and?")),
    ]);
    assert_eq!(screen_texts(&conversation), ["t1 Success", "t2 Pending", "and?"]);
    let sent = serde_json::to_value(conversation.for_api()).unwrap();
    assert_eq!(sent[2]["content"][0]["content"], "from t1");
    assert_eq!(sent[2]["content"][1]["content"], "[Tool result missing due to internal error]");
    assert_eq!(sent[2]["content"][1]["is_error"], true);
    assert_eq!(sent[2]["content"][2]["text"], "and?");
}

#[test]
fn of_several_results_the_last_wins() {
    let mut late = user_entry("r2", Some("r1"), tool_result("t1"));
    late["message"]["content"][0]["is_error"] = true.into();
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m", tool_use("t1")),
        user_entry("r1", Some("a"), tool_result("t1")),
        late,
    ]);
    assert_eq!(conversation.for_ui()[1].tool.as_ref().unwrap().status, ToolStatus::Failed);
}

#[test]
fn a_tombstone_withdraws_what_was_shown() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m1", text_block("half an ans")),
        json!({"type": "tombstone", "message": {"uuid": "a"}}),
        assistant_entry("b", "p", "m2", text_block("whole answer")),
    ]);
    assert_eq!(screen_texts(&conversation), ["go", "whole answer"]);
    assert_eq!(conversation.for_api().len(), 2);
}

#[test]
fn after_a_compaction_the_kept_lines_follow_the_summary() {
    let mut summary = user_entry("s", Some("b"), json!("In short."));
    summary["isCompactSummary"] = true.into();
    let conversation = conversation_from(&[
        user_entry("p", None, json!("one")),
        assistant_entry("a", "p", "m1", text_block("first")),
        user_entry("q", Some("a"), json!("two")),
        assistant_entry("c", "q", "m2", text_block("second")),
        json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null, "logicalParentUuid": "c",
            "compactMetadata": {"trigger": "manual", "preTokens": 9, "preservedSegment": {"headUuid": "q", "anchorUuid": "s", "tailUuid": "c"}}}),
        summary,
        user_entry("r", Some("s"), json!("three")),
    ]);
    let sent: Vec<String> = conversation.for_api().iter().map(|m| m.content.to_text()).collect();
    assert_eq!(sent, ["In short.\ntwo", "second", "three"]);
    assert_eq!(
        screen_texts(&conversation),
        ["one", "first", "two", "second", "Conversation compacted (manual, 9 tokens before)", "In short.", "three"]
    );
}

#[test]
fn a_cleared_context_is_shown_on_and_not_sent_on() {
    let hook = json!({"type": "progress", "uuid": "h", "parentUuid": null, "toolUseID": "x",
        "data": {"type": "hook_progress", "hookEvent": "SessionStart", "hookName": "SessionStart:clear"}});
    let conversation = conversation_from(&[
        user_entry("p", None, json!("plan it")),
        assistant_entry("a", "p", "m1", text_block("a plan")),
        hook,
        user_entry("q", Some("h"), json!("do it")),
        assistant_entry("b", "q", "m2", text_block("done")),
    ]);
    assert_eq!(screen_texts(&conversation), ["plan it", "a plan", "SessionStart:clear", "do it", "done"]);
    assert_eq!(conversation.for_api().len(), 2);
    assert!(conversation.branches().is_empty());
}

#[test]
fn the_old_layout_of_a_compaction_begins_with_its_summary() {
    let conversation = conversation_from(&[
        json!({"type": "summary", "summary": "What was done.", "leafUuid": "old", "isCompactSummary": true}),
        json!({"type": "system", "subtype": "init", "model": "m"}),
        user_entry("q", None, json!("go on")),
    ]);
    assert_eq!(screen_texts(&conversation), ["What was done.", "go on"]);
    assert_eq!(conversation.for_api()[0].content.to_text(), "What was done.\ngo on");
}

#[test]
fn once_a_message_is_split_all_later_ids_are_derived() {
    let a = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa";
    let b = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb";
    let already = "cccccccc-cccc-4ccc-8ccc-000000000001";
    let conversation = conversation_from(&[
        user_entry("first", None, json!("go")),
        user_entry(a, Some("first"), json!([text_block("x"), text_block("y")])),
        user_entry(b, Some(a), json!([text_block("z")])),
        user_entry(already, Some(b), json!([text_block("w")])),
    ]);
    let ids: Vec<String> = conversation.for_ui().iter().map(|item| item.uuid.as_ref().unwrap().to_string()).collect();
    assert_eq!(
        ids,
        [
            "first",
            "aaaaaaaa-aaaa-4aaa-8aaa-000000000000",
            "aaaaaaaa-aaaa-4aaa-8aaa-000000000001",
            "bbbbbbbb-bbbb-4bbb-8bbb-000000000000",
            already
        ]
    );
}

#[test]
fn hooks_are_shown_with_their_call() {
    let hook = |uuid: &str, parent: &str, event: &str| {
        json!({"type": "progress", "uuid": uuid, "parentUuid": parent, "toolUseID": "t1",
        "data": {"type": "hook_progress", "hookEvent": event, "hookName": format!("{event}:Bash")}})
    };
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m", tool_use("t1")),
        assistant_entry("b", "a", "m", text_block("meanwhile")),
        hook("h2", "b", "PostToolUse"),
        hook("h1", "h2", "PreToolUse"),
        user_entry("r", Some("h1"), tool_result("t1")),
    ]);
    assert_eq!(screen_texts(&conversation), ["go", "PreToolUse:Bash", "t1 Success", "PostToolUse:Bash", "meanwhile"]);
}

#[test]
fn messages_of_a_subagent_are_under_its_call() {
    let mut inner = assistant_entry("s2", "s1", "m9", text_block("found it"));
    inner["isSidechain"] = true.into();
    inner["agentId"] = "a1".into();
    let mut prompt = user_entry("s1", None, json!("look"));
    prompt["isSidechain"] = true.into();
    prompt["agentId"] = "a1".into();
    let mut answer = user_entry("r", Some("a"), tool_result("t1"));
    answer["toolUseResult"] = json!({"agentId": "a1"});
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m", tool_use("t1")),
        prompt,
        inner,
        answer,
    ]);
    let items = conversation.for_ui();
    let side = items[1].tool.as_ref().unwrap().subagent.as_ref().unwrap();
    assert_eq!(side.items.last().unwrap().text.as_deref(), Some("found it"));
    assert_eq!(items.len(), 2);
}

#[test]
fn a_picture_that_was_too_large_is_not_sent_again() {
    let mut picture = user_entry(
        "i",
        Some("p"),
        json!([text_block("see"), {"type": "image", "source": {"type": "base64", "data": "AA=="}}]),
    );
    picture["isMeta"] = true.into();
    let mut error = assistant_entry("e", "i", "x", text_block("API Error: image was too large"));
    error["isApiErrorMessage"] = true.into();
    let conversation = conversation_from(&[
        user_entry("p", None, json!("look")),
        picture,
        error,
        user_entry("q", Some("e"), json!("go on")),
    ]);
    let sent = serde_json::to_string(&conversation.for_api()).unwrap();
    assert!(!sent.contains("image") && sent.contains("see") && sent.contains("go on"), "{sent}");
}

#[test]
fn a_large_picture_does_not_excuse_other_documents() {
    let document = json!({"type": "document", "source": {"type": "base64", "data": "AA=="}});
    let large = json!({"type": "image", "source": {"type": "base64", "data": "A".repeat(6 << 20)}});
    let mut error = assistant_entry("e", "q", "x", text_block("API Error: PDF too large"));
    error["isApiErrorMessage"] = true.into();
    let conversation = conversation_from(&[
        user_entry("p", None, json!([large, document])),
        user_entry("q", Some("p"), json!([document])),
        error,
        user_entry("r", Some("e"), json!("go on")),
    ]);
    let sent = serde_json::to_string(&conversation.for_api()).unwrap();
    assert_eq!((sent.matches("\"document\"").count(), sent.matches("\"image\"").count()), (0, 1));
}

#[test]
fn what_the_stream_is_writing_is_shown_until_it_comes_whole() {
    let event = |event: Value| json!({"type": "stream_event", "event": event, "session_id": "s", "uuid": "e"});
    let mut lines = vec![
        event(json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}})),
        event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
        event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}})),
    ];
    assert_eq!(screen_texts(&conversation_from(&lines)), ["Hel"]);
    lines.push(json!({"type": "assistant", "uuid": "a", "session_id": "s", "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Hello"}]}}));
    assert_eq!(screen_texts(&conversation_from(&lines)), ["Hello"]);
}

#[test]
fn synthetic_texts_and_local_commands_are_no_turns() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("do it")),
        assistant_entry("a", "p", "m", text_block("done")),
        user_entry("i", Some("a"), json!("[Request interrupted by user]")),
        user_entry("c", Some("i"), json!("<command-name>/cost</command-name>")),
        user_entry("o", Some("c"), json!("<local-command-stdout>$1</local-command-stdout>")),
        user_entry("q", Some("o"), json!("more")),
    ]);
    let turns: Vec<_> = conversation.turns().into_iter().map(|turn| turn.prompt).collect();
    assert_eq!(turns, ["do it", "more"]);
    let kinds: Vec<_> = conversation.for_ui().into_iter().map(|item| item.kind).collect();
    assert_eq!(
        kinds,
        [ItemKind::User, ItemKind::Assistant, ItemKind::System, ItemKind::User, ItemKind::System, ItemKind::User]
    );
}

#[test]
fn each_api_message_counts_once_by_its_fullest_line() {
    let line = |uuid: &str, output: u64, time: &str| {
        json!({"type": "assistant", "uuid": uuid, "timestamp": time,
        "message": {"id": "m", "role": "assistant", "model": "claude-opus-5-5", "content": [],
            "usage": {"input_tokens": 1_000_000, "output_tokens": output}}})
        .to_string()
    };
    let mut session = MetricsBuilder::default();
    for text in [
        line("a", 1, "2026-11-15T10:00:00Z"),
        line("b", 1_000_000, "2026-11-15T10:00:30Z"),
        line("c", 1, "2026-11-15T10:01:00Z"),
    ] {
        session.push(&View::read(&text).unwrap());
    }
    let metrics = session.finish(&Prices::bundled());
    assert_eq!(
        (metrics.messages, metrics.tokens.output, metrics.cost_usd, metrics.duration_secs),
        (1, 1_000_000, 24.0, 60.0)
    );
}

#[test]
fn live_the_result_beats_the_lines() {
    let mut session = MetricsBuilder::default();
    for text in [
        r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-opus-5-5","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"usage":{"input_tokens":5,"output_tokens":70},"total_cost_usd":0.5}"#,
    ] {
        session.push(&View::read(text).unwrap());
    }
    let metrics = session.finish(&Prices::bundled());
    assert_eq!((metrics.tokens.output, metrics.cost_usd), (70, 0.5));
}
