//! Cuts long texts of items, so that a window of lines of megabytes stays small.

use quipu_message::line::replace_lone_surrogates;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Texts are cut here.
const MAX_TEXT_BYTES: usize = 32 << 10;
/// Encoded images and documents are cut here.
const MAX_IMAGE_BYTES: usize = 16 << 20;

/// Encodes a value. Texts of more than 32 KiB anywhere in it are cut, and the object then has
/// `"cut": true`; images of usual size stay whole.
pub(crate) fn encode_cut<T: Serialize>(value: &T) -> Option<Box<RawValue>> {
    let encoded = serde_json::value::to_raw_value(value).ok()?;
    if encoded.get().len() <= MAX_TEXT_BYTES {
        return Some(encoded);
    }
    let mut value: Value = serde_json::from_str(&replace_lone_surrogates(encoded.get())).ok()?;
    if !cut_texts(&mut value) {
        return Some(encoded);
    }
    value["cut"] = Value::Bool(true);
    serde_json::value::to_raw_value(&value).ok()
}

/// Returns whether a text was cut.
fn cut_texts(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.len() > MAX_TEXT_BYTES && !is_image(text) => {
            text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
            true
        }
        // Not `any`, which would leave out the texts after the first long one.
        Value::Array(values) => values.iter_mut().fold(false, |is_cut, value| cut_texts(value) | is_cut),
        Value::Object(fields) => fields.values_mut().fold(false, |is_cut, value| cut_texts(value) | is_cut),
        _ => false,
    }
}

/// Whether a text may be an encoded image.
fn is_image(text: &str) -> bool {
    text.len() <= MAX_IMAGE_BYTES
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: Value, expect: Value) {
        let encoded = encode_cut(&value).unwrap();
        assert_eq!(serde_json::from_str::<Value>(encoded.get()).unwrap(), expect);
    }

    #[test]
    fn long_texts_are_cut_and_images_are_not() {
        let (long, short) = ("two words ".repeat(9000), "short".to_owned());
        check(json!({"text": short}), json!({"text": short}));
        let cut = &long[..MAX_TEXT_BYTES];
        check(json!({"a": [long, {"b": long}], "c": 1}), json!({"a": [cut, {"b": cut}], "c": 1, "cut": true}));
        let image = "iVBORw0KGgo".repeat(9000);
        check(json!({"data": image}), json!({"data": image}));
        let huge = "A".repeat(MAX_IMAGE_BYTES + 1);
        check(json!({"data": huge}), json!({"data": huge[..MAX_TEXT_BYTES], "cut": true}));
        let chinese = "潮汐 ".repeat(20_000);
        let encoded = encode_cut(&json!({"text": chinese})).unwrap();
        assert!(encoded.get().contains("\"cut\":true") && encoded.get().len() < MAX_TEXT_BYTES + 40);
    }
}
