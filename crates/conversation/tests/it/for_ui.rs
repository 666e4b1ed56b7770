//! What is shown of blocks, notices and hidden texts.

use quipu_conversation::{Conversation, ItemKind, ToolStatus, UiOptions, messages_for_ui};
use serde_json::{Value, json};

use crate::scenarios::{
    assistant_entry, conversation_from, screen_texts, text_block, tool_result, tool_use, user_entry,
};

fn full(conversation: &Conversation) -> Vec<(bool, String)> {
    let items = conversation.for_ui_with(UiOptions { include_hidden: true, ..UiOptions::default() });
    items.into_iter().map(|item| (item.hidden, item.text.unwrap_or_default())).collect()
}

#[test]
fn texts_for_the_model_alone_are_shown_when_asked_for() {
    let mut skill = user_entry("s", Some("p"), json!([text_block("Base directory for this skill: /x")]));
    skill["isMeta"] = true.into();
    let mut seen_later = user_entry("v", Some("s"), json!("only in the transcript"));
    seen_later["isVisibleInTranscriptOnly"] = true.into();
    let reminder = user_entry("r", Some("v"), json!("<system-reminder>mind the gap</system-reminder>"));
    let notice = json!({"type": "system", "subtype": "informational", "uuid": "i", "parentUuid": "r", "content": "for later", "isMeta": true});
    let took =
        json!({"type": "system", "subtype": "turn_duration", "uuid": "d", "parentUuid": "i", "durationMs": 83_000});
    let speed =
        json!({"type": "system", "subtype": "api_metrics", "uuid": "e", "parentUuid": "d", "ttftMs": 900, "otps": 50});
    let conversation =
        conversation_from(&[user_entry("p", None, json!("go")), skill, seen_later, reminder, notice, took, speed]);
    assert_eq!(screen_texts(&conversation), ["go"]);
    assert_eq!(conversation.for_ui_and_left_out(UiOptions::default()).1, 6);
    let hidden = |text: &str| (true, text.to_owned());
    assert_eq!(
        full(&conversation)[1..],
        [
            hidden("Base directory for this skill: /x"),
            hidden("only in the transcript"),
            hidden("<system-reminder>mind the gap</system-reminder>"),
            hidden("for later"),
            hidden("The turn took 1 min 23 s"),
            hidden("API call: first token after 0.9 s, 50 output tokens a second"),
        ]
    );
}

#[test]
fn notices_without_a_subtype_and_summaries_of_tool_calls_are_shown() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        json!({"type": "system", "uuid": "n", "parentUuid": "p", "content": "limit reached, now using Sonnet 4", "level": "warning"}),
        json!({"type": "tool_use_summary", "uuid": "t", "session_id": "s", "summary": "Read 3 files", "preceding_tool_use_ids": ["t1"]}),
    ]);
    assert_eq!(screen_texts(&conversation), ["go", "limit reached, now using Sonnet 4", "Read 3 files"]);
}

#[test]
fn a_time_that_is_a_number_is_shown_as_a_time() {
    let mut line = user_entry("p", None, json!("go"));
    line["timestamp"] = json!(1_731_600_000_000_u64);
    let conversation = conversation_from(&[line]);
    assert_eq!(conversation.for_ui()[0].timestamp.as_deref(), Some("2024-11-14T16:00:00.000Z"));
    assert!(conversation.problems().is_empty());
}

fn tools(conversation: &Conversation) -> Vec<(String, ToolStatus, String)> {
    let tool = |item: quipu_conversation::ScreenItem| {
        let tool = item.tool?;
        Some((tool.name.into(), tool.status, tool.result.map(|result| result.to_text()).unwrap_or_default()))
    };
    conversation.for_ui().into_iter().filter_map(tool).collect()
}

