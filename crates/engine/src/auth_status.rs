//! Which API key a session would use, for `auth status`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quipu_api::{Credential, Endpoint};

use crate::credential;
use crate::error::EngineError;
use crate::options::Options;
use crate::setup::Launch;

/// The API key that a session would use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthStatus {
    /// The variable that holds the key, or `apiKeyHelper`; `None` if there is no key.
    pub source: Option<&'static str>,
    /// The folder of settings and sessions.
    pub config: PathBuf,
}

/// Finds the API key that a session would use, in the environment or in the user's and managed
/// settings. Fails if settings or the API address cannot be read.
pub fn auth_status(env: BTreeMap<String, String>, cwd: &Path) -> Result<AuthStatus, EngineError> {
    let mut launch = Launch::new(Options::default(), env, cwd.to_owned());
    let settings = launch.take_trusted_settings()?;
    let in_env = Endpoint::from_env(|name| launch.var(name).map(str::to_owned))?.credential;
    let credential = in_env.or_else(|| credential::helper(&settings, &launch.env, cwd).map(Credential::Helper));
    Ok(AuthStatus { source: credential::source(credential.as_ref()), config: launch.config_folder() })
}
