//! `quipu serve`

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A home folder, and servers that run in it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("quipu"));
        let temporary = self.0.path().join("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        command.env_clear().env("HOME", self.0.path()).env("TMPDIR", temporary).arg("--json").arg("serve").args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, args: &[&str]) -> Running {
        let mut child = self.command(args).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        Running { child, printed: serde_json::from_str(&first).unwrap() }
    }

    fn token_file(&self) -> PathBuf {
        let linux = self.0.path().join(".local/state/quipu/serve-token");
        if linux.exists() { linux } else { self.0.path().join("Library/Application Support/quipu/serve-token") }
    }
}

struct Running {
    child: Child,
    printed: Value,
}

impl Running {
    fn address(&self) -> &str {
        self.printed["address"].as_str().unwrap()
    }

    fn token(&self) -> &str {
        self.printed["url"].as_str().unwrap().split_once("/#token=").unwrap().1
    }

    fn get(&self, path: &str) -> Value {
        let (address, token) = (self.address(), self.token());
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Interrupts the server and returns its exit code.
    fn interrupt(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[test]
fn the_bundled_sessions_are_served_and_removed_at_the_end() {
    let home = Home::new();
    let server = home.start(&["--demo", "--listen", "127.0.0.1:0"]);
    assert!(server.printed["url"].as_str().unwrap().starts_with(&format!("http://{}/#token=", server.address())));
    let status = server.get("/api/status");
    assert_eq!(status["demo"], true);
    let folder = PathBuf::from(status["claude_dirs"][0].as_str().unwrap());
    assert!(folder.starts_with(home.0.path()) && folder.join("projects").is_dir());
    let window = server.get("/api/sessions/05ef09b2-9c3d-4897-965b-0c47c2889d7b/items?count=5");
    assert!(window["entries"].as_u64() > Some(10), "{window}");
    // An open stream of events does not keep the server from ending.
    let mut events = TcpStream::connect(server.address()).unwrap();
    let token = server.token();
    write!(events, "GET /api/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\r\n", server.address())
        .unwrap();
    let mut byte = [0];
    events.read_exact(&mut byte).unwrap();
    assert_eq!(server.interrupt(), Some(0));
    assert!(!folder.exists());
    // Nothing of the bundled sessions is kept.
    assert!(!home.0.path().join(".cache").exists() && !home.0.path().join(".local/share").exists());
}

#[test]
fn the_token_is_not_logged() {
    let home = Home::new();
    let mut server = home.start(&["-v", "--demo", "--listen", "127.0.0.1:0"]);
    let (token, address) = (server.token().to_owned(), server.address().to_owned());
    server.get("/api/status");
    let refused = format!("GET /api/status?token={token} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(refused.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 401") && !response.contains(&token), "{response}");
    assert!(response.to_lowercase().contains("referrer-policy: no-referrer"), "{response}");
    kill_process(Pid::from_child(&server.child), Signal::INT).unwrap();
    let mut log = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(!log.contains(&token), "{log}");
}

#[test]
fn the_token_is_private_and_stays() {
    let home = Home::new();
    let first = home.start(&["--listen", "127.0.0.1:0"]);
    let token = first.token().to_owned();
    assert_eq!(first.interrupt(), Some(0));
    assert_eq!(std::fs::read_to_string(home.token_file()).unwrap(), token);
    assert_eq!(mode(&home.token_file()), 0o600);
    let second = home.start(&["--listen", "127.0.0.1:0"]);
    assert_eq!(second.token(), token);
    assert_eq!(second.get("/api/sessions")["total"], 0);
    second.interrupt();
    // A file that others can read has been read, perhaps: there is a new token.
    std::fs::set_permissions(home.token_file(), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let third = home.start(&["--listen", "127.0.0.1:0"]);
    assert_ne!(third.token(), token);
    assert_eq!(mode(&home.token_file()), 0o600);
}

fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o777
}

#[track_caller]
fn check_refused(args: &[&str], code: &str) {
    let output = Home::new().command(args).output().unwrap();
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((output.status.code(), error["error"]["code"].as_str()), (Some(1), Some(code)), "{error}");
    assert_ne!(error["error"]["hint"], "");
}

#[test]
fn an_address_that_is_taken_or_open_to_others_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    check_refused(&["--listen", &taken.local_addr().unwrap().to_string()], "serve.cannot_listen");
    check_refused(&["--listen", "0.0.0.0:0"], "serve.not_loopback");
    check_refused(&["--listen", "[::]:0"], "serve.not_loopback");
    check_refused(&["--listen", "192.0.2.1:4777"], "serve.not_loopback");
}

#[test]
fn the_next_free_port_is_taken_if_none_is_named() {
    // Held by this test, or by another program; both will do.
    let _taken = TcpListener::bind("127.0.0.1:4777");
    let server = Home::new().start(&[]);
    let port: u16 = server.address().rsplit(':').next().unwrap().parse().unwrap();
    assert_ne!(port, 4777);
}
