use std::rc::Rc;

use quipu_conversation::LiveConversation;

use super::{Cursor, LiveScreen, ScreenSize, SessionContext};
use crate::terminal::Terminal;

const SIZE: ScreenSize = ScreenSize { columns: 40, rows: 10 };

fn screen() -> LiveScreen {
    LiveScreen::new(Terminal { width: 40, ..Terminal::default() }, Some(SIZE))
}

fn rows(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

const CALL: &str = r#"{"type":"assistant","uuid":"b","message":{"id":"m","role":"assistant","model":"claude-opus-5-5","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]}}"#;
const RESULT: &str = r#"{"type":"user","uuid":"c","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}}"#;

#[test]
fn only_rows_that_changed_are_drawn_again() {
    let mut screen = screen();
    assert_eq!(screen.set_bottom(rows(&["one", "two"]), None), "one\ntwo\n");
    assert_eq!(screen.set_bottom(rows(&["one", "two"]), None), "");
    assert_eq!(screen.set_bottom(rows(&["one", "three"]), None), "\r\x1b[1A\x1b[Jthree\n");
    assert_eq!(screen.set_bottom(rows(&["one", "three", "four"]), None), "four\n");
}

#[test]
fn the_cursor_is_moved_to_its_row_and_back() {
    let mut screen = screen();
    let at = |row, column| Some(Cursor { row, column });
    assert_eq!(screen.set_bottom(rows(&["one", "two", "three"]), at(1, 3)), "one\ntwo\nthree\n\r\x1b[2A\x1b[3C");
    // Only the cursor moves: down to the end, then up again.
    assert_eq!(screen.set_bottom(rows(&["one", "two", "three"]), at(0, 1)), "\r\x1b[2B\r\x1b[3A\x1b[1C");
    assert_eq!(screen.print_text("said\n"), "\r\x1b[Jsaid\none\ntwo\nthree\n\r\x1b[3A\x1b[1C");
}

#[test]
fn a_narrower_terminal_has_wrapped_the_rows() {
    let mut screen = screen();
    screen.set_bottom(rows(&["x".repeat(30).as_str(), "y"]), None);
    let text = screen.resize(ScreenSize { columns: 20, rows: 10 }, 20);
    // Three rows: the first one was wrapped to two.
    assert!(text.starts_with("\r\x1b[3A\x1b[J"), "{text:?}");
}

#[test]
fn rows_that_do_not_fit_are_left_out_above_the_bottom() {
    let mut screen = LiveScreen::new(Terminal::default(), Some(ScreenSize { columns: 80, rows: 5 }));
    let text = screen.set_bottom(rows(&["a", "b", "c", "d", "e"]), Some(Cursor { row: 4, column: 0 }));
    assert_eq!(text, "c\nd\ne\n\r\x1b[1A");
}

#[test]
fn a_tool_call_is_shown_with_its_time_and_hidden_on_request() {
    let (mut screen, mut live) = (screen(), LiveConversation::default());
    let context = Rc::new(SessionContext::default());
    live.push_line(1, CALL);
    let text = screen.show_items(&context, live.changes(), Vec::new());
    assert!(text.contains("… pending Bash $ make\n"), "{text}");
    let id = screen.pending_calls().next().cloned().unwrap();
    screen.set_call_seconds(&id, 3);
    assert!(screen.set_bottom(Vec::new(), None).contains("Bash $ make (3 s)"));
    screen.hide_pending_call(Some(id.clone()));
    assert_eq!(screen.set_bottom(rows(&["prompt"]), None), "\r\x1b[2A\x1b[Jprompt\n");
    screen.hide_pending_call(None);
    screen.set_call_seconds(&id, 4);
    live.push_line(2, RESULT);
    let text = screen.show_items(&context, live.changes(), Vec::new());
    assert!(text.contains("✓ ok Bash $ make (4 s)") && text.ends_with("prompt\n"), "{text}");
    assert_eq!(screen.pending_calls().count(), 0);
}

#[test]
fn a_paragraph_has_empty_rows_around_it() {
    let (mut screen, mut live) = (screen(), LiveConversation::default());
    let context = Rc::new(SessionContext::default());
    let said = |line: u64, text: &str| {
        format!(r#"{{"type":"user","uuid":"{line}","message":{{"role":"user","content":"{text}"}}}}"#)
    };
    assert_eq!(screen.print_paragraph("start\n"), "start\n");
    live.push_line(1, &said(1, "one"));
    assert_eq!(screen.show_items(&context, live.changes(), Vec::new()), "\n▌ you\n  one\n");
    assert_eq!(screen.print_paragraph("note\n"), "\nnote\n");
    assert_eq!(screen.print_paragraph("another\n"), "another\n");
    live.push_line(2, CALL);
    assert_eq!(screen.show_items(&context, live.changes(), Vec::new()).lines().next(), Some(""));
}
