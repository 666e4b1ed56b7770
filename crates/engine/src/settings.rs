//! Settings: JSON files of the user, the project and the administrator, and a flag.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::permission::{Behavior, PermissionMode, Rule};
use crate::sandbox;
use crate::text_file;

mod managed;

/// Where settings come from; later ones win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingSource {
    /// `settings.json` of the person.
    User,
    /// `.claude/settings.json` of the project.
    Project,
    /// `.claude/settings.local.json`, not shared.
    Local,
    /// `--settings`, or a host's request.
    Flag,
    /// The administrator's, and `--managed-settings`.
    Managed,
}

impl SettingSource {
    /// The word that permission updates and listings use.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::User => "userSettings",
            Self::Project => "projectSettings",
            Self::Local => "localSettings",
            Self::Flag => "flagSettings",
            Self::Managed => "policySettings",
        }
    }

    /// Whether the settings may give permission whatever the folder is: they are the
    /// user's, the host's or the administrator's.
    pub(crate) fn is_trusted(self) -> bool {
        matches!(self, Self::User | Self::Flag | Self::Managed)
    }

    /// The file; empty for sources that are not one file.
    pub(crate) fn path(self, config: &Path, cwd: &Path) -> PathBuf {
        match self {
            Self::User => config.join("settings.json"),
            Self::Project => cwd.join(".claude/settings.json"),
            Self::Local => cwd.join(".claude/settings.local.json"),
            Self::Flag | Self::Managed => PathBuf::new(),
        }
    }
}

/// One file's settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SettingsLayer {
    /// Where they are from.
    pub source: SettingSource,
    /// All of them, also those we have no use for.
    pub raw: Value,
    /// Those we use.
    pub known: KnownSettings,
}

/// The settings we use.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KnownSettings {
    /// The model.
    pub model: Option<String>,
    /// Permission rules.
    pub permissions: PermissionSettings,
    /// Hooks by event.
    pub hooks: BTreeMap<String, Vec<HookGroup>>,
    /// Turns all hooks of settings off.
    pub disable_all_hooks: bool,
    /// Environment of tools; numbers and the like are taken as they are written.
    #[serde(deserialize_with = "deserialize_env")]
    pub env: BTreeMap<String, String>,
    /// How hard to think.
    pub effort_level: Option<String>,
    /// Settings for single models.
    pub model_settings: BTreeMap<String, ModelSettings>,
    /// Whether the context is compacted before it is full.
    pub auto_compact_enabled: Option<bool>,
    /// Whether the project's `.mcp.json` may be used.
    pub enable_all_project_mcp_servers: Option<bool>,
    /// Those of its servers that may.
    pub enabled_mcpjson_servers: Vec<String>,
    /// Those of its servers that may not.
    pub disabled_mcpjson_servers: Vec<String>,
    /// MCP servers that may be used, whoever configures them; `None` is all. A server must
    /// be in the list of every layer that has one.
    pub allowed_mcp_servers: Option<Vec<McpServerMatch>>,
    /// MCP servers that may not be used.
    pub denied_mcp_servers: Vec<McpServerMatch>,
    /// The same as in `permissions`.
    pub disable_auto_mode: Option<String>,
    /// Only hooks of managed settings and of the host run.
    pub allow_managed_hooks_only: bool,
    /// Of rules that allow, only those of managed settings count.
    pub allow_managed_permission_rules_only: bool,
    /// How commands are held.
    pub sandbox: sandbox::SandboxSettings,
    /// A command that prints the key for the API.
    pub(crate) api_key_helper: Option<String>,
    /// The agent that the session runs as, unless `--agent` names another.
    pub(crate) agent: Option<String>,
    /// The name of the output style.
    pub(crate) output_style: Option<String>,
    /// The language to answer in, as the user calls it.
    pub(crate) language: Option<String>,
}

/// Permission rules as settings write them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PermissionSettings {
    /// Rules that allow.
    pub allow: Vec<String>,
    /// Rules that refuse.
    pub deny: Vec<String>,
    /// Rules that ask.
    pub ask: Vec<String>,
    /// The permission mode to begin with.
    pub default_mode: Option<String>,
    /// Folders allowed beside the working directory.
    pub additional_directories: Vec<String>,
    /// `disable`: the mode `bypassPermissions` cannot be used.
    pub disable_bypass_permissions_mode: Option<String>,
    /// `disable`: the mode `auto` cannot be used.
    pub disable_auto_mode: Option<String>,
}

