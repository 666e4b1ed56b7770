//! Laws that hold whatever the input.

use std::collections::HashSet;

use proptest::prelude::*;
use quipu_conversation::{Accumulator, Conversation, normalise};
use quipu_message::{Content, Message, Role, Uuid, sse};
use serde_json::{Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just(" \n".to_owned()), "[a-z 中]{1,6}"]
}

fn block() -> impl Strategy<Value = Value> {
    let id = || (0..6u8).prop_map(|n| format!("t{n}"));
    prop_oneof![
        3 => text().prop_map(|text| json!({"type": "text", "text": text})),
        3 => id().prop_map(|id| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}})),
        3 => (id(), text(), any::<bool>())
            .prop_map(|(id, text, bad)| json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": bad})),
        1 => Just(json!({"type": "thinking", "thinking": "hm", "signature": "s"})),
        1 => Just(json!({"type": "hologram", "beam": 1})),
        1 => Just(json!({"type": "image", "source": {"type": "base64", "data": "AA=="}})),
    ]
}

fn entry() -> impl Strategy<Value = Value> {
    let content =
        || prop_oneof![text().prop_map(Value::from), prop::collection::vec(block(), 0..4).prop_map(Value::from)];
    let uuid = || (0..12u8).prop_map(|n| format!("u{n}"));
    let parent = || prop_oneof![Just(Value::Null), (0..14u8).prop_map(|n| Value::from(format!("u{n}")))];
    let flags = prop::collection::vec(
        prop::sample::select(vec!["isMeta", "isVirtual", "isCompactSummary", "isApiErrorMessage", "isSidechain"]),
        0..2,
    );
    (uuid(), parent(), content(), flags, 0..8u8, prop::option::of(0..4u8)).prop_map(|(uuid, parent, content, flags, kind, id)| {
        let mut line = match kind {
            0..=2 => json!({"type": "user", "message": {"role": "user", "content": content}}),
            3..=5 => json!({"type": "assistant", "message": {"role": "assistant", "id": id.map(|n| format!("m{n}")), "content": content}}),
            6 => json!({"type": "system", "subtype": "local_command", "content": "<local-command-stdout>x</local-command-stdout>"}),
            _ => json!({"type": "system", "subtype": "compact_boundary", "logicalParentUuid": "u1"}),
        };
        line["uuid"] = uuid.into();
        line["parentUuid"] = parent;
        for flag in flags {
            line[flag] = true.into();
        }
        line
    })
}

/// What every request must be, or the API refuses it.
fn is_fit_to_send(messages: &[Message]) -> Result<(), TestCaseError> {
    let mut calls: HashSet<String> = HashSet::new();
    for (i, message) in messages.iter().enumerate() {
        let role = if i % 2 == 0 { Role::User } else { Role::Assistant };
        prop_assert_eq!(&message.role, &role, "roles alternate");
        let Content::Blocks(blocks) = &message.content else { panic!("blocks only") };
        prop_assert!(!blocks.is_empty(), "no empty content");
        prop_assert!(blocks.iter().all(|b| b.text().is_none_or(|t| !t.trim().is_empty())), "no blank text");
        let results: Vec<String> =
            blocks.iter().filter_map(|b| b.tool_result().map(|r| r.tool_use_id.to_string())).collect();
        let first: Vec<bool> = blocks.iter().map(|b| b.tool_result().is_some()).collect();
        prop_assert!(first.is_sorted_by(|a, b| a >= b), "results first");
        prop_assert_eq!(results.len(), results.iter().collect::<HashSet<_>>().len());
        prop_assert_eq!(&results.into_iter().collect::<HashSet<_>>(), &calls, "each call answered in the next message");
        calls = blocks.iter().filter_map(|b| b.tool_use().map(|c| c.id.to_string())).collect();
    }
    prop_assert!(calls.is_empty(), "the last calls are answered too");
    Ok(())
}

fn fold(lines: &[Value]) -> Conversation {
    let mut conversation = Conversation::default();
    lines.iter().enumerate().for_each(|(i, line)| conversation.push_line(i as u64 + 1, &line.to_string()));
    conversation
}

