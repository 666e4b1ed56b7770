//! Splitting a text into what the user typed, what was attached and what the program added: the parts
//! together are exactly the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_message::context_ref::{self, ContextKind, ContextRef};
use quipu_message::synthetic;
use quipu_message::tagged_text::{self, TextPart};
use serde_json::Value;

fuzz_target!(|text: &str| {
    if let Ok(reference) = serde_json::from_str::<ContextRef>(text) {
        let written = serde_json::to_string(&reference).expect("what was read can be written");
        let again: ContextRef = serde_json::from_str(&written).expect("what was written can be read");
        assert_eq!(reference, again, "{written}");
        check_display(reference.kind);
    }
    // Of a line of a session, its strings are used.
    match serde_json::from_str(text) {
        Ok(value) => strings(&value, &mut check),
        Err(_) => check(text),
    }
});

fn strings(value: &Value, check: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => check(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, check)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, check)),
        _ => {}
    }
}

fn check(text: &str) {
    let parts = tagged_text::split_parts(text);
    assert_eq!(parts.iter().map(TextPart::raw).collect::<String>(), text);
    assert!(parts.iter().filter(|part| matches!(part, TextPart::Typed(_))).count() <= 1);
    tagged_text::slash_command(text).map(|command| command.command_line());
    tagged_text::bash_input(text);
    tagged_text::command_output(text);
    synthetic::is_synthetic(text);

    for text in [text, tagged_text::typed_text(text)] {
        if let Some(split) = context_ref::split_block(text) {
            assert_eq!([split.block, split.rest].concat(), text);
            assert_eq!(context_ref::write_block_with_header(split.header, &split.contexts), split.block);
        }
    }

    // Any text in any field gives one line, and that line reads as shown.
    let (one, two) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let [whole, one, two] = [text, one, two].map(str::to_owned);
    for kind in [
        ContextKind::File { path: whole.clone() },
        ContextKind::Web { url: whole.clone(), title: None },
        ContextKind::Web { url: one.clone(), title: Some(two.clone()) },
        ContextKind::Folder { path: whole.clone(), file_count: text.len() as u64 },
        ContextKind::Symbol { name: one, symbol_type: two, file: whole.clone(), line: 7 },
        ContextKind::Problems { count: 1, severity: Some(whole.clone()) },
        ContextKind::Git { git_type: whole.clone() },
        ContextKind::Other { text: whole },
    ] {
        check_display(kind);
    }
}

fn check_display(kind: ContextKind) {
    let shown = kind.as_displayed();
    assert_eq!(shown, shown.as_displayed());
    let block = context_ref::write_block(&[kind.into()]);
    let split = context_ref::split_block(&block).expect("a written block is a block");
    assert_eq!(split.contexts, [shown.into()]);
    assert_eq!(split.rest, "");
}