#[test]
fn tools_of_the_server_are_paired_across_lines_with_their_status() {
    let server = |id: &str, name: &str| json!({"type": "server_tool_use", "id": id, "name": name, "input": {}});
    let line = |uuid: &str, parent: &str, block: Value| assistant_entry(uuid, parent, "m", block);
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        line("a", "p", server("s1", "bash_code_execution")),
        line(
            "b",
            "a",
            json!({"type": "bash_code_execution_tool_result", "tool_use_id": "s1",
            "content": {"type": "bash_code_execution_result", "stdout": "hi", "stderr": "", "return_code": 0}}),
        ),
        line("c", "b", server("s2", "web_search")),
        line(
            "d",
            "c",
            json!({"type": "web_search_tool_result", "tool_use_id": "s2",
            "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}),
        ),
        line(
            "e",
            "d",
            json!({"type": "mcp_tool_use", "id": "s3", "name": "find", "server_name": "docs", "input": {"q": 1}}),
        ),
        line(
            "f",
            "e",
            json!({"type": "mcp_tool_result", "tool_use_id": "s3", "is_error": false, "content": [text_block("found")]}),
        ),
        line("g", "f", server("s4", "text_editor_code_execution")),
        line(
            "h",
            "g",
            json!({"type": "text_editor_code_execution_tool_result", "tool_use_id": "s9", "content": {"content": "x"}}),
        ),
    ]);
    let tool = |name: &str, status, text: &str| (name.to_owned(), status, text.to_owned());
    assert_eq!(
        tools(&conversation),
        [
            tool("bash_code_execution", ToolStatus::Success, "hi"),
            tool("web_search", ToolStatus::Failed, "unavailable"),
            tool("mcp__docs__find", ToolStatus::Success, "found"),
            tool("text_editor_code_execution", ToolStatus::Pending, ""),
            tool("", ToolStatus::Success, "x"),
        ]
    );
}

#[test]
fn calls_and_results_are_shown_in_either_role() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m1", tool_use("t1")),
        assistant_entry("b", "a", "m2", tool_result("t1")[0].clone()),
        user_entry("c", Some("b"), json!([tool_use("t2")])),
        user_entry("d", Some("c"), tool_result("t2")),
    ]);
    let done = |id: &str| ("Bash".to_owned(), ToolStatus::Success, format!("from {id}"));
    assert_eq!(tools(&conversation), [done("t1"), done("t2")]);
}

#[test]
fn a_result_that_is_an_object_is_shown_and_sent_as_its_json() {
    let content = json!({"rows": [1, 2]});
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m1", tool_use("t1")),
        user_entry(
            "r",
            Some("a"),
            json!([{"type": "tool_result", "tool_use_id": "t1", "content": content}, text_block("and?")]),
        ),
    ]);
    assert!(conversation.problems().is_empty());
    let items = serde_json::to_value(conversation.for_ui()).unwrap();
    assert_eq!(items[1]["tool"]["result"], content);
    assert_eq!(items[2]["text"], "and?");
    let sent = serde_json::to_value(conversation.for_api()).unwrap();
    assert_eq!(sent[2]["content"][0]["content"], content.to_string());
}

#[test]
fn the_placeholder_of_a_lost_result_is_no_result() {
    let lost = json!([{"type": "tool_result", "tool_use_id": "t1", "is_error": true,
        "content": "[Tool result missing due to internal error]"}]);
    let lines = [
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m1", tool_use("t1")),
        user_entry("r", Some("a"), lost),
    ];
    let conversation = conversation_from(&lines);
    for items in [conversation.for_ui(), messages_for_ui(&conversation.for_api())] {
        let tool = items.into_iter().find_map(|item| item.tool).unwrap();
        assert_eq!((tool.status, tool.result, tool.result_missing), (ToolStatus::Failed, None, true));
    }
}

#[test]
fn the_view_of_a_request_shows_every_block() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m", json!({"type": "redacted_thinking", "data": "x"})),
        assistant_entry(
            "b",
            "a",
            "m",
            json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}),
        ),
        assistant_entry("c", "b", "m", json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []})),
        assistant_entry("d", "c", "m", text_block("found")),
    ]);
    let kinds: Vec<ItemKind> = messages_for_ui(&conversation.for_api()).into_iter().map(|item| item.kind).collect();
    assert_eq!(kinds, [ItemKind::User, ItemKind::Thinking, ItemKind::Tool, ItemKind::Assistant]);
}

#[test]
fn problems_keep_hooks_with_their_call() {
    let hook = |uuid: &str, parent: &str, event: &str| {
        json!({"type": "progress", "uuid": uuid, "parentUuid": parent, "toolUseID": "t1",
            "data": {"type": "hook_progress", "hookEvent": event, "hookName": format!("{event}:Bash")}})
    };
    let mut conversation = Conversation::default();
    let lines = [
        user_entry("p", None, json!("go")).to_string(),
        assistant_entry("a", "p", "m", tool_use("t1")).to_string(),
        "not json".to_owned(),
        hook("h1", "a", "PreToolUse").to_string(),
        user_entry("r", Some("h1"), tool_result("t1")).to_string(),
        hook("h2", "r", "PostToolUse").to_string(),
        assistant_entry("b", "h2", "m2", text_block("done")).to_string(),
    ];
    (1..).zip(&lines).for_each(|(n, line)| conversation.push_line(n, line));
    let shown = screen_texts(&conversation);
    assert_eq!(shown[..4], ["go", "PreToolUse:Bash", "t1 Success", "PostToolUse:Bash"]);
    assert!(shown[4].starts_with("line 3: not JSON") && shown[5] == "done", "{shown:?}");
}

