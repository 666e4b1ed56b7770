use super::*;

fn call(json: &str) -> CanUseTool {
    serde_json::from_str(json).unwrap()
}

const TOUCH: &str = r#"{"subtype":"can_use_tool","tool_name":"Bash","tool_use_id":"t1","input":{"command":"touch made"},
    "permission_suggestions":[
        {"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"touch:*"}],"behavior":"allow","destination":"localSettings"},
        {"type":"setMode","mode":"acceptEdits","destination":"session"}]}"#;

fn prompt(json: &str) -> PermissionPrompt {
    PermissionPrompt::new(call(json), Path::new("/nowhere"))
}

fn press(prompt: &mut PermissionPrompt, keys: &[KeyCode]) -> PromptStep {
    let mut step = PromptStep::Open;
    for key in keys {
        assert!(matches!(step, PromptStep::Open), "{step:?}");
        step = prompt.handle_key(KeyEvent::new(*key, KeyModifiers::NONE));
    }
    step
}

fn style() -> Terminal {
    Terminal { width: 60, ..Terminal::default() }
}

#[track_caller]
fn updates(step: PromptStep) -> Vec<PermissionUpdate> {
    match step {
        PromptStep::Decided(Decision::Allow { updates, input: None }) => updates,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_allow_once_or_with_a_suggestion() {
    assert_eq!(updates(press(&mut prompt(TOUCH), &[KeyCode::Char('y')])), []);
    let all = call(TOUCH).suggestions();
    assert_eq!(updates(press(&mut prompt(TOUCH), &[KeyCode::Char('a')])), all[..1]);
    assert_eq!(updates(press(&mut prompt(TOUCH), &[KeyCode::Char('2')])), all[1..]);
    let step = press(&mut prompt(TOUCH), &[KeyCode::Char('3'), KeyCode::Enter, KeyCode::Char('x')]);
    assert!(matches!(step, PromptStep::Open), "{step:?}");
}

#[test]
fn a_denial_may_have_a_reason() {
    use KeyCode::{Char, Enter, Esc};
    let deny = |keys: &[KeyCode]| match press(&mut prompt(TOUCH), keys) {
        PromptStep::Decided(Decision::Deny { message, interrupt: false }) => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(deny(&[Char('n'), Enter]), "The user denied this tool call.");
    // While a reason is typed, keys are text.
    assert_eq!(deny(&[Char('n'), Char('y'), Char('a'), Enter]), "The user denied this tool call: ya");
    assert_eq!(updates(press(&mut prompt(TOUCH), &[Char('n'), Esc, Char('y')])), []);
    let step = press(&mut prompt(TOUCH), &[Esc]);
    assert!(matches!(step, PromptStep::Decided(Decision::Deny { interrupt: true, .. })), "{step:?}");
}

#[test]
fn the_edited_input_is_shown_and_sent() {
    let mut prompt = prompt(TOUCH);
    prompt.set_input("[1]", Path::new("/"));
    prompt.set_input("{", Path::new("/"));
    assert!(prompt.rows(&style()).0.iter().any(|row| row.starts_with("the input is no JSON")));
    prompt.set_input(r#"{"command": "touch other"}"#, Path::new("/"));
    assert!(prompt.rows(&style()).0.iter().any(|row| row.contains("touch other")));
    match press(&mut prompt, &[KeyCode::Char('y')]) {
        PromptStep::Decided(Decision::Allow { input: Some(input), .. }) => {
            assert_eq!(input.to_value(), serde_json::json!({"command": "touch other"}));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_are_listed_with_the_rule_they_add() {
    let rows = prompt(TOUCH).rows(&style()).0;
    assert_eq!(
        rows,
        [
            "Allow Bash?",
            "… pending Bash $ touch made",
            "y  allow once",
            "a  always allow Bash(touch:*) in this project",
            "2  accept edits in this session",
            "n  deny, with a message",
            "e  edit the input in your editor",
            "Esc  interrupt the turn",
        ]
    );
}

#[test]
fn writing_to_a_file_is_shown_as_a_diff() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
    let json =
        r#"{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"a.txt","content":"one\nthree\n"}}"#;
    let rows = PermissionPrompt::new(call(json), folder.path()).rows(&style()).0;
    assert!(rows.contains(&"  - two".to_owned()) && rows.contains(&"  + three".to_owned()), "{rows:#?}");
    assert_eq!(rows[0], "Allow Write?");
}

#[test]
fn a_long_call_is_truncated_and_shown_whole_on_request() {
    let lines: String = (0..40).map(|n| format!("echo {n}\\n")).collect();
    let json = TOUCH.replace("touch made", &lines);
    let prompt = prompt(&json);
    let rows = prompt.rows(&style()).0;
    assert!(rows.contains(&"v  show all of it".to_owned()) && !rows.iter().any(|row| row.contains("echo 39")));
    assert!(prompt.all_rows(&style()).iter().any(|row| row.contains("echo 39")));
}

#[test]
fn a_plan_is_approved_with_or_without_edits() {
    let json = r##"{"subtype":"can_use_tool","tool_name":"ExitPlanMode","input":{"plan":"# Steps\n\n1. look"}}"##;
    let mut prompt = prompt(json);
    let rows = prompt.rows(&style()).0;
    assert!(rows[0] == "Approve this plan?" && rows.iter().any(|row| row.contains("1. look")), "{rows:#?}");
    assert!(rows.contains(&"a  accept edits in this session".to_owned()), "{rows:#?}");
    let accepted = updates(press(&mut prompt, &[KeyCode::Char('a')]));
    assert!(matches!(&accepted[..], [PermissionUpdate::SetMode(set)] if set.mode == PermissionMode::AcceptEdits));
}
