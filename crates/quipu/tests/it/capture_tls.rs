//! `quipu capture` to an upstream with TLS and HTTP/2.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use assert_cmd::cargo::cargo_bin;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use quipu_trace::capture::{CaptureItem, CaptureReader};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// Requests that the upstream received: version, path and body.
type Received = Arc<Mutex<Vec<(Version, String, Bytes)>>>;

const EVENTS: [&str; 3] =
    ["event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: x\nda", "ta: {\"type\":\"ping\",\"text\":\"世界\"}\n\n"];

/// Starts an upstream on loopback with HTTP/2 and TLS, and writes its certificate to a file.
async fn start_upstream(certificate: &Path, received: Received) -> u16 {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(certificate, issued.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(issued.signing_key.serialize_der().into());
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![issued.cert.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, received) = (acceptor.clone(), Arc::clone(&received));
            tokio::spawn(async move {
                let Ok(tls) = acceptor.accept(tcp).await else { return };
                let service = service_fn(move |request: Request<Incoming>| {
                    let received = Arc::clone(&received);
                    async move {
                        let (version, path) = (request.version(), request.uri().path().to_owned());
                        let body = request.into_body().collect().await?.to_bytes();
                        received.lock().push((version, path, body));
                        let frames = EVENTS.map(|text| Ok::<_, hyper::Error>(Frame::data(Bytes::from(text))));
                        let response = Response::builder().header("content-type", "text/event-stream");
                        let response = response.header("request-id", "req_1");
                        Ok::<_, hyper::Error>(response.body(StreamBody::new(stream::iter(frames))).unwrap())
                    }
                });
                let http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = http.serve_connection(TokioIo::new(tls), service).await;
            });
        }
    });
    port
}

#[test]
fn an_upstream_with_tls_and_http2_is_forwarded_to_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, out) = (folder.path().join("ca.pem"), folder.path().join("run.capture"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let received = Received::default();
    let port = runtime.block_on(start_upstream(&certificate, Arc::clone(&received)));
    let start = |trusted: &Path, out: &Path| {
        let mut command = Command::new(cargo_bin("quipu"));
        command.args(["capture", "--json", "--upstream", &format!("https://localhost:{port}"), "--out"]).arg(out);
        command.env_clear().env("HOME", folder.path()).env("SSL_CERT_FILE", trusted);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = serde_json::from_str::<serde_json::Value>(&line).unwrap()["address"].as_str().unwrap().to_owned();
        (child, address)
    };
    let exchange = |address: &str| {
        let mut tcp = TcpStream::connect(address).unwrap();
        let head = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\nConnection: close\r\n\r\n";
        write!(tcp, "{head}{{\"stream\":true}}").unwrap();
        let mut response = String::new();
        // A connection that breaks off is an empty response.
        let _ = tcp.read_to_string(&mut response);
        response
    };
    let (mut child, address) = start(&certificate, &out);
    let response = exchange(&address);
    // The last events reach the file at the latest when the proxy ends.
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.contains("request-id: req_1"), "{response}");
    assert_eq!(decode_chunks(&response), EVENTS.concat());
    assert_eq!(
        *received.lock(),
        [(Version::HTTP_2, "/v1/messages".to_owned(), Bytes::from_static(b"{\"stream\":true}"))]
    );
    let mut reader = CaptureReader::new(fs::File::open(&out).unwrap());
    let Some(CaptureItem::Call(call)) = reader.next_item().unwrap() else { panic!("no call") };
    assert_eq!(call.response_body, EVENTS.concat().as_bytes());
    assert_eq!(call.response.unwrap().header("request-id"), Some("req_1"));

    // A certificate that this machine does not trust is not forwarded to.
    let other = folder.path().join("other.pem");
    fs::write(&other, rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem()).unwrap();
    let (mut child, address) = start(&other, &folder.path().join("refused.capture"));
    assert_eq!(exchange(&address), "");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(received.lock().len(), 1);
}

/// The body of a response in chunks.
fn decode_chunks(response: &str) -> String {
    let (_, mut rest) = response.split_once("\r\n\r\n").unwrap();
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body.push_str(&after[..length]);
        rest = &after[length + 2..];
        if length == 0 {
            break;
        }
    }
    body
}