/// A streamed answer as bytes, and the message it makes.
fn answer() -> impl Strategy<Value = (String, Value)> {
    let part = prop_oneof![
        prop::collection::vec("[a-zé中😀\\\\\" ]{0,5}", 1..4).prop_map(|pieces| ("text", pieces)),
        prop::collection::vec("[a-z]{0,5}", 1..4).prop_map(|pieces| ("thinking", pieces)),
        prop::collection::vec("[0-9]{1,3}", 1..4).prop_map(|pieces| ("tool_use", pieces)),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| {
        let mut events = vec![json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}})];
        let mut content = Vec::new();
        for (index, (kind, pieces)) in parts.into_iter().enumerate() {
            let whole: String = pieces.concat();
            let (start, end) = match kind {
                "text" => (json!({"type": "text", "text": ""}), json!({"type": "text", "text": whole})),
                "thinking" => (json!({"type": "thinking", "thinking": ""}), json!({"type": "thinking", "thinking": whole, "signature": "sig"})),
                _ => (
                    json!({"type": "tool_use", "id": format!("t{index}"), "name": "Calc", "input": {}}),
                    json!({"type": "tool_use", "id": format!("t{index}"), "name": "Calc", "input": {"n": whole}}),
                ),
            };
            events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
            let pieces = if kind == "tool_use" { vec!["{\"n\":\"".to_owned(), whole, "\"}".to_owned()] } else { pieces };
            for piece in pieces {
                let delta = match kind {
                    "text" => json!({"type": "text_delta", "text": piece}),
                    "thinking" => json!({"type": "thinking_delta", "thinking": piece}),
                    _ => json!({"type": "input_json_delta", "partial_json": piece}),
                };
                events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            if kind == "thinking" {
                events.push(json!({"type": "content_block_delta", "index": index, "delta": {"type": "signature_delta", "signature": "sig"}}));
            }
            events.push(json!({"type": "ping"}));
            events.push(json!({"type": "content_block_stop", "index": index}));
            content.push(end);
        }
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 42}}));
        events.push(json!({"type": "message_stop"}));
        let bytes = events.iter().map(|e| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap())).collect();
        let message = json!({"id": "m", "role": "assistant", "content": content, "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 42}});
        (bytes, message)
    })
}

proptest! {
    #[test]
    fn for_api_is_fit_to_send_whatever_the_order(lines in prop::collection::vec(entry(), 0..24)) {
        is_fit_to_send(&fold(&lines).for_api())?;
    }

    #[test]
    fn normalising_twice_changes_nothing(lines in prop::collection::vec(entry(), 0..24)) {
        let once = fold(&lines).for_api();
        prop_assert_eq!(normalise(once.clone()), once);
    }

    #[test]
    fn ids_on_the_screen_are_stable_and_name_each_item_once(mut lines in prop::collection::vec(entry(), 0..12)) {
        for (i, line) in lines.iter_mut().enumerate() {
            line["uuid"] = format!("u{i}").into();
        }
        let conversation = fold(&lines);
        let items = conversation.for_ui();
        prop_assert_eq!(&conversation.for_ui(), &items);
        let ids: Vec<&Uuid> = items.iter().filter_map(|item| item.uuid.as_ref()).collect();
        let distinct: HashSet<&Uuid> = ids.iter().copied().collect();
        prop_assert_eq!(ids.len(), distinct.len(), "{:?}", ids);
    }

    #[test]
    fn any_split_of_a_stream_gives_the_same_message((bytes, message) in answer(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let mut parser = sse::Parser::new();
        let mut answer = Accumulator::default();
        for pair in places.windows(2) {
            for event in parser.push(&bytes.as_bytes()[pair[0]..pair[1]]) {
                answer.push(&serde_json::from_str(&event.unwrap().data).unwrap()).unwrap();
            }
        }
        parser.finish().unwrap();
        prop_assert_eq!(serde_json::to_value(answer.finish().unwrap()).unwrap(), message);
    }
}
