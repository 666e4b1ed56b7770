//! Whether the user trusts the folder of a chat.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use quipu_transcript::trust::{TrustSources, is_trusted_folder};

use crate::claude_dirs::claude_dirs;
use crate::config::{Config, config_path};
use crate::environment;
use crate::global::GlobalArgs;
use crate::output::Output;

/// Whether the user trusts a folder: as `quipu-agent` decides it.
pub(super) fn is_trusted(folder: &Path, config: &Config, global: &GlobalArgs) -> bool {
    let (home, dirs) = (environment::home_dir(), claude_dirs(global));
    let config_dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
    let sources = TrustSources { listed: &config.trusted, home: home.as_deref(), config_dirs: &config_dirs };
    is_trusted_folder(folder, &sources)
}

/// Asks the user whether to trust a folder; if so, it is recorded.
pub(super) fn confirm(folder: &Path, output: &Output) -> Result<bool> {
    let name = quipu_render::sanitize(&folder.display().to_string()).into_owned();
    let question = format!(
        "Do you trust {name}?\nIts settings may allow tools and run hooks, and its files may instruct the agent.\n\
         Trust this folder? [y/N] "
    );
    output.print_bytes(question.as_bytes())?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if is_yes {
        let config = config_path().context("there is no home folder for settings")?;
        quipu_server::trust_folder(&config, folder)?;
    }
    Ok(is_yes)
}
