//! Rough treatment: input that is no text, flags that are none, files that cannot be
//! written, answers that break, turns that are broken off.

use std::io::Write;
use std::process::Stdio;

use super::stage::Stage;

#[test]
fn bytes_that_are_no_text_are_taken_all_the_same() {
    let stage = Stage::new("hello.yaml");
    let mut child = stage.command(&["-p"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello \xff\0 \xe4\xbd\xa0").unwrap();
    assert_eq!(String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout), "Good day.\n");
    let seen = stage.answerer.seen();
    let said = seen[0].request.as_ref().unwrap().messages[0].content.to_text();
    assert!(said.contains("hello \u{fffd}\0 你"), "{said:?}");
}
