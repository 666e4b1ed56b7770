//! The `User-Agent` header of requests.

/// The `User-Agent` header: this program, its entrypoint, the SDK and the program that uses the SDK.
/// Characters that a header cannot contain are left out.
pub(crate) fn user_agent_header<'a>(entrypoint: &str, var: impl Fn(&str) -> Option<&'a str>) -> String {
    let named = |kind: &str, name| var(name).map(|value| format!("{kind}/{value}"));
    let parts = [
        Some(entrypoint.to_owned()),
        named("agent-sdk", "CLAUDE_AGENT_SDK_VERSION"),
        named("client-app", "CLAUDE_AGENT_SDK_CLIENT_APP"),
    ];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let parts: String = parts.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
    format!("quipu-agent/{} ({parts})", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::user_agent_header;

    #[test]
    fn requests_name_the_program_that_uses_the_sdk() {
        let version = env!("CARGO_PKG_VERSION");
        let var = |name: &str| match name {
            "CLAUDE_AGENT_SDK_VERSION" => Some("0.2.182"),
            "CLAUDE_AGENT_SDK_CLIENT_APP" => Some("tide\n\u{e9}pool/1.0"),
            _ => None,
        };
        let all = format!("quipu-agent/{version} (sdk-py, agent-sdk/0.2.182, client-app/tidepool/1.0)");
        assert_eq!(user_agent_header("sdk-py", var), all);
        assert_eq!(user_agent_header("sdk-cli", |_| None), format!("quipu-agent/{version} (sdk-cli)"));
    }
}
