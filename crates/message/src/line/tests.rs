use proptest::prelude::*;
use serde_json::Value;

use super::*;

const UNUSUAL_LINE: &str = r#"{"parentUuid":null , "n":1e5,"big":12345678901234567890123,"s":"caf\u00e9 a\/b","a":1,"a":2,"cut":"\ud83d","ok":"\ud83d\ude00","sessionId":"old","new":{ "future":true }}"#;

#[track_caller]
fn check_splice(text: &str, path: &[&str], value: &str, expect: &str) {
    let value: &RawValue = serde_json::from_str(value).unwrap();
    let line = Line::parse(text).unwrap().with_field(path, value).unwrap();
    assert_eq!(line.as_str(), expect);
}

#[test]
fn bytes_come_back() {
    assert_eq!(Line::parse(UNUSUAL_LINE).unwrap().as_str(), UNUSUAL_LINE);
}

#[test]
fn one_field_changes_and_nothing_else() {
    check_splice(UNUSUAL_LINE, &["sessionId"], r#""new""#, &UNUSUAL_LINE.replace(r#""old""#, r#""new""#));
    check_splice(UNUSUAL_LINE, &["new", "future"], "0", &UNUSUAL_LINE.replace("true", "0"));
    check_splice(UNUSUAL_LINE, &["a"], "3", &UNUSUAL_LINE.replace(r#""a":2"#, r#""a":3"#));
}

#[test]
fn a_missing_field_is_added_at_the_end() {
    check_splice(r#"{"a":1 }"#, &["b"], "2", r#"{"a":1,"b":2 }"#);
    check_splice(r#"{ }"#, &["b"], "2", r#"{"b":2 }"#);
    check_splice(r#"{"m":{},"z":0}"#, &["m", "b"], "2", r#"{"m":{"b":2},"z":0}"#);
}

#[test]
fn a_path_through_a_number_is_refused() {
    let error = Line::parse(r#"{"a":1}"#).unwrap().with_field(&["a", "b"], &2).unwrap_err();
    assert_eq!(error.to_string(), "cannot set a.b: a is not an object");
}

#[test]
fn lone_surrogates_read_and_stay() {
    let value: Value = serde_json::from_str(&replace_lone_surrogates(UNUSUAL_LINE)).unwrap();
    assert_eq!(value["cut"], "\u{FFFD}");
    assert_eq!(value["ok"], "😀");
    assert!(matches!(replace_lone_surrogates(r#"{"a":"\\ud83d"}"#), Cow::Borrowed(_)));
    assert!(matches!(replace_lone_surrogates(r#"{"a":"\ud83d\ude00"}"#), Cow::Borrowed(_)));
}

#[test]
fn a_copy_has_new_ids_in_all_references_and_names_its_original() {
    let copied = |text: &str| {
        let mut rename = |id: &str| Uuid::from(id.to_uppercase());
        Line::parse(text).unwrap().copy_with_new_ids(&"old".into(), &mut rename).unwrap().as_str().to_owned()
    };
    assert_eq!(
        copied(
            r#"{"parentUuid":null, "uuid":"a","message":{"uuid":"a","cut":"\ud83d"},"sourceToolAssistantUUID":"b"}"#
        ),
        r#"{"parentUuid":null, "uuid":"A","message":{"uuid":"a","cut":"\ud83d"},"sourceToolAssistantUUID":"B","forkedFrom":{"sessionId":"old","messageUuid":"a"}}"#
    );
    assert_eq!(
        copied(
            r#"{"uuid":"c","logicalParentUuid":"b","compactMetadata":{"preservedSegment":{"headUuid":"a"},"preTokens":9,"preservedMessages":{"uuids":["a" , "b"],"anchorUuid":"d"}},"forkedFrom":{"sessionId":"older"}}"#
        ),
        r#"{"uuid":"C","logicalParentUuid":"B","compactMetadata":{"preservedSegment":{"headUuid":"A"},"preTokens":9,"preservedMessages":{"uuids":["A","B"],"anchorUuid":"D"}},"forkedFrom":{"sessionId":"old","messageUuid":"c"}}"#
    );
    assert_eq!(
        copied(r#"{"type":"tombstone","message":{"uuid":"a","parentUuid":"b"}}"#),
        r#"{"type":"tombstone","message":{"uuid":"A","parentUuid":"B"}}"#
    );
    assert_eq!(copied(r#"{"type":"mode","mode":"a"}"#), r#"{"type":"mode","mode":"a"}"#);
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn splicing_one_field_leaves_the_others_bytes(
        before in prop::collection::btree_map("[a-y]{1,5}", json(), 0..5),
        after in prop::collection::btree_map("[A-Y]{1,5}", json(), 0..5),
        old in json(), new in json(), pad in "[ \t]{0,3}",
    ) {
        let field = |(key, value): (&String, &Value)| format!("{pad}{}{pad}:{pad}{value}{pad}", Value::from(key.as_str()));
        let frame = |z: &Value| {
            let fields = before.iter().map(field).chain([format!("\"z\":{z}")]).chain(after.iter().map(field));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        };
        let line = Line::parse(&frame(&old)).unwrap();
        prop_assert_eq!(line.as_str(), frame(&old));
        let changed = line.with_field(&["z"], &new).unwrap();
        prop_assert_eq!(changed.as_str(), frame(&new));
    }

    #[test]
    fn mending_never_changes_what_is_already_readable(text in "\\PC{0,40}") {
        let json = serde_json::to_string(&text).unwrap();
        let mended = replace_lone_surrogates(&json);
        prop_assert_eq!(&*mended, &*json);
    }
}
