//! Whether the user trusts a folder. Settings of an untrusted folder can restrict the agent, and never
//! allow it anything.

use std::path::Path;

use quipu_transcript::trust::{TrustSources, is_trusted_folder};

use crate::git;
use crate::options::Options;
use crate::permission::EffectiveMode;
use crate::settings::{ProjectFolder, SettingSource, Settings, SettingsLayer};

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

/// Returns the folders whose local settings a session in `project` reads: that folder, and the root of its
/// repository, which takes precedence and gets new settings. Only if the folder is trusted and the root is
/// not, the folder does, because a rule that the user allows would have no effect in the root.
pub(crate) fn local_folders(
    options: &Options,
    project: &Path,
    home: Option<&Path>,
    config: &Path,
) -> Vec<ProjectFolder> {
    let is_trusted = |folder: &Path| is_trusted(options, folder, home, config);
    let project = ProjectFolder { path: project.to_owned(), is_trusted: is_trusted(project) };
    let user = rustix::process::geteuid().as_raw();
    let Some(root) = git::settings_root(&project.path, home, user) else { return vec![project] };
    // Rules of the root allow commands that run what is in the folder, such as another branch.
    let root = ProjectFolder { is_trusted: project.is_trusted && is_trusted(&root), path: root };
    if project.is_trusted && !root.is_trusted { vec![root, project] } else { vec![project, root] }
}

/// Removes the settings that only a trusted folder may have from the layers of the folders that are not
/// trusted. Returns a sentence that names them for each folder that had any. `state` is the path of the
/// user's `.claude.json`.
pub(crate) fn restrict_untrusted(
    settings: &mut Settings,
    options: &Options,
    folders: &[ProjectFolder],
    state: &Path,
) -> Vec<String> {
    let is_untrusted = |layer: &SettingsLayer| {
        folders.iter().any(|folder| !folder.is_trusted && layer.folder.as_ref() == Some(&folder.path))
    };
    let trusted = settings.layers.iter().rev().filter(|layer| !is_untrusted(layer));
    let mode = trusted.filter_map(|layer| layer.known.permissions.default_mode.as_deref()).next();
    let mode = mode.and_then(EffectiveMode::parse).unwrap_or_default();
    let untrusted = folders.iter().filter(|folder| !folder.is_trusted).map(|folder| folder.path.as_path());
    let restrict = |folder: &Path| {
        let layers = settings.layers.iter_mut().filter(|layer| layer.folder.as_deref() == Some(folder));
        let left_out: Vec<String> =
            layers.filter_map(|layer| strip_untrusted(layer, mode, options.allow_project_hooks)).collect();
        (!left_out.is_empty()).then(|| {
            format!(
                "ignoring {}: {} is not trusted; start with --trust-folder, or set \
                 projects[\"{}\"].hasTrustDialogAccepted to true in {}",
                left_out.join(" and "),
                folder.display(),
                folder.display(),
                state.display()
            )
        })
    };
    untrusted.filter_map(restrict).collect()
}

