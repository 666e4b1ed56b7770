//! Expansion of `${VAR}` and `${VAR:-default}` in server configuration.

use std::collections::BTreeMap;

use super::McpEndpoint;

/// Expands variables; returns the names of those that are not set and have no default, which
/// are left unchanged.
pub(super) fn expand_endpoint(config: &mut McpEndpoint, env: &BTreeMap<String, String>) -> Vec<String> {
    let mut missing = Vec::new();
    let mut fill = |text: &mut String| *text = expand_text(text, env, &mut missing);
    match config {
        McpEndpoint::Stdio { command, args, env } => {
            fill(command);
            args.iter_mut().chain(env.values_mut()).for_each(fill);
        }
        McpEndpoint::Http { url, headers } => {
            fill(url);
            headers.values_mut().for_each(fill);
        }
        McpEndpoint::Sdk => {}
    }
    missing.sort();
    missing.dedup();
    missing
}

fn expand_text(text: &str, env: &BTreeMap<String, String>, missing: &mut Vec<String>) -> String {
    let (mut done, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("${") {
        let (before, mark) = rest.split_at(at);
        done.push_str(before);
        rest = mark;
        let Some(end) = mark.find('}') else { break };
        let (name, default) = match mark[2..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&mark[2..end], None),
        };
        match env.get(name).map(String::as_str).filter(|value| !value.is_empty()).or(default) {
            Some(value) => done.push_str(value),
            None => {
                missing.push(name.to_owned());
                done.push_str(&mark[..=end]);
            }
        }
        rest = &mark[end + 1..];
    }
    done.push_str(rest);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_once() {
        let env = BTreeMap::from([("A", "one"), ("B", "${A}"), ("EMPTY", "")].map(|(n, v)| (n.into(), v.into())));
        let check = |text: &str, expect: &str, unset: &[&str]| {
            let mut missing = Vec::new();
            assert_eq!(expand_text(text, &env, &mut missing), expect);
            assert_eq!(missing, unset);
        };
        check("x ${A} y", "x one y", &[]);
        check("${B}", "${A}", &[]);
        check("${C:-two}${EMPTY:-three}", "twothree", &[]);
        check("${C} ${A", "${C} ${A", &["C"]);
        check("${C:-}", "", &[]);
        check("$A {A} $", "$A {A} $", &[]);
    }
}
