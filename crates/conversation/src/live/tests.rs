use super::{ActivityState, LiveConversation, LiveSubagent};
use crate::ItemKind;

fn user(uuid: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","sessionId":"s","cwd":"/w","message":{{"role":"user","content":"{text}"}}}}"#
    )
}

fn answer(uuid: &str, block: &str, stop: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{uuid}","message":{{"id":"m-{uuid}","role":"assistant","model":"opus","stop_reason":{stop},"content":[{block}]}}}}"#
    )
}

fn call(id: &str, name: &str, input: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#)
}

fn result(uuid: &str, id: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"{uuid}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}]}}}}"#
    )
}

/// Pushes one line and says what changed: kind, words or status, and whether it was known.
fn push(live: &mut LiveConversation, line: u64, text: &str) -> Vec<(ItemKind, String, bool)> {
    live.push_line(line, text);
    let words = |item: &crate::ScreenItem| match &item.tool {
        Some(card) => format!("{} {:?}", card.name, card.status),
        None => item.text.clone().unwrap_or_default(),
    };
    live.changes().into_iter().map(|change| (change.item.kind, words(&change.item), change.is_update)).collect()
}

#[test]
fn a_call_comes_at_once_and_again_with_its_result_however_much_lies_between() {
    let mut live = LiveConversation::default();
    push(&mut live, 1, &user("u", "hi"));
    let changes = push(&mut live, 2, &answer("a", &call("t1", "Bash", "{}"), "null"));
    assert_eq!(changes, [(ItemKind::Tool, "Bash Pending".to_owned(), false)]);
    for n in 3..500 {
        let text = answer(&format!("x{n}"), r#"{"type":"text","text":"meanwhile"}"#, "null");
        assert_eq!(push(&mut live, n, &text), [(ItemKind::Assistant, "meanwhile".to_owned(), false)]);
        assert!(live.main.node_count() <= 64, "{} entries are held", live.main.node_count());
    }
    assert_eq!(push(&mut live, 500, &result("r", "t1")), [(ItemKind::Tool, "Bash Success".to_owned(), true)]);
    assert_eq!((live.session_id().unwrap().as_str(), live.cwd()), ("s", Some("/w")));
}

#[test]
fn every_item_names_its_model() {
    let mut live = LiveConversation::default();
    live.push_line(1, &answer("a", &call("t1", "Bash", "{}"), "null"));
    assert_eq!(live.changes()[0].item.model.as_deref(), Some("opus"));
}

#[test]
fn subagents_speak_for_themselves() {
    let mut live = LiveConversation::default();
    push(&mut live, 1, &answer("a", &call("t1", "Agent", r#"{"prompt":"look","description":"look around"}"#), "null"));
    let line = r#"{"type":"assistant","uuid":"b","parent_tool_use_id":"t1","message":{"role":"assistant","content":[{"type":"text","text":"found"}]}}"#;
    live.push_line(2, line);
    let changes = live.changes();
    let agent = changes[0].agent.clone().unwrap();
    assert_eq!((changes.len(), agent.task.as_deref()), (1, Some("look around")));
    let filed =
        LiveSubagent { agent_id: Some("a7".into()), task: Some("Explore".to_owned()), ..LiveSubagent::default() };
    let line =
        r#"{"type":"user","uuid":"c","isSidechain":true,"agentId":"a7","message":{"role":"user","content":"go"}}"#;
    live.push_agent_line(&filed, 1, line);
    assert_eq!(live.changes()[0].agent.as_ref().unwrap().task.as_deref(), Some("Explore"));
    let mut alone = LiveConversation::default();
    assert_eq!(push(&mut alone, 1, line), [(ItemKind::User, "go".to_owned(), false)]);
    alone.push_line(2, &line.replace("\"c\"", "\"d\""));
    assert_eq!(alone.changes()[0].agent, None);
}

#[test]
fn what_is_being_written_grows_until_its_line_comes() {
    let mut live = LiveConversation::default();
    let event = |event: &str| format!(r#"{{"type":"stream_event","uuid":"e","event":{event}}}"#);
    live.push_line(1, &event(r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#));
    live.push_line(2, &event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#));
    live.push_line(3, &event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hal"}}"#));
    assert!(live.changes().is_empty());
    assert_eq!(live.partial_items()[0].text.as_deref(), Some("hal"));
    let line = r#"{"type":"assistant","uuid":"a","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"half"}]}}"#;
    assert_eq!(push(&mut live, 4, line), [(ItemKind::Assistant, "half".to_owned(), false)]);
    assert!(live.partial_items().is_empty());
}

#[test]
fn a_line_that_cannot_be_read_is_shown() {
    let mut live = LiveConversation::default();
    assert_eq!(push(&mut live, 1, "{\"type\":")[0].0, ItemKind::Problem);
    assert!(push(&mut live, 2, "").is_empty());
}

#[track_caller]
fn state(lines: &[String], expect: (ActivityState, Option<&str>, bool)) {
    let mut live = LiveConversation::default();
    for (n, line) in (1..).zip(lines) {
        push(&mut live, n, line);
    }
    let activity = live.activity();
    assert_eq!((activity.state, activity.detail.as_deref(), activity.is_certain), expect);
}

#[test]
fn lines_of_waiting_sessions_name_the_reason() {
    let asks = call("t", "AskUserQuestion", r#"{"questions":[{"question":"Which one?"}]}"#);
    let plan = call("t", "ExitPlanMode", r##"{"plan":"# The plan\nfirst"}"##);
    let says = r#"{"type":"text","text":"done"}"#;
    state(&[], (ActivityState::New, None, false));
    state(&[user("u", "hi")], (ActivityState::Working, None, true));
    state(&[user("u", "hi"), answer("a", &asks, "null")], (ActivityState::Question, Some("Which one?"), true));
    state(&[user("u", "hi"), answer("a", &plan, "null")], (ActivityState::Plan, Some("The plan"), true));
    state(&[user("u", "hi"), answer("a", says, "\"end_turn\"")], (ActivityState::Prompt, None, true));
    state(&[user("u", "hi"), answer("a", says, "null")], (ActivityState::Prompt, None, false));
    state(&[user("u", "hi"), answer("a", &call("t", "Bash", "{}"), "null")], (ActivityState::Tool, Some("Bash"), true));
    state(
        &[user("u", "hi"), answer("a", &call("t", "Edit", "{}"), "null")],
        (ActivityState::Tool, Some("Edit"), false),
    );
    state(&[user("u", "hi"), answer("a", &asks, "null"), result("r", "t")], (ActivityState::Working, None, true));
    state(&[user("u", "hi"), user("v", "[Request interrupted by user]")], (ActivityState::Prompt, None, true));
    // A call that a crash left without a result is no longer waited for.
    state(&[answer("a", &asks, "null"), user("u", "hi")], (ActivityState::Working, None, true));
    state(&[user("u", "<command-name>/exit</command-name>")], (ActivityState::Ended, None, true));
    let mut live = LiveConversation::default();
    push(&mut live, 1, &answer("a", &call("t", "Edit", "{}"), "null"));
    assert_eq!(live.activity().after_silence().state, ActivityState::Permission);
}
