//! What `check` says of ids, parents, calls and times.

use serde_json::{Value, json};

use crate::check_bytes;

fn user(uuid: &str, parent: Option<&str>, content: Value) -> Value {
    json!({"type": "user", "uuid": uuid, "parentUuid": parent, "timestamp": "2026-11-15T10:00:00Z",
        "message": {"role": "user", "content": content}})
}

fn assistant(uuid: &str, parent: &str, block: Value) -> Value {
    json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "timestamp": "2026-11-15T10:00:01Z",
        "message": {"role": "assistant", "id": uuid, "content": [block]}})
}

fn tool_use(id: &str, command: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}})
}

fn tool_result(id: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}])
}

#[track_caller]
fn assert_link_problems(lines: &[Value], expect: &[(&str, u64, &str)]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let report = check_bytes(text.as_bytes());
    let found: Vec<_> = report.problems.iter().map(|p| (p.kind.code(), p.line, p.message.as_str())).collect();
    assert_eq!(found, expect);
    assert_eq!(report.roundtrip_failures, 0);
}

#[test]
fn an_entry_that_names_a_parent_elsewhere_is_listed() {
    assert_link_problems(
        &[user("a", Some("gone"), json!("x"))],
        &[("tree.no_parent", 1, "its parent gone is not in the file")],
    );
}

#[test]
fn a_parent_of_an_unknown_type_is_in_the_file() {
    let unknown = json!({"type": "hologram", "uuid": "h", "parentUuid": null});
    assert_link_problems(
        &[unknown, user("a", Some("h"), json!("x"))],
        &[("entry.unknown", 1, "entry of unknown type `hologram`; kept as it is")],
    );
}

#[test]
fn an_id_used_for_another_message_is_listed_and_a_copy_is_not() {
    assert_link_problems(
        &[
            user("a", None, json!("one")),
            user("a", None, json!([{"type": "text", "text": "one"}])),
            assistant("b", "a", json!({"type": "text", "text": "two"})),
            user("a", Some("b"), json!("three")),
        ],
        &[("id.reused", 4, "its id a is that of line 1, which says something else")],
    );
}

#[test]
fn a_circle_of_parents_is_listed_once() {
    assert_link_problems(
        &[user("a", None, json!("one")), user("b", Some("c"), json!("two")), user("c", Some("b"), json!("three"))],
        &[("tree.circle", 2, "2 lines name each other as parents in a circle")],
    );
}

#[test]
fn calls_and_results_that_do_not_belong_together_are_listed() {
    assert_link_problems(
        &[
            user("p", None, json!("go")),
            assistant("a", "p", tool_use("t1", "ls")),
            assistant("b", "a", tool_use("t1", "ls")),
            assistant("c", "b", tool_use("t1", "pwd")),
            user("r", Some("c"), tool_result("t1")),
            user("s", Some("r"), tool_result("t9")),
        ],
        &[
            ("tool.duplicate_call", 4, "tool call t1 is another one than that of line 2"),
            ("tool.no_call", 6, "result of the tool call t9, which is not in the file"),
        ],
    );
}

#[test]
fn times_that_are_missing_or_cannot_be_read_are_listed() {
    let mut missing = user("a", None, json!("x"));
    missing.as_object_mut().unwrap().remove("timestamp");
    let mut unreadable = user("b", Some("a"), json!("x"));
    unreadable["timestamp"] = json!("half past nine");
    let mut number = user("c", Some("b"), json!("x"));
    number["timestamp"] = json!(1_731_600_000_000_u64);
    // The stream leaves times out.
    let live = json!({"type": "user", "uuid": "d", "message": {"role": "user", "content": "x"}});
    assert_link_problems(
        &[missing, unreadable, number, live],
        &[("time.missing", 1, "has no time"), ("time.unreadable", 2, "cannot read its time `half past nine`")],
    );
}

#[test]
fn an_attachment_and_a_block_without_a_model_are_named() {
    let mut attachment = user("a", None, json!("x"));
    attachment["type"] = json!("attachment");
    attachment["attachment"] = json!({"type": "chart", "scale": 7});
    assert_link_problems(
        &[attachment, assistant("b", "a", json!({"type": "hologram"}))],
        &[
            ("attachment.unknown", 1, "attachment of unknown type `chart`; kept as it is"),
            ("block.unknown", 2, "1 block of an unknown type; kept as it is"),
        ],
    );
}

#[test]
fn a_notice_of_version_1_0_has_a_model_though_no_subtype() {
    let notice = json!({"parentUuid": null, "isSidechain": false, "type": "system", "content": "limit reached, now using Sonnet 4",
        "isMeta": false, "timestamp": "2025-07-19T10:00:00.000Z", "uuid": "n", "level": "warning"});
    assert_link_problems(&[notice], &[]);
}