#[test]
fn a_subagents_tombstone_withdraws_its_messages() {
    let side = |mut line: Value| {
        line["parent_tool_use_id"] = json!("t1");
        line.as_object_mut().unwrap().remove("parentUuid");
        line
    };
    let event = |event: Value| side(json!({"type": "stream_event", "event": event, "session_id": "s", "uuid": "e"}));
    let mut task = tool_use("t1");
    task["name"] = json!("Agent");
    let mut lines = vec![
        assistant_entry("a", "p", "m", task),
        side(assistant_entry("x", "", "m1", text_block("half an ans"))),
        side(json!({"type": "tombstone", "message": {"uuid": "x"}})),
        side(assistant_entry("y", "", "m2", text_block("whole answer"))),
        event(json!({"type": "message_start", "message": {"id": "m3", "role": "assistant", "content": []}})),
        event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
        event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "More"}})),
    ];
    let inside = |lines: &[Value]| -> Vec<String> {
        let items = conversation_from(lines).for_ui();
        let subagent = items[0].tool.as_ref().unwrap().subagent.as_ref().unwrap();
        subagent.items.iter().map(|item| item.text.clone().unwrap_or_default()).collect()
    };
    assert_eq!(inside(&lines), ["whole answer", "More"]);
    lines[2] = json!({"type": "tombstone", "message": {"uuid": "x"}});
    assert_eq!(inside(&lines), ["whole answer", "More"]);
}

#[test]
fn an_answer_that_broke_and_was_asked_for_again_is_not_shown() {
    let block = |uuid: &str, parent: &str, message: &str, text: &str, stop: Value| {
        let mut line = assistant_entry(uuid, parent, message, text_block(text));
        line["message"]["stop_reason"] = stop;
        line
    };
    let lines = [
        user_entry("p", None, json!("go")),
        block("a", "p", "m1", "the first try", Value::Null),
        block("b", "a", "m1", "its second block", Value::Null),
        block("c", "p", "m2", "the second try", json!("end_turn")),
    ];
    let broken = conversation_from(&lines);
    assert_eq!(screen_texts(&broken), ["go", "the second try"]);
    assert_eq!(broken.branches().len(), 1, "nothing is lost");
    let all = broken.for_ui_with(UiOptions { include_branches: true, ..UiOptions::default() });
    assert!(all.iter().any(|item| item.text.as_deref() == Some("its second block")));
    assert_eq!(broken.for_api().len(), 2);
    // One that ended was left on purpose.
    let mut lines = lines;
    lines[2]["message"]["stop_reason"] = json!("end_turn");
    assert_eq!(screen_texts(&conversation_from(&lines)).len(), 3);
}

#[test]
fn a_hidden_text_in_a_left_branch_counts_as_left_out() {
    let mut skill = user_entry("s", Some("a"), json!("Base directory for this skill: /x"));
    skill["isMeta"] = true.into();
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m1", text_block("left")),
        skill,
        user_entry("q", Some("p"), json!("on")),
    ]);
    let (items, left_out) = conversation.for_ui_and_left_out(UiOptions::default());
    assert_eq!((items[1].items, left_out), (Some(1), 1));
    assert_eq!(conversation.for_ui_and_left_out(UiOptions { include_hidden: true, ..UiOptions::default() }).1, 0);
}

#[test]
fn results_of_the_server_are_shown_while_their_answer_is_written() {
    let event = |event: Value| json!({"type": "stream_event", "session_id": "s", "uuid": "e", "event": event});
    let block = |index: u32, block: Value| {
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        [event(start), event(json!({"type": "content_block_stop", "index": index}))]
    };
    let search = |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}});
    let found = |id: &str| {
        let page = json!({"type": "web_search_result", "url": "u", "title": "t"});
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [page]})
    };
    let begin = event(json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}));
    let mut lines = vec![user_entry("p", None, json!("go")), begin];
    lines.extend(block(0, search("s1")));
    // The first call has come as a line; its result has not.
    lines.push(assistant_entry("a", "p", "m", search("s1")));
    lines.extend([block(1, found("s1")), block(2, search("s2")), block(3, found("s2"))].concat());
    let done = ("web_search".to_owned(), ToolStatus::Success, "t u".to_owned());
    assert_eq!(tools(&conversation_from(&lines)), [done.clone(), done]);
}
