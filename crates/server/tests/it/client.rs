//! A server on a free port and a client that can send any header.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_conversation::price::Prices;
use quipu_server::{ChatAgent, Server, ServerOptions, Token};
use serde_json::Value;
use tokio::sync::oneshot;

/// A server that ends with the value.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    _cache: tempfile::TempDir,
}

/// A response: status, headers with names in lower case, body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// The bundled sessions.
pub(crate) fn demo() -> TestServer {
    TestServer::start(&quipu_testkit::fixture("demo"))
}

impl TestServer {
    pub(crate) fn start(claude_dir: &Path) -> Self {
        Self::start_with(vec![claude_dir.to_owned()])
    }

    pub(crate) fn start_with(claude_dirs: Vec<PathBuf>) -> Self {
        let cache = tempfile::tempdir().unwrap();
        let token = Token::random().unwrap();
        let options = ServerOptions {
            claude_dirs,
            cache_folder: Some(cache.path().to_owned()),
            data_folder: Some(cache.path().join("data")),
            config_file: Some(cache.path().join("config/config.toml")),
            usual_config_dir: None,
            home: None,
            api_url: None,
            secrets: Vec::new(),
            run_git: |folder, args| {
                let printed = format!("{} {}", folder.display(), args.join(" "));
                Box::pin(async move { Ok(printed.into_bytes()) })
            },
            agents: vec![ChatAgent::named("quipu-none")],
            prices: Prices::bundled(),
            token: token.clone(),
            is_demo: false,
            now: || "2026-11-16T12:00:00[UTC]".parse().unwrap(),
        };
        let (stop, stopped) = oneshot::channel();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Server::bind("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
                send.send(server.address()).unwrap();
                server.run(async { drop(stopped.await) }).await.unwrap();
            });
        });
        let address = receive.recv().unwrap();
        let token = token.as_str().to_owned();
        Self { address, token, stop: Some(stop), thread: Some(thread), _cache: cache }
    }

    /// A request with the token.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.request("GET", path, &[("authorization", &format!("Bearer {}", self.token))])
    }

    /// Sends JSON with the token.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        let token = format!("Bearer {}", self.token);
        self.send("POST", path, &[("authorization", &token)], body.to_string().as_bytes())
    }

    /// The JSON document of a path.
    #[track_caller]
    pub(crate) fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    #[track_caller]
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(method, path, headers, b"")
    }

    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = self.connect(method, path, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        parse_reply(&bytes)
    }

    /// Sends a request; the response is left to read.
    pub(crate) fn connect(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    /// Waits until the index has all sessions.
    pub(crate) fn wait_for_index(&self) {
        let mut events = Events::open(self);
        while self.json("/api/status")["index"]["state"] != "ready" {
            events.next();
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The stream of events.
pub(crate) struct Events {
    lines: std::io::Lines<std::io::BufReader<TcpStream>>,
}

impl Events {
    /// Opens the stream and reads its first line, after which no event is missed.
    pub(crate) fn open(server: &TestServer) -> Self {
        let token = format!("Bearer {}", server.token);
        let stream = server.connect("GET", "/api/events", &[("authorization", &token)], b"");
        let mut events = Self { lines: std::io::BufRead::lines(std::io::BufReader::new(stream)) };
        assert_eq!(events.next()["type"], "ping");
        events
    }

    /// Reads events until one of this type is the wanted one.
    pub(crate) fn find(&mut self, kind: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next();
            if event["type"] == kind && is_wanted(&event) {
                return event;
            }
        }
    }

    /// The next event; lines that frame the chunks of the body are skipped.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            let line = self.lines.next().unwrap().unwrap();
            if line.starts_with('{') {
                return serde_json::from_str(&line).unwrap();
            }
        }
    }
}

fn parse_reply(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_lowercase(), value.to_owned())
    };
    Reply { status, headers: lines.map(header).collect(), body: bytes[end + 4..].to_vec() }
}
