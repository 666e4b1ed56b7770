use serde_json::json;

use super::*;

struct Fixed(u32);

impl StampSource for Fixed {
    fn new_uuid(&mut self) -> Uuid {
        self.0 += 1;
        format!("00000000-0000-4000-8000-{:012}", self.0).into()
    }
    fn now(&mut self) -> String {
        "2026-11-15T00:00:00.000Z".into()
    }
}

#[track_caller]
fn check(line: &impl Serialize, expect: serde_json::Value) {
    assert_eq!(serde_json::to_value(line).unwrap(), expect);
}

#[test]
fn a_synthetic_answer_carries_a_full_zero_usage() {
    check(
        &synthetic_assistant("", &mut Fixed(0)),
        json!({
            "type": "assistant", "uuid": "00000000-0000-4000-8000-000000000002",
            "timestamp": "2026-11-15T00:00:00.000Z", "isApiErrorMessage": false,
            "message": {
                "id": "00000000-0000-4000-8000-000000000001", "type": "message", "role": "assistant",
                "model": "<synthetic>", "content": [{"type": "text", "text": "(no content)"}],
                "stop_reason": "stop_sequence", "stop_sequence": "", "container": null, "context_management": null,
                "usage": {
                    "input_tokens": 0, "output_tokens": 0,
                    "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": null,
                    "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
                    "inference_geo": null, "iterations": null, "speed": null,
                },
            },
        }),
    );
}

#[test]
fn a_failed_call_has_its_error_kind() {
    let line = api_error_assistant("API Error: 529", AssistantErrorKind::Server, &mut Fixed(0));
    assert!(line.is_api_error());
    assert_eq!(line.error.text(), Some("server_error"));
}

#[test]
fn a_tool_result_holds_both_forms_and_the_line_that_asked() {
    let line =
        tool_result("t1".into(), "3 lines", true, Json::from_serialize(&json!({"n": 3})), "call".into(), &mut Fixed(0));
    check(
        &line,
        json!({
            "type": "user", "uuid": "00000000-0000-4000-8000-000000000001", "timestamp": "2026-11-15T00:00:00.000Z",
            "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "3 lines", "is_error": true}]},
            "toolUseResult": {"n": 3}, "sourceToolAssistantUUID": "call",
        }),
    );
}

#[test]
fn progress_is_generic_over_its_data() {
    let known = progress("t".into(), "p".into(), &json!({"type": "query_update", "query": "x"}), &mut Fixed(0));
    assert!(matches!(known.data, ProgressData::Tagged(_)));
    let own = progress("t".into(), "p".into(), &json!({"percent": 7}), &mut Fixed(0));
    assert_eq!(own.data.read::<serde_json::Value>().unwrap(), json!({"percent": 7}));
}
