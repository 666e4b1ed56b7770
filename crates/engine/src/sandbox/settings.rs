//! The `sandbox` settings.

use serde::Deserialize;

/// The `sandbox` settings, as settings files write them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Whether commands may be approved because they run in the sandbox.
    pub enabled: Option<bool>,
    /// Whether to refuse to start without a sandbox.
    pub fail_if_unavailable: Option<bool>,
    /// Whether what runs in the sandbox needs no approval; yes when absent.
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Whether a call may ask to run without the sandbox; yes when absent.
    pub allow_unsandboxed_commands: Option<bool>,
    /// Commands that are never approved because of the sandbox: `docker`, `git push:*`.
    pub excluded_commands: Vec<String>,
    /// What commands may read and write.
    pub filesystem: Filesystem,
    /// What commands may connect to.
    pub network: Network,
}

/// What commands in the sandbox may read and write. Paths may begin with `~/`, or are
/// relative to the session's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filesystem {
    /// More folders that may be written.
    pub allow_write: Vec<String>,
    /// What may not be written, inside folders that may.
    pub deny_write: Vec<String>,
    /// What may not be read.
    pub deny_read: Vec<String>,
    /// What may be read though a folder above it may not; not possible here, and said so.
    pub allow_read: Vec<String>,
}

/// What commands in the sandbox may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    /// `*` for everything; single domains cannot be told apart here, and it is said so.
    pub allowed_domains: Vec<String>,
    /// Whether Unix sockets may be used, once the network may.
    pub allow_all_unix_sockets: Option<bool>,
}

impl Settings {
    /// Adds a layer of settings that wins over these.
    ///
    /// Of a layer that is not trusted, only what restricts counts.
    pub(crate) fn add(&mut self, layer: &Self, trusted: bool) {
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
        if layer.enabled == Some(false) || trusted {
            self.enabled = layer.enabled.or(self.enabled);
        }
        self.excluded_commands.extend(layer.excluded_commands.iter().cloned());
        self.filesystem.deny_write.extend(layer.filesystem.deny_write.iter().cloned());
        self.filesystem.deny_read.extend(layer.filesystem.deny_read.iter().cloned());
        if trusted {
            self.filesystem.allow_write.extend(layer.filesystem.allow_write.iter().cloned());
            self.filesystem.allow_read.extend(layer.filesystem.allow_read.iter().cloned());
            self.network.allowed_domains.extend(layer.network.allowed_domains.iter().cloned());
            self.network.allow_all_unix_sockets =
                layer.network.allow_all_unix_sockets.or(self.network.allow_all_unix_sockets);
        }
    }

    /// What of the settings cannot be done, in words for the user.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.network.allowed_domains.iter().any(|domain| domain != "*") {
            warnings.push(
                "sandbox.network.allowedDomains: the sandbox cannot filter by domain, so commands in it have no \
                 network; [\"*\"] gives them all of it"
                    .to_owned(),
            );
        }
        if !self.filesystem.allow_read.is_empty() {
            warnings
                .push("sandbox.filesystem.allowRead: what denyRead names cannot be opened again in part".to_owned());
        }
        warnings
    }

    /// Whether commands in the sandbox may use the network.
    pub(super) fn has_network(&self) -> bool {
        let domains = &self.network.allowed_domains;
        !domains.is_empty() && domains.iter().all(|domain| domain == "*")
    }

    /// Whether a command is approved because it runs in the sandbox.
    pub(crate) fn approves(&self) -> bool {
        self.enabled == Some(true) && self.auto_allow_bash_if_sandboxed != Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Settings {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_layer_that_is_not_trusted_only_restricts() {
        let mut settings = read(r#"{"enabled":true}"#);
        let layer = read(
            r#"{"enabled":true,"failIfUnavailable":true,"filesystem":{"allowWrite":["/"],"denyRead":["a"]},
               "network":{"allowedDomains":["*"],"allowAllUnixSockets":true},"allowUnsandboxedCommands":false}"#,
        );
        settings.add(&layer, false);
        assert!(settings.approves() && !settings.has_network());
        assert_eq!((settings.fail_if_unavailable, settings.allow_unsandboxed_commands), (Some(true), Some(false)));
        assert_eq!((settings.filesystem.allow_write.len(), settings.filesystem.deny_read.len()), (0, 1));
        settings.add(&layer, true);
        assert!(settings.has_network());
        settings.add(&read(r#"{"enabled":false}"#), false);
        assert!(!settings.approves());
    }

    #[test]
    fn domains_are_answered_with_a_warning() {
        assert!(read(r#"{"network":{"allowedDomains":["*"]}}"#).warnings().is_empty());
        let settings = read(r#"{"network":{"allowedDomains":["*","a.example"]}}"#);
        assert!(settings.warnings()[0].contains("cannot filter by domain") && !settings.has_network());
    }
}
