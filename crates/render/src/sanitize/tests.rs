use proptest::prelude::*;

use super::{sanitize, sanitize_line};

#[track_caller]
fn check(text: &str, expect: &str) {
    assert_eq!(sanitize(text), expect);
}

#[test]
fn plain_text_is_borrowed() {
    assert!(matches!(sanitize("a\tb\n抽奖 👩‍🚀 ⚠️"), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn escape_sequences_go_whole() {
    check("a\x1b[1;31mb\x1b[0mc", "abc");
    check("\x1b[?25l\x1b[2 qx", "x");
    check("\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\", "link");
    check("\x1b]0;title\x07x", "x");
    check("\x1bP1$r0m\x1b\\x\x1b_apc\x1b\\y\x1b^pm\x1b\\z", "xyz");
    check("\x1b(Bx\x1b=y\x1bcz", "xyz");
    check("\u{9b}31mx\u{9d}0;t\u{9c}y\u{90}q\u{9c}z", "xyz");
    check("\x1b\x1b[31mx", "x");
}

#[test]
fn an_unfinished_sequence_hides_no_text() {
    check("\x1b]0;title\nnext", "0;title\nnext");
    check("\x1b]0;title\x1b[31mred", "0;titlered");
    check("\x1b[31", "");
    check("\x1b", "");
}

#[test]
fn controls_and_invisible_characters_are_dropped() {
    check("a\0b\x08c\x7fd\u{85}e", "abcde");
    check("user\u{202e}txt.exe\u{2066}\u{200b}\u{feff}", "usertxt.exe");
    check("a\u{e0041}b\u{ad}c", "abc");
}

#[test]
fn every_kind_of_line_break_is_one() {
    check("a\r\nb\rc\u{2028}d\r", "a\nb\nc\nd");
    assert_eq!(sanitize_line(" a\r\n\tb\x1b[0m  c "), "a b c");
}

proptest! {
    #[test]
    fn nothing_that_acts_is_left(text in "(\\PC|\\p{C}|[\\x00-\\x1f\\[\\]P\u{80}-\u{9f}\u{2060}-\u{206f}m;0-9]){0,80}") {
        let cleaned = sanitize(&text);
        prop_assert!(!cleaned.chars().any(super::is_unsafe_char), "{cleaned:?}");
        prop_assert_eq!(sanitize(&cleaned), cleaned.as_ref());
    }
}
