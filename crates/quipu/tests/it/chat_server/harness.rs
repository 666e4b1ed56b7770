//! A server in a scratch home folder, a scripted API, and a client.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quipu_api::mock::{MockServer, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A home folder with a project, and an API that answers from a script.
pub(crate) struct ChatHome {
    folder: tempfile::TempDir,
    pub(crate) api: MockServer,
    /// Runs the API.
    _runtime: tokio::runtime::Runtime,
}

/// A running `quipu serve`.
pub(crate) struct ChatServer {
    child: Child,
    address: String,
    token: String,
}

/// The lines of `/api/chats/{id}/events`.
pub(crate) struct ChatEvents(Lines<BufReader<TcpStream>>);

impl ChatHome {
    pub(crate) fn new(script: &str) -> Self {
        Self::with_script(|_| script.to_owned())
    }

    /// A home whose script names files in it.
    pub(crate) fn with_script(script: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = script(&folder.path().canonicalize().unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let api = runtime.block_on(MockServer::start(Script::parse(&script).unwrap())).unwrap();
        std::fs::create_dir_all(folder.path().join("project")).unwrap();
        std::fs::create_dir_all(folder.path().join("tmp")).unwrap();
        Self { folder, api, _runtime: runtime }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn project(&self) -> String {
        self.path("project").display().to_string()
    }

    /// Writes the settings of quipu.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.path(".config/quipu");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }

    pub(crate) fn serve(&self) -> ChatServer {
        self.serve_with(&[], Some(&self.api.url()))
    }

    /// Serves with further arguments, and with a key for an API if there is one.
    pub(crate) fn serve_with(&self, args: &[&str], api: Option<&str>) -> ChatServer {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("quipu"));
        command.args(["--json", "serve", "--listen", "127.0.0.1:0"]).args(args);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .env("PATH", "/usr/bin:/bin");
        if let Some(url) = api {
            command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "any-made-up-key");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        let printed: Value = serde_json::from_str(&first).unwrap();
        let text = |name: &str| printed[name].as_str().unwrap().to_owned();
        let token = text("url").split_once("/#token=").unwrap().1.to_owned();
        ChatServer { child, address: text("address"), token }
    }
}

impl ChatServer {
    pub(crate) fn connect(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        head.push_str(&format!("host: {}\r\nauthorization: Bearer {}\r\n", self.address, self.token));
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        // The server may refuse a body before it has read it.
        let _ = stream.write_all(body);
        stream
    }

    /// Sends a request and returns status and JSON of the response.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut text = String::new();
        self.connect(method, path, &[], body.as_bytes()).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, value) = self.call("GET", path, Value::Null);
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.call("POST", path, body);
        assert!(status == 200 || status == 201, "{path}: {status} {value}");
        value
    }

    /// Starts a chat in the project, which is trusted.
    #[track_caller]
    pub(crate) fn start_chat(&self, home: &ChatHome, more: Value) -> Value {
        let mut body = json!({"cwd": home.project(), "trust": true});
        more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        self.post("/api/chats", body)
    }

    #[track_caller]
    pub(crate) fn send(&self, chat: &str, text: &str) -> String {
        let sent = self.post(&format!("/api/chats/{chat}/messages"), json!({"text": text}));
        sent["uuid"].as_str().unwrap().to_owned()
    }

    /// Sends a message and waits until it is answered. Returns the chat.
    #[track_caller]
    pub(crate) fn run_turn(&self, events: &mut ChatEvents, chat: &str, text: &str) -> Value {
        // A short turn may be over before its start was sent; its tokens stay.
        let output = |chat: &Value| chat["tokens"]["output"].as_u64().unwrap();
        let before = output(&self.get(&format!("/api/chats/{chat}")));
        self.send(chat, text);
        events.chat(|chat| is_idle(chat) && output(chat) > before)
    }

    pub(crate) fn events(&self, chat: &str) -> ChatEvents {
        let stream = self.connect("GET", &format!("/api/chats/{chat}/events"), &[], b"");
        ChatEvents(BufReader::new(stream).lines())
    }

    /// Texts of the items of a session, each after its kind.
    pub(crate) fn conversation(&self, key: &str) -> Vec<String> {
        let window = self.get(&format!("/api/sessions/{key}/items?count=500"));
        let shown = |item: &Value| {
            let text = item["text"].as_str().or_else(|| item["tool"]["name"].as_str()).unwrap_or_default().to_owned();
            format!("{}: {text}", item["kind"].as_str().unwrap())
        };
        window["items"].as_array().unwrap().iter().map(shown).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn status_without_token(&self, method: &str, path: &str, body: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\nhost: {}\r\n", self.address);
        stream.write_all(format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Most memory that the server has used, in KiB.
    pub(crate) fn peak_memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Waits for the end of the server and returns its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for ChatServer {
    fn drop(&mut self) {
        // Agents end with the server.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

impl ChatEvents {
    /// The next event that is not a ping.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        loop {
            let Some(line) = self.0.next() else { panic!("the stream has ended") };
            let line = line.unwrap();
            // Other lines frame the chunks of the body.
            if line.starts_with('{') {
                let event: Value = serde_json::from_str(&line).unwrap();
                if event["type"] != "ping" {
                    return event;
                }
            }
        }
    }

    /// Reads events until one of them is the wanted one. Returns all of them.
    #[track_caller]
    pub(crate) fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            let is_last = is_wanted(&event);
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    /// The chat as soon as it is as wanted.
    #[track_caller]
    pub(crate) fn chat(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let is_wanted = |event: &Value| event["chat"].is_object() && is_wanted(&event["chat"]);
        self.until(is_wanted).pop().unwrap()["chat"].take()
    }

    /// The first prompt that waits.
    #[track_caller]
    pub(crate) fn prompt(&mut self) -> Value {
        self.chat(|chat| !chat["prompts"][0].is_null())["prompts"][0].take()
    }
}

/// Whether the chat has no turn and no message to begin with.
pub(crate) fn is_idle(chat: &Value) -> bool {
    chat["state"] == "idle" && chat["queued"] == json!([])
}

/// Process ids of the programs that run in a folder.
pub(crate) fn processes_in(folder: &Path) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder))).collect()
}
