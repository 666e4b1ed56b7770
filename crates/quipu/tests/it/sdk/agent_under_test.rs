//! Who answers in a story.

use std::ffi::OsStr;
use std::path::PathBuf;

use quipu_api::mock::{MockServer, Script};
use quipu_sdk::transport::{MemoryTransport, Transport};
use quipu_sdk::{Client, Options, Prompt, Query, query_over};
use quipu_testkit::fake_agent::{self, PlayReport, Step};
use tokio::task::JoinHandle;

use super::recording_transport::RecordingTransport;

/// The agents of one story, each conversation with one of its own.
pub(super) struct AgentUnderTest {
    story: String,
    who: AgentKind,
    conversations: usize,
}

enum AgentKind {
    Fake { playing: Vec<JoinHandle<std::io::Result<PlayReport>>> },
    Program { program: PathBuf, folder: tempfile::TempDir, server: MockServer },
}

impl AgentUnderTest {
    /// Agents that are not there.
    pub(super) fn fake(story: &str) -> Self {
        Self { story: story.to_owned(), who: AgentKind::Fake { playing: Vec::new() }, conversations: 0 }
    }

    /// A program, on a script.
    pub(super) async fn program(story: &str, program: impl AsRef<OsStr>) -> Self {
        let script = Script::read(&quipu_testkit::fixture("agent/sdk.yaml")).unwrap();
        let server = MockServer::start(script).await.unwrap();
        let who = AgentKind::Program { program: program.as_ref().into(), folder: tempfile::tempdir().unwrap(), server };
        Self { story: story.to_owned(), who, conversations: 0 }
    }

    /// Whether a real program works in a real folder, and this file is in it.
    pub(super) fn has_made(&self, file: &str) -> Option<bool> {
        match &self.who {
            AgentKind::Fake { .. } => None,
            AgentKind::Program { folder, .. } => Some(folder.path().join(file).exists()),
        }
    }

    pub(super) async fn connect(&mut self, options: Options) -> Client {
        let (transport, options) = self.open(options);
        Client::connect_over(transport, options).await.unwrap()
    }

    pub(super) fn query(&mut self, prompt: impl Into<Prompt>, options: Options) -> Query {
        let (transport, options) = self.open(options);
        query_over(transport, prompt, options)
    }

    /// The way to the next agent.
    fn open(&mut self, options: Options) -> (Box<dyn Transport>, Options) {
        self.conversations += 1;
        let recording = self.recording();
        match &mut self.who {
            AgentKind::Fake { playing } => {
                let text = std::fs::read_to_string(&recording).unwrap();
                let (near, far) = MemoryTransport::pair(64 * 1024);
                playing.push(tokio::spawn(fake_agent::play(fake_agent::parse_steps(&text), far)));
                (Box::new(near), options)
            }
            AgentKind::Program { program, folder, server } => {
                let options = options
                    .cli(&*program)
                    .cwd(folder.path())
                    .env("HOME", folder.path())
                    .env("CLAUDE_CONFIG_DIR", folder.path().join(".claude"))
                    .env("ANTHROPIC_BASE_URL", server.url())
                    .env("ANTHROPIC_API_KEY", "any")
                    .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
                let command = options.command().unwrap();
                let records = std::env::var_os("QUIPU_SDK_RECORD").is_some() && program.ends_with("quipu-agent");
                match records {
                    true => (
                        Box::new(RecordingTransport { inner: command, to: recording, hide: folder.path().into() }),
                        options,
                    ),
                    false => (Box::new(command), options),
                }
            }
        }
    }

    fn recording(&self) -> PathBuf {
        quipu_testkit::fixture("sdk").join(format!("{}.{}.jsonl", self.story, self.conversations))
    }

    /// Checks the input of the fake agents.
    pub(super) async fn finish(self) {
        if let AgentKind::Fake { playing } = self.who {
            for (n, played) in playing.into_iter().enumerate() {
                let report = played.await.unwrap().unwrap_or_else(|error| panic!("{} {n}: {error}", self.story));
                assert_eq!(report.differences, Vec::<String>::new(), "{}", self.story);
                assert_eq!(report.unexpected, Vec::<serde_json::Value>::new(), "{}", self.story);
            }
        }
    }
}

/// Steps that a story's recording must have to be one.
#[test]
fn recordings_begin_with_initialize() {
    let folder = quipu_testkit::fixture("sdk");
    let files = quipu_testkit::files_under(&folder, |path| path.extension().is_some_and(|ext| ext == "jsonl"));
    assert!(files.len() >= 12, "{files:?}");
    for file in files {
        let steps = fake_agent::parse_steps(&std::fs::read_to_string(&file).unwrap());
        let [Step::Expect(hello), ..] = &steps[..] else { panic!("{}", file.display()) };
        assert_eq!(hello["request"]["subtype"], "initialize", "{}", file.display());
    }
}
