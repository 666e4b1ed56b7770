use http_body::Body as _;
use quipu_message::Role;
use serde_json::Value;

use super::*;

#[test]
fn history_is_one_list_that_only_grows() {
    let text = |history: &EncodedHistory| String::from_utf8(history.chunks().concat()).unwrap();
    let mut history = EncodedHistory::default();
    history.append(&[]).unwrap();
    assert!(history.is_empty());
    for turn in 0..100 {
        let before = text(&history);
        let messages = [Message::new(Role::User, format!("question {turn}")), Message::new(Role::Assistant, "answer")];
        history.append(&messages).unwrap();
        assert!(text(&history).starts_with(&before), "turn {turn} changed earlier messages");
    }
    let all: Vec<Value> = serde_json::from_str(&format!("[{}]", text(&history))).unwrap();
    assert_eq!(all.len(), 200);
    assert_eq!(all[198]["content"], "question 99");
}

#[test]
fn many_small_appends_give_few_chunks() {
    let mut history = EncodedHistory::default();
    for turn in 0..5000 {
        history.append(&[Message::new(Role::User, format!("question {turn}"))]).unwrap();
    }
    let bytes: usize = history.chunks().iter().map(Bytes::len).sum();
    assert!(bytes > 200_000);
    assert!(history.chunks().len() <= bytes / MERGED_CHUNK_BYTES + 1, "{} chunks", history.chunks().len());
}

#[test]
fn a_clone_shares_its_chunks() {
    let mut history = EncodedHistory::default();
    history.append(&[Message::new(Role::User, "a".repeat(MERGED_CHUNK_BYTES))]).unwrap();
    let kept = history.clone();
    history.append(&[Message::new(Role::Assistant, "b")]).unwrap();
    assert_eq!(kept.chunks()[0].as_ptr(), history.chunks()[0].as_ptr());
    assert_eq!((kept.chunks().len(), history.chunks().len()), (1, 2));
}

#[test]
fn a_body_knows_its_length() {
    let mut body = ChunkedBody::default();
    assert!(body.is_end_stream());
    for chunk in ["one", "", "three"] {
        body.push(chunk.into());
    }
    assert_eq!((body.size_hint().exact(), body.chunks.len()), (Some(8), 2));
}
