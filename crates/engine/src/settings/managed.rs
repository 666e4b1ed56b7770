//! Managed settings of the administrator and of the host, which take precedence over all others.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::Error as _;

use super::{KnownSettings, SettingSource, SettingsError, SettingsLayer, parse_layer};
use crate::permission::EffectiveMode;
use crate::sandbox;
use crate::text_file;

/// Returns the administrator's folder on this system.
pub(super) fn system_folder() -> PathBuf {
    PathBuf::from(match std::env::consts::OS {
        "macos" => "/Library/Application Support/ClaudeCode",
        "windows" => "C:\\Program Files\\ClaudeCode",
        _ => "/etc/claude-code",
    })
}

/// Reads the layers of a folder, lowest precedence first: `managed-settings.json`, then the
/// JSON files of `managed-settings.d` by name. An unreadable or invalid file is an error,
/// because ignoring it would lose a restriction.
pub(super) fn load_layers(folder: &Path) -> Result<Vec<SettingsLayer>, SettingsError> {
    let base = folder.join("managed-settings.json");
    let parts = folder.join("managed-settings.d");
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| SettingsError::Read { path, source }
    };
    let mut paths = match fs::read_dir(&parts) {
        Ok(entries) => {
            let paths: std::io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
            paths.map_err(unreadable(&parts))?
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(unreadable(&parts)(error)),
    };
    let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "json") && !is_hidden(path));
    paths.sort();
    let mut layers = Vec::new();
    for path in std::iter::once(base).chain(paths) {
        if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            continue;
        }
        let text = text_file::read(&path, None, text_file::MAX_BYTES).map_err(unreadable(&path))?;
        let invalid = |source| SettingsError::Invalid { origin: path.display().to_string(), source };
        layers.push(parse_layer(SettingSource::Managed, &text).map_err(invalid)?);
    }
    Ok(layers)
}

/// Reads the layer of `--managed-settings`, keeping only restrictions.
pub(super) fn layer_from_host(json: &str) -> Result<SettingsLayer, SettingsError> {
    let invalid = |source| SettingsError::Invalid { origin: "--managed-settings".to_owned(), source };
    let SettingsLayer { raw: all, known: given, .. } = parse_layer(SettingSource::Managed, json).map_err(invalid)?;
    let mut sandbox = sandbox::SandboxSettings::default();
    sandbox.merge(&given.sandbox, false);
    let mut known = KnownSettings {
        // The layer has no hooks itself, so disabling all leaves those of the administrator.
        allow_managed_hooks_only: given.allow_managed_hooks_only || given.disable_all_hooks,
        disable_auto_mode: given.disable_auto_mode,
        allow_managed_permission_rules_only: given.allow_managed_permission_rules_only,
        allowed_mcp_servers: given.allowed_mcp_servers,
        denied_mcp_servers: given.denied_mcp_servers,
        disabled_mcpjson_servers: given.disabled_mcpjson_servers,
        sandbox,
        ..KnownSettings::default()
    };
    known.permissions.deny = given.permissions.deny;
    known.permissions.ask = given.permissions.ask;
    known.permissions.mode_limit = match given.permissions.default_mode.as_deref() {
        Some(word) => Some(EffectiveMode::parse(word).ok_or_else(|| {
            invalid(serde_json::Error::custom(format!("permissions.defaultMode: there is no mode '{word}'")))
        })?),
        None => None,
    };
    known.permissions.disable_bypass_permissions_mode = given.permissions.disable_bypass_permissions_mode;
    known.permissions.disable_auto_mode = given.permissions.disable_auto_mode;
    Ok(SettingsLayer { source: SettingSource::Managed, folder: None, raw: all, known })
}
