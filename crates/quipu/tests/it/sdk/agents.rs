//! Who answers in a story.

use std::ffi::OsStr;
use std::path::PathBuf;

use quipu_api::answer::{Answerer, Script};
use quipu_sdk::transport::{Memory, Transport};
use quipu_sdk::{Client, Options, Prompt, Query, query_over};
use quipu_testkit::fake::{self, Report, Step};
use tokio::task::JoinHandle;

use super::tee::Tee;

/// The agents of one story, each conversation with one of its own.
pub(super) struct Agents {
    story: String,
    who: Who,
    conversations: usize,
}

enum Who {
    Fake { playing: Vec<JoinHandle<std::io::Result<Report>>> },
    Program { program: PathBuf, folder: tempfile::TempDir, answerer: Answerer },
}

impl Agents {
    /// Agents that are not there.
    pub(super) fn fake(story: &str) -> Self {
        Self { story: story.to_owned(), who: Who::Fake { playing: Vec::new() }, conversations: 0 }
    }

    /// A program, on a script.
    pub(super) async fn program(story: &str, program: impl AsRef<OsStr>) -> Self {
        let script = Script::read(&quipu_testkit::fixture("agent/sdk.yaml")).unwrap();
        let answerer = Answerer::start(script).await.unwrap();
        let who = Who::Program { program: program.as_ref().into(), folder: tempfile::tempdir().unwrap(), answerer };
        Self { story: story.to_owned(), who, conversations: 0 }
    }

    /// Whether a real program works in a real folder, and this file is in it.
    pub(super) fn has_made(&self, file: &str) -> Option<bool> {
        match &self.who {
            Who::Fake { .. } => None,
            Who::Program { folder, .. } => Some(folder.path().join(file).exists()),
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
            Who::Fake { playing } => {
                let text = std::fs::read_to_string(&recording).unwrap();
                let (near, far) = Memory::pair(64 * 1024);
                playing.push(tokio::spawn(fake::play(fake::steps(&text), far)));
                (Box::new(near), options)
            }
            Who::Program { program, folder, answerer } => {
                let options = options
                    .cli(&*program)
                    .cwd(folder.path())
                    .env("HOME", folder.path())
                    .env("CLAUDE_CONFIG_DIR", folder.path().join(".claude"))
                    .env("ANTHROPIC_BASE_URL", answerer.url())
                    .env("ANTHROPIC_API_KEY", "any")
                    .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
                let command = options.command().unwrap();
                let records = std::env::var_os("QUIPU_SDK_RECORD").is_some() && program.ends_with("quipu-agent");
                match records {
                    true => (Box::new(Tee { inner: command, to: recording, hide: folder.path().into() }), options),
                    false => (Box::new(command), options),
                }
            }
        }
    }

    fn recording(&self) -> PathBuf {
        quipu_testkit::fixture("sdk").join(format!("{}.{}.jsonl", self.story, self.conversations))
    }

    /// Looks at what the fake agents were told.
    pub(super) async fn finish(self) {
        if let Who::Fake { playing } = self.who {
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
fn recordings_begin_with_a_greeting() {
    let folder = quipu_testkit::fixture("sdk");
    let files = quipu_testkit::files(&folder, |path| path.extension().is_some_and(|ext| ext == "jsonl"));
    assert!(files.len() >= 12, "{files:?}");
    for file in files {
        let steps = fake::steps(&std::fs::read_to_string(&file).unwrap());
        let [Step::Hear(hello), ..] = &steps[..] else { panic!("{}", file.display()) };
        assert_eq!(hello["request"]["subtype"], "initialize", "{}", file.display());
    }
}
