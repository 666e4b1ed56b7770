//! Credentials for the API in the environment.

use crate::environment::text_var;

const VARIABLES: [&str; 3] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];

/// The credentials that are set, which captures mask from the first request on.
pub(crate) fn credentials() -> Vec<String> {
    VARIABLES.iter().filter_map(|name| text_var(name)).collect()
}
