use quipu_message::tool::ToolInput;
use quipu_message::{Json, ToolName};

use super::*;

const QUESTIONS: &str = r#"{"questions":[
    {"question":"Which way?","header":"Way","options":[{"label":"left","description":"past the mill"},{"label":"right"}],"kept":1},
    {"question":"With whom?","multiSelect":true,"options":[{"label":"Ann"},{"label":"Ben"},{"label":"Cy"}]}]}"#;

fn prompt(json: &str) -> QuestionPrompt {
    match ToolInput::from_name_and_json(&ToolName::AskUserQuestion, &Json::parse(json).unwrap()) {
        ToolInput::AskUserQuestion(input) => QuestionPrompt::new(input),
        other => panic!("{other:?}"),
    }
}

fn press(prompt: &mut QuestionPrompt, keys: &[KeyCode]) -> PromptStep {
    let mut step = PromptStep::Open;
    for key in keys {
        assert!(matches!(step, PromptStep::Open), "{step:?}");
        step = prompt.handle_key(KeyEvent::new(*key, KeyModifiers::NONE));
    }
    step
}

#[track_caller]
fn answers(step: PromptStep) -> serde_json::Value {
    match step {
        PromptStep::Decided(Decision::Allow { input: Some(input), .. }) => input.to_value(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_question_is_answered_and_the_rest_of_the_input_is_kept() {
    let mut prompt = prompt(QUESTIONS);
    use KeyCode::{Char, Enter};
    let input = answers(press(&mut prompt, &[Char('2'), Char('1'), Char('3'), Char('2'), Char('2'), Enter]));
    assert_eq!(input["answers"], serde_json::json!({"Which way?": "right", "With whom?": "Ann, Cy"}));
    assert_eq!(input["questions"][0]["kept"], 1);
}

#[test]
fn arrows_mark_and_enter_chooses() {
    let mut prompt = prompt(r#"{"questions":[{"question":"Which?","options":[{"label":"a"},{"label":"b"}]}]}"#);
    let input = answers(press(&mut prompt, &[KeyCode::Down, KeyCode::Enter]));
    assert_eq!(input["answers"]["Which?"], "b");
}

#[test]
fn an_answer_of_the_users_own_is_typed() {
    let mut prompt = prompt(r#"{"questions":[{"question":"Which?","options":[{"label":"a"}]}]}"#);
    use KeyCode::{Char, Enter, Esc};
    // An empty answer is not sent, and Esc goes back to the options.
    press(&mut prompt, &[Char('0'), Enter, Esc, Char('0'), Char('n'), Char('o')]);
    prompt.paste("ne");
    assert_eq!(answers(press(&mut prompt, &[Enter]))["answers"]["Which?"], "none");
}

#[test]
fn escape_interrupts() {
    let step = press(&mut prompt(QUESTIONS), &[KeyCode::Esc]);
    assert!(matches!(step, PromptStep::Decided(Decision::Deny { interrupt: true, .. })), "{step:?}");
}

#[test]
fn options_are_numbered() {
    let style = Terminal { width: 60, ..Terminal::default() };
    let (rows, cursor) = prompt(QUESTIONS).rows(&style);
    assert_eq!(
        rows,
        [
            "(1 of 2) Which way?",
            "› 1  left",
            "     past the mill",
            "  2  right",
            "  0  type another answer",
            "a digit or Enter chooses, Esc interrupts the turn",
        ]
    );
    assert_eq!(cursor, None);
}
