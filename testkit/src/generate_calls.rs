//! Generates a capture of API calls of any size, in the format of claude-trace.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Size of a generated capture.
#[derive(Debug, Clone, Copy)]
pub struct CaptureSize {
    /// Number of sessions, one after another.
    pub sessions: usize,
    /// API calls of each session. Each call repeats the messages of the one before.
    pub calls: usize,
    /// Bytes of text in the two messages that each call adds.
    pub bytes_per_call: usize,
}

/// Writes a capture: system prompt and tools as in a real request, a breakpoint on the last
/// message, and a streamed response with a tool call. The same size gives the same bytes.
pub fn generate_capture(size: CaptureSize, out: &mut impl Write) -> io::Result<()> {
    let system = words(1, 4_000);
    let tools: Vec<String> = (0..10)
        .map(|i| {
            format!(r#"{{"name":"Tool{i}","description":"{}","input_schema":{{"type":"object"}}}}"#, words(i, 400))
        })
        .collect();
    let tools = tools.join(",");
    for session in 0..size.sessions {
        let mut history = String::new();
        for call in 0..size.calls {
            let number = (session * size.calls + call) as u64;
            let text = words(2 * number + 17, size.bytes_per_call / 2);
            let block = if call == 0 {
                format!(r#"{{"type":"text","text":"{text}""#)
            } else {
                format!(r#"{{"type":"tool_result","tool_use_id":"toolu_{}","content":"{text}""#, number - 1)
            };
            let answer = words(2 * number + 18, size.bytes_per_call / 2);
            let start = 1_794_700_800 + number * 10;
            write!(
                out,
                r#"{{"request":{{"timestamp":{start},"method":"POST","url":"https://api.anthropic.com/v1/messages?beta=true","headers":{{"x-api-key":"made-up","anthropic-beta":"one,two"}},"body":{{"model":"claude-opus-5-5","messages":[{history}{{"role":"user","content":[{block},"cache_control":{{"type":"ephemeral"}}}}]}}],"system":[{{"type":"text","text":"{system}","cache_control":{{"type":"ephemeral"}}}}],"tools":[{tools}],"metadata":{{"user_id":"user_1_account__session_{session}"}},"max_tokens":32000,"stream":true}}}},"response":{{"timestamp":{},"status_code":200,"headers":{{"request-id":"req_{number}"}},"body":null,"body_raw":"{}"}},"logged_at":"2026-11-15T00:00:00"}}"#,
                start + 5,
                events(number, &answer, history.len() as u64 / 4)
            )?;
            out.write_all(b"\n")?;
            let _ = write!(
                history,
                r#"{{"role":"user","content":[{block}}}]}},{{"role":"assistant","content":[{{"type":"text","text":"{answer}"}},{{"type":"tool_use","id":"toolu_{number}","name":"Tool1","input":{{}}}}]}},"#
            );
        }
    }
    Ok(())
}

/// Events of a streamed response, escaped for a JSON string.
fn events(number: u64, answer: &str, cached: u64) -> String {
    let events = [
        format!(
            r#"{{"type":"message_start","message":{{"id":"msg_{number}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"usage":{{"input_tokens":3,"cache_creation_input_tokens":200,"cache_read_input_tokens":{cached},"output_tokens":1}}}}}}"#
        ),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{answer}"}}}}"#),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        format!(
            r#"{{"type":"content_block_start","index":1,"content_block":{{"type":"tool_use","id":"toolu_{number}","name":"Tool1","input":{{}}}}}}"#
        ),
        r#"{"type":"content_block_stop","index":1}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":120}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    events.iter().map(|event| format!("data: {}\\n\\n", event.replace('"', "\\\""))).collect()
}

/// Words of about this many bytes, different for each seed.
fn words(seed: u64, bytes: usize) -> String {
    const WORDS: [&str; 16] = [
        "tide", "harbour", "gauge", "reading", "shore", "table", "file", "error", "commit", "branch", "test", "line",
        "the", "a", "when", "潮汐",
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(bytes + 8);
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text += WORDS[(state >> 60) as usize];
        text.push(' ');
    }
    text
}
