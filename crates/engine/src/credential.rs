//! Where the key for the API is from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::EngineError;
use crate::options::Options;
use crate::setup::Given;

/// The variables that may hold a key, strongest first.
const VARIABLES: [&str; 2] = ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"];

/// The variable that the key is taken from; `None` if none is set.
pub(crate) fn source<'a>(var: impl Fn(&str) -> Option<&'a str>) -> Option<&'static str> {
    VARIABLES.into_iter().find(|name| var(name).is_some())
}

/// What `auth status` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthStatus {
    /// The variable that the key is taken from; `None` if there is no key.
    pub source: Option<&'static str>,
    /// The folder of settings and sessions.
    pub config: PathBuf,
}

/// Which key a session started in `cwd` would use: one of the environment, or of the `env` of
/// the user's and managed settings.
pub fn auth_status(env: BTreeMap<String, String>, cwd: &Path) -> Result<AuthStatus, EngineError> {
    let mut given = Given { options: Options::default(), env, cwd: cwd.to_owned(), worktree: None };
    given.take_trusted_env()?;
    Ok(AuthStatus { source: source(|name| given.var(name)), config: given.config() })
}
