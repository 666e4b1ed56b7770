//! Keeps the permission updates of a host in the settings files they name.

use quipu_message::control::permission::{PermissionRuleValue, PermissionUpdate};
use quipu_message::values::SettingsLocation;
use serde_json::{Map, Value};

use crate::json_file::object_entry;
use crate::permission::Rule;
use crate::session::Session;
use crate::settings::{SettingSource, SettingsFile};

/// Writes an update to its settings file, so that later sessions have it too. Updates for the session
/// alone are not written. If several files have settings for the destination, what an update adds is
/// written to the one with the highest precedence, and what it removes is removed from all.
pub(crate) fn store_update(session: &Session, update: &PermissionUpdate) -> Result<(), String> {
    let Some(source) = destination(update).and_then(setting_source) else { return Ok(()) };
    let mut files = session.settings_folders().files(source);
    let Some(file) = files.pop() else { return Ok(()) };
    edit_permissions(&file, |permissions| remove(permissions, update).and_then(|()| add(permissions, update)))?;
    let others = files.iter().filter(|file| removes(update) && file.path.exists());
    others.into_iter().try_for_each(|file| edit_permissions(file, |permissions| remove(permissions, update)))
}

/// Changes the `permissions` of a settings file; `change` returns `None` if a value has an unexpected type.
fn edit_permissions(
    file: &SettingsFile,
    change: impl FnOnce(&mut Map<String, Value>) -> Option<()>,
) -> Result<(), String> {
    let failed = |reason: &str| format!("cannot store a permission rule in {}: {reason}", file.path.display());
    let mut changed = None;
    file.edit(|settings| changed = object_entry(settings, "permissions").and_then(change))
        .map_err(|error| failed(&error.to_string()))?;
    changed.ok_or_else(|| failed("its permissions are not lists in an object"))
}

fn destination(update: &PermissionUpdate) -> Option<&SettingsLocation> {
    match update {
        PermissionUpdate::AddRules(body) => Some(&body.destination),
        PermissionUpdate::ReplaceRules(body) => Some(&body.destination),
        PermissionUpdate::RemoveRules(body) => Some(&body.destination),
        PermissionUpdate::SetMode(body) => Some(&body.destination),
        PermissionUpdate::AddDirectories(body) => Some(&body.destination),
        PermissionUpdate::RemoveDirectories(body) => Some(&body.destination),
        _ => None,
    }
}

/// The settings file of a destination; `None` for those that are not a file of the user or the project.
fn setting_source(destination: &SettingsLocation) -> Option<SettingSource> {
    let files = [SettingSource::User, SettingSource::Project, SettingSource::Local];
    files.into_iter().find(|source| source.as_str() == destination.as_str())
}

/// Whether an update removes anything.
fn removes(update: &PermissionUpdate) -> bool {
    use PermissionUpdate::{RemoveDirectories, RemoveRules, ReplaceRules};
    matches!(update, RemoveRules(_) | ReplaceRules(_) | RemoveDirectories(_))
}

/// Removes from the `permissions` of a settings file what an update removes or replaces; `None` if a value
/// in it has an unexpected type.
fn remove(permissions: &mut Map<String, Value>, update: &PermissionUpdate) -> Option<()> {
    match update {
        PermissionUpdate::ReplaceRules(body) => {
            list_entry(permissions, body.behavior.as_str())?.retain(|text| is_rule_of(text, &body.rules));
        }
        PermissionUpdate::RemoveRules(body) => {
            list_entry(permissions, body.behavior.as_str())?.retain(|text| !is_rule_of(text, &body.rules));
        }
        PermissionUpdate::RemoveDirectories(body) => {
            let is_removed = |text: &Value| body.directories.iter().any(|folder| text.as_str() == Some(folder));
            list_entry(permissions, FOLDERS)?.retain(|text| !is_removed(text));
        }
        _ => {}
    }
    Some(())
}

/// Adds to the `permissions` of a settings file what an update adds or sets; `None` if a value in it has an
/// unexpected type, or if the type of the update is unknown.
fn add(permissions: &mut Map<String, Value>, update: &PermissionUpdate) -> Option<()> {
    match update {
        PermissionUpdate::AddRules(body) => {
            add_texts(list_entry(permissions, body.behavior.as_str())?, rule_texts(&body.rules));
        }
        PermissionUpdate::ReplaceRules(body) => {
            let list = list_entry(permissions, body.behavior.as_str())?;
            list.clear();
            add_texts(list, rule_texts(&body.rules));
        }
        PermissionUpdate::SetMode(body) => {
            drop(permissions.insert("defaultMode".to_owned(), body.mode.as_str().into()))
        }
        PermissionUpdate::AddDirectories(body) => {
            add_texts(list_entry(permissions, FOLDERS)?, body.directories.clone())
        }
        PermissionUpdate::RemoveRules(_) | PermissionUpdate::RemoveDirectories(_) => {}
        _ => return None,
    }
    Some(())
}

/// The setting for folders besides the working directory.
const FOLDERS: &str = "additionalDirectories";

/// Whether a text of a settings file is one of the rules.
fn is_rule_of(text: &Value, rules: &[PermissionRuleValue]) -> bool {
    let rule = text.as_str().and_then(Rule::parse);
    rule.is_some_and(|rule| rules.iter().any(|other| Rule::from(other) == rule))
}

fn rule_texts(rules: &[PermissionRuleValue]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

fn list_entry<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Vec<Value>> {
    map.entry(key).or_insert_with(|| Value::Array(Vec::new())).as_array_mut()
}

/// Adds the texts that are not in the list yet.
fn add_texts(list: &mut Vec<Value>, texts: Vec<String>) {
    for text in texts {
        if !list.iter().any(|known| known.as_str() == Some(&text)) {
            list.push(text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn updates_change_the_lists_of_a_settings_file() {
        let mut permissions = json!({"allow": ["Read"], "deny": ["WebFetch"], "ask": 1});
        let mut change = |update: Value| {
            let update: PermissionUpdate = serde_json::from_str(&update.to_string()).unwrap();
            let lists = permissions.as_object_mut().unwrap();
            let is_changed = remove(lists, &update).and_then(|()| add(lists, &update)).is_some();
            (is_changed, permissions.clone())
        };
        let rules = |kind: &str, behavior: &str, content: &str| {
            let rule = json!({"toolName": "Bash", "ruleContent": content});
            json!({"type": kind, "behavior": behavior, "destination": "localSettings", "rules": [rule]})
        };
        change(rules("addRules", "allow", "ls"));
        let (_, now) = change(rules("addRules", "allow", "ls"));
        assert_eq!(now["allow"], json!(["Read", "Bash(ls)"]));
        let (_, now) = change(rules("removeRules", "allow", "ls"));
        assert_eq!(now["allow"], json!(["Read"]));
        let (_, now) = change(rules("replaceRules", "deny", "rm:*"));
        assert_eq!(now["deny"], json!(["Bash(rm:*)"]));
        assert!(!change(rules("addRules", "ask", "ls")).0);
        let folders = |kind: &str| json!({"type": kind, "directories": ["/a"], "destination": "localSettings"});
        assert_eq!(change(folders("addDirectories")).1["additionalDirectories"], json!(["/a"]));
        assert_eq!(change(folders("removeDirectories")).1["additionalDirectories"], json!([]));
        let (_, now) = change(json!({"type": "setMode", "mode": "plan", "destination": "localSettings"}));
        assert_eq!(now["defaultMode"], "plan");
        assert!(!change(json!({"type": "unheardOf"})).0);
    }
}
