use proptest::prelude::*;
use quipu_conversation::Accumulator;
use serde_json::json;

use super::*;

proptest! {
    /// The events of any message accumulate to the same message.
    #[test]
    fn the_events_of_a_message_make_the_message(
        texts in prop::collection::vec(("\\PC{0,40}", 0..4u8), 0..5),
        chunk in 1..20usize,
        stop in prop::option::of("[a-z_]{1,12}"),
        written in 0..9999u64,
    ) {
        let block = |(text, kind): &(String, u8)| match kind {
            0 => json!({"type": "text", "text": text}),
            1 => json!({"type": "thinking", "thinking": text, "signature": "proof"}),
            2 => json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": text}}),
            _ => json!({"type": "redacted_thinking", "data": text}),
        };
        let content: Vec<_> = texts.iter().map(block).collect();
        let message: Message = serde_json::from_str(&json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": stop, "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": written}
        }).to_string()).unwrap();
        let mut growing = Accumulator::default();
        for event in message_events(&message, chunk) {
            growing.push(&event).unwrap();
        }
        prop_assert_eq!(growing.finish().unwrap(), message);
    }
}
