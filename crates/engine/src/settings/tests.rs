use super::*;

/// Loads the settings of a project whose folder is in no repository.
fn load(
    config: &Path,
    project: &Path,
    sources: &[SettingSource],
    flag: Option<&str>,
) -> Result<Settings, SettingsError> {
    let local = [ProjectFolder { path: project.to_owned(), is_trusted: true }];
    Settings::load(SettingsFolders { config, project, local: &local }, sources, flag)
}

#[test]
fn later_files_take_precedence_and_a_broken_one_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    fs::create_dir_all(project.join(".claude")).unwrap();
    fs::write(home.path().join("settings.json"), r#"{"model":"a","env":{"X":"1"},"new":7}"#).unwrap();
    fs::write(project.join(".claude/settings.json"), "{broken").unwrap();
    fs::write(project.join(".claude/settings.local.json"), r#"{"permissions":{"allow":["Read"]}}"#).unwrap();
    let all = parse_sources(None).unwrap();
    let settings = load(home.path(), &project, &all, Some(r#"{"model":"b"}"#)).unwrap();
    assert_eq!(settings.strongest_value(|known| known.model.clone()).as_deref(), Some("b"));
    assert_eq!(settings.merged_json()["new"], 7);
    assert_eq!(settings.problems.len(), 1);
    let places: Vec<SettingSource> = settings.layers.iter().map(|layer| layer.source).collect();
    assert_eq!(places, [SettingSource::User, SettingSource::Local, SettingSource::Flag]);
}

#[test]
fn only_known_sources_are_read_and_none_may_be() {
    assert_eq!(parse_sources(Some(&["".to_owned()])).unwrap(), []);
    assert_eq!(
        parse_sources(Some(&["local".to_owned(), "user".to_owned()])).unwrap(),
        [SettingSource::User, SettingSource::Local]
    );
    assert_eq!(parse_sources(Some(&["home".to_owned()])).unwrap_err().code(), "settings.no_source");
}

#[test]
fn a_flag_that_is_no_settings_is_an_error() {
    let nowhere = Path::new("/nonexistent");
    let code = |flag| load(nowhere, nowhere, &[], Some(flag)).unwrap_err().code();
    assert_eq!(code("{broken"), "settings.invalid");
    assert_eq!(code("/nonexistent/settings.json"), "settings.unreadable");
}

#[test]
fn an_error_is_reported_with_its_position() {
    let project = tempfile::tempdir().unwrap();
    let path = project.path().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let check = |text: &str, expect: &[&str]| {
        fs::write(&path, text).unwrap();
        let settings = load(Path::new("/nonexistent"), project.path(), &[SettingSource::Project], None).unwrap();
        let place = format!("{}: ", path.display());
        let problems: Vec<&str> =
            settings.problems.iter().map(|problems| problems.strip_prefix(&place).unwrap()).collect();
        assert_eq!(problems, expect);
        settings
    };
    check(
        "{\"permissions\": {\n  \"allow\": \"Bash\"}}",
        &["invalid type: string \"Bash\", expected a sequence at line 2 column 17"],
    );
    check("{\"env\": {\"A\": []}}", &["the variable A must be a string at line 1 column 18"]);
    let settings = check(
        r#"{"permissions": {"allow": ["Bash(rm", "Read(.env)"]}, "env": {"A": 1}}"#,
        &["permissions.allow: 'Bash(rm' is not a rule; write Tool or Tool(pattern)"],
    );
    assert_eq!(settings.layers[0].known.env["A"], "1");
    assert_eq!(settings.layers[0].known.permissions.allow.len(), 2);
}

#[test]
fn refusals_that_cannot_be_read_are_an_error() {
    let home = tempfile::tempdir().unwrap();
    let check = |text: &str, code: &str| {
        fs::write(home.path().join("settings.json"), text).unwrap();
        let error = load(home.path(), Path::new("/nonexistent"), &[SettingSource::User], None).unwrap_err();
        assert_eq!(error.code(), code, "{text}");
    };
    check(r#"{"permissions": {"deny": ["Bash(rm", "Read(.env)"]}}"#, "settings.bad_rule");
    check(r#"{"permissions": {"ask": ["(x)"]}}"#, "settings.bad_rule");
    check(r#"{"permissions": {"deny": ["Bash(rm:*)"]"#, "settings.invalid");
    check(r#"{"permissions": {"deny": "Bash(rm:*)"}}"#, "settings.invalid");
    check(r#"{"permissions": {"ask": "Bash(rm:*)"}}"#, "settings.invalid");
    check(r#"{"deniedMcpServers": "all"}"#, "settings.invalid");
    // Of a file of the user nothing may get lost.
    check("{broken", "settings.invalid");
    check(r#"{"permissions": {"defaultMode": "plan"}, "env": {"A": []}}"#, "settings.invalid");
    check(r#"{"hooks": {"PreToolUse": {}}}"#, "settings.invalid");
    check("[]", "settings.invalid");
    // One text is one rule.
    check(r#"{"permissions": {"deny": ["Read(.env),Read(key)"]}}"#, "settings.bad_rule");
    check(r#"{"permissions": {"ask": ["Read(.env) Read(key)"]}}"#, "settings.bad_rule");
    check(r#"{"permissions": {"deny": ["Read((key)"]}}"#, "settings.bad_rule");
}

#[test]
fn restrictions_of_a_project_that_cannot_be_read_are_an_error() {
    let project = tempfile::tempdir().unwrap();
    let path = project.path().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let code = |text: &str| {
        fs::write(&path, text).unwrap();
        let loaded = load(Path::new("/nonexistent"), project.path(), &[SettingSource::Project], None);
        loaded.err().map(|error| error.code())
    };
    for mode in ["plan", "dontAsk", "default"] {
        let text = format!(r#"{{"permissions": {{"defaultMode": "{mode}"}}, "env": 5}}"#);
        assert_eq!(code(&text), Some("settings.invalid"), "{mode}");
    }
    assert_eq!(code(r#"{"permissions": {"defaultMode" : "plan""#), Some("settings.invalid"));
    assert_eq!(code(r#"{"permissions": {"deny": ["Bash"]}, "env": 5}"#), Some("settings.invalid"));
    assert_eq!(code(r#"{"permissions": {"allow": ["Bash"]}, "env": 5}"#), None);
    let rules = |count: usize| {
        let rules: Vec<String> = (0..count).map(|number| format!("Read(f{number})")).collect();
        serde_json::json!({"permissions": {"deny": rules}}).to_string()
    };
    assert_eq!(code(&rules(2000)), None);
    assert_eq!(code(&rules(2001)), Some("settings.too_many_rules"));
    let braces = |count: usize| {
        let rules = vec![format!("Read({})", "{a,b}".repeat(10)); count];
        serde_json::json!({"permissions": {"deny": rules}, "sandbox": {"filesystem": {"denyRead": ["x"]}}}).to_string()
    };
    assert_eq!(code(&braces(1)), None);
    assert_eq!(code(&braces(2)), Some("settings.too_many_rules"));
}

#[test]
fn a_restriction_of_an_unknown_tool_is_reported() {
    let check = |rule: &str, expected: usize| {
        let flag = serde_json::json!({"permissions": {"deny": [rule], "ask": [rule], "allow": [rule]}}).to_string();
        let nowhere = Path::new("/nonexistent");
        let settings = load(nowhere, nowhere, &[], Some(&flag)).unwrap();
        assert_eq!(settings.problems.len(), expected, "{:?}", settings.problems);
    };
    for rule in ["read(.env)", "Reed(.env)", "*", "Read*", "mcp_server"] {
        check(rule, 2);
    }
    for rule in ["Read(.env)", "Task", "Agent(x)", "MultiEdit(x)", "WebSearch", "mcp__server", "mcp__*"] {
        check(rule, 0);
    }
}

#[test]
fn a_file_of_both_user_and_project_counts_once() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join(".claude");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("settings.json"), "{}").unwrap();
    let settings = load(&config, home.path(), &parse_sources(None).unwrap(), None).unwrap();
    let places: Vec<SettingSource> = settings.layers.iter().map(|layer| layer.source).collect();
    assert_eq!(places, [SettingSource::User]);
}

#[test]
fn local_settings_of_several_folders_count_and_the_last_takes_precedence() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().canonicalize().unwrap();
    let folder = root.join("sub");
    for (folder, name) in [(&root, "root"), (&folder, "folder")] {
        fs::create_dir_all(folder.join(".claude")).unwrap();
        let text = format!(r#"{{"model": "{name}", "permissions": {{"deny": ["Bash({name})"]}}}}"#);
        fs::write(folder.join(".claude/settings.local.json"), text).unwrap();
        // Of the repository's root only local settings are read.
        fs::write(folder.join(".claude/settings.json"), format!(r#"{{"outputStyle": "{name}"}}"#)).unwrap();
    }
    let local = [&folder, &root].map(|path| ProjectFolder { path: path.clone(), is_trusted: true });
    let config = temp.path().join("config");
    let folders = SettingsFolders { config: &config, project: &folder, local: &local };
    let settings = Settings::load(folders, &parse_sources(None).unwrap(), None).unwrap();
    let layers: Vec<_> = settings.layers.iter().map(|layer| (layer.source, layer.folder.as_ref())).collect();
    let expected = [
        (SettingSource::Project, Some(&folder)),
        (SettingSource::Local, Some(&folder)),
        (SettingSource::Local, Some(&root)),
    ];
    assert_eq!(layers, expected);
    assert_eq!(settings.strongest_value(|known| known.model.clone()).as_deref(), Some("root"));
    assert_eq!(settings.output_style(), "folder");
    // A link out of the folder is not followed, and does not keep the root from its own file.
    fs::remove_dir_all(folder.join(".claude")).unwrap();
    std::os::unix::fs::symlink("../.claude", folder.join(".claude")).unwrap();
    let settings = Settings::load(folders, &[SettingSource::Local], None).unwrap();
    let layers: Vec<_> = settings.layers.iter().map(|layer| layer.folder.as_ref()).collect();
    assert_eq!((layers, settings.problems.len()), (vec![Some(&root)], 1));
}

#[test]
fn settings_of_the_user_that_cannot_be_read_are_an_error() {
    let home = tempfile::tempdir().unwrap();
    let user = |bytes: &[u8]| {
        fs::write(home.path().join("settings.json"), bytes).unwrap();
        load(home.path(), Path::new("/nonexistent"), &[SettingSource::User], None)
    };
    let latin1 = b"{\"permissions\": {\"deny\": [\"Read(caf\xe9/**)\"]}}";
    assert_eq!(user(latin1).unwrap_err().code(), "settings.unreadable");
    assert_eq!(user(&vec![b' '; 2 << 20]).unwrap_err().code(), "settings.unreadable");
    // The restrictions of a project are its own, and it must not keep the agent from starting.
    let project = home.path().join("project");
    fs::create_dir_all(project.join(".claude")).unwrap();
    fs::write(project.join(".claude/settings.json"), latin1).unwrap();
    let settings = load(Path::new("/nonexistent"), &project, &[SettingSource::Project], None).unwrap();
    assert_eq!((settings.layers.len(), settings.problems.len()), (0, 1));
}

#[test]
fn a_project_does_not_move_the_folders_of_the_user() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    fs::create_dir_all(project.join(".claude")).unwrap();
    let text = r#"{"env": {"HOME": "/a", "CLAUDE_CONFIG_DIR": "/b", "XDG_CONFIG_HOME": "/c", "X": "1"}}"#;
    for path in [home.path().join("settings.json"), project.join(".claude/settings.json")] {
        fs::write(path, text).unwrap();
    }
    let mut settings = load(home.path(), &project, &parse_sources(None).unwrap(), None).unwrap();
    settings.remove_project_folders();
    let names: Vec<usize> = settings.layers.iter().map(|layer| layer.known.env.len()).collect();
    assert_eq!((names, settings.problems.len()), (vec![4, 1], 3));
}
