use serde_json::json;

use super::*;

fn call(json: Value) -> CanUseTool {
    serde_json::from_str(&json.to_string()).unwrap()
}

fn reply(json: Value) -> PromptReply {
    serde_json::from_value(json).unwrap()
}

#[test]
fn suggestions_are_shown_with_a_label() {
    let call = call(json!({"tool_name": "Bash", "input": {}, "permission_suggestions": [
        {"type": "addRules", "behavior": "allow", "destination": "localSettings",
         "rules": [{"toolName": "Bash", "ruleContent": "git status:*"}, {"toolName": "Read"}]},
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        {"type": "addDirectories", "directories": ["/d"], "destination": "session"},
    ]}));
    let prompt = Prompt::for_tool_call("p".to_owned(), &call, "now".to_owned());
    let labels: Vec<&str> = prompt.suggestions.iter().map(|suggestion| suggestion.label.as_str()).collect();
    assert_eq!(
        labels,
        ["always allow `Bash(git status:*)`, `Read`", "set the permission mode `acceptEdits`", "add the folder `/d`"]
    );
    assert_eq!(prompt.suggestions[0].destination.as_deref(), Some("localSettings"));
    let Decision::Allow { updates, .. } =
        reply(json!({"decision": "allow", "suggestion": 1})).into_decision(&call).unwrap()
    else {
        panic!()
    };
    assert_eq!(updates[0].tag(), "setMode");
    assert!(reply(json!({"decision": "allow", "suggestion": 3})).into_decision(&call).is_err());
}

#[test]
fn answers_become_part_of_the_input() {
    let questions =
        json!({"questions": [{"question": "Which?", "header": "H", "options": [{"label": "a", "other": 1}]}]});
    let call = call(json!({"tool_name": "AskUserQuestion", "input": questions}));
    assert_eq!(Prompt::for_tool_call(String::new(), &call, String::new()).kind, PromptKind::Question);
    let answered = reply(json!({"decision": "allow", "answers": {"Which?": "a"}})).into_decision(&call).unwrap();
    let Decision::Allow { input: Some(input), .. } = answered else { panic!() };
    let mut expected = questions;
    expected["answers"] = json!({"Which?": "a"});
    assert_eq!(input.to_value(), expected);
    let bash = self::call(json!({"tool_name": "Bash", "input": {"command": "ls"}}));
    assert!(reply(json!({"decision": "allow", "answers": {}})).into_decision(&bash).is_err());
}

#[test]
fn a_denial_has_a_message() {
    let bash = call(json!({"tool_name": "Bash", "input": {}}));
    let message = |json: Value| match reply(json).into_decision(&bash).unwrap() {
        Decision::Deny { message, interrupt } => (message, interrupt),
        other => panic!("{other:?}"),
    };
    assert_eq!(message(json!({"decision": "deny", "message": " "})), ("The user denied this.".to_owned(), false));
    assert_eq!(message(json!({"decision": "deny", "message": "no", "interrupt": true})), ("no".to_owned(), true));
    assert!(serde_json::from_value::<PromptReply>(json!({"decision": "perhaps"})).is_err());
}

#[test]
fn an_mcp_server_gets_the_answer_or_a_refusal() {
    let answer = |json: Value| reply(json).into_elicitation_response().to_value();
    assert_eq!(
        answer(json!({"decision": "allow", "input": {"a": 1}})),
        json!({"action": "accept", "content": {"a": 1}})
    );
    assert_eq!(answer(json!({"decision": "deny"})), json!({"action": "decline"}));
}