/// An MCP server in a list of those that may be used or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct McpServerMatch {
    /// Its name.
    pub server_name: Option<String>,
    /// The program and arguments of a server that is a program.
    pub server_command: Option<Vec<String>>,
    /// The address of a server that has one; `*` stands for anything.
    pub server_url: Option<String>,
}

impl PermissionSettings {
    /// Every rule that can be read: one that cannot allows nothing and refuses nothing.
    pub(crate) fn for_each_rule(&self, mut take: impl FnMut(Behavior, Rule)) {
        for (behavior, list) in
            [(Behavior::Allow, &self.allow), (Behavior::Deny, &self.deny), (Behavior::Ask, &self.ask)]
        {
            list.iter().filter_map(|text| Rule::parse(text)).for_each(|rule| take(behavior, rule));
        }
    }
}

impl PermissionSettings {
    /// What stands where a rule should, and in which list.
    fn invalid_rules(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let lists = [("allow", &self.allow), ("deny", &self.deny), ("ask", &self.ask)];
        let all = lists.into_iter().flat_map(|(name, list)| list.iter().map(move |text| (name, text)));
        all.filter(|(_, text)| Rule::parse(text).is_none())
    }
}

/// Settings for one model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ModelSettings {
    /// How hard to think.
    pub effort_level: Option<String>,
}

/// Hooks for some tools or sources.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HookGroup {
    /// Which; a pattern, empty or `*` for all.
    pub matcher: Option<String>,
    /// What runs.
    pub hooks: Vec<HookCommand>,
}

/// A command that runs as a hook.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HookCommand {
    /// `command`; other kinds are skipped.
    #[serde(rename = "type")]
    pub kind: String,
    /// The command, run by the shell.
    pub command: String,
    /// Seconds it may take.
    pub timeout: Option<f64>,
}

/// Keys of settings that only restrict. A file that holds one of them and cannot be
/// understood is an error.
const RESTRICTING: [&str; 9] = [
    "deny",
    "ask",
    "disableBypassPermissionsMode",
    "disableAutoMode",
    "deniedMcpServers",
    "allowedMcpServers",
    "denyRead",
    "denyWrite",
    "failIfUnavailable",
];

/// What is said of a text that is no rule.
const INVALID_RULE_HINT: &str = "is not a rule; write Tool or Tool(pattern)";

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file that was asked for cannot be read.
    #[error("cannot read the settings file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The settings are not what settings are.
    #[error("the settings in {place} are not valid")]
    Invalid {
        /// The file, or the flag.
        place: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A rule that refuses or asks cannot be read.
    #[error("{place}: permissions.{list}: '{text}' {INVALID_RULE_HINT}")]
    InvalidRule {
        /// The file, or the flag.
        place: String,
        /// `deny` or `ask`.
        list: &'static str,
        /// Its value.
        text: String,
    },
    /// A source that does not exist.
    #[error("no setting source '{name}'; there are user, project and local")]
    UnknownSource {
        /// What was asked for.
        name: String,
    },
}

impl SettingsError {
    /// A stable name for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "settings.unreadable",
            Self::Invalid { .. } => "settings.invalid",
            Self::InvalidRule { .. } => "settings.bad_rule",
            Self::UnknownSource { .. } => "settings.no_source",
        }
    }
}

/// All settings, weakest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings {
    /// The layers.
    pub layers: Vec<SettingsLayer>,
    /// Files that could not be used, in words; the rest still counts.
    pub problems: Vec<String>,
}

