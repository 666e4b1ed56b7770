//! Which API key a session would use, for `auth status`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quipu_api::{Credential, Endpoint};

use crate::credential;
use crate::error::EngineError;
use crate::options::Options;
use crate::setup::Launch;

/// What `auth status` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthStatus {
    /// The variable that the key is taken from, or `apiKeyHelper`; `None` if there is no key.
    pub source: Option<&'static str>,
    /// The folder of settings and sessions.
    pub config: PathBuf,
}

/// Which key a session would use: one of the environment, or of the user's and managed settings.
pub fn auth_status(env: BTreeMap<String, String>, cwd: &Path) -> Result<AuthStatus, EngineError> {
    let mut given = Launch { options: Options::default(), env, cwd: cwd.to_owned(), worktree: None };
    let settings = given.take_trusted_settings()?;
    let in_env = Endpoint::from_env(|name| given.var(name).map(str::to_owned))?.credential;
    let credential = in_env.or_else(|| credential::helper(&settings, &given.env, cwd).map(Credential::Helper));
    Ok(AuthStatus { source: credential::source(credential.as_ref()), config: given.config_folder() })
}
