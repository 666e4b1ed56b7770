//! An upstream with HTTP/2.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpListener;

use super::{CaptureProxy, client_builder, upstream_connector};
use crate::call::CallEnd;
use crate::capture::{CaptureItem, CaptureLog, CaptureReader, LogOptions};

#[tokio::test]
async fn an_upstream_with_http2_is_forwarded_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = listener.local_addr().unwrap();
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            let service = service_fn(move |request: Request<Incoming>| {
                let seen = Arc::clone(&seen);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let names: Vec<&str> = head.headers.keys().map(http::HeaderName::as_str).collect();
                    seen.lock().push(format!("{:?} {} {names:?} {body:?}", head.version, head.uri));
                    let response = Response::builder().header("request-id", "req_1").body(Full::new(body));
                    Ok::<_, Infallible>(response.unwrap())
                }
            });
            tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(tcp), service));
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.capture");
    let log = CaptureLog::create(&path, &LogOptions::default()).unwrap();
    // Without TLS nothing is negotiated.
    let client = client_builder().http2_only(true).build(upstream_connector().unwrap());
    let address = "127.0.0.1:0".parse().unwrap();
    let proxy = CaptureProxy::start_with(client, address, &format!("http://{upstream}"), log).await.unwrap();
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    for number in 0..3 {
        let request = Request::post(format!("{}/v1/messages", proxy.url())).header("connection", "keep-alive");
        let response = client.request(request.body(Full::from(format!("body {number}"))).unwrap()).await.unwrap();
        assert_eq!(
            (response.version(), response.headers()["request-id"].to_str().unwrap()),
            (Version::HTTP_11, "req_1")
        );
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), format!("body {number}"));
    }
    proxy.shut_down().await;
    let expected = format!(r#"HTTP/2.0 http://{upstream}/v1/messages ["content-length"] b"body 0""#);
    assert_eq!(received.lock()[0], expected);
    let mut reader = CaptureReader::new(std::fs::File::open(&path).unwrap());
    let mut ends = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        let CaptureItem::Call(call) = item else { panic!("{item:?}") };
        ends.push((call.end, call.response_body));
    }
    assert_eq!(ends[2], (CallEnd::Completed, b"body 2".to_vec()));
}
