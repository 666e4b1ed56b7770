//! The `sandbox` settings.

use serde::Deserialize;

/// The `sandbox` settings, as settings files write them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SandboxSettings {
    /// Whether commands may be approved because they run in the sandbox.
    pub enabled: Option<bool>,
    /// Whether to refuse to start without a sandbox.
    pub fail_if_unavailable: Option<bool>,
    /// Whether sandboxed commands need no approval; default `true`.
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Whether a call may request to run without the sandbox; default `true`.
    pub allow_unsandboxed_commands: Option<bool>,
    /// Commands that are never approved because of the sandbox: `docker`, `git push:*`.
    pub excluded_commands: Vec<String>,
    /// What commands may read and write.
    pub filesystem: FilesystemSettings,
    /// What commands may connect to.
    pub network: NetworkSettings,
    /// Not supported; causes a warning.
    pub enable_weaker_nested_sandbox: Option<bool>,
    /// Whether settings that are not trusted set `enabled` to `false`. Kept apart, because
    /// `fail_if_unavailable` has no effect without `enabled` and they must not cancel it.
    #[serde(skip)]
    is_disabled_by_untrusted: bool,
}

/// What commands in the sandbox may read and write. Paths may begin with `~/`, or are
/// relative to the session's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilesystemSettings {
    /// More folders that may be written.
    pub allow_write: Vec<String>,
    /// What may not be written, inside folders that may.
    pub deny_write: Vec<String>,
    /// What may not be read.
    pub deny_read: Vec<String>,
    /// Exceptions from `deny_read`; not supported, causes a warning.
    pub allow_read: Vec<String>,
}

/// What commands in the sandbox may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSettings {
    /// `*` for everything; single domains cannot be filtered and cause a warning.
    pub allowed_domains: Vec<String>,
    /// Domains to deny. They cannot be filtered, so any entry disables the network.
    pub denied_domains: Vec<String>,
    /// Whether Unix sockets may be used if the network may.
    pub allow_all_unix_sockets: Option<bool>,
    /// Not supported; causes a warning, as do the fields below.
    pub allow_unix_sockets: Vec<String>,
    /// Not supported; causes a warning.
    pub allow_local_binding: Option<bool>,
    /// Not supported; causes a warning.
    pub http_proxy_port: Option<u16>,
    /// Not supported; causes a warning.
    pub socks_proxy_port: Option<u16>,
}

impl SandboxSettings {
    /// Merges a layer of settings that takes precedence over these.
    ///
    /// A layer that is not trusted can only add restrictions.
    pub(crate) fn merge(&mut self, layer: &Self, trusted: bool) {
        if layer.fail_if_unavailable == Some(true) || trusted {
            self.fail_if_unavailable = layer.fail_if_unavailable.or(self.fail_if_unavailable);
        }
        if layer.allow_unsandboxed_commands == Some(false) || trusted {
            self.allow_unsandboxed_commands = layer.allow_unsandboxed_commands.or(self.allow_unsandboxed_commands);
        }
        if layer.auto_allow_bash_if_sandboxed == Some(false) || trusted {
            self.auto_allow_bash_if_sandboxed =
                layer.auto_allow_bash_if_sandboxed.or(self.auto_allow_bash_if_sandboxed);
        }
        match (layer.enabled, trusted) {
            (Some(enabled), true) => (self.enabled, self.is_disabled_by_untrusted) = (Some(enabled), false),
            (Some(false), false) => self.is_disabled_by_untrusted = true,
            _ => {}
        }
        self.excluded_commands.extend(layer.excluded_commands.iter().cloned());
        self.filesystem.deny_write.extend(layer.filesystem.deny_write.iter().cloned());
        self.filesystem.deny_read.extend(layer.filesystem.deny_read.iter().cloned());
        self.network.denied_domains.extend(layer.network.denied_domains.iter().cloned());
        if trusted {
            self.filesystem.allow_write.extend(layer.filesystem.allow_write.iter().cloned());
            self.filesystem.allow_read.extend(layer.filesystem.allow_read.iter().cloned());
            self.network.allowed_domains.extend(layer.network.allowed_domains.iter().cloned());
            self.network.allow_all_unix_sockets =
                layer.network.allow_all_unix_sockets.or(self.network.allow_all_unix_sockets);
            self.network.allow_unix_sockets.extend(layer.network.allow_unix_sockets.iter().cloned());
            self.network.allow_local_binding = layer.network.allow_local_binding.or(self.network.allow_local_binding);
            self.network.http_proxy_port = layer.network.http_proxy_port.or(self.network.http_proxy_port);
            self.network.socks_proxy_port = layer.network.socks_proxy_port.or(self.network.socks_proxy_port);
            self.enable_weaker_nested_sandbox =
                layer.enable_weaker_nested_sandbox.or(self.enable_weaker_nested_sandbox);
        }
    }

