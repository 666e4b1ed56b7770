//! The client sees exactly what it would see without the proxy, and the file holds it.

use quipu_trace::CallEnd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{Running, Step, Upstream, exchange, post};

fn chunked(head: &str, chunks: &[&[u8]], is_complete: bool) -> Vec<Step> {
    let mut steps = vec![Step::Send(format!("HTTP/1.1 {head}\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes())];
    for chunk in chunks {
        steps.push(Step::Send([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()));
    }
    if is_complete {
        steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    }
    steps.push(Step::Close);
    steps
}

fn whole(response: &str) -> Vec<Step> {
    vec![Step::Send(response.replace('\n', "\r\n").into_bytes()), Step::Close]
}

const SSE: &str = "200 OK\r\nContent-Type: text/event-stream\r\nrequest-id: req_1";
const EVENT: &str = "event: ping\ndata: {\"type\":\"ping\",\"text\":\"Grüße, 世界 🌊\"}\n\n";

/// A row of the table: name, request, response, and how the call ends in the file.
type Row = (&'static str, Vec<u8>, Vec<Step>, CallEnd);

fn table() -> Vec<Row> {
    let messages = || post("/v1/messages?beta=true", "x-api-key: k\r\n", br#"{"stream":true}"#);
    let bytes: Vec<&[u8]> = EVENT.as_bytes().chunks(1).collect();
    let gzip: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xfe, 0, 0];
    use CallEnd::{Completed, Failed, UpstreamClosed};
    vec![
        ("a stream", messages(), chunked(SSE, &[EVENT.as_bytes(), EVENT.as_bytes()], true), Completed),
        ("a stream that is split within characters", messages(), chunked(SSE, &bytes, true), Completed),
        (
            "JSON to a streaming request",
            messages(),
            whole("HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: 14\n\n{\"id\":\"msg_1\"}"),
            Completed,
        ),
        (
            "an error with a page that is not JSON",
            messages(),
            whole("HTTP/1.1 529 Overloaded\nX-Unknown: a  b\nX-Twice: 1\nX-Twice: 2\nContent-Length: 6\n\n<html>"),
            Completed,
        ),
        ("a compressed body", messages(), chunked("200 OK\r\nContent-Encoding: gzip", &[gzip], true), Completed),
        ("a stream that breaks off", messages(), chunked(SSE, &[EVENT.as_bytes(), b"data: "], false), UpstreamClosed),
        ("a body that breaks off", messages(), whole("HTTP/1.1 200 OK\nContent-Length: 100\n\n{"), UpstreamClosed),
        ("a connection that is closed without a response", messages(), vec![Step::Close], Failed),
        ("a response head that breaks off", messages(), whole("HTTP/1.1 200 OK\nContent-"), Failed),
        (
            "a request for the head",
            b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
            whole("HTTP/1.1 200 OK\nContent-Length: 1234\n\n"),
            Completed,
        ),
        (
            "an unknown path",
            b"GET /api/hello?x=%20&y HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec(),
            whole("HTTP/1.1 404 Not Found\nContent-Length: 0\n\n"),
            Completed,
        ),
        (
            "a token count",
            post("/v1/messages/count_tokens", "", b"{}"),
            whole("HTTP/1.1 200 OK\nContent-Length: 18\n\n{\"input_tokens\":7}"),
            Completed,
        ),
        ("no content", messages(), whole("HTTP/1.1 204 No Content\n\n"), Completed),
    ]
}

#[tokio::test]
async fn the_client_sees_what_it_would_see_directly() {
    for (name, request, steps, end) in table() {
        let upstream = Upstream::start(steps).await;
        let direct = exchange(&upstream.address, &request).await;
        let running = Running::start(&format!("http://{}", upstream.address)).await;
        let proxied = exchange(&running.address(), &request).await;
        assert_eq!(proxied, direct, "{name}");
        // One request each: the proxy tries nothing again.
        let received = upstream.received.lock().clone();
        assert_eq!(received.len(), 2, "{name}");
        let line = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().next().unwrap().to_owned();
        assert_eq!(line(&received[1]), line(&received[0]), "{name}");
        let (_, calls) = running.finish().await;
        let [call] = calls.as_slice() else { panic!("{name}: {} calls", calls.len()) };
        assert_eq!(call.response_body, direct.body, "{name}");
        assert_eq!(call.end, end, "{name}: {:?}", call.error);
        let status = call.response.as_ref().map(|head| head.first_line.clone()).unwrap_or_default();
        assert_eq!(status, direct.status, "{name}");
    }
}

#[tokio::test]
async fn headers_of_the_connection_stay_there_and_others_pass() {
    let upstream = Upstream::start(whole(
        "HTTP/1.1 200 OK\nKeep-Alive: timeout=5\nX-Here: 1\nConnection: x-here\nContent-Length: 0\n\n",
    ))
    .await;
    let running = Running::start(&format!("http://{}/prefix/", upstream.address)).await;
    let headers =
        "X-Stainless-OS: Linux\r\nanthropic-beta: a,b\r\nTE: trailers\r\nX-Private: 1\r\nConnection: X-Private\r\n";
    let seen = exchange(&running.address(), &post("/v1/messages?beta=true", headers, b"{}")).await;
    assert_eq!(seen.headers, ["Content-Length: 0"]);
    let received = String::from_utf8(upstream.received.lock()[0].clone()).unwrap();
    let mut lines: Vec<&str> = received.split("\r\n").collect();
    assert_eq!(lines.remove(0), "POST /prefix/v1/messages?beta=true HTTP/1.1");
    lines.sort_unstable();
    let host = format!("Host: {}", upstream.address);
    assert_eq!(lines, ["", "Content-Length: 2", &host, "X-Stainless-OS: Linux", "anthropic-beta: a,b", "{}"]);
    let (_, calls) = running.finish().await;
    // The file holds the request as the client sent it.
    assert_eq!(calls[0].request.header("x-private"), Some("1"));
    assert_eq!(calls[0].request.word(1), "/v1/messages?beta=true");
}

#[tokio::test]
async fn a_client_that_leaves_closes_the_upstream_connection() {
    let before_head = vec![Step::WaitForClient];
    let mut in_stream = chunked(SSE, &[EVENT.as_bytes()], false);
    *in_stream.last_mut().unwrap() = Step::WaitForClient;
    for (steps, body) in [(before_head, ""), (in_stream, EVENT)] {
        let upstream = Upstream::start(steps).await;
        let running = Running::start(&format!("http://{}", upstream.address)).await;
        let mut client = TcpStream::connect(running.address()).await.unwrap();
        client.write_all(&post("/v1/messages", "", b"{}")).await.unwrap();
        upstream.wait_until(|upstream| upstream.received.lock().len() == 1).await;
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(body) {
            client.read_buf(&mut seen).await.unwrap();
        }
        drop(client);
        upstream.wait_until(|upstream| *upstream.left.lock() == 1).await;
        let (_, calls) = running.finish().await;
        assert_eq!(calls[0].end, CallEnd::ClientAborted);
        assert_eq!(calls[0].response_body, body.as_bytes());
    }
}

#[tokio::test]
async fn bodies_of_ten_megabytes_pass_and_are_recorded() {
    let large: Vec<u8> = (0..10_u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", large.len());
    let upstream = Upstream::start(vec![Step::Send(head.into_bytes()), Step::Send(large.clone()), Step::Close]).await;
    let running = Running::start(&format!("http://{}", upstream.address)).await;
    let request = post("/v1/messages", "", &large);
    for _ in 0..2 {
        let seen = exchange(&running.address(), &request).await;
        assert!(seen.is_complete && seen.body == large);
    }
    assert!(upstream.received.lock().iter().all(|received| received.ends_with(&large)));
    let (bytes, calls) = running.finish().await;
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|call| call.request_body.as_ref().unwrap() == &large && call.response_body == large));
    // The second request is stored as a reference to the first.
    assert!(bytes.len() < 31 << 20, "{}", bytes.len());
}

#[tokio::test]
async fn a_hundred_streams_at_once_are_kept_apart() {
    let chunks: Vec<Vec<u8>> = (0..20).map(|index| format!("data: {{\"n\":{index}}}\n\n").into_bytes()).collect();
    let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
    let upstream = Upstream::start(chunked(SSE, &chunks, true)).await;
    let running = Running::start(&format!("http://{}", upstream.address)).await;
    let direct = exchange(&upstream.address, &post("/v1/messages", "", b"{}")).await;
    let address = running.address();
    let clients: Vec<_> = (0..100)
        .map(|index| {
            let address = address.clone();
            tokio::spawn(async move {
                exchange(&address, &post("/v1/messages", "", format!("{{\"call\":{index}}}").as_bytes())).await
            })
        })
        .collect();
    for client in clients {
        assert_eq!(client.await.unwrap(), direct);
    }
    let (_, calls) = running.finish().await;
    assert_eq!(calls.len(), 100);
    assert!(calls.iter().all(|call| call.end == CallEnd::Completed && call.response_body == direct.body));
    let bodies: std::collections::BTreeSet<_> = calls.iter().map(|call| call.request_body.clone().unwrap()).collect();
    assert_eq!(bodies.len(), 100);
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_closes_the_connection() {
    let nothing = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = Running::start(&format!("http://{nothing}")).await;
    let seen = exchange(&running.address(), &post("/v1/messages", "", b"{}")).await;
    assert_eq!((seen.status.as_str(), seen.is_complete), ("", false));
    let (_, calls) = running.finish().await;
    assert_eq!(calls[0].end, CallEnd::Failed);
    assert!(calls[0].error.as_ref().unwrap().contains("refused"), "{:?}", calls[0].error);
}
