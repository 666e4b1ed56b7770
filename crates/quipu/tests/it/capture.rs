//! `quipu capture` and `quipu replay`
#![cfg(unix)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use quipu_api::mock::{MockServer, Script};
use quipu_trace::capture::{CaptureFolder, CaptureItem, CaptureReader, CapturedCall};
use serde_json::Value;

const KEY: &str = "sk-ant-test-0123456789";

/// A model on this machine, and a folder for runs against it.
struct Setup {
    folder: tempfile::TempDir,
    model: MockServer,
    _runtime: tokio::runtime::Runtime,
}

impl Setup {
    fn new(script: &str) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let model = runtime.block_on(MockServer::start(Script::parse(script).unwrap())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("notes.txt"), "the tide turns at noon\n").unwrap();
        Self { folder, model, _runtime: runtime }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn quipu(&self, args: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("quipu"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .args(args)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .current_dir(self.folder.path());
        command.env("XDG_DATA_HOME", self.path("data")).env("ANTHROPIC_API_KEY", KEY);
        command
    }

    /// Runs `quipu ARGS -- quipu-agent` with a prompt.
    fn agent(&self, args: &[&str], prompt: &str) -> Output {
        let agent = cargo_bin("quipu-agent");
        let rest = ["--", agent.to_str().unwrap(), "-p", prompt, "--allowedTools", "Read"];
        self.quipu(&[args, &rest].concat()).stdin(Stdio::null()).output().unwrap()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn calls(path: &Path) -> (Vec<CapturedCall>, Vec<String>) {
    let mut reader = CaptureReader::new(fs::File::open(path).unwrap());
    let (mut calls, mut problems) = (Vec::new(), Vec::new());
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            CaptureItem::Call(call) => calls.push(*call),
            CaptureItem::Problem(problem) => problems.push(problem),
        }
    }
    (calls, problems)
}

const SCRIPT: &str = "
- when: {result_of: Read}
  reply: The tide turns at noon.
- when: {tools: true}
  reply:
    - text: I look at the notes.
    - {tool: Read, input: {file_path: notes.txt}}
- reply: A title
";

#[test]
fn a_captured_run_is_repeated_without_the_model() {
    let setup = Setup::new(SCRIPT);
    let url = setup.model.url();
    let output = setup.agent(&["capture", "--out", "run.capture", "--upstream", &url], "when does the tide turn?");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "The tide turns at noon.\n");
    let requests = setup.model.requests();
    assert!(
        stderr(&output).contains(&format!("captured {} calls in run.capture", requests.len())),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("quipu replay run.capture"), "{}", stderr(&output));
    let (recorded, problems) = calls(&setup.path("run.capture"));
    let bodies: Vec<&[u8]> = recorded.iter().map(|call| &call.request_body.as_ref().unwrap()[..]).collect();
    assert_eq!(bodies, requests.iter().map(|request| request.body.as_bytes()).collect::<Vec<_>>());
    assert_eq!(problems, Vec::<String>::new());
    let bytes = fs::read(setup.path("run.capture")).unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains(KEY));

    // The model is not asked again.
    let replay = setup.agent(&["replay", "run.capture", "--check"], "when does the tide turn?");
    assert!(replay.status.success(), "{}", stderr(&replay));
    assert_eq!(replay.stdout, output.stdout);
    assert_eq!(setup.model.requests().len(), requests.len());

    let other = setup.agent(&["replay", "run.capture", "--check"], "when does the moon rise?");
    assert_eq!(other.status.code(), Some(1), "{}", stderr(&other));
    assert!(stderr(&other).contains("differs from call 1 at messages["), "{}", stderr(&other));
    assert!(stderr(&other).contains("tide turn?") && stderr(&other).contains("moon rise?"), "{}", stderr(&other));

    let lenient = setup.agent(&["replay", "run.capture", "--lenient"], "when does the moon rise?");
    assert!(lenient.status.success(), "{}", stderr(&lenient));
    assert_eq!(lenient.stdout, output.stdout);
    assert!(stderr(&lenient).contains("differs from call 1 at messages["), "{}", stderr(&lenient));
    let checked = setup.agent(&["replay", "run.capture", "--lenient", "--check"], "when does the moon rise?");
    assert_eq!(checked.status.code(), Some(1));
}

#[test]
fn a_run_that_ends_early_is_a_difference() {
    let setup = Setup::new(SCRIPT);
    let url = setup.model.url();
    setup.agent(&["capture", "--out", "run.capture", "--upstream", &url], "when does the tide turn?");
    let output = setup.quipu(&["replay", "run.capture", "--check", "--json", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["code"], "replay.not_requested");
}

#[test]
fn captures_are_found_by_session_and_only_the_owner_reads_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let setup = Setup::new(SCRIPT);
    let output = setup.agent(&["capture", "--json", "--upstream", &setup.model.url()], "hi");
    let printed = String::from_utf8(output.stdout).unwrap();
    let report: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let path = PathBuf::from(report["path"].as_str().unwrap());
    assert_eq!(report["calls"], setup.model.requests().len());
    let folder = setup.path("data/quipu/captures");
    let session = report["session_ids"][0].as_str().unwrap();
    assert_eq!(CaptureFolder::new(&folder).captures_of_session(session), std::slice::from_ref(&path));
    assert_eq!(CaptureFolder::new(&folder).captures_of_session("other"), Vec::<PathBuf>::new());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.with_extension("sessions")), mode(&folder)), (0o600, 0o600, 0o700));
}