    /// Returns warnings about settings that are not supported.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.network.allowed_domains.iter().any(|domain| domain != "*") {
            warnings.push(
                "sandbox.network.allowedDomains: the sandbox cannot filter by domain, so commands in it have no \
                 network; [\"*\"] gives them all of it"
                    .to_owned(),
            );
        }
        if !self.network.denied_domains.is_empty() {
            warnings.push(
                "sandbox.network.deniedDomains: the sandbox cannot filter by domain, so commands in it have no network"
                    .to_owned(),
            );
        }
        let unsupported: Vec<&str> = [
            ("network.allowUnixSockets", !self.network.allow_unix_sockets.is_empty()),
            ("network.allowLocalBinding", self.network.allow_local_binding == Some(true)),
            ("network.httpProxyPort", self.network.http_proxy_port.is_some()),
            ("network.socksProxyPort", self.network.socks_proxy_port.is_some()),
            ("enableWeakerNestedSandbox", self.enable_weaker_nested_sandbox == Some(true)),
        ]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
        .collect();
        if !unsupported.is_empty() {
            warnings.push(format!("sandbox.{}: not supported, ignored", unsupported.join(", sandbox.")));
        }
        if !self.filesystem.allow_read.is_empty() {
            warnings
                .push("sandbox.filesystem.allowRead: what denyRead names cannot be opened again in part".to_owned());
        }
        warnings
    }

    /// Whether commands in the sandbox may use the network. `by_rule` is whether a rule allows
    /// all of it; single domains in the settings still disable it, because they cannot be
    /// filtered.
    pub(super) fn allows_network(&self, by_rule: bool) -> bool {
        let domains = &self.network.allowed_domains;
        let all = domains.iter().all(|domain| domain == "*");
        self.network.denied_domains.is_empty() && all && (by_rule || !domains.is_empty())
    }

    /// Whether commands are approved because they run in the sandbox.
    pub(crate) fn approves_sandboxed(&self) -> bool {
        self.enabled == Some(true) && !self.is_disabled_by_untrusted && self.auto_allow_bash_if_sandboxed != Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_settings(text: &str) -> SandboxSettings {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_layer_that_is_not_trusted_only_restricts() {
        let mut settings = parse_settings(r#"{"enabled":true}"#);
        let layer = parse_settings(
            r#"{"enabled":true,"failIfUnavailable":true,"filesystem":{"allowWrite":["/"],"denyRead":["a"]},
               "network":{"allowedDomains":["*"],"allowAllUnixSockets":true},"allowUnsandboxedCommands":false}"#,
        );
        settings.merge(&layer, false);
        assert!(settings.approves_sandboxed() && !settings.allows_network(false));
        assert_eq!((settings.fail_if_unavailable, settings.allow_unsandboxed_commands), (Some(true), Some(false)));
        assert_eq!((settings.filesystem.allow_write.len(), settings.filesystem.deny_read.len()), (0, 1));
        settings.merge(&layer, true);
        assert!(settings.allows_network(false));
        settings.merge(&parse_settings(r#"{"enabled":false}"#), false);
        assert!(!settings.approves_sandboxed());
        assert_eq!((settings.enabled, settings.fail_if_unavailable), (Some(true), Some(true)), "it is still required");
        settings.merge(&parse_settings(r#"{"enabled":true}"#), true);
        assert!(settings.approves_sandboxed(), "settings of higher precedence enable it again");
    }

    #[test]
    fn domains_are_answered_with_a_warning() {
        assert!(parse_settings(r#"{"network":{"allowedDomains":["*"]}}"#).warnings().is_empty());
        let settings = parse_settings(r#"{"network":{"allowedDomains":["*","a.example"]}}"#);
        assert!(settings.warnings()[0].contains("cannot filter by domain") && !settings.allows_network(true));
        let settings = parse_settings(r#"{"network":{"allowedDomains":["a.example"]}}"#);
        assert!(settings.warnings()[0].contains("have no network") && !settings.allows_network(true));
        assert!(SandboxSettings::default().allows_network(true) && !SandboxSettings::default().allows_network(false));
        let settings = parse_settings(r#"{"network":{"allowedDomains":["*"],"deniedDomains":["a.example"]}}"#);
        assert!(settings.warnings()[0].contains("deniedDomains") && !settings.allows_network(true));
    }

    #[test]
    fn settings_that_mean_nothing_here_are_named() {
        let settings = parse_settings(
            r#"{"enableWeakerNestedSandbox":true,"network":{"allowUnixSockets":["/s"],"allowLocalBinding":false,
               "httpProxyPort":8080}}"#,
        );
        let expect = "sandbox.network.allowUnixSockets, sandbox.network.httpProxyPort, \
                      sandbox.enableWeakerNestedSandbox: not supported, ignored";
        assert_eq!(settings.warnings(), [expect]);
    }
}
