//! Several roots, left branches, ids used twice, circles: everything said stays on the
//! screen, in order.

use quipu_conversation::{Conversation, ItemKind, UiOptions};
use serde_json::{Value, json};

use crate::scenarios::{
    assistant_entry, conversation_from, screen_texts, text_block, tool_result, tool_use, user_entry,
};

fn sent(conversation: &Conversation) -> Vec<String> {
    conversation.for_api().iter().map(|message| message.content.to_text()).collect()
}

#[test]
fn an_old_compaction_is_a_new_root_and_what_came_before_stays() {
    let mut summary = user_entry("u3", None, json!("In short."));
    summary["isCompactSummary"] = true.into();
    let conversation = conversation_from(&[
        user_entry("u1", None, json!("one")),
        assistant_entry("a2", "u1", "m1", text_block("first")),
        summary,
        assistant_entry("a4", "u3", "m2", text_block("second")),
    ]);
    assert_eq!(screen_texts(&conversation), ["one", "first", "In short.", "second"]);
    assert_eq!(sent(&conversation), ["In short.", "second"]);
    assert_eq!(conversation.turns().len(), 1);
}

#[test]
fn an_answer_without_a_parent_continues_the_context() {
    let mut late = assistant_entry("a3", "", "m2", text_block("second"));
    late["parentUuid"] = Value::Null;
    let conversation = conversation_from(&[
        user_entry("u1", None, json!("Say lol")),
        assistant_entry("a2", "u1", "m1", text_block("first")),
        late,
    ]);
    assert_eq!(screen_texts(&conversation), ["Say lol", "first", "second"]);
    assert_eq!(sent(&conversation), ["Say lol", "first\nsecond"]);
}

#[test]
fn a_file_whose_parents_are_all_null_is_read_in_order() {
    let mut answer = assistant_entry("b", "", "m1", text_block("two"));
    answer["parentUuid"] = Value::Null;
    let conversation =
        conversation_from(&[user_entry("a", None, json!("one")), answer, user_entry("c", None, json!("three"))]);
    assert_eq!(screen_texts(&conversation), ["one", "two", "three"]);
    assert_eq!(sent(&conversation), ["one", "two", "three"]);
}

#[test]
fn a_root_that_repeats_an_earlier_one_takes_its_place() {
    // Editors copy the conversation so far under new ids.
    let conversation = conversation_from(&[
        user_entry("a", None, json!([text_block("one"), text_block("two")])),
        assistant_entry("b", "a", "m1", text_block("first")),
        user_entry("c", None, json!([text_block("one")])),
        user_entry("d", Some("c"), json!([text_block("two")])),
        assistant_entry("e", "d", "m1", text_block("first")),
        user_entry("f", Some("e"), json!("three")),
    ]);
    assert_eq!(screen_texts(&conversation), ["Branch 1 was left here: 3 items", "one", "two", "first", "three"]);
    assert_eq!(sent(&conversation), ["one\ntwo", "first", "three"]);
}

#[test]
fn a_left_branch_is_announced_where_it_was_left_and_can_be_shown() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("go")),
        assistant_entry("a", "p", "m1", text_block("here")),
        user_entry("x", Some("a"), json!("wrong way")),
        assistant_entry("y", "x", "m2", tool_use("t1")),
        user_entry("z", Some("y"), tool_result("t1")),
        user_entry("q", Some("a"), json!("right way")),
        assistant_entry("b", "q", "m3", text_block("there")),
        user_entry("v", Some("q"), json!("no answer yet")),
        assistant_entry("c", "b", "m4", text_block("on")),
    ]);
    let left = ["Branch 1 was left here: 2 items", "Branch 2 was left here: 1 item"];
    assert_eq!(screen_texts(&conversation), ["go", "here", left[0], "right way", "there", left[1], "on"]);
    let marker = &conversation.for_ui()[2];
    assert_eq!((marker.kind, marker.branch, marker.items, marker.line), (ItemKind::Branch, Some(1), Some(2), 3));
    let texts = |number| -> Option<Vec<_>> {
        let items = conversation.branch_for_ui(number, UiOptions::default())?;
        Some(items.into_iter().map(|i| i.text.or(i.tool.map(|t| t.name.into())).unwrap_or_default()).collect())
    };
    assert_eq!(texts(1).unwrap(), ["wrong way", "Bash"]);
    assert_eq!(texts(2).unwrap(), ["no answer yet"]);
    assert_eq!((texts(0), texts(3)), (None, None));
    let all = conversation.for_ui_with(UiOptions { include_branches: true, ..UiOptions::default() });
    let all: Vec<_> = all.iter().map(|item| (item.branch, item.text.as_deref().unwrap_or("-"))).collect();
    assert_eq!(all[2..6], [(Some(1), left[0]), (Some(1), "wrong way"), (Some(1), "-"), (Some(1), "End of branch 1"),]);
}

#[test]
fn an_id_used_for_another_message_hides_neither() {
    let conversation = conversation_from(&[
        user_entry("A", None, json!("one")),
        assistant_entry("B", "A", "m1", text_block("first")),
        user_entry("A", Some("B"), json!("two")),
        assistant_entry("C", "A", "m2", text_block("second")),
    ]);
    assert_eq!(screen_texts(&conversation), ["one", "first", "two", "second"]);
    assert_eq!(sent(&conversation), ["one", "first", "two", "second"]);
}

#[test]
fn a_copy_of_a_message_stays_one() {
    let conversation = conversation_from(&[
        user_entry("A", None, json!("one")),
        user_entry("A", None, json!([text_block("one")])),
        assistant_entry("B", "A", "m1", text_block("fir")),
        assistant_entry("B", "A", "m1", text_block("first")),
    ]);
    assert_eq!(screen_texts(&conversation), ["one", "first"]);
}

#[test]
fn a_circle_of_parents_loses_nothing() {
    let conversation = conversation_from(&[
        user_entry("p", None, json!("one")),
        assistant_entry("a", "p", "m1", text_block("first")),
        user_entry("b", Some("c"), json!("two")),
        assistant_entry("c", "b", "m2", text_block("second")),
    ]);
    assert_eq!(screen_texts(&conversation), ["one", "first", "two", "second"]);
}

#[test]
fn a_line_of_an_unknown_type_keeps_its_place_in_the_chain() {
    let unknown = json!({"type": "hologram", "uuid": "h", "parentUuid": "a"});
    let conversation = conversation_from(&[
        user_entry("p", None, json!("one")),
        assistant_entry("a", "p", "m1", text_block("first")),
        unknown.clone(),
        user_entry("x", Some("a"), json!("left")),
        user_entry("q", Some("h"), json!("two")),
    ]);
    let unknown = unknown.to_string();
    assert_eq!(
        screen_texts(&conversation),
        ["one", "first", unknown.as_str(), "Branch 1 was left here: 1 item", "two"]
    );
}
