use futures_util::FutureExt as _;
use quipu_message::Entry;

use super::*;

const TINY: &str = r#"{"type":"assistant","message":{"role":"assistant","content":[]}}"#;

/// How many tiny messages there is room for.
fn room(mailbox: &Mailbox) -> usize {
    let tiny = || Received { entry: Entry::read(TINY).unwrap(), line: TINY.to_owned() };
    let put = || mailbox.push(tiny()).now_or_never().is_some();
    (0..10_000).take_while(|_| put()).count()
}

#[test]
fn small_messages_are_counted_with_what_they_take() {
    let mailbox = Mailbox::new(100 * 1024);
    assert_eq!(room(&mailbox), 95);
    assert!(mailbox.pop().now_or_never().is_some());
    assert_eq!(room(&mailbox), 1);
    let expecting = mailbox.expect_response();
    assert_eq!(room(&mailbox), 753 - 95);
    drop(expecting);
    mailbox.pop().now_or_never();
    assert_eq!(room(&mailbox), 0, "there is more than enough without an answer to wait for");
    mailbox.abandon();
    assert_eq!(room(&mailbox), 10_000, "nobody listens");
}

#[test]
fn the_end_is_returned_once_after_all_messages() {
    let mailbox = Mailbox::new(1024);
    room(&mailbox);
    mailbox.end(Some(Error::Closed));
    mailbox.end(None);
    assert!(matches!(mailbox.pop().now_or_never(), Some(Some(Ok(_)))));
    assert!(matches!(mailbox.pop().now_or_never(), Some(Some(Err(Error::Closed)))));
    assert!(matches!(mailbox.pop().now_or_never(), Some(None)));
}
