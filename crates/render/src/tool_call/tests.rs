use quipu_conversation::{ToolCard, ToolStatus};
use quipu_message::{Content, Json};

use super::{ToolCallPart, ToolCallView};

fn card(name: &str, input: &str, result: &str) -> ToolCard {
    ToolCard {
        id: "t".into(),
        name: name.into(),
        input: Json::parse(input).unwrap(),
        status: ToolStatus::Success,
        result: Some(Content::from(result)),
        result_missing: false,
        output: None,
        finished_at: None,
        subagent: None,
    }
}

#[track_caller]
fn check(name: &str, input: &str, result: &str, expect: &str) {
    assert_eq!(ToolCallView::from_card(&card(name, input, result), "/home/sam").to_line(), expect);
}

#[test]
fn a_call_is_one_line() {
    check("Bash", r#"{"command":"cargo test","run_in_background":true}"#, "", "Bash $ cargo test (in background)");
    check("Bash", r#"{"command":"a\nb","description":"do both"}"#, "", "Bash do both");
    check("Read", r#"{"file_path":"/home/sam/a.rs","limit":20}"#, "1\tx\n2\ty", "Read a.rs:1-20 (2 lines)");
    check("Write", r#"{"file_path":"/home/samuel/a.rs","content":"x\n"}"#, "", "Write /home/samuel/a.rs (1 line)");
    check("Glob", r#"{"pattern":"*.rs","path":"/home/sam/src"}"#, "a.rs\nb.rs", "Glob *.rs in src (2 found)");
    check("Grep", r#"{"pattern":"x","glob":"*.rs"}"#, "No matches found", "Grep x (*.rs) (nothing found)");
    check("WebFetch", r#"{"url":"https://e.org","prompt":"?"}"#, "", "WebFetch https://e.org");
    check("Task", r#"{"prompt":"long","description":"short","subagent_type":"Explore"}"#, "", "Task short (Explore)");
    check("ExitPlanMode", r##"{"plan":"# p"}"##, "", "ExitPlanMode (approved)");
    check("TaskStop", r#"{"task_id":"7"}"#, "", "TaskStop 7");
    check("HoloDeck", r#"{"scene": "beach"}"#, "", r#"HoloDeck {"scene": "beach"}"#);
    check("mcp__a__b", "{}", "", "a:b");
    check("", "null", "x", "result without a call");
}

#[test]
fn names_and_arguments_are_cleaned() {
    check("Ba\u{1b}[31msh", r#"{"x":"\u001b[2J"}"#, "", r#"Bash {"x":"\u001b[2J"}"#);
    check("Bash", r#"{"command":"echo \u001b[2Jhi"}"#, "", "Bash $ echo hi");
}

#[test]
fn what_was_added_to_a_file_for_the_model_is_left_out() {
    let read = card("Read", r#"{"file_path":"a"}"#, "  1→x\n  2→y\n\n<system-reminder>\nbe good\n</system-reminder>\n");
    let call = ToolCallView::from_card(&read, "");
    assert_eq!(call.parts, [ToolCallPart::Code { text: "x\ny".to_owned(), path: "a".to_owned() }]);
    assert!(call.is_collapsed);
}

#[test]
fn questions_come_with_their_answers() {
    let input =
        r#"{"questions":[{"question":"Which?","header":"Time","options":[{"label":"UTC"},{"label":"Local"}]}]}"#;
    let mut asked = card("AskUserQuestion", input, "told");
    asked.output = Some(Json::parse(r#"{"answers":{"Which?":"UTC"}}"#).unwrap());
    let call = ToolCallView::from_card(&asked, "");
    assert_eq!(call.subject, "Time");
    let question = |answer: Option<&str>| ToolCallPart::Question {
        text: "Which?".to_owned(),
        options: vec!["UTC".to_owned(), "Local".to_owned()],
        answer: answer.map(str::to_owned),
    };
    assert_eq!(call.parts, [question(Some("UTC"))]);
    asked.output = None;
    assert_eq!(ToolCallView::from_card(&asked, "").parts, [question(None), ToolCallPart::Output("told".to_owned())]);
}

#[test]
fn what_a_page_is_asked_is_shown_above_the_answer() {
    let card = card("WebFetch", r#"{"url":"https://e.org","prompt":"Which phase?\nBriefly."}"#, "52 degrees");
    let parts = ToolCallView::from_card(&card, "").parts;
    assert_eq!(
        parts,
        [ToolCallPart::Output("Which phase?\nBriefly.".to_owned()), ToolCallPart::Output("52 degrees".to_owned())]
    );
}
