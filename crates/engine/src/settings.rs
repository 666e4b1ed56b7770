//! Settings: JSON files of the user, the project and the administrator, and a flag.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::permission::{Behavior, EffectiveMode, Rule, pattern_count};
use crate::sandbox;
use crate::text_file;

mod files;
mod managed;

pub(crate) use files::{ProjectFolder, SettingsFile, SettingsFolders};

/// Source of settings; later ones take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingSource {
    /// `settings.json` of the user.
    User,
    /// `.claude/settings.json` of the project.
    Project,
    /// `.claude/settings.local.json`, not shared.
    Local,
    /// `--settings`, or a control request of the host.
    Flag,
    /// Settings of the administrator, and `--managed-settings`.
    Managed,
}

impl SettingSource {
    /// Returns the value used in permission updates and listings.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "userSettings",
            Self::Project => "projectSettings",
            Self::Local => "localSettings",
            Self::Flag => "flagSettings",
            Self::Managed => "policySettings",
        }
    }

    /// Whether the settings may grant permissions in any folder, because they come from the
    /// user, the host or the administrator.
    pub(crate) fn is_trusted(self) -> bool {
        matches!(self, Self::User | Self::Flag | Self::Managed)
    }
}

/// Settings of one file or flag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SettingsLayer {
    /// Source of the settings.
    pub source: SettingSource,
    /// The folder whose `.claude` has the file; `None` unless the source is a project's.
    pub folder: Option<PathBuf>,
    /// The complete JSON, including unknown settings.
    pub raw: Value,
    /// The settings that this program uses.
    pub known: KnownSettings,
}

/// The settings that this program uses.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KnownSettings {
    /// Name or alias of the model.
    pub model: Option<String>,
    /// Permission rules, mode and folders.
    pub permissions: PermissionSettings,
    /// Hooks by name of their event.
    pub hooks: BTreeMap<String, Vec<HookGroup>>,
    /// Disables all hooks of settings.
    pub disable_all_hooks: bool,
    /// Environment variables; numbers and booleans are converted to text.
    #[serde(deserialize_with = "deserialize_env")]
    pub env: BTreeMap<String, String>,
    /// Effort level of the model.
    pub effort_level: Option<String>,
    /// Settings by model name.
    pub model_settings: BTreeMap<String, ModelSettings>,
    /// Whether the conversation is compacted automatically before the context is full.
    pub auto_compact_enabled: Option<bool>,
    /// Whether all servers of the project's `.mcp.json` are approved.
    pub enable_all_project_mcp_servers: Option<bool>,
    /// Servers of `.mcp.json` that are approved.
    pub enabled_mcpjson_servers: Vec<String>,
    /// Servers of `.mcp.json` that are rejected.
    pub disabled_mcpjson_servers: Vec<String>,
    /// MCP servers that may be used, however they are configured; `None` allows all. A server
    /// must be in the list of every layer that has one.
    pub allowed_mcp_servers: Option<Vec<McpServerMatch>>,
    /// MCP servers that may not be used.
    pub denied_mcp_servers: Vec<McpServerMatch>,
    /// Same as `permissions.disableAutoMode`.
    pub disable_auto_mode: Option<String>,
    /// Whether only hooks of managed settings and of the host run.
    pub allow_managed_hooks_only: bool,
    /// Whether allow rules count only in managed settings.
    pub allow_managed_permission_rules_only: bool,
    /// Settings of the sandbox for commands.
    pub sandbox: sandbox::SandboxSettings,
    /// Command that prints the API key.
    pub(crate) api_key_helper: Option<String>,
    /// Agent that the session runs as, unless `--agent` is given.
    pub(crate) agent: Option<String>,
    /// The name of the output style.
    pub(crate) output_style: Option<String>,
    /// Language to answer in, as the user names it.
    pub(crate) language: Option<String>,
}

/// The `permissions` settings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PermissionSettings {
    /// Texts of allow rules.
    pub allow: Vec<String>,
    /// Texts of deny rules.
    pub deny: Vec<String>,
    /// Texts of ask rules.
    pub ask: Vec<String>,
    /// Permission mode at the start of a session.
    pub default_mode: Option<String>,
    /// A host's mode: the session starts in it if it allows less than the mode of the others.
    #[serde(skip)]
    pub mode_limit: Option<EffectiveMode>,
    /// Folders that tools may work in besides the working directory.
    pub additional_directories: Vec<String>,
    /// `disable`: the mode `bypassPermissions` cannot be used.
    pub disable_bypass_permissions_mode: Option<String>,
    /// `disable`: the mode `auto` cannot be used.
    pub disable_auto_mode: Option<String>,
}

