use super::*;

fn from(vars: &[(&str, &str)]) -> Result<Endpoint, EndpointError> {
    Endpoint::from_env(|name| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn without_variables_it_is_the_public_api() {
    let endpoint = from(&[("ANTHROPIC_BASE_URL", " "), ("ANTHROPIC_API_KEY", "")]).unwrap();
    assert_eq!(endpoint.method_url("/v1/messages", false).as_str(), "https://api.anthropic.com/v1/messages");
    assert_eq!((endpoint.credential, endpoint.proxy), (None, None));
    assert_eq!((endpoint.retry_policy.max_retries, endpoint.limits.response_timeout.as_secs()), (10, 600));
}

#[test]
fn variables_set_endpoint_and_credentials() {
    let endpoint = from(&[
        ("ANTHROPIC_BASE_URL", "http://gateway:8080/a/b/"),
        ("ANTHROPIC_API_KEY", " key-1\n"),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Team: tide\n\nX-Note: a: b"),
        ("ANTHROPIC_BETAS", "one, two,,"),
        ("API_TIMEOUT_MS", "1500"),
        ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ])
    .unwrap();
    assert_eq!(endpoint.method_url("/v1/messages", true).as_str(), "http://gateway:8080/a/b/v1/messages?beta=true");
    assert_eq!(endpoint.host(), "gateway:8080");
    assert_eq!(endpoint.credential, Some(Credential::ApiKey("key-1".into())));
    assert_eq!(endpoint.headers, [("X-Team".to_owned(), "tide".into()), ("X-Note".to_owned(), "a: b".into())]);
    assert_eq!(endpoint.betas, ["one", "two"]);
    assert_eq!((endpoint.retry_policy.max_retries, endpoint.limits.response_timeout.as_millis()), (0, 1500));
}

#[test]
fn the_proxy_follows_the_scheme() {
    let vars = [("HTTPS_PROXY", "http://s"), ("http_proxy", "http://h"), ("NO_PROXY", "a.example")];
    let proxy = |base: &'static str| from(&[&vars[..], &[("ANTHROPIC_BASE_URL", base)]].concat()).unwrap().proxy;
    let of =
        |url: &str| Some(Proxy { url: url.into(), no_proxy: Some("a.example".to_owned()), includes_loopback: false });
    assert_eq!((proxy("https://x"), proxy("http://x")), (of("http://s"), of("http://h")));
    assert_eq!(from(&[("all_proxy", "socks5://a")]).unwrap().proxy.unwrap().url, "socks5://a".into());
}

#[test]
fn this_machine_is_known_by_all_its_names() {
    for base in ["http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:8", "http://localhost", "http://a.localhost"] {
        assert!(Endpoint::new(base).unwrap().is_loopback(), "{base}");
    }
    for base in ["https://api.anthropic.com", "http://10.0.0.1", "http://localhost.example"] {
        assert!(!Endpoint::new(base).unwrap().is_loopback(), "{base}");
    }
}

#[test]
fn wrong_settings_are_named() {
    let message = |name, value| from(&[(name, value)]).unwrap_err().to_string();
    assert!(message("ANTHROPIC_BASE_URL", "gateway:8080").starts_with("invalid ANTHROPIC_BASE_URL: "));
    assert!(message("ANTHROPIC_BASE_URL", "http://x?key=1").contains("must end with the host or a path"));
    assert_eq!(message("API_TIMEOUT_MS", "-1"), "API_TIMEOUT_MS must be a whole number, not \"-1\"");
    assert!(message("ANTHROPIC_CUSTOM_HEADERS", "bad name: x").starts_with("invalid header \"bad name\""));
}

#[test]
fn further_certificates_are_read_when_certificates_count() {
    let missing = ("NODE_EXTRA_CA_CERTS", "/nowhere/ca.pem");
    let error = from(&[missing]).unwrap().http_client().unwrap_err();
    assert_eq!(error.code(), "endpoint.bad_certificates");
    assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    from(&[missing, ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")]).unwrap().http_client().unwrap();
}
