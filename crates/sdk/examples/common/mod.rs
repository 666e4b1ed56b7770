//! What the examples share: where the agent is, and a model that plays a script.
#![allow(clippy::print_stdout, clippy::print_stderr, dead_code, reason = "an example prints its results")]

use std::path::PathBuf;

use quipu_api::mock::{MockServer, Script};
use quipu_sdk::{Entry, Options};

pub(crate) type ExampleResult = Result<(), Box<dyn std::error::Error>>;

/// Somewhere to work, and a model to work with.
pub(crate) struct ExampleSetup {
    folder: tempfile::TempDir,
    mock_server: Option<MockServer>,
    cli: Option<PathBuf>,
}

impl ExampleSetup {
    /// Reads the arguments: `--cli PATH` is the agent to start, `--live` asks your own
    /// model instead of the script.
    pub(crate) async fn new(script: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let mut setup = Self { folder: tempfile::tempdir()?, mock_server: None, cli: None };
        let mut args = std::env::args().skip(1);
        let mut live = false;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--cli" => setup.cli = Some(args.next().ok_or("--cli needs the path of an agent")?.into()),
                "--live" => live = true,
                other => return Err(format!("unknown argument {other}; there are --cli PATH and --live").into()),
            }
        }
        if !live {
            setup.mock_server = Some(MockServer::start(Script::parse(script)?).await?);
        }
        Ok(setup)
    }

    /// Options for this setup.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new().cwd(self.folder.path());
        if let Some(cli) = &self.cli {
            options = options.cli(cli);
        }
        if let Some(server) = &self.mock_server {
            options = options
                .env("ANTHROPIC_BASE_URL", server.url())
                .env("ANTHROPIC_API_KEY", "any")
                .env("HOME", self.folder.path())
                .env("CLAUDE_CONFIG_DIR", self.folder.path().join("config"));
        }
        options
    }
}

/// Prints what the model says, and how a turn ends.
pub(crate) fn show(message: &Entry) {
    match message {
        Entry::Assistant(said) => {
            for block in said.message.content.blocks().iter() {
                match block {
                    quipu_sdk::Block::ToolUse(call) => println!("  [{} {}]", call.name, call.input.text()),
                    quipu_sdk::Block::Text(text) => println!("  {}", text.text),
                    other => println!("  ({})", other.tag()),
                }
            }
        }
        Entry::Result(result) => println!("= {}", result.result.text().unwrap_or("(no answer)")),
        _ => {}
    }
}