/// Removes them from one layer. `trusted_mode` is the permission mode of the other layers. Returns their names
/// and numbers; `None` if there were none.
fn strip_untrusted(layer: &mut SettingsLayer, trusted_mode: EffectiveMode, hooks: bool) -> Option<String> {
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
    // An unknown mode counts as `default`.
    let raises = |word: &String| !EffectiveMode::parse(word).unwrap_or_default().is_at_most(trusted_mode);
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
    use crate::settings::SettingsFolders;

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
        let local = [ProjectFolder { path: folder.clone(), is_trusted: false }];
        let folders = SettingsFolders { config: &config, project: &folder, local: &local };
        let load = || Settings::load(folders, &[SettingSource::Project, SettingSource::Local], None).unwrap();
        let mut settings = load();
        let state = Path::new("/c/.claude.json");
        let warnings = restrict_untrusted(&mut settings, &Options::default(), &local, state);
        let left_out = format!(
            "ignoring 2 permissions.allow entries, 1 permissions.additionalDirectories entry, 1 \
             permissions.defaultMode entry, 1 env entry, 1 enabledMcpjsonServers entry, 1 \
             enableAllProjectMcpServers entry, 1 hooks entry of .claude/settings.json: {} is not trusted;",
            folder.display()
        );
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with(&left_out) && warnings[0].ends_with(" in /c/.claude.json"), "{warnings:?}");
        let known = &settings.layers[0].known;
        assert_eq!((known.permissions.deny.len(), known.permissions.ask.len()), (1, 1));
        assert!(known.permissions.allow.is_empty() && known.env.is_empty() && known.hooks.is_empty());
        assert_eq!(settings.layers[1].known.permissions.default_mode.as_deref(), Some("plan"));
        let mut settings = load();
        let options = Options { allow_project_hooks: true, ..Options::default() };
        restrict_untrusted(&mut settings, &options, &local, state);
        assert_eq!(settings.layers[0].known.hooks.len(), 1);
    }

    #[test]
    fn an_untrusted_project_does_not_replace_the_mode_by_one_that_allows_more() {
        let check = |of_user: Option<&str>, of_project: &str, expected: Option<&str>| {
            let (_temp, home, folder) = home_with_repository();
            let config = home.join(".claude");
            for (folder, word) in [(&home, of_user), (&folder, Some(of_project))] {
                let Some(word) = word else { continue };
                fs::create_dir_all(folder.join(".claude")).unwrap();
                let text = format!(r#"{{"permissions": {{"defaultMode": "{word}"}}}}"#);
                fs::write(folder.join(".claude/settings.json"), text).unwrap();
            }
            let local = [ProjectFolder { path: folder.clone(), is_trusted: false }];
            let folders = SettingsFolders { config: &config, project: &folder, local: &local };
            let sources = [SettingSource::User, SettingSource::Project];
            let mut settings = Settings::load(folders, &sources, None).unwrap();
            restrict_untrusted(&mut settings, &Options::default(), &local, &config);
            let mode = settings.strongest_value(|known| known.permissions.default_mode.clone());
            assert_eq!(mode.as_deref(), expected, "{of_user:?} {of_project}");
        };
        for word in ["default", "manual", "dontAsk", "acceptEdits", "auto", "bypassPermissions", "unknown"] {
            check(Some("plan"), word, Some("plan"));
        }
        check(Some("dontAsk"), "default", Some("dontAsk"));
        check(Some("acceptEdits"), "default", Some("default"));
        check(None, "auto", None);
        check(None, "dontAsk", Some("dontAsk"));
    }

    #[test]
    fn the_root_of_the_repository_grants_only_if_it_is_trusted_too() {
        let (_temp, home, folder) = home_with_repository();
        let root = home.join("repo");
        let config = home.join(".claude");
        let name = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
        for folder in [&folder, &root] {
            let name = name(folder);
            let text = format!(
                r#"{{"model": "{name}", "permissions": {{"allow": ["Bash({name})"], "deny": ["Read({name})"]}}}}"#
            );
            fs::create_dir_all(folder.join(".claude")).unwrap();
            fs::write(folder.join(".claude/settings.local.json"), text).unwrap();
        }
        let check = |trusted: &[&PathBuf], flag: bool, allowed: &[&str], order: [&PathBuf; 2], warnings: usize| {
            let trusted_folders = trusted.iter().map(|folder| (*folder).clone()).collect();
            let options = Options { trusted_folders, trust_folder: flag, ..Options::default() };
            let local = local_folders(&options, &folder, Some(&home), &config);
            let paths: Vec<&PathBuf> = local.iter().map(|folder| &folder.path).collect();
            assert_eq!(paths, order, "{trusted:?}");
            let folders = SettingsFolders { config: &config, project: &folder, local: &local };
            let mut settings = Settings::load(folders, &[SettingSource::Local], None).unwrap();
            assert_eq!(restrict_untrusted(&mut settings, &options, &local, &config).len(), warnings, "{trusted:?}");
            let permissions = || settings.layers.iter().map(|layer| &layer.known.permissions);
            assert_eq!(permissions().flat_map(|rules| &rules.allow).collect::<Vec<_>>(), allowed, "{trusted:?}");
            assert_eq!(permissions().flat_map(|rules| &rules.deny).count(), 2, "{trusted:?}");
            assert_eq!(settings.strongest_value(|known| known.model.clone()), Some(name(order[1])));
        };
        check(&[], false, &[], [&folder, &root], 2);
        check(&[&root], false, &["Bash(sub)", "Bash(repo)"], [&folder, &root], 0);
        check(&[&folder], false, &["Bash(sub)"], [&root, &folder], 1);
        check(&[], true, &["Bash(sub)", "Bash(repo)"], [&folder, &root], 0);
    }

    #[test]
    fn a_worktree_that_is_not_trusted_has_no_grants_of_its_repository() {
        let (_temp, home, folder) = home_with_repository();
        let root = home.join("repo");
        let (work, of_work) = (home.join("work"), root.join(".git/worktrees/w"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&of_work).unwrap();
        fs::write(work.join(".git"), format!("gitdir: {}", of_work.display())).unwrap();
        fs::write(of_work.join("gitdir"), work.join(".git").to_str().unwrap()).unwrap();
        fs::write(of_work.join("commondir"), "../..").unwrap();
        let trusted = |trusted_folders: &[&PathBuf], folder: &Path| -> Vec<bool> {
            let trusted_folders = trusted_folders.iter().map(|folder| (*folder).clone()).collect();
            let options = Options { trusted_folders, ..Options::default() };
            let local = local_folders(&options, folder, Some(&home), &home);
            local.iter().map(|folder| folder.is_trusted).collect()
        };
        assert_eq!(trusted(&[&root], &work), [false, false]);
        assert_eq!(trusted(&[&root, &work], &work), [true, true]);
        assert_eq!(trusted(&[&root], &folder), [true, true]);
    }
}
