use http_body::Body as _;
use quipu_message::Role;
use serde_json::Value;

use super::*;

fn text(settled: &EncodedHistory) -> String {
    String::from_utf8(settled.chunks().concat()).unwrap()
}

#[test]
fn settled_messages_are_one_list_in_few_pieces_however_many_there_are() {
    let mut settled = EncodedHistory::default();
    settled.append(&[]).unwrap();
    assert!(settled.is_empty());
    let mut before = EncodedHistory::default();
    for turn in 0..1000 {
        let long = "x".repeat(turn * 7919 % 613);
        let said = [Message::new(Role::User, format!("question {turn}")), Message::new(Role::Assistant, long)];
        settled.append(&said).unwrap();
        assert!(text(&settled).starts_with(&text(&before)), "turn {turn} changed what was said before");
        assert!(settled.chunks().len() < 16, "turn {turn}: {} pieces", settled.chunks().len());
        before = settled.clone();
    }
    let all: Vec<Value> = serde_json::from_str(&format!("[{}]", text(&settled))).unwrap();
    assert_eq!(all.len(), 2000);
    assert_eq!(all[1998]["content"], "question 999");
}

#[test]
fn a_clone_keeps_its_pieces_without_copying_them() {
    let mut settled = EncodedHistory::default();
    settled.append(&[Message::new(Role::User, "a".repeat(1000))]).unwrap();
    let kept = settled.clone();
    settled.append(&[Message::new(Role::Assistant, "b")]).unwrap();
    assert_eq!(kept.chunks()[0].as_ptr(), settled.chunks()[0].as_ptr());
    assert_eq!((kept.chunks().len(), settled.chunks().len()), (1, 2));
}

#[test]
fn a_body_says_how_long_it_is() {
    let mut body = ChunkedBody::default();
    assert!(body.is_end_stream());
    for piece in ["one", "", "three"] {
        body.push(piece.into());
    }
    assert_eq!((body.size_hint().exact(), body.chunks.len()), (Some(8), 2));
}