#[test]
fn the_command_gives_the_status_and_gets_the_signals() {
    let setup = Setup::new("- reply: hi\n");
    let status = |script: &str| {
        let output =
            setup.quipu(&["-q", "capture", "--upstream", &setup.model.url(), "--", "sh", "-c", script]).output();
        output.unwrap().status.code()
    };
    assert_eq!(status("test -n \"$ANTHROPIC_BASE_URL\" && exit 7"), Some(7));
    assert_eq!(status("kill -TERM $$"), Some(128 + 15));
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = setup.quipu(&["-q", "capture", "--", "sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(9));
    let missing = setup.quipu(&["capture", "--", "no-such-program"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("cannot start `no-such-program`"), "{}", stderr(&missing));
}

#[test]
fn mistakes_are_explained() {
    let setup = Setup::new("- reply: hi\n");
    fs::write(setup.path("old.capture"), "something").unwrap();
    let existing = setup.quipu(&["capture", "--out", "old.capture", "--", "true"]).output().unwrap();
    assert!(stderr(&existing).contains("hint: captures are not continued"), "{}", stderr(&existing));
    assert_eq!(fs::read(setup.path("old.capture")).unwrap(), b"something");
    let upstream = setup.quipu(&["--json", "capture", "--upstream", "ftp://x", "--", "true"]).output().unwrap();
    let error: Value = serde_json::from_slice(&upstream.stderr).unwrap();
    assert_eq!(error["error"]["code"], "capture.bad_upstream");
    assert_eq!(fs::read_dir(setup.path("data/quipu/captures")).unwrap().count(), 0);
    let replay = setup.quipu(&["replay", "missing.capture"]).output().unwrap();
    assert_eq!(replay.status.code(), Some(1));
    let replay = setup.quipu(&["replay", "old.capture"]).output().unwrap();
    assert_eq!(replay.status.code(), Some(1), "{}", stderr(&replay));
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

/// A proxy without a command: the process and its address.
fn start_proxy(setup: &Setup, out: &str) -> (Child, String) {
    let mut child = setup
        .quipu(&["--json", "capture", "--out", out, "--upstream", &setup.model.url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let started: Value = serde_json::from_str(&line).unwrap();
    (child, started["address"].as_str().unwrap().to_owned())
}

/// Sends one request and reads as much of the response as comes.
fn send(address: &str, text: &str) {
    let body = format!(r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let Ok(mut tcp) = TcpStream::connect(address) else { return };
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    // The proxy may be killed at any moment.
    if tcp.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).is_ok() {
        let _ = tcp.read_to_end(&mut Vec::new());
    }
}

/// Killed in the middle of streams, again and again: every request that the model received is
/// in the file. A few kills by default; `QUIPU_KILLS=200` for the long run of `make crash`.
#[test]
fn a_killed_capture_has_every_forwarded_request() {
    let kills: u32 = std::env::var("QUIPU_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5);
    let setup = Setup::new("- {reply: many small words in a slow stream, chunk: 2, pause_ms: 1}\n");
    let mut open_calls = 0;
    for round in 0..kills {
        let out = format!("{round}.capture");
        let (mut child, address) = start_proxy(&setup, &out);
        let before = setup.model.requests().len();
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let address = address.clone();
                std::thread::spawn(move || {
                    for number in 0..6 {
                        send(&address, &format!("round {round} client {client} number {number}"));
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(u64::from(round * 37 % 150)));
        child.kill().unwrap();
        child.wait().unwrap();
        clients.into_iter().for_each(|client| client.join().unwrap());
        let received: BTreeSet<String> =
            setup.model.requests()[before..].iter().map(|request| request.body.clone()).collect();
        let (calls, _) = calls(&setup.path(&out));
        open_calls += calls.iter().filter(|call| call.ended_at.is_none()).count();
        let recorded: BTreeSet<String> =
            calls.iter().map(|call| String::from_utf8(call.request_body.as_ref().unwrap().to_vec()).unwrap()).collect();
        assert!(received.is_subset(&recorded), "round {round}: {:?}", received.difference(&recorded));
    }
    assert!(open_calls > 0, "no kill came in the middle of a stream");
}

#[test]
fn ctrl_c_ends_a_capture_without_a_command() {
    let setup = Setup::new("- reply: hello\n");
    let (mut child, address) = start_proxy(&setup, "c.capture");
    let request = "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 57\r\n\r\n{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}";
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.write_all(request.replace("57", "60").as_bytes()).unwrap();
    let mut response = String::new();
    tcp.read_to_string(&mut response).unwrap();
    assert!(response.contains("hello"), "{response}");
    signal(&child, "INT");
    assert!(child.wait().unwrap().success());
    assert_eq!(calls(&setup.path("c.capture")).0.len(), 1);
}
