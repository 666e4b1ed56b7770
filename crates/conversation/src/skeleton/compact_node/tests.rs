use super::*;

#[test]
fn an_entry_takes_56_bytes() {
    assert_eq!(size_of::<CompactNode>(), 56);
}

#[test]
fn facts_survive_packing() {
    let lines = [
        r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#,
        r#"{"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":"<command-name>/clear</command-name>"}}"#,
        r#"{"type":"assistant","uuid":"c","message":{"role":"assistant","id":"m","stop_reason":null,"model":"x","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"n","input":{}}]}}"#,
        r#"{"type":"system","subtype":"compact_boundary","parentUuid":null,"logicalParentUuid":"c"}"#,
    ];
    for text in lines {
        let node = Node { line: 7, entry: Entry::read(text).unwrap() };
        let place = Place { line: 7, offset: 3 << 40, length: 9, nesting: 2 };
        let compact = CompactNode::from_entry(place, node.entry.clone());
        assert_eq!((compact.facts(), compact.prompt_kind()), (node.facts(), node.prompt_kind()), "{text}");
        assert_eq!((compact.line(), compact.offset_and_flags >> FLAG_BITS), (7, 3 << 40));
        let mut bytes = Vec::new();
        compact.write(&mut bytes).unwrap();
        let stored = CompactNode::read(&mut &bytes[..]).unwrap();
        assert_eq!(format!("{stored:?}"), format!("{compact:?}"));
    }
}
