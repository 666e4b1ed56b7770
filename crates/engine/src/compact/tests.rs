use quipu_message::Entry;

use super::*;

fn nodes(lines: &[&str]) -> Vec<Node> {
    let entry = |(at, text): (usize, &&str)| {
        let (role, content) = text.split_once(' ').unwrap();
        let (role, id) =
            if role == "user" { ("user", String::new()) } else { ("assistant", format!(r#""id":"{role}","#)) };
        let line =
            format!(r#"{{"type":"{role}","uuid":"{at}","message":{{{id}"role":"{role}","content":[{content}]}}}}"#);
        Node { line: 0, entry: Entry::read(&line).unwrap() }
    };
    lines.iter().enumerate().map(entry).collect()
}

#[track_caller]
fn check(keep: KeepPolicy, lines: &[&str], expect: &[&str]) {
    let nodes = nodes(lines);
    let kept = uuids(&nodes[first_kept_index(&nodes, keep)..]);
    assert_eq!(kept.iter().map(Uuid::as_str).collect::<Vec<_>>(), expect);
}

const USER_ENTRY: &str = r#"user {"type":"text","text":"x"}"#;
const ANSWER_ENTRY: &str = r#"m1 {"type":"text","text":"y"}"#;
const TOOL_CALL_ENTRY: &str = r#"m2 {"type":"tool_use","id":"t","name":"Read","input":{}}"#;
const TOOL_RESULT_ENTRY: &str = r#"user {"type":"tool_result","tool_use_id":"t","content":"z"}"#;

#[test]
fn what_is_not_answered_yet_stays_with_the_answer_before_it() {
    check(KeepPolicy::LastAnswer, &[USER_ENTRY, ANSWER_ENTRY, USER_ENTRY], &["1", "2"]);
    check(KeepPolicy::OnlyUnanswered, &[USER_ENTRY, ANSWER_ENTRY, USER_ENTRY], &["2"]);
    check(KeepPolicy::LastAnswer, &[USER_ENTRY], &["0"]);
}

#[test]
fn the_last_answer_stays_when_nothing_is_open() {
    check(KeepPolicy::LastAnswer, &[USER_ENTRY, TOOL_CALL_ENTRY, TOOL_RESULT_ENTRY, ANSWER_ENTRY], &["3"]);
    check(KeepPolicy::LastAnswer, &[USER_ENTRY, ANSWER_ENTRY, USER_ENTRY, TOOL_CALL_ENTRY], &["3"]);
}

#[test]
fn a_call_stays_with_its_result() {
    for keep in [KeepPolicy::LastAnswer, KeepPolicy::OnlyUnanswered] {
        check(keep, &[USER_ENTRY, ANSWER_ENTRY, USER_ENTRY, TOOL_CALL_ENTRY, TOOL_RESULT_ENTRY], &["3", "4"]);
    }
}

#[test]
fn the_summary_is_the_text_in_its_tags() {
    assert_eq!(text_between_tags("<analysis>a</analysis><summary> b </summary>", "<summary>", "</summary>"), "b");
    assert_eq!(text_between_tags("just words", "<summary>", "</summary>"), "just words");
}

#[test]
fn what_is_too_long_to_sum_up_loses_its_older_half_but_not_the_request() {
    let message = |role: Role, text: &str| Message::new(role, vec![Block::new_text(text)]);
    let mut messages: Vec<Message> = ["a", "b", "c", "d", "e"]
        .iter()
        .enumerate()
        .map(|(at, text)| message(if at % 2 == 0 { Role::User } else { Role::Assistant }, text))
        .collect();
    assert!(drop_older_half(&mut messages));
    assert_eq!(messages.len(), 1);
    let text = messages[0].content.to_text();
    assert!(text.contains('a') && text.contains('e') && !text.contains('c'), "{text}");
    assert!(!drop_older_half(&mut messages));
}
