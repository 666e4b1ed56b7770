//! Control requests that change settings or folders.

use std::path::PathBuf;
use std::sync::Arc;

use quipu_message::control::request;
use quipu_message::hook::{DirectoryAdded, DirectorySource};
use quipu_message::{Json, Maybe};
use tokio_util::sync::CancellationToken;

use crate::json_file::object_entry;
use crate::model::EFFORT_LEVELS;
use crate::output_style;
use crate::path::resolve;
use crate::permission::{Behavior, apply_rules};
use crate::session::Session;
use crate::settings::SettingSource;

/// Adds settings above all but managed ones, for this session.
pub(super) fn apply_flag_settings(session: &Session, given: Option<&Json>) -> Result<(), String> {
    let all = given.map(Json::to_value).unwrap_or_default();
    let (known, has_managed_model, managed_only) = {
        let mut settings = session.settings();
        let known = settings.add_flag_layer(all).map_err(|error| error.to_string())?.clone();
        let has_managed_model = settings.managed_value(|known| known.model.clone()).is_some();
        (known, has_managed_model, settings.has_only_managed_rules())
    };
    if let Some(effort) = known.effort_level {
        session.model_choice.change(|choice| choice.effort = Some(effort));
    }
    if let Some(model) = known.model.filter(|_| !has_managed_model) {
        session.set_model(&model);
    }
    session.permissions.change_rules(|rules| {
        known.permissions.for_each_rule(|behavior, rule| {
            if !managed_only || behavior != Behavior::Allow {
                rules.add(behavior, crate::permission::RuleSource::FlagSettings, rule);
            }
        });
        apply_rules(rules, &session.workspace);
    });
    session.memory.clear_path_rules();
    Ok(())
}

/// Changes a settings file: the output style in the project's local one, or the effort of the current
/// model in the user's.
pub(super) fn update_settings(session: &Session, body: &request::UpdateSettings) -> Result<(), String> {
    let source = match body.source.text() {
        Some("localSettings") => SettingSource::Local,
        Some("userSettings") => SettingSource::User,
        other => return Err(format!("update_settings source not allowed: {}", other.unwrap_or("none"))),
    };
    let given = body.settings.get().map(Json::to_value).unwrap_or_default();
    let given = given.as_object().cloned().unwrap_or_default();
    let allowed = if source == SettingSource::Local { "outputStyle" } else { "effortLevel" };
    let refused: Vec<&str> = given.keys().map(String::as_str).filter(|key| *key != allowed).collect();
    if !refused.is_empty() {
        return Err(format!("update_settings keys not allowed: {}", refused.join(", ")));
    }
    if !session.setting_sources.contains(&source) {
        return Err(format!("update_settings: this session does not read {}", source.as_str()));
    }
    let Some(value) = given.get(allowed) else { return Ok(()) };
    let known: Vec<String> = match source {
        SettingSource::Local => output_style::style_names(&session.definitions().output_styles),
        // `max` can be chosen for a single session only.
        _ => EFFORT_LEVELS.map(str::to_owned).into_iter().filter(|level| level != "max").collect(),
    };
    if !value.as_str().is_some_and(|word| known.iter().any(|known| known == word)) {
        return Err(format!("update_settings: {allowed} must be one of {}", known.join(", ")));
    }
    let model = session.model_choice.model();
    let Some(file) = session.settings_folders().files(source).pop() else { return Ok(()) };
    file.edit(|settings| match source {
        SettingSource::Local => {
            settings.insert(allowed.to_owned(), value.clone());
        }
        _ => {
            if let Some(own) = object_entry(settings, "modelSettings").and_then(|all| object_entry(all, &model)) {
                own.insert(allowed.to_owned(), value.clone());
            }
        }
    })
    .map_err(|error| format!("cannot write {}: {error}", file.path.display()))?;
    if source == SettingSource::Local {
        let chosen = serde_json::Value::Object([(allowed.to_owned(), value.clone())].into_iter().collect());
        session.settings().add_flag_layer(chosen).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Adds a folder below those that the session was started with, with its own instructions, commands,
/// skills and subagents.
pub(super) async fn register_root(session: &Arc<Session>, body: &request::RegisterRepoRoot) -> Result<(), String> {
    let given = body.directory.text().unwrap_or_default();
    let folder = resolve(&session.workspace.absolute(given)).filter(|folder| folder.is_dir());
    let Some(folder) = folder else { return Err(format!("register_repo_root: no folder {given}")) };
    if session.workspace.folders().contains(&folder) {
        return Err(format!("register_repo_root: {given} is a working directory already"));
    }
    let mut launched: Vec<PathBuf> = vec![session.workspace.root().to_owned()];
    launched.extend(session.options.add_dirs.iter().filter_map(|dir| resolve(&session.workspace.root().join(dir))));
    if !launched.iter().any(|open| folder.starts_with(open)) {
        return Err(format!("register_repo_root: {given} is not below a folder this session was started with"));
    }
    session.workspace.add_folder(&folder);
    session.permissions.read(|_, rules| apply_rules(rules, &session.workspace));
    session.memory.add_root(folder.clone());
    if body.reload_claude_md.is_true() {
        session.memory.clear_instructions_sent();
    }
    if body.reload_skills.is_true() || body.reload_plugins.is_true() {
        session.reload_definitions();
    }
    let input = DirectoryAdded {
        directory: folder.display().to_string(),
        source: Maybe::Value(DirectorySource::RegisterRepoRoot),
        base: session.hook_base(),
        ..DirectoryAdded::default()
    };
    session.run_hooks(input, None, None, &CancellationToken::new()).await;
    Ok(())
}
