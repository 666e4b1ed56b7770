use proptest::prelude::*;

use super::*;

type Outcome = (Vec<Result<Event, EventTooLarge>>, Result<(), IncompleteEvent>);

fn run<'a>(mut parser: Parser, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let events = pieces.into_iter().flat_map(|piece| parser.push(piece)).collect();
    (events, parser.finish())
}

fn events(input: &[u8]) -> Vec<Event> {
    run(Parser::new(), [input]).0.into_iter().map(Result::unwrap).collect()
}

/// Checks names and data of all events of a stream that ends well.
fn check(input: &str, expected: &[(&str, &str)]) {
    let (events, end) = run(Parser::new(), [input.as_bytes()]);
    let events: Vec<_> = events.into_iter().map(Result::unwrap).collect();
    let seen: Vec<_> = events.iter().map(|event| (event.name(), event.data.as_str())).collect();
    assert_eq!(seen, expected, "{input:?}");
    assert_eq!(end, Ok(()), "{input:?}");
}

fn check_cut(input: &str, event: Option<&str>, data: &str, line: &str) {
    let cut = IncompleteEvent { event: event.map(str::to_owned), data: data.to_owned(), line: line.to_owned() };
    assert_eq!(run(Parser::new(), [input.as_bytes()]).1, Err(cut), "{input:?}");
}

#[test]
fn a_blank_line_dispatches_the_event() {
    check("event: ping\ndata: {}\n\n", &[("ping", "{}")]);
    check("data: a\n\ndata: b\n\n", &[("message", "a"), ("message", "b")]);
}

#[test]
fn every_line_end_is_understood() {
    for end in ["\n", "\r", "\r\n"] {
        let text = ["event: e", "data: 1", "data: 2", "", "data: 3", "", ""].join(end);
        check(&text, &[("e", "1\n2"), ("message", "3")]);
    }
    check("data: a\r\rdata: b\n\r\n", &[("message", "a"), ("message", "b")]);
}

#[test]
fn a_line_end_split_between_pushes_is_one_line_end() {
    let mut parser = Parser::new();
    assert!(parser.push(b"data: a\r").is_empty());
    assert!(parser.push(b"\ndata: b\r").is_empty());
    assert!(parser.push(b"").is_empty());
    assert!(parser.push(b"\n").is_empty());
    let event = Event { data: "a\nb".into(), ..Event::default() };
    assert_eq!(parser.push(b"\r"), [Ok(event)]);
    assert!(parser.push(b"\n").is_empty());
    assert_eq!(parser.finish(), Ok(()));
}

#[test]
fn one_space_after_the_colon_is_dropped() {
    check("data:x\n\n", &[("message", "x")]);
    check("data: x\n\n", &[("message", "x")]);
    check("data:  x \n\n", &[("message", " x ")]);
    check("data:\tx\n\n", &[("message", "\tx")]);
}

#[test]
fn a_field_without_a_colon_has_an_empty_value() {
    check("data\n\n", &[("message", "")]);
    check("data\ndata\n\n", &[("message", "\n")]);
    check("event: a\nevent\ndata: x\n\n", &[("message", "x")]);
}

#[test]
fn comments_and_unknown_fields_are_ignored() {
    check(": hello\nfoo: bar\nData: no\n data: no\ndata: yes\n:\n\n", &[("message", "yes")]);
    check(": keep-alive\n\n: keep-alive\n\n", &[]);
}

#[test]
fn an_event_without_data_is_not_dispatched_and_leaves_nothing_behind() {
    check("event: a\n\ndata: x\n\n", &[("message", "x")]);
    check("\n\n\n", &[]);
}

#[test]
fn the_last_event_field_wins() {
    check("event: a\nevent: b\ndata: x\n\n", &[("b", "x")]);
}

#[test]
fn a_byte_order_mark_is_dropped_at_the_start_only() {
    check("\u{feff}data: x\n\n", &[("message", "x")]);
    check("\u{feff}\u{feff}data: x\n\n", &[]);
    check("\n\u{feff}data: x\n\n", &[]);
    check("\u{feff}", &[]);
    let pieces = [&b"\xEF"[..], b"\xBB", b"\xBFdata: x\n\n"];
    assert_eq!(run(Parser::new(), pieces).0.len(), 1);
}

#[test]
fn an_id_stays_until_another_replaces_it() {
    let ids: Vec<_> = events(b"id: 1\ndata\n\ndata\n\nid: 2\n\ndata\n\nid: a\0b\ndata\n\nid\ndata\n\n")
        .into_iter()
        .map(|event| event.id)
        .collect();
    let some = |id: &str| Some(id.to_owned());
    assert_eq!(ids, [some("1"), some("1"), some("2"), some("2"), None]);
}

