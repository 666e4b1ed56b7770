//! Proxies from environment variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use url::Url;

/// Returns the proxy for a URL; `None` if there is none or `NO_PROXY` excludes the host.
pub(super) fn proxy_for<'a>(url: &Url, env: &'a BTreeMap<OsString, OsString>) -> Option<&'a str> {
    let set = |name: &str| {
        let named = |name: &str| env.get(OsStr::new(name)).and_then(|value| value.to_str()).map(str::trim);
        named(name).or_else(|| named(&name.to_lowercase())).filter(|value| !value.is_empty())
    };
    let own = if url.scheme() == "https" { "HTTPS_PROXY" } else { "HTTP_PROXY" };
    let proxy = set(own).or_else(|| set("ALL_PROXY"))?;
    let host = url.host_str().unwrap_or_default();
    let except = set("NO_PROXY").unwrap_or_default();
    (!except.split(',').any(|name| is_excepted(name.trim(), host))).then_some(proxy)
}

/// Whether an entry of `NO_PROXY` matches a host: its name, a parent domain or `*`.
fn is_excepted(name: &str, host: &str) -> bool {
    let name = name.strip_prefix("*.").unwrap_or(name).trim_start_matches('.').to_ascii_lowercase();
    let above = || host.strip_suffix(&name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    name == "*" || !name.is_empty() && above()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, vars: &[(&str, &str)], expect: Option<&str>) {
        let env = vars.iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(proxy_for(&Url::parse(url).unwrap(), &env), expect, "{url} {vars:?}");
    }

    #[test]
    fn the_environment_names_proxies_and_exceptions() {
        let proxy = ("HTTPS_PROXY", "http://p:1");
        check("https://a.org/", &[proxy], Some("http://p:1"));
        check("http://a.org/", &[proxy], None);
        check("http://a.org/", &[("all_proxy", "http://q:2")], Some("http://q:2"));
        check("https://a.org/", &[("https_proxy", " ")], None);
        for (except, direct) in [
            ("a.org", true),
            (".a.org", true),
            ("*.a.org, b", true),
            ("*", true),
            ("b.a.org", false),
            ("aa.org", false),
        ] {
            let expect = if direct { None } else { Some("http://p:1") };
            check("https://a.org/", &[proxy, ("NO_PROXY", except)], expect);
        }
        check("https://x.a.org/", &[proxy, ("no_proxy", "a.org")], None);
        check("https://ba.org/", &[proxy, ("no_proxy", "a.org")], Some("http://p:1"));
    }
}
