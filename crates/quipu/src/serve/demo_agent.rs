//! An agent for trying the chat without `claude`, a key or a network: `quipu-agent` on a mock
//! server that answers from a script, in a folder of its own.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use quipu_api::mock::{MockServer, Script};
use quipu_server::{ChatAgent, ServerOptions};
use tempfile::TempDir;

use crate::environment;

/// Rules of the mock server; `FOLDER` is the folder of the project.
const SCRIPT: &str = include_str!("demo_agent/script.yaml");
/// Files of the project that the agent works in.
const PROJECT: [(&str, &str); 3] = [
    ("README.md", include_str!("demo_agent/project/README.md")),
    ("tides.sh", include_str!("demo_agent/project/tides.sh")),
    ("data/heights.csv", include_str!("demo_agent/project/data/heights.csv")),
];

/// The mock server and the folder of the demo agent. Dropping it removes both.
pub(super) struct DemoAgent {
    folder: TempDir,
    server: MockServer,
}

impl DemoAgent {
    /// Writes the project to a temporary folder and starts the mock server.
    pub(super) async fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("quipu-demo-").tempdir()?;
        let project = folder.path().join("tide-table");
        write_project(&project).context("cannot write the folder of the demo agent")?;
        let script = Script::parse(&SCRIPT.replace("FOLDER", &project.to_string_lossy()))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = MockServer::listen(script, address, |_| {}).await.context("cannot start the demo agent")?;
        Ok(Self { folder, server })
    }

    /// Offers the agent to the chats of a server, first if no other agent can answer: there is no
    /// `claude`, and no key for `quipu-agent`.
    pub(super) fn add_to(&self, options: &mut ServerOptions) {
        let Some(program) = quipu_sdk::find_agent("quipu-agent") else { return };
        // Its sessions are not mixed with the user's own.
        let config_dir = match options.is_demo {
            true => options.claude_dirs.first().cloned(),
            false => None,
        };
        let config_dir = config_dir.unwrap_or_else(|| {
            let config_dir = self.folder.path().join("claude");
            options.claude_dirs.push(config_dir.clone());
            config_dir
        });
        let agent = self.chat_agent(program, &config_dir);
        let is_set = |name| environment::var(name).is_some_and(|value| !value.is_empty());
        let has_key = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"].into_iter().any(is_set);
        let is_first = options.is_demo || !has_key && quipu_sdk::find_agent("claude").is_none();
        options.agents.insert(if is_first { 0 } else { options.agents.len() }, agent);
    }

    fn chat_agent(&self, program: PathBuf, config_dir: &Path) -> ChatAgent {
        let env: [(&str, OsString); 3] = [
            ("ANTHROPIC_BASE_URL", self.server.url().into()),
            // The mock server accepts any key.
            ("ANTHROPIC_API_KEY", "demo".into()),
            ("CLAUDE_CONFIG_DIR", config_dir.into()),
        ];
        ChatAgent {
            program: Some(program),
            env: env.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            cwd: Some(self.folder.path().join("tide-table")),
            ..ChatAgent::named("demo")
        }
    }
}

fn write_project(project: &Path) -> io::Result<()> {
    for (name, text) in PROJECT {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap_or(project))?;
        fs::write(path, text)?;
    }
    Ok(())
}
