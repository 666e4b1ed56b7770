//! Where HTTP exchanges contain credentials.

/// Words of header names whose values are credentials.
const CREDENTIAL_WORDS: [&str; 13] = [
    "authorization",
    "auth",
    "token",
    "secret",
    "password",
    "cookie",
    "cookie2",
    "key",
    "apikey",
    "credential",
    "credentials",
    "signature",
    "jwt",
];

/// Whether the values of a header are credentials, by its name in any case.
pub(crate) fn is_credential_header(name: &str) -> bool {
    let is_word = |word: &str| CREDENTIAL_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
    name.split(['-', '_']).any(is_word)
}

/// Whether bodies of a path are left out because they exchange credentials.
pub(crate) fn exchanges_credentials(path: &str) -> bool {
    path.split(['/', '?']).any(|segment| matches!(segment, "oauth" | "oauth2" | "token" | "login"))
}

#[cfg(test)]
mod tests {
    use super::exchanges_credentials;

    #[test]
    fn paths_that_exchange_credentials_are_known() {
        assert!(exchanges_credentials("/v1/oauth/token?x=1"));
        assert!(!exchanges_credentials("/v1/messages/count_tokens"));
    }
}
