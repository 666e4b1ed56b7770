//! Splitting a text into what the user typed, what was attached and what the program added: the parts
//! together are exactly the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_message::context::{self, ContextRef, Kind};
use quipu_message::local_command::{self, Part};
use quipu_message::synthetic;
use serde_json::Value;

fuzz_target!(|text: &str| {
    if let Ok(reference) = serde_json::from_str::<ContextRef>(text) {
        let written = serde_json::to_string(&reference).expect("what was read can be written");
        let again: ContextRef = serde_json::from_str(&written).expect("what was written can be read");
        assert_eq!(reference, again, "{written}");
        displays(reference.kind);
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
    let parts = local_command::parts(text);
    assert_eq!(parts.iter().map(Part::whole).collect::<String>(), text);
    assert!(parts.iter().filter(|part| matches!(part, Part::Typed(_))).count() <= 1);
    local_command::command(text).map(|command| command.line());
    local_command::bash_input(text);
    local_command::output(text);
    synthetic::is_synthetic(text);

    for text in [text, local_command::typed(text)] {
        if let Some(split) = context::split(text) {
            assert_eq!([split.block, split.rest].concat(), text);
            assert_eq!(context::block_with(split.header, &split.contexts), split.block);
        }
    }

    // Any text in any field gives one line, and that line reads as shown.
    let (one, two) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let [whole, one, two] = [text, one, two].map(str::to_owned);
    for kind in [
        Kind::File { path: whole.clone() },
        Kind::Web { url: whole.clone(), title: None },
        Kind::Web { url: one.clone(), title: Some(two.clone()) },
        Kind::Folder { path: whole.clone(), file_count: text.len() as u64 },
        Kind::Symbol { name: one, symbol_type: two, file: whole.clone(), line: 7 },
        Kind::Problems { count: 1, severity: Some(whole.clone()) },
        Kind::Git { git_type: whole.clone() },
        Kind::Other { text: whole },
    ] {
        displays(kind);
    }
}

fn displays(kind: Kind) {
    let shown = kind.displayed();
    assert_eq!(shown, shown.displayed());
    let block = context::block(&[kind.into()]);
    let split = context::split(&block).expect("a written block is a block");
    assert_eq!(split.contexts, [shown.into()]);
    assert_eq!(split.rest, "");
}
