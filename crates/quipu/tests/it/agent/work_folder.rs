//! The folder a run happens in, with the files the recorded run found there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::recording::Recording;

/// Files that recorded runs found in their folder, where the recording has no `files/`.
const FILES: [(&str, &str, &str); 10] = [
    ("04_parallel_tools", "x.txt", "xx\n"),
    ("24_slash_commands", ".claude/commands/greet.md", "Say hello to $ARGUMENTS\n"),
    ("27_settings_hooks", "CLAUDE.md", "# Project\nBe brief.\n"),
    ("27_settings_hooks", "settings.json", SETTINGS),
    ("29_mcp_stdio", "srv.py", MCP_SERVER),
    ("32_mention_memory", "note.txt", "note body\n"),
    ("32_mention_memory", "CLAUDE.md", "# Project\nAlways be terse.\n@extra.md"),
    ("32_mention_memory", "extra.md", "imported memory"),
    ("50_control_all_subtypes", "readme.txt", "hello\n"),
    ("own", "notes.txt", "first line\nsecond line\n"),
];

/// Every event is logged, one adds context, one refuses.
const SETTINGS: &str = r#"{"hooks":{
"SessionStart":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"InstructionsLoaded":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"UserPromptSubmit":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log; echo extra context from hook"}]}],
"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]},
 {"matcher":"Write","hooks":[{"type":"command","command":"echo no writing >&2; exit 2"}]}],
"PostToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"PostToolUseFailure":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"PostToolBatch":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"PermissionRequest":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"SubagentStart":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"SubagentStop":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"Stop":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}],
"SessionEnd":[{"hooks":[{"type":"command","command":"cat >> hooks.log; echo >> hooks.log"}]}]
}}"#;

/// An MCP server with one tool.
pub(super) const MCP_SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "fs", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        result = {"tools": [{"name": "echo", "description": "Echoes", "inputSchema": schema}]}
    else:
        result = {"content": [{"type": "text", "text": "echo:" + asked["params"]["arguments"]["text"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

/// The working folder of a run, and its home folder: the same, unless files are laid out.
pub(super) struct Folder {
    _temp: TempDir,
    pub(super) path: PathBuf,
    pub(super) home: PathBuf,
}

impl Folder {
    pub(super) fn new(recording: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        // The name must not say more than the recorded one did.
        let path = temp.path().canonicalize().unwrap().join(recording);
        fs::create_dir(&path).unwrap();
        for (_, name, content) in FILES.iter().filter(|(of, ..)| *of == recording) {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        Self { _temp: temp, home: path.clone(), path }
    }

    /// The folders of a recording, with what its runs found in them.
    pub(super) fn of(recording: &Recording) -> Self {
        let mut folder = Self::new(&recording.name);
        fs::create_dir(folder.temporary()).unwrap();
        if let Some(files) = &recording.files {
            copy(files, &folder.path);
        }
        if recording.files.is_some() || recording.home.is_some() {
            folder.home = folder.path.with_file_name("home");
            fs::create_dir(&folder.home).unwrap();
        }
        if let Some(home) = &recording.home {
            copy(home, &folder.home);
        }
        folder
    }

    /// Makes the folder a git repository with one empty commit.
    pub(super) fn make_repository(&self) {
        let name = ["-c", "user.name=dev", "-c", "user.email=dev@example.com"];
        for args in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "begin"]] {
            let mut git = Command::new("git");
            let status = git.args(name).args(args).current_dir(&self.path).env("HOME", &self.path).status().unwrap();
            assert!(status.success());
        }
    }

    /// The folder for temporary files of a recording.
    pub(super) fn temporary(&self) -> PathBuf {
        self.path.with_file_name("tmp")
    }

    /// The recording it is for.
    pub(super) fn name(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// A config folder as a host restores it from its own copy of a session: the
    /// conversation without what the session cost.
    pub(super) fn restored(&self, theirs: &str) -> PathBuf {
        let folder = self.path.join(theirs.trim_start_matches('/'));
        let old = self.transcripts().pop().unwrap();
        let projects = self.home.join(".claude/projects");
        let new = folder.join("projects").join(old.strip_prefix(projects).unwrap());
        fs::create_dir_all(new.parent().unwrap()).unwrap();
        let kept: Vec<String> = fs::read_to_string(&old)
            .unwrap()
            .lines()
            .filter(|line| !line.contains(r#""type":"cost-state""#))
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(new, kept.concat()).unwrap();
        folder
    }

    /// The session files, oldest first.
    pub(super) fn transcripts(&self) -> Vec<PathBuf> {
        let files = quipu_testkit::files_under(&self.home.join(".claude/projects"), |path| {
            path.extension().is_some_and(|ext| ext == "jsonl") && !super::recording::is_subagent(path)
        });
        let mut files: Vec<PathBuf> = files;
        files.sort_by_key(|path| fs::metadata(path).and_then(|meta| meta.created()).unwrap());
        files
    }

    /// The subagents' files.
    pub(super) fn subagents(&self) -> Vec<PathBuf> {
        quipu_testkit::files_under(&self.home.join(".claude/projects"), super::recording::is_subagent)
    }
}

/// Copies what a folder holds, with its subfolders.
fn copy(from: &Path, to: &Path) {
    for file in quipu_testkit::files_under(from, |_| true) {
        let to = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }
}
