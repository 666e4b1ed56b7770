use serde_json::json;

use super::*;

fn block(value: serde_json::Value) -> Block {
    serde_json::from_str(&value.to_string()).unwrap()
}

#[test]
fn a_result_may_hold_any_value_and_keeps_its_bytes() {
    for content in [r#"{"rows":[1,2.50,1e5],"ok":true}"#, "7", "true", r#"["plain",7,{"type":"text","text":"x"}]"#] {
        let text = format!(r#"{{"type":"tool_result","tool_use_id":"t","content":{content}}}"#);
        let block: Block = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&block).unwrap(), text);
    }
}

#[test]
fn a_server_result_has_failure_and_output() {
    let outcome = |kind: &str, content: serde_json::Value| {
        let block = block(json!({"type": kind, "tool_use_id": "t", "content": content}));
        let outcome = block.tool_call_result().unwrap();
        (outcome.is_error, outcome.content.map(|content| content.to_text()))
    };
    let cases = [
        (
            "web_search_tool_result",
            json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}),
            (true, Some("max_uses_exceeded")),
        ),
        (
            "web_search_tool_result",
            json!([{"type": "web_search_result", "url": "u", "title": "t"}]),
            (false, Some("t u")),
        ),
        (
            "bash_code_execution_tool_result",
            json!({"type": "bash_code_execution_result", "stdout": "out", "stderr": "err", "return_code": 2}),
            (true, Some("out\nerr")),
        ),
        (
            "text_editor_code_execution_tool_result",
            json!({"type": "text_editor_code_execution_view_result", "content": "line"}),
            (false, Some("line")),
        ),
        ("mcp_tool_result", json!([{"type": "text", "text": "found"}]), (false, Some("found"))),
    ];
    for (kind, content, (failed, text)) in cases {
        assert_eq!(outcome(kind, content), (failed, text.map(str::to_owned)), "{kind}");
    }
}

#[test]
fn calls_of_all_three_kinds_are_calls() {
    for kind in ["tool_use", "server_tool_use", "mcp_tool_use"] {
        let block = block(json!({"type": kind, "id": "t", "name": "N", "input": {"a": 1}, "server_name": "s"}));
        let call = block.tool_call().unwrap();
        assert_eq!((call.id.as_str(), call.name, call.input.unwrap().text()), ("t", "N", r#"{"a":1}"#));
        assert_eq!(call.server, (kind == "mcp_tool_use").then_some("s"));
    }
}
