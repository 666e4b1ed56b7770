//! Sessions that tests write.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::TestServer;

/// A folder with one session, `s`, that tests write to.
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new(lines: &[Value]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("projects/-p")).unwrap();
        let scratch = Self { folder };
        scratch.append("s", lines);
        scratch
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("projects/-p").join(format!("{name}.jsonl"))
    }

    pub(crate) fn append(&self, name: &str, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.append_text(name, &text);
    }

    pub(crate) fn append_text(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(self.path(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn server(&self) -> TestServer {
        TestServer::start(self.folder.path())
    }
}

pub(crate) fn user(uuid: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type": "user", "uuid": uuid, "parentUuid": parent, "timestamp": "2026-11-16T10:00:00Z",
           "message": {"role": "user", "content": text}})
}

pub(crate) fn assistant(uuid: &str, parent: &str, block: Value) -> Value {
    json!({"type": "assistant", "uuid": uuid, "parentUuid": parent,
           "message": {"id": uuid, "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": [block]}})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn result(uuid: &str, parent: &str, call: &str, content: &str) -> Value {
    json!({"type": "user", "uuid": uuid, "parentUuid": parent, "timestamp": "2026-11-16T10:00:07Z", "message": {"role": "user",
           "content": [{"type": "tool_result", "tool_use_id": call, "content": content}]}})
}
