use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use quipu_render::Cursor;
use unicode_width::UnicodeWidthStr;

use super::{Editor, KeyEffect};

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn control(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
}

/// Text with `|` at the cursor.
fn shown(editor: &Editor) -> String {
    let (before, after) = editor.text.split_at(editor.cursor);
    format!("{before}|{after}")
}

#[track_caller]
fn check(start: &str, keys: &[KeyEvent], expected: &str) {
    let (before, after) = start.split_once('|').unwrap();
    let mut editor = Editor { text: format!("{before}{after}"), cursor: before.len() };
    for key in keys {
        editor.handle_key(*key);
    }
    assert_eq!(shown(&editor), expected);
}

#[test]
fn keys_move_and_delete_by_characters_words_and_lines() {
    check("ab|", &[key(KeyCode::Left), key(KeyCode::Char('x'))], "ax|b");
    check("a抽奖|b", &[key(KeyCode::Backspace)], "a抽|b");
    check("e\u{301}|", &[key(KeyCode::Backspace)], "|");
    check("one two|", &[control('w')], "one |");
    check("one two |x", &[control('w')], "one |x");
    check("one\ntwo th|ree", &[control('a')], "one\n|two three");
    check("one\ntwo th|ree\nfour", &[control('k')], "one\ntwo th|\nfour");
    check("one\ntwo th|ree", &[control('u')], "one\n|ree");
    check("a|b", &[key(KeyCode::Delete), key(KeyCode::Delete)], "a|");
    let right = KeyEvent::new(KeyCode::Right, KeyModifiers::CONTROL);
    check("|one two", &[right, right], "one two|");
}

#[test]
fn a_line_break_is_typed_with_alt_enter_or_a_backslash() {
    check("one|", &[KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)], "one\n|");
    check("one\\|", &[key(KeyCode::Enter)], "one\n|");
    check("one|", &[control('j')], "one\n|");
    assert_eq!(Editor::with_text("one").handle_key(key(KeyCode::Enter)), KeyEffect::Submitted);
}

#[test]
fn arrows_move_between_lines_and_report_the_ends() {
    check("first\nse|cond", &[key(KeyCode::Up)], "fi|rst\nsecond");
    check("抽奖\nab|c", &[key(KeyCode::Up)], "抽|奖\nabc");
    check("long|er\nx", &[key(KeyCode::Down)], "longer\nx|");
    assert_eq!(Editor::with_text("a\nb").handle_key(key(KeyCode::Down)), KeyEffect::BelowLastLine);
    assert_eq!(Editor::with_text("a").handle_key(key(KeyCode::Up)), KeyEffect::AboveFirstLine);
}

#[test]
fn pasted_text_keeps_its_lines_and_loses_control_characters() {
    let mut editor = Editor::default();
    editor.insert("one\r\ntwo\rthree\x1b[31m\x07");
    assert_eq!(editor.text(), "one\ntwo\nthree");
    // Nor does a file name or an edited history put them on the screen.
    editor.replace_from(4, "\x1b]0;x\x07four");
    assert_eq!(editor.text(), "one\nfour");
    assert_eq!(Editor::with_text("a\x1b[2Jb").text(), "ab");
}

#[test]
fn wide_characters_wrap_whole() {
    let (rows, cursor) = Editor::with_text("抽奖脚本").layout(5, 10);
    assert_eq!((rows, cursor), (vec!["抽奖".into(), "脚本".into()], Cursor { row: 1, column: 4 }));
    let (rows, cursor) = Editor::with_text("abcd").layout(4, 10);
    assert_eq!((rows, cursor), (vec!["abcd".into(), String::new()], Cursor { row: 1, column: 0 }));
    let (rows, cursor) = Editor::with_text("a\n\nb").layout(10, 2);
    assert_eq!((rows, cursor), (vec![String::new(), "b".into()], Cursor { row: 1, column: 1 }));
}

proptest! {
    #[test]
    fn no_row_is_wider_than_the_columns_and_the_cursor_is_on_a_row(
        text in "[a-z抽奖e\u{301}👩\u{200d}👧\n\t ]{0,60}", columns in 4usize..20, lefts in 0usize..30,
    ) {
        let mut editor = Editor::with_text(&text);
        for _ in 0..lefts {
            editor.handle_key(key(KeyCode::Left));
        }
        let (rows, cursor) = editor.layout(columns, 100);
        prop_assert!(rows.iter().all(|row| row.width() <= columns), "{rows:?}");
        prop_assert!(cursor.row < rows.len() && cursor.column <= rows[cursor.row].width());
    }

    #[test]
    fn no_key_breaks_a_character(text in "[a-c抽e\u{301}👩\u{200d}👧\n ]{0,20}", keys in proptest::collection::vec(0usize..12, 0..30)) {
        let mut editor = Editor::with_text(&text);
        let all = [
            key(KeyCode::Left), key(KeyCode::Right), key(KeyCode::Up), key(KeyCode::Down), key(KeyCode::Backspace),
            key(KeyCode::Delete), control('w'), control('u'), control('k'), control('a'), control('e'), key(KeyCode::Char('奖')),
        ];
        for index in keys {
            editor.handle_key(all[index]);
            prop_assert!(editor.text().is_char_boundary(editor.cursor));
        }
    }
}
