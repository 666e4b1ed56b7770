use super::*;

/// The error of a bad script.
fn error_text(script: &str) -> String {
    let error = Script::parse(script).unwrap_err();
    assert!(!error.hint().is_empty());
    error.to_string()
}

#[test]
fn yaml_and_json_are_the_same_script() {
    assert!(Script::parse("- when: {says: hi}\n  reply: hello\n").is_ok());
    assert!(Script::parse(r#"[{"when": {"says": "hi"}, "reply": "hello"}]"#).is_ok());
}

#[test]
fn a_wrong_key_is_an_error_with_its_position_and_the_known_keys() {
    for (script, line) in [("- reply: a\n- repley: b\n", 2), ("[{\"reply\": \"a\"},\n {\"repley\": \"b\"}]", 2)] {
        let text = error_text(script);
        assert!(text.starts_with(&format!("line {line}, column ")), "{text}");
        assert!(text.contains("repley") && text.contains("reply"), "{text}");
        assert_eq!(text.matches("line").count(), 1, "{text}");
    }
    let text = error_text("- reply: a\n  when:\n    say: b\n");
    assert!(text.starts_with("line 3, ") && text.contains("says"), "{text}");
}

#[test]
fn wrong_values_are_reported_with_their_position() {
    let cases = [
        ("- reply: a\n- error: 200\n", "2, column 10", "an error has a status from 400 to 599, not 200"),
        ("- reply: a\n  error: 500\n", "1, column 3", "exactly one of reply, error and count"),
        ("- when: {says: x}\n", "1, column 3", "exactly one of reply, error and count"),
        ("- error: 500\n  cut_after: 2\n", "1, column 3", "belong to a reply"),
        ("- reply: a\n  cut_after: 2\n  hang_after: 1\n", "1, column 3", "ends in one way"),
        ("- reply:\n    - text: a\n      tool: Read\n", "2, column 7", "exactly one of text, thinking"),
        ("- reply: {text: a, input: {}}\n", "1, column 10", "input and id belong to a tool"),
        ("- reply: {tool: Read, input: 7}\n", "1, column 10", "the input of Read must be a mapping"),
        ("- reply: {block: {type: text, text: 7}}\n", "1, column 10", "block: text: "),
        ("- reply: 7\n", "1, column 3", "a text, a piece"),
        ("- reply: a\n  when: {matches: '('}\n", "2, column 19", "matches: error: unclosed group"),
        ("- reply: a\n  times: 0\n", "1, column 3", "at least 1"),
        ("- reply: a\n  headers: {x: [1]}\n", "1, column 3", "the header x must be a text or a number"),
        ("reply: a\n", "1, column 1", "a script is a list of rules"),
        ("- reply: [\n", "1, column 10", "unclosed bracket"),
    ];
    for (script, place, words) in cases {
        let text = error_text(script);
        assert!(text.starts_with(&format!("line {place}: ")) && text.contains(words), "{script:?}: {text}");
    }
}

#[test]
fn an_empty_script_is_an_error_with_an_example() {
    for script in ["", "  \n", "[]"] {
        let error = Script::parse(script).unwrap_err();
        assert_eq!(error.code(), "answer.empty_script", "{script:?}");
        assert!(error.hint().contains("- reply: Hello"));
    }
}

#[test]
fn a_broken_recording_is_an_error_with_its_line() {
    let call = r#"{"method":"POST","path":"/v1/messages","body":{"model":"m","messages":[]},"status":200}"#;
    assert!(Script::parse(call).is_ok());
    assert!(error_text(&format!("{call}\n{{\"a\":1}}")).starts_with("line 2, column 1: a recorded call has"));
    assert!(error_text(r#"{"method":"HEAD","path":"/"}"#).contains("no call of /v1/messages"));
}

#[test]
fn a_missing_file_is_named() {
    let error = Script::read(Path::new("no/such/script.yaml")).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("answer.cannot_read", "cannot read no/such/script.yaml"));
}