/// Entry in a list of allowed or denied MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct McpServerMatch {
    /// Name of the server.
    pub server_name: Option<String>,
    /// Program and arguments of a stdio server.
    pub server_command: Option<Vec<String>>,
    /// URL of a remote server; `*` matches anything.
    pub server_url: Option<String>,
}

impl PermissionSettings {
    /// Calls `visit` for every valid rule.
    pub(crate) fn for_each_rule(&self, mut visit: impl FnMut(Behavior, Rule)) {
        for (behavior, list) in
            [(Behavior::Allow, &self.allow), (Behavior::Deny, &self.deny), (Behavior::Ask, &self.ask)]
        {
            list.iter().filter_map(|text| Rule::parse(text)).for_each(|rule| visit(behavior, rule));
        }
    }
}

impl PermissionSettings {
    /// Returns the texts of allow rules that are not valid.
    fn invalid_allow_rules(&self) -> impl Iterator<Item = &String> {
        self.allow.iter().filter(|text| Rule::parse(text).is_none())
    }

    /// Returns the texts of deny and ask rules, with the name of their list.
    fn restrictions(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let lists = [("deny", &self.deny), ("ask", &self.ask)];
        lists.into_iter().flat_map(|(name, list)| list.iter().map(move |text| (name, text)))
    }
}

/// Settings of one model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ModelSettings {
    /// Effort level of the model.
    pub effort_level: Option<String>,
}

/// Hooks that share a matcher.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HookGroup {
    /// Pattern for the tool or source; empty, `*` or `None` match all.
    pub matcher: Option<String>,
    /// Commands to run.
    pub hooks: Vec<HookCommand>,
}

/// One hook of the settings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HookCommand {
    /// Type of the hook: `command`; others are skipped.
    #[serde(rename = "type")]
    pub kind: String,
    /// The command, run by the shell.
    pub command: String,
    /// Timeout in seconds.
    pub timeout: Option<f64>,
}

/// Keys of settings that restrict. An invalid file of a project that contains one of them is an
/// error instead of a warning. Any mode may allow less than that of other files.
const RESTRICTING: [&str; 10] = [
    "deny",
    "ask",
    "defaultMode",
    "disableBypassPermissionsMode",
    "disableAutoMode",
    "deniedMcpServers",
    "allowedMcpServers",
    "denyRead",
    "denyWrite",
    "failIfUnavailable",
];

/// Variables that name the user's own folders.
const USER_FOLDER_VARIABLES: [&str; 3] = ["HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"];

/// The most deny and ask rules in a settings file of a project, whose author may be anyone. One with braces or many
/// wildcards counts as several.
const MAX_PROJECT_RESTRICTIONS: usize = 2000;

/// End of the message about an invalid rule.
const INVALID_RULE_HINT: &str = "is not a rule; write Tool or Tool(pattern)";

/// Error in settings that prevents the start.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file of `--settings`, of the user or of the administrator cannot be read.
    #[error("cannot read the settings file {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The settings are not valid JSON or have a wrong type.
    #[error("the settings in {origin} are not valid")]
    Invalid {
        /// File or flag that contains the settings.
        origin: String,
        /// Error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// A deny or ask rule is invalid.
    #[error("{origin}: permissions.{list}: '{text}' {INVALID_RULE_HINT}, with closed brackets")]
    InvalidRule {
        /// File or flag that contains the settings.
        origin: String,
        /// Name of the list: `deny` or `ask`.
        list: &'static str,
        /// Text that is not a rule.
        text: String,
    },
    /// A project has more deny and ask rules than can be compared quickly with every call.
    #[error(
        "{origin}: {count} deny and ask rules, counting one with braces or many wildcards as several; a project may \
         have {MAX_PROJECT_RESTRICTIONS}"
    )]
    TooManyRules {
        /// File that contains the rules.
        origin: String,
        /// Number of the rules.
        count: usize,
    },
    /// `--setting-sources` names an unknown source.
    #[error("no setting source '{name}'; there are user, project and local")]
    UnknownSource {
        /// The unknown name.
        name: String,
    },
}

impl SettingsError {
    /// Returns a stable code for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "settings.unreadable",
            Self::Invalid { .. } => "settings.invalid",
            Self::InvalidRule { .. } => "settings.bad_rule",
            Self::TooManyRules { .. } => "settings.too_many_rules",
            Self::UnknownSource { .. } => "settings.no_source",
        }
    }
}

/// All settings of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings {
    /// Settings by source, lowest precedence first.
    pub layers: Vec<SettingsLayer>,
    /// Warnings about files and rules that were ignored.
    pub problems: Vec<String>,
}

