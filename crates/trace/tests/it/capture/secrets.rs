//! No credential reaches the file, wherever it occurs.

use super::harness::{Running, Step, Upstream, exchange, post};

const KEY: &str = "sk-ant-api03-0123456789abcdef-KEY";

#[tokio::test]
async fn the_key_is_nowhere_in_the_file() {
    // In every header that carries it, and echoed in path, body, response headers and response.
    let names = ["x-api-key", "Authorization", "Proxy-Authorization", "Cookie", "X-Auth-Token", "api-key"];
    for name in names {
        let value = match name {
            "Authorization" => format!("Bearer {KEY}"),
            "Cookie" => format!("a=b; session={KEY}; c=d"),
            _ => KEY.to_owned(),
        };
        // One byte at a time: the key never arrives in one piece.
        let body = format!("data: {{\"echo\":\"{KEY}\"}}\n\ndata: {KEY}");
        let mut steps = vec![Step::Send(
            format!(
                "HTTP/1.1 200 OK\r\nx-echo: {KEY}\r\nset-cookie: s={KEY}; Path=/\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            .into_bytes(),
        )];
        steps.extend(body.bytes().map(|byte| Step::Send(vec![b'1', b'\r', b'\n', byte, b'\r', b'\n'])));
        steps.extend([Step::Send(b"0\r\n\r\n".to_vec()), Step::Close]);
        let upstream = Upstream::start(steps).await;
        let running = Running::start(&format!("http://{}", upstream.address)).await;
        let headers = format!("{name}: {value}\r\nX-Note: the key is {KEY}\r\n");
        let request = post(&format!("/v1/messages?key={KEY}"), &headers, format!("{{\"text\":\"{KEY}\"}}").as_bytes());
        for _ in 0..2 {
            let seen = exchange(&running.address(), &request).await;
            assert_eq!(String::from_utf8(seen.body).unwrap(), body, "the client sees everything");
        }
        let received = String::from_utf8(upstream.received.lock()[0].clone()).unwrap();
        assert_eq!(received.matches(KEY).count(), 4, "the upstream gets everything");
        let (bytes, calls) = running.finish().await;
        assert!(memchr::memmem::find(&bytes, KEY.as_bytes()).is_none(), "{name}: {}", String::from_utf8_lossy(&bytes));
        assert!(memchr::memmem::find(&bytes, b"0123456789abcdef").is_none(), "{name}");
        let stored = String::from_utf8(calls[0].response_body.clone()).unwrap();
        assert_eq!(stored, body.replace(KEY, &"*".repeat(KEY.len())));
        let hash = calls[0].request.header(&name.to_lowercase()).unwrap();
        assert!(hash.starts_with("hash:"), "{name}: {hash}");
        assert_eq!(calls[1].request.header(&name.to_lowercase()), Some(hash));
    }
}

#[tokio::test]
async fn bodies_that_exchange_tokens_are_left_out() {
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 31\r\n\r\n{\"access_token\":\"oat01-abcdefgh\"}";
    let upstream = Upstream::start(vec![Step::Send(response.replace("31", "33").into_bytes()), Step::Close]).await;
    let running = Running::start(&format!("http://{}", upstream.address)).await;
    let request = post("/v1/oauth/token", "", br#"{"refresh_token":"ort01-abcdefgh"}"#);
    let seen = exchange(&running.address(), &request).await;
    assert!(seen.is_complete && seen.body.starts_with(b"{\"access_token\""));
    let (bytes, calls) = running.finish().await;
    assert!(memchr::memmem::find(&bytes, b"abcdefgh").is_none());
    assert_eq!((calls[0].request_body.is_none(), calls[0].response_body.len()), (true, 0));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let running = Running::start("http://127.0.0.1:1").await;
    let mode = std::fs::metadata(running.folder.path().join("test.capture")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
