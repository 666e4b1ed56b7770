//! Whether the user trusts the folder of a chat.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use quipu_transcript::trust::{TrustSources, is_trusted_folder};
use toml_edit::{Array, DocumentMut, Item};

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
        record(folder)?;
    }
    Ok(is_yes)
}

/// Adds a folder to the trusted ones in the settings; comments of the file are kept.
fn record(folder: &Path) -> Result<()> {
    let path = config_path().context("there is no home folder for settings")?;
    let name = folder.to_str().context("the name of the folder is not Unicode")?;
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.with_context(|| path.display().to_string())?,
    };
    let mut document: DocumentMut = text.parse().with_context(|| path.display().to_string())?;
    let list = document.entry("trusted").or_insert_with(|| Item::Value(Array::new().into()));
    let list = list.as_array_mut().with_context(|| format!("{}: `trusted` is not a list", path.display()))?;
    list.push(name);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(document.to_string().as_bytes())?;
    file.persist(&path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}