impl Settings {
    /// Reads the files of the given sources and then the flag, a file's path or JSON.
    pub(crate) fn load(
        folders: SettingsFolders<'_>,
        sources: &[SettingSource],
        flag: Option<&str>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        let mut read = BTreeSet::new();
        for source in sources {
            for file in folders.files(*source) {
                // In the home folder the files of user and project are the same; its hooks must run once.
                let real = fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone());
                if !read.contains(&real) && settings.add_file(*source, file)? {
                    read.insert(real);
                }
            }
        }
        if let Some(flag) = flag {
            settings.insert_layer(layer_from_flag(flag)?, "--settings")?;
        }
        Ok(settings)
    }

    /// Adds the settings of a file, and returns whether it could be read. Invalid settings of the user are an
    /// error; those of a project are a warning, unless they may contain restrictions.
    fn add_file(&mut self, source: SettingSource, file: SettingsFile) -> Result<bool, SettingsError> {
        let origin = file.path.display().to_string();
        let text = match file.read() {
            Ok(text) => text,
            // Ignoring the user's file could lose a restriction.
            Err(error) if source == SettingSource::User && file.path.is_file() => {
                return Err(SettingsError::Read { path: file.path, source: error });
            }
            Err(error) => {
                if file.path.symlink_metadata().is_ok() {
                    self.problems.push(format!("{origin}: {error}"));
                }
                return Ok(false);
            }
        };
        match parse_layer(source, &text) {
            Ok(layer) => {
                self.insert_layer(SettingsLayer { folder: file.folder, ..layer }, &origin)?;
            }
            // Ignoring the file could lose a restriction.
            Err(error) if source == SettingSource::User || may_restrict(&text) => {
                return Err(SettingsError::Invalid { origin, source: error });
            }
            Err(error) => self.problems.push(format!("{origin}: {error}")),
        }
        Ok(true)
    }

    /// Adds the managed settings of the host and of the administrator's folder; `None` uses the
    /// folder of the system.
    pub(crate) fn add_managed(&mut self, folder: Option<&Path>, host: Option<&str>) -> Result<(), SettingsError> {
        if let Some(json) = host {
            self.insert_layer(managed::layer_from_host(json)?, "--managed-settings")?;
        }
        let system = managed::system_folder();
        let folder = folder.unwrap_or(&system);
        for layer in managed::load_layers(folder)? {
            self.insert_layer(layer, &folder.display().to_string())?;
        }
        Ok(())
    }

    /// Removes the variables from the layers of the project that would move `~` and the user's settings, which
    /// rules of others are relative to. Each is a warning.
    pub(crate) fn remove_project_folders(&mut self) {
        let of_project = |layer: &&mut SettingsLayer| !layer.source.is_trusted();
        for layer in self.layers.iter_mut().filter(of_project) {
            for name in USER_FOLDER_VARIABLES.iter().filter(|name| layer.known.env.remove(**name).is_some()) {
                self.problems.push(format!("env.{name}: a project cannot set it"));
            }
        }
    }

    /// Whether any layer disables a mode. The word is `disable`; a misspelled one counts too, because ignoring it would
    /// lose a restriction.
    pub(crate) fn disables_mode(&self, mode: EffectiveMode) -> bool {
        let is_off = |word: &Option<String>| word.is_some();
        self.layers.iter().any(|SettingsLayer { known, .. }| match mode {
            EffectiveMode::BypassPermissions => is_off(&known.permissions.disable_bypass_permissions_mode),
            EffectiveMode::Auto => is_off(&known.permissions.disable_auto_mode) || is_off(&known.disable_auto_mode),
            _ => false,
        })
    }

    /// Returns the value of a setting with the highest precedence among managed layers.
    pub(crate) fn managed_value<T>(&self, of: impl Fn(&KnownSettings) -> Option<T>) -> Option<T> {
        let managed = self.layers.iter().rev().filter(|layer| layer.source == SettingSource::Managed);
        managed.into_iter().find_map(|layer| of(&layer.known))
    }

    /// Inserts a layer above the others, but below managed ones unless it is managed itself. An
    /// invalid allow rule is a warning; an invalid deny or ask rule is an error, because
    /// ignoring it would lose a restriction.
    fn insert_layer(&mut self, layer: SettingsLayer, origin: &str) -> Result<&KnownSettings, SettingsError> {
        for text in layer.known.permissions.invalid_allow_rules() {
            self.problems.push(format!("{origin}: permissions.allow: '{text}' {INVALID_RULE_HINT}"));
        }
        let denied = &layer.known.sandbox.filesystem;
        let rules = layer.known.permissions.restrictions().map(|(_, text)| text);
        let count = rules.chain(&denied.deny_read).chain(&denied.deny_write).map(|text| pattern_count(text)).sum();
        let is_of_project = matches!(layer.source, SettingSource::Project | SettingSource::Local);
        if is_of_project && count > MAX_PROJECT_RESTRICTIONS {
            return Err(SettingsError::TooManyRules { origin: origin.to_owned(), count });
        }
        for (list, text) in layer.known.permissions.restrictions() {
            // One text must not contain several rules, as in flags.
            let Some(rule) = Rule::parse_flag(text) else {
                let (origin, text) = (origin.to_owned(), text.clone());
                return Err(SettingsError::InvalidRule { origin, list, text });
            };
            if !rule.names_known_tool() {
                self.problems.push(format!("{origin}: permissions.{list}: '{text}' names no known tool"));
            }
        }
        let at = match layer.source {
            SettingSource::Managed => self.layers.len(),
            _ => self.layers.iter().take_while(|below| below.source != SettingSource::Managed).count(),
        };
        self.layers.insert(at, layer);
        Ok(&self.layers[at].known)
    }

    /// Adds a layer of the host above all that are not managed; returns its known settings.
    pub(crate) fn add_flag_layer(&mut self, all: Value) -> Result<&KnownSettings, SettingsError> {
        let invalid = |source| SettingsError::Invalid { origin: "the request".to_owned(), source };
        let known = serde_json::from_value(all.clone()).map_err(invalid)?;
        self.insert_layer(SettingsLayer { source: SettingSource::Flag, folder: None, raw: all, known }, "the request")
    }

    /// Whether allow rules of other layers than the managed ones are ignored.
    pub(crate) fn has_only_managed_rules(&self) -> bool {
        self.managed_value(|known| known.allow_managed_permission_rules_only.then_some(())).is_some()
    }

    /// Returns the value of a setting with the highest precedence.
    pub(crate) fn strongest_value<T>(&self, of: impl Fn(&KnownSettings) -> Option<T>) -> Option<T> {
        self.layers.iter().rev().find_map(|layer| of(&layer.known))
    }

    /// Returns the name of the output style, which may not exist.
    pub(crate) fn output_style(&self) -> String {
        self.strongest_value(|known| known.output_style.clone())
            .unwrap_or_else(|| crate::output_style::DEFAULT_STYLE.to_owned())
    }

    /// Returns the effort level for a model, if one is set.
    pub(crate) fn effort_for(&self, model: &str) -> Option<String> {
        let own = |known: &KnownSettings| known.model_settings.get(model).and_then(|own| own.effort_level.clone());
        self.strongest_value(|known| own(known).or_else(|| known.effort_level.clone()))
    }

    /// Merges all layers into one JSON object.
    pub(crate) fn merged_json(&self) -> Value {
        let mut all = serde_json::Map::new();
        for layer in &self.layers {
            if let Value::Object(map) = &layer.raw {
                all.extend(map.clone());
            }
        }
        Value::Object(all)
    }
}

