//! `quipu answer`

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::quipu;

struct Running {
    child: Child,
    first: String,
}

fn start(script: &str, args: &[&str]) -> (tempfile::TempDir, Running) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script.yaml");
    std::fs::write(&path, script).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("quipu"))
        .arg("answer")
        .arg(&path)
        .args(args)
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    (dir, Running { child, first })
}

impl Running {
    /// Asks once and gives the whole response.
    fn ask(&self, address: &str, said: &str) -> String {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{said}"}}]}}"#);
        let mut tcp = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            tcp,
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        tcp.read_to_string(&mut text).unwrap();
        text
    }
}

#[test]
fn a_script_is_played_and_each_request_logged() {
    let (_dir, mut running) = start("- {when: {says: hello}, name: greeting, reply: Hello yourself.}\n", &["--json"]);
    let started: serde_json::Value = serde_json::from_str(&running.first).unwrap();
    let address = started["address"].as_str().unwrap();
    assert_eq!(started["url"], format!("http://{address}"));
    assert!(running.ask(address, "hello").contains("Hello yourself."));
    assert!(running.ask(address, "what?").contains("no rule of the script matches request 2"));
    let mut log = BufReader::new(running.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = log.next().unwrap();
    assert_eq!(first, r#"1 POST /v1/messages -> 200 greeting (m, 0 tools, turn 1, step 1, "hello")"#);
    assert!(log.next().unwrap().starts_with("2 POST /v1/messages -> 400 no rule matches"));
    running.child.kill().unwrap();
    running.child.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_well() {
    let (_dir, mut running) = start("- reply: hi\n", &[]);
    assert!(running.first.starts_with("listening on http://127.0.0.1:"), "{}", running.first);
    let id = running.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(running.child.wait().unwrap().success());
}

#[test]
fn bad_scripts_and_addresses_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script.yaml");
    std::fs::write(&path, "- reply: a\n- repley: b\n").unwrap();
    let out = quipu().arg("--json").arg("answer").arg(&path).assert().code(1);
    let error: serde_json::Value = serde_json::from_slice(&out.get_output().stderr).unwrap();
    assert_eq!(error["error"]["code"], "answer.bad_script");
    assert!(error["error"]["message"].as_str().unwrap().starts_with("line 2, "), "{error}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("docs/answer.md"), "{error}");
    std::fs::write(&path, "- reply: a\n").unwrap();
    let out = quipu().arg("answer").arg(&path).args(["--listen", "0.0.0.0:0"]).assert().code(1);
    let text = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(text.contains("not a loopback address") && text.contains("hint: --listen 127.0.0.1:0"), "{text}");
    quipu().args(["answer", "no-such-file.yaml"]).assert().code(1);
    quipu().arg("answer").arg(&path).args(["--listen", "nonsense"]).assert().code(2);
}