#[test]
fn retry_is_kept_only_when_it_is_a_number() {
    let mut parser = Parser::new();
    for (line, expected) in [
        ("retry: soon", None),
        ("retry: 1500", Some(1500)),
        ("retry: -1", Some(1500)),
        ("retry: 1 ", Some(1500)),
        ("retry:", Some(1500)),
        ("retry: 99999999999999999999999", Some(1500)),
        ("retry:0", Some(0)),
    ] {
        parser.push(format!("{line}\n").as_bytes());
        assert_eq!(parser.retry(), expected, "{line}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_replaced_and_noted() {
    let events = events(b"data: a\xFFb\n\ndata: \xE4\xB8\n\ndata: \xE4\xB8\xAD\n\n");
    let seen: Vec<_> = events.iter().map(|event| (event.data.as_str(), event.lossy)).collect();
    assert_eq!(seen, [("a\u{fffd}b", true), ("\u{fffd}", true), ("中", false)]);
}

#[test]
fn an_event_without_its_blank_line_is_cut() {
    check_cut("data: x", None, "", "data: x");
    check_cut("data: x\n", None, "x", "");
    check_cut("event: e\ndata: 1\ndata: 2\nda", Some("e"), "1\n2", "da");
    check_cut("event: e\n", Some("e"), "", "");
    check_cut("data: x\n\ndata: y\n", None, "y", "");
}

#[test]
fn a_comment_or_an_id_alone_is_nothing_to_cut() {
    check(": still her", &[]);
    check("id: 1\n", &[]);
    check("retry: 1\n", &[]);
}

#[test]
fn a_cut_reports_what_was_lost() {
    let cut = IncompleteEvent { event: Some("ping".into()), data: "ab".into(), line: "d".into() };
    assert_eq!(cut.to_string(), "stream ended inside a \"ping\" event (3 bytes held)");
}

#[test]
fn an_event_over_the_limit_is_skipped_and_the_next_one_comes() {
    let stream = b"data: ok\n\nevent: big\ndata: 123456789\ndata: more\n\ndata: ok\n\n";
    let (events, end) = run(Parser::with_limit(16), [&stream[..]]);
    let ok = Event { data: "ok".into(), ..Event::default() };
    assert_eq!(events, [Ok(ok.clone()), Err(EventTooLarge { limit: 16 }), Ok(ok)]);
    assert_eq!(end, Ok(()));
}

#[test]
fn an_endless_line_is_not_held() {
    let mut parser = Parser::with_limit(100);
    let errors: usize = (0..1000).map(|_| parser.push(&[b'x'; 50]).len()).sum();
    assert_eq!(errors, 1);
    assert!(parser.line.capacity() <= 100);
    assert!(parser.finish().is_err());
}

#[test]
fn many_short_lines_count_together() {
    let stream = "data: x\n".repeat(100);
    let (events, _) = run(Parser::with_limit(50), [stream.as_bytes()]);
    assert_eq!(events, [Err(EventTooLarge { limit: 50 })]);
}

#[test]
fn an_event_is_written_as_it_is_read() {
    let mut out = String::new();
    write_event(&Event { event: Some("ping".into()), data: "{}".into(), ..Event::default() }, &mut out);
    write_event(&Event { data: "a\n\nb\r\nc\rd".into(), id: Some("7".into()), ..Event::default() }, &mut out);
    let expected = "event: ping\ndata: {}\n\nid: 7\ndata: a\ndata: \ndata: b\ndata: c\ndata: d\n\n";
    assert_eq!(out, expected);
}

#[test]
fn a_written_name_cannot_smuggle_in_another_field() {
    let mut out = String::new();
    let event = Event { event: Some("a\ndata: b".into()), data: "c".into(), ..Event::default() };
    write_event(&event, &mut out);
    check(&out, &[("a data: b", "c")]);
}

/// Streams rich in what the parser must notice.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"\n"[..]),
        Just(&b"\r"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"data: x"[..]),
        Just(&b"data"[..]),
        Just(&b"event: e"[..]),
        Just(&b"id: 1"[..]),
        Just(&b"retry: 9"[..]),
        Just(&b":"[..]),
        Just(&b" "[..]),
        Just(BOM),
        Just(&b"\xE4\xB8\xAD"[..]),
        Just(&b"\xFF"[..]),
        Just(&b"\0"[..]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_events(
        bytes in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        limit in prop_oneof![Just(DEFAULT_MAX_EVENT_BYTES), 0usize..40],
    ) {
        let whole = run(Parser::with_limit(limit), [&bytes[..]]);
        prop_assert_eq!(&run(Parser::with_limit(limit), bytes.chunks(1)), &whole);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(&run(Parser::with_limit(limit), pieces), &whole);
    }

    #[test]
    fn what_is_written_is_read_back(
        written in prop::collection::vec(("[^\r\n]{0,8}", "[^\r]{0,20}", "[^\r\n\0]{1,4}"), 0..5),
    ) {
        let written: Vec<_> = written
            .into_iter()
            .map(|(name, data, id)| Event {
                event: Some(name).filter(|name| !name.is_empty()),
                data,
                id: Some(id),
                lossy: false,
            })
            .collect();
        let mut out = String::new();
        written.iter().for_each(|event| write_event(event, &mut out));
        prop_assert_eq!(events(out.as_bytes()), written);
    }
}
