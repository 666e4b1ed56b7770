//! Whether the user trusts a folder. Settings of an untrusted folder can restrict the agent, and never
//! allow it anything.

use std::path::Path;

use quipu_transcript::trust::{TrustSources, is_trusted_folder};

use crate::options::Options;
use crate::permission::EffectiveMode;
use crate::settings::{SettingSource, Settings, SettingsLayer};

/// Whether the user trusts a folder: by a flag, by the list in quipu's settings, because a host asks
/// for project or local settings, or because the folder or its repository was accepted in Claude Code.
pub(crate) fn is_trusted(options: &Options, cwd: &Path, home: Option<&Path>, config: &Path) -> bool {
    let names = |word: &String| matches!(word.trim(), "project" | "local");
    if options.trust_folder || options.setting_sources.iter().flatten().any(names) {
        return true;
    }
    let sources = TrustSources { listed: &options.trusted_folders, home, config_dirs: &[config] };
    is_trusted_folder(cwd, &sources)
}

/// Removes the settings that only a trusted folder may have. Returns a sentence that names them; `None`
/// if there were none. `state` is the path of the user's `.claude.json`.
pub(crate) fn restrict_untrusted(
    settings: &mut Settings,
    options: &Options,
    cwd: &Path,
    state: &Path,
) -> Option<String> {
    let left_out: Vec<String> =
        settings.layers.iter_mut().filter_map(|layer| strip_untrusted(layer, options.allow_project_hooks)).collect();
    (!left_out.is_empty()).then(|| {
        format!(
            "ignoring {}: this folder is not trusted; start with --trust-folder, or set \
             projects[\"{}\"].hasTrustDialogAccepted to true in {}",
            left_out.join(" and "),
            cwd.display(),
            state.display()
        )
    })
}

/// Removes them from one layer. Returns their names and numbers; `None` if there were none.
fn strip_untrusted(layer: &mut SettingsLayer, hooks: bool) -> Option<String> {
    let file = match layer.source {
        SettingSource::Project => ".claude/settings.json",
        SettingSource::Local => ".claude/settings.local.json",
        SettingSource::User | SettingSource::Flag | SettingSource::Managed => return None,
    };
    let known = &mut layer.known;
    let mut parts = Vec::new();
    let mut count = |name: &str, entries: usize| match entries {
        0 => {}
        1 => parts.push(format!("1 {name} entry")),
        more => parts.push(format!("{more} {name} entries")),
    };
    count("permissions.allow", std::mem::take(&mut known.permissions.allow).len());
    let folders = std::mem::take(&mut known.permissions.additional_directories);
    count("permissions.additionalDirectories", folders.len());
    let raises = |word: &String| {
        matches!(
            EffectiveMode::parse(word),
            Some(EffectiveMode::AcceptEdits | EffectiveMode::Auto | EffectiveMode::BypassPermissions)
        )
    };
    if known.permissions.default_mode.as_ref().is_some_and(raises) {
        known.permissions.default_mode = None;
        count("permissions.defaultMode", 1);
    }
    count("apiKeyHelper", usize::from(known.api_key_helper.take().is_some()));
    count("agent", usize::from(known.agent.take().is_some()));
    count("env", std::mem::take(&mut known.env).len());
    count("enabledMcpjsonServers", std::mem::take(&mut known.enabled_mcpjson_servers).len());
    if known.enable_all_project_mcp_servers.take() == Some(true) {
        count("enableAllProjectMcpServers", 1);
    }
    if !hooks {
        count("hooks", std::mem::take(&mut known.hooks).values().flatten().map(|matcher| matcher.hooks.len()).sum());
    }
    (!parts.is_empty()).then(|| format!("{} of {file}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A home folder with a repository and a folder in it.
    fn home_with_repository() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().canonicalize().unwrap();
        let folder = home.join("repo/sub");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir(home.join("repo/.git")).unwrap();
        (temp, home, folder)
    }

    #[test]
    fn a_folder_is_trusted_by_the_user_or_the_host() {
        let (_temp, home, folder) = home_with_repository();
        let check = |options: Options| is_trusted(&options, &folder, Some(&home), &home.join(".claude"));
        assert!(!check(Options::default()));
        assert!(check(Options { trust_folder: true, ..Options::default() }));
        assert!(check(Options { trusted_folders: vec![home.join("repo")], ..Options::default() }));
        assert!(check(Options { trusted_folders: vec![folder.clone()], ..Options::default() }));
        assert!(!check(Options { trusted_folders: vec![home.clone()], ..Options::default() }));
        let sources = |text: &str| Options {
            setting_sources: Some(text.split(',').map(str::to_owned).collect()),
            ..Options::default()
        };
        assert!(check(sources("user,project")) && check(sources("local")));
        assert!(!check(sources("user")) && !check(sources("")));
    }

    #[test]
    fn an_untrusted_project_restricts_and_does_not_allow() {
        let (_temp, home, folder) = home_with_repository();
        fs::create_dir_all(folder.join(".claude")).unwrap();
        let text = r#"{"permissions": {"allow": ["Bash", "Edit"], "deny": ["Read(.env)"], "ask": ["Bash(git push:*)"],
            "defaultMode": "bypassPermissions", "additionalDirectories": ["/"]}, "env": {"BASH_ENV": "x"},
            "enableAllProjectMcpServers": true, "enabledMcpjsonServers": ["a"],
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#;
        fs::write(folder.join(".claude/settings.json"), text).unwrap();
        fs::write(folder.join(".claude/settings.local.json"), r#"{"permissions": {"defaultMode": "plan"}}"#).unwrap();
        let config = home.join(".claude");
        let load = || Settings::load(&config, &folder, &[SettingSource::Project, SettingSource::Local], None).unwrap();
        let mut settings = load();
        let said =
            restrict_untrusted(&mut settings, &Options::default(), &folder, Path::new("/c/.claude.json")).unwrap();
        let left_out = "ignoring 2 permissions.allow entries, 1 permissions.additionalDirectories entry, 1 \
                        permissions.defaultMode entry, 1 env entry, 1 enabledMcpjsonServers entry, 1 \
                        enableAllProjectMcpServers entry, 1 hooks entry of .claude/settings.json: this folder";
        assert!(said.starts_with(left_out) && said.ends_with(" in /c/.claude.json"), "{said}");
        let known = &settings.layers[0].known;
        assert_eq!((known.permissions.deny.len(), known.permissions.ask.len()), (1, 1));
        assert!(known.permissions.allow.is_empty() && known.env.is_empty() && known.hooks.is_empty());
        assert_eq!(settings.layers[1].known.permissions.default_mode.as_deref(), Some("plan"));
        let mut settings = load();
        restrict_untrusted(
            &mut settings,
            &Options { allow_project_hooks: true, ..Options::default() },
            &folder,
            &config,
        );
        assert_eq!(settings.layers[0].known.hooks.len(), 1);
    }
}