/// Parses `--setting-sources`; all sources if there is no list.
pub(crate) fn parse_sources(words: Option<&[String]>) -> Result<Vec<SettingSource>, SettingsError> {
    let Some(words) = words else { return Ok(vec![SettingSource::User, SettingSource::Project, SettingSource::Local]) };
    let mut sources = Vec::new();
    for word in words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()) {
        sources.push(match word {
            "user" => SettingSource::User,
            "project" => SettingSource::Project,
            "local" => SettingSource::Local,
            other => return Err(SettingsError::UnknownSource { name: other.to_owned() }),
        });
    }
    sources.sort_unstable();
    sources.dedup();
    Ok(sources)
}

fn parse_layer(source: SettingSource, text: &str) -> serde_json::Result<SettingsLayer> {
    // Parse from text, so that errors have a line and column. Only an object has settings, not `[]`.
    let all: serde_json::Map<String, Value> = serde_json::from_str(text)?;
    let known = serde_json::from_str(text)?;
    Ok(SettingsLayer { source, folder: None, raw: Value::Object(all), known })
}

/// Whether settings that are not valid may contain restrictions.
fn may_restrict(text: &str) -> bool {
    RESTRICTING.iter().any(|key| text.contains(&format!("\"{key}\"")))
}

fn deserialize_env<'de, D: Deserializer<'de>>(env: D) -> Result<BTreeMap<String, String>, D::Error> {
    let text = |(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        _ => Err(D::Error::custom(format!("the variable {name} must be a string"))),
    };
    BTreeMap::<String, Value>::deserialize(env)?.into_iter().map(text).collect()
}

fn layer_from_flag(flag: &str) -> Result<SettingsLayer, SettingsError> {
    let (origin, text) = if flag.trim_start().starts_with('{') {
        ("--settings".to_owned(), flag.to_owned())
    } else {
        let path = PathBuf::from(flag);
        let text = text_file::read(&path, None, text_file::MAX_BYTES);
        let text = text.map_err(|source| SettingsError::Read { path, source })?;
        (flag.to_owned(), text)
    };
    parse_layer(SettingSource::Flag, &text).map_err(|source| SettingsError::Invalid { origin, source })
}

#[cfg(test)]
mod tests;