impl Settings {
    /// Reads the files of the given sources and then the flag, a file's path or JSON.
    /// `project` is the folder whose `.claude` holds the project's settings.
    pub(crate) fn load(
        config: &Path,
        project: &Path,
        sources: &[SettingSource],
        flag: Option<&str>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        let mut read = BTreeSet::new();
        for source in sources {
            let path = source.path(config, project);
            let within = (*source != SettingSource::User).then_some(project);
            let text = match text_file::read(&path, within, text_file::MAX_BYTES) {
                Ok(text) => text,
                Err(error) => {
                    if path.symlink_metadata().is_ok() {
                        settings.problems.push(format!("{}: {error}", path.display()));
                    }
                    continue;
                }
            };
            // At home, the person's file is the project's too; its hooks run once.
            if !read.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())) {
                continue;
            }
            match parse_layer(*source, &text) {
                Ok(layer) => {
                    settings.insert_layer(layer, &path.display().to_string())?;
                }
                // What it would have restricted cannot be known.
                Err(source) if RESTRICTING.iter().any(|key| text.contains(&format!("\"{key}\""))) => {
                    return Err(SettingsError::Invalid { place: path.display().to_string(), source });
                }
                Err(error) => settings.problems.push(format!("{}: {error}", path.display())),
            }
        }
        if let Some(flag) = flag {
            settings.insert_layer(layer_from_flag(flag)?, "--settings")?;
        }
        Ok(settings)
    }

    /// Adds the managed settings: the host's, then the administrator's of a folder; `None`
    /// is the system's own.
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

    /// Whether any layer forbids a mode, whatever the others say.
    pub(crate) fn disables_mode(&self, mode: PermissionMode) -> bool {
        let is_off = |word: &Option<String>| word.as_deref() == Some("disable");
        self.layers.iter().any(|SettingsLayer { known, .. }| match mode {
            PermissionMode::BypassPermissions => is_off(&known.permissions.disable_bypass_permissions_mode),
            PermissionMode::Auto => is_off(&known.permissions.disable_auto_mode) || is_off(&known.disable_auto_mode),
            _ => false,
        })
    }

    /// The strongest value of a setting among managed layers.
    pub(crate) fn managed_value<T>(&self, of: impl Fn(&KnownSettings) -> Option<T>) -> Option<T> {
        let managed = self.layers.iter().rev().filter(|layer| layer.source == SettingSource::Managed);
        managed.into_iter().find_map(|layer| of(&layer.known))
    }

    /// Puts a layer above the others, but below the managed ones if it is not managed. What
    /// is no rule in it is a problem; where it should deny or ask, it is an error, because
    /// it may hold a restriction that would be lost.
    fn insert_layer(&mut self, layer: SettingsLayer, place: &str) -> Result<&KnownSettings, SettingsError> {
        for (list, text) in layer.known.permissions.invalid_rules() {
            if list != "allow" {
                let (place, text) = (place.to_owned(), text.clone());
                return Err(SettingsError::InvalidRule { place, list, text });
            }
            self.problems.push(format!("{place}: permissions.{list}: '{text}' {INVALID_RULE_HINT}"));
        }
        let at = match layer.source {
            SettingSource::Managed => self.layers.len(),
            _ => self.layers.iter().take_while(|below| below.source != SettingSource::Managed).count(),
        };
        self.layers.insert(at, layer);
        Ok(&self.layers[at].known)
    }

    /// Adds a layer above all that are not managed, as a host may; returns what is known of it.
    pub(crate) fn add_flag_layer(&mut self, all: Value) -> Result<&KnownSettings, SettingsError> {
        let invalid = |source| SettingsError::Invalid { place: "the request".to_owned(), source };
        let known = serde_json::from_value(all.clone()).map_err(invalid)?;
        self.insert_layer(SettingsLayer { source: SettingSource::Flag, raw: all, known }, "the request")
    }

    /// Whether allow rules of other layers than the managed ones are ignored.
    pub(crate) fn has_only_managed_rules(&self) -> bool {
        self.managed_value(|known| known.allow_managed_permission_rules_only.then_some(())).is_some()
    }

    /// The strongest value of a setting.
    pub(crate) fn strongest_value<T>(&self, of: impl Fn(&KnownSettings) -> Option<T>) -> Option<T> {
        self.layers.iter().rev().find_map(|layer| of(&layer.known))
    }

    /// The name of the output style, whether or not there is such a style.
    pub(crate) fn output_style(&self) -> String {
        self.strongest_value(|known| known.output_style.clone())
            .unwrap_or_else(|| crate::output_style::DEFAULT_STYLE.to_owned())
    }

    /// How hard a model is to think.
    pub(crate) fn effort_for(&self, model: &str) -> Option<String> {
        let own = |known: &KnownSettings| known.model_settings.get(model).and_then(|own| own.effort_level.clone());
        self.strongest_value(|known| own(known).or_else(|| known.effort_level.clone()))
    }

    /// All settings as one object; later layers replace what they name.
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

/// The sources that a list of words names; no list names all.
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
    // Read from the text, so that an error says where.
    let (all, known) = (serde_json::from_str(text)?, serde_json::from_str(text)?);
    Ok(SettingsLayer { source, raw: all, known })
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
    let (place, text) = if flag.trim_start().starts_with('{') {
        ("--settings".to_owned(), flag.to_owned())
    } else {
        let path = PathBuf::from(flag);
        let text = text_file::read(&path, None, text_file::MAX_BYTES);
        let text = text.map_err(|source| SettingsError::Read { path, source })?;
        (flag.to_owned(), text)
    };
    parse_layer(SettingSource::Flag, &text).map_err(|source| SettingsError::Invalid { place, source })
}

#[cfg(test)]
mod tests;
