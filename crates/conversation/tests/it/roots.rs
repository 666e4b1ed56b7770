//! Several roots, left branches, ids used twice, circles: everything said stays on the
//! screen, in order.

use quipu_conversation::{Conversation, Kind, UiOptions};
use serde_json::{Value, json};

use crate::stories::{call, result, says, shown, talk, user, words};

fn sent(talk: &Conversation) -> Vec<String> {
    talk.for_api().iter().map(|message| message.content.to_text()).collect()
}

#[test]
fn an_old_compaction_is_a_new_root_and_what_came_before_stays() {
    let mut summary = user("u3", None, json!("In short."));
    summary["isCompactSummary"] = true.into();
    let talk = talk(&[
        user("u1", None, json!("one")),
        says("a2", "u1", "m1", words("first")),
        summary,
        says("a4", "u3", "m2", words("second")),
    ]);
    assert_eq!(shown(&talk), ["one", "first", "In short.", "second"]);
    assert_eq!(sent(&talk), ["In short.", "second"]);
    assert_eq!(talk.turns().len(), 1);
}

#[test]
fn an_answer_without_a_parent_goes_on_and_begins_no_context() {
    let mut late = says("a3", "", "m2", words("second"));
    late["parentUuid"] = Value::Null;
    let talk = talk(&[user("u1", None, json!("Say lol")), says("a2", "u1", "m1", words("first")), late]);
    assert_eq!(shown(&talk), ["Say lol", "first", "second"]);
    assert_eq!(sent(&talk), ["Say lol", "first\nsecond"]);
}

#[test]
fn a_file_whose_parents_are_all_null_is_read_in_order() {
    let mut answer = says("b", "", "m1", words("two"));
    answer["parentUuid"] = Value::Null;
    let talk = talk(&[user("a", None, json!("one")), answer, user("c", None, json!("three"))]);
    assert_eq!(shown(&talk), ["one", "two", "three"]);
    assert_eq!(sent(&talk), ["one", "two", "three"]);
}

#[test]
fn a_root_that_repeats_an_earlier_one_takes_its_place() {
    // Editors copy the conversation so far under new ids.
    let talk = talk(&[
        user("a", None, json!([words("one"), words("two")])),
        says("b", "a", "m1", words("first")),
        user("c", None, json!([words("one")])),
        user("d", Some("c"), json!([words("two")])),
        says("e", "d", "m1", words("first")),
        user("f", Some("e"), json!("three")),
    ]);
    assert_eq!(shown(&talk), ["Branch 1 was left here: 3 items", "one", "two", "first", "three"]);
    assert_eq!(sent(&talk), ["one\ntwo", "first", "three"]);
}

#[test]
fn a_left_branch_is_announced_where_it_was_left_and_can_be_shown() {
    let talk = talk(&[
        user("p", None, json!("go")),
        says("a", "p", "m1", words("here")),
        user("x", Some("a"), json!("wrong way")),
        says("y", "x", "m2", call("t1")),
        user("z", Some("y"), result("t1")),
        user("q", Some("a"), json!("right way")),
        says("b", "q", "m3", words("there")),
        user("v", Some("q"), json!("no answer yet")),
        says("c", "b", "m4", words("on")),
    ]);
    let left = ["Branch 1 was left here: 2 items", "Branch 2 was left here: 1 item"];
    assert_eq!(shown(&talk), ["go", "here", left[0], "right way", "there", left[1], "on"]);
    let marker = &talk.for_ui()[2];
    assert_eq!((marker.kind, marker.branch, marker.items, marker.line), (Kind::Branch, Some(1), Some(2), 3));
    let texts = |number| -> Option<Vec<_>> {
        let items = talk.branch_for_ui(number, UiOptions::default())?;
        Some(items.into_iter().map(|i| i.text.or(i.tool.map(|t| t.name)).unwrap_or_default()).collect())
    };
    assert_eq!(texts(1).unwrap(), ["wrong way", "Bash"]);
    assert_eq!(texts(2).unwrap(), ["no answer yet"]);
    assert_eq!((texts(0), texts(3)), (None, None));
    let all = talk.for_ui_with(UiOptions { branches: true, ..UiOptions::default() });
    let all: Vec<_> = all.iter().map(|item| (item.branch, item.text.as_deref().unwrap_or("-"))).collect();
    assert_eq!(all[2..6], [(Some(1), left[0]), (Some(1), "wrong way"), (Some(1), "-"), (Some(1), "End of branch 1"),]);
}

#[test]
fn an_id_used_for_another_message_hides_neither() {
    let talk = talk(&[
        user("A", None, json!("one")),
        says("B", "A", "m1", words("first")),
        user("A", Some("B"), json!("two")),
        says("C", "A", "m2", words("second")),
    ]);
    assert_eq!(shown(&talk), ["one", "first", "two", "second"]);
    assert_eq!(sent(&talk), ["one", "first", "two", "second"]);
}

#[test]
fn a_copy_of_a_message_stays_one() {
    let talk = talk(&[
        user("A", None, json!("one")),
        user("A", None, json!([words("one")])),
        says("B", "A", "m1", words("fir")),
        says("B", "A", "m1", words("first")),
    ]);
    assert_eq!(shown(&talk), ["one", "first"]);
}

#[test]
fn a_circle_of_parents_loses_nothing() {
    let talk = talk(&[
        user("p", None, json!("one")),
        says("a", "p", "m1", words("first")),
        user("b", Some("c"), json!("two")),
        says("c", "b", "m2", words("second")),
    ]);
    assert_eq!(shown(&talk), ["one", "first", "two", "second"]);
}

#[test]
fn a_line_of_an_unknown_type_keeps_its_place_in_the_chain() {
    let unknown = json!({"type": "hologram", "uuid": "h", "parentUuid": "a"});
    let talk = talk(&[
        user("p", None, json!("one")),
        says("a", "p", "m1", words("first")),
        unknown.clone(),
        user("x", Some("a"), json!("left")),
        user("q", Some("h"), json!("two")),
    ]);
    let unknown = unknown.to_string();
    assert_eq!(shown(&talk), ["one", "first", unknown.as_str(), "Branch 1 was left here: 1 item", "two"]);
}
