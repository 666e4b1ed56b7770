use http_body::Body as _;
use quipu_message::Role;
use serde_json::Value;

use super::*;

fn text(settled: &Settled) -> String {
    String::from_utf8(settled.pieces().concat()).unwrap()
}

#[test]
fn settled_messages_are_one_list_in_few_pieces_however_many_there_are() {
    let mut settled = Settled::default();
    settled.add(&[]).unwrap();
    assert!(settled.is_empty());
    let mut before = Settled::default();
    for turn in 0..1000 {
        let long = "x".repeat(turn * 7919 % 613);
        let said = [Message::new(Role::User, format!("question {turn}")), Message::new(Role::Assistant, long)];
        settled.add(&said).unwrap();
        assert!(text(&settled).starts_with(&text(&before)), "turn {turn} changed what was said before");
        assert!(settled.pieces().len() < 16, "turn {turn}: {} pieces", settled.pieces().len());
        before = settled.clone();
    }
    let all: Vec<Value> = serde_json::from_str(&format!("[{}]", text(&settled))).unwrap();
    assert_eq!(all.len(), 2000);
    assert_eq!(all[1998]["content"], "question 999");
}

#[test]
fn a_clone_keeps_its_pieces_without_copying_them() {
    let mut settled = Settled::default();
    settled.add(&[Message::new(Role::User, "a".repeat(1000))]).unwrap();
    let kept = settled.clone();
    settled.add(&[Message::new(Role::Assistant, "b")]).unwrap();
    assert_eq!(kept.pieces()[0].as_ptr(), settled.pieces()[0].as_ptr());
    assert_eq!((kept.pieces().len(), settled.pieces().len()), (1, 2));
}

#[test]
fn a_body_says_how_long_it_is() {
    let mut body = Body::default();
    assert!(body.is_end_stream());
    for piece in ["one", "", "three"] {
        body.push(piece.into());
    }
    assert_eq!((body.size_hint().exact(), body.pieces.len()), (Some(8), 2));
}
