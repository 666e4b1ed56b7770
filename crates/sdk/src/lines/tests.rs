use super::*;

async fn read(input: &'static [u8], longest: usize) -> Vec<(char, String)> {
    let mut lines = AsyncLineReader::new(input, longest);
    let mut found = Vec::new();
    while let Some(piece) = lines.next().await.unwrap() {
        let (kind, bytes) = match piece {
            ReadLine::Line(bytes) => ('=', bytes),
            ReadLine::TooLong(bytes) => ('>', bytes),
            ReadLine::Torn(bytes) => ('~', bytes),
        };
        found.push((kind, String::from_utf8(bytes.to_vec()).unwrap()));
    }
    found
}

fn row(kind: char, text: &str) -> (char, String) {
    (kind, text.to_owned())
}

#[tokio::test]
async fn lines_are_split_and_the_torn_end_is_named() {
    assert_eq!(read(b"", 9).await, []);
    assert_eq!(read(b"a\nbb\n", 9).await, [row('=', "a"), row('=', "bb")]);
    assert_eq!(read(b"\n\na", 9).await, [row('=', ""), row('=', ""), row('~', "a")]);
}

#[tokio::test]
async fn a_line_that_is_too_long_costs_that_line_alone() {
    assert_eq!(read(b"1234567890\nok\n", 9).await, [row('>', "1234567890"), row('=', "ok")]);
    assert_eq!(read(b"ok\n1234567890", 9).await, [row('=', "ok"), row('~', "1234567890")]);
}

#[tokio::test]
async fn what_is_passed_over_is_not_kept() {
    let (mut far, near) = tokio::io::duplex(4096);
    let writer = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        for _ in 0..1000 {
            far.write_all(&[b'x'; 10_000]).await.unwrap();
        }
        far.write_all(b"\nafter\n").await.unwrap();
    });
    let mut lines = AsyncLineReader::new(near, 100_000);
    let Some(ReadLine::TooLong(head)) = lines.next().await.unwrap() else { panic!("not too long") };
    assert_eq!(head.len(), MAX_SHOWN_BYTES);
    assert!(lines.buffer.capacity() < 4 * READ_CHUNK_BYTES, "{}", lines.buffer.capacity());
    assert_eq!(lines.next().await.unwrap(), Some(ReadLine::Line(BytesMut::from("after"))));
    writer.await.unwrap();
}
