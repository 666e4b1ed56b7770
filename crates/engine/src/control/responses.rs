//! The responses to control requests that read state.

use std::sync::Arc;

use quipu_files::walk_unignored;
use quipu_message::bookkeeping::AiTitle;
use quipu_message::control::response::{
    AccountInfo, AgentInfo, AppliedSettings, FileSuggestion, FileSuggestionsResponse, GetHooksListingResponse,
    GetSettingsResponse, GetTaskOutputResponse, GetUsageResponse, HookEventInfo, InitializeResponse,
    ListPermissionRulesResponse, PermissionRule, PermissionState, ReadFileResponse, ReloadPluginsResponse,
    ReloadSkillsResponse,
};
use quipu_message::values::{Effort, RuleBehavior};
use quipu_message::{Entry, Json, Maybe};
use quipu_transcript::AppendError;

use crate::command_list::list_commands;
use crate::definitions;
use crate::output_style;
use crate::path::TargetPath;
use crate::permission::Behavior;
use crate::session::Session;
use crate::text_file;
use crate::tool::TaskKind;
use crate::tools::read::MAX_FILE_BYTES;

/// The most files that are suggested.
const MAX_SUGGESTED_FILES: usize = 20;

/// The most bytes of a task's output that are returned, from its end.
const MAX_TASK_OUTPUT_BYTES: usize = 8 << 10;

/// Hook events: name, description, whether matchers apply.
const HOOK_EVENTS: [(&str, &str, bool); 14] = [
    ("PreToolUse", "Before a tool runs", true),
    ("PostToolUse", "After a tool ran", true),
    ("PostToolUseFailure", "After a tool failed", true),
    ("PostToolBatch", "After the tools of one answer", false),
    ("PermissionRequest", "Before permission is requested", true),
    ("UserPromptSubmit", "When a prompt comes", false),
    ("SessionStart", "When a session begins", true),
    ("SessionEnd", "When a session ends", true),
    ("Stop", "When a turn is about to end", false),
    ("SubagentStart", "When a subagent begins", true),
    ("SubagentStop", "When a subagent is about to end", true),
    ("PreCompact", "Before a compaction", true),
    ("PostCompact", "After a compaction", true),
    ("InstructionsLoaded", "When an instruction file was read", false),
];

/// The response to `initialize`.
pub(super) fn initialize_response(session: &Session, hooks: bool) -> InitializeResponse {
    let definitions = session.definitions().clone();
    InitializeResponse {
        commands: list_commands(&definitions),
        agents: list_agents(&definitions).into(),
        output_style: session.settings().output_style().into(),
        available_output_styles: output_style::style_names(&definitions.output_styles).into(),
        models: session.models.list_models().into(),
        account: Maybe::Value(AccountInfo {
            token_source: Maybe::Value("none".to_owned()),
            api_key_source: Maybe::Value(session.api_key_source().to_owned()),
            api_provider: Maybe::Value("firstParty".to_owned()),
            ..AccountInfo::default()
        }),
        pid: std::process::id().into(),
        claude_code_version: crate::VERSION.to_owned().into(),
        current_permission_mode: Maybe::Value(session.permissions.mode().into()),
        hooks_applied: hooks.then_some(true).into(),
        hook_on_failure_supported: hooks.then_some(true).into(),
        session_state: session.activity.status().into(),
        capabilities: Maybe::Value(crate::CAPABILITIES.iter().map(|word| (*word).to_owned()).collect()),
        ..InitializeResponse::default()
    }
}

fn list_agents(definitions: &definitions::Definitions) -> Vec<AgentInfo> {
    let row = |agent: &definitions::AgentDefinition| AgentInfo {
        name: agent.name.clone(),
        description: agent.description.clone(),
        model: agent.model.clone().into(),
        ..AgentInfo::default()
    };
    definitions.agents.values().map(row).collect()
}

/// The response to `get_usage`.
pub(super) fn usage_response(session: &Session) -> GetUsageResponse {
    GetUsageResponse {
        session: session.usage().to_session_usage(),
        subscription_type: Maybe::Null,
        rate_limits: Maybe::Null,
        behaviors: Maybe::Null,
        ..GetUsageResponse::default()
    }
}

/// The response to `get_settings`.
pub(super) fn settings_response(session: &Session) -> GetSettingsResponse {
    let model = session.model_choice.model();
    let effort = session.effort_for(&model);
    let settings = session.settings();
    GetSettingsResponse {
        effective: Json::from(settings.merged_json()),
        sources: settings.layers.iter().map(|layer| Json::from_serialize(layer.source.as_str())).collect(),
        applied: AppliedSettings {
            model,
            effort: effort.as_deref().map(Effort::from).into(),
            ..AppliedSettings::default()
        },
        ..GetSettingsResponse::default()
    }
}

/// The response to `get_hooks_listing`.
pub(super) fn hooks_response(session: &Session) -> GetHooksListingResponse {
    let hooks = session.hooks.list();
    let mut events: Vec<String> = hooks.iter().map(|hook| hook.event.clone()).collect();
    events.sort();
    events.dedup();
    let row = |(name, summary, matcher): &(&str, &str, bool)| HookEventInfo {
        name: (*name).to_owned(),
        summary: (*summary).to_owned(),
        supports_matcher: *matcher,
        ..HookEventInfo::default()
    };
    GetHooksListingResponse {
        events,
        hooks,
        event_catalog: HOOK_EVENTS.iter().map(row).collect(),
        ..GetHooksListingResponse::default()
    }
}

/// The response to `list_permission_rules`.
pub(super) fn permission_rules_response(session: &Session) -> ListPermissionRulesResponse {
    let root = session.workspace.root();
    let folders = session.workspace.folders();
    let more = folders.iter().filter(|folder| *folder != root).map(|folder| folder.display().to_string());
    let row = |rule: &crate::permission::SourcedRule| PermissionRule {
        behavior: match rule.behavior {
            Behavior::Allow => RuleBehavior::Allow,
            Behavior::Deny => RuleBehavior::Deny,
            Behavior::Ask => RuleBehavior::Ask,
        },
        rule: rule.rule.to_string(),
        source: rule.source.into(),
        ..PermissionRule::default()
    };
    let state = PermissionState {
        rules: session.permissions.read(|_, rules| rules.iter().map(row).collect()),
        workspace_directories: more.collect(),
        original_cwd: root.display().to_string(),
        managed_only: session.settings().has_only_managed_rules(),
        ..PermissionState::default()
    };
    ListPermissionRulesResponse { state, ..ListPermissionRulesResponse::default() }
}

/// The response to `read_file`; `None` if the file is outside the session's folders, missing, too large or not
/// a regular file, or if a deny or ask rule names it.
pub(super) fn read_file(session: &Session, name: &str) -> Option<ReadFileResponse> {
    let path = session.workspace.absolute(name);
    let target = TargetPath::new(&path);
    let real = target.real.clone().filter(|real| session.workspace.contains(real))?;
    if session.workspace.hidden_files()(&target) {
        return None;
    }
    let bytes = text_file::read_resolved(&real, MAX_FILE_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(ReadFileResponse {
        lossy: matches!(text, std::borrow::Cow::Owned(_)),
        contents: text.into_owned(),
        abs_path: path.display().to_string(),
        requested_path: name.to_owned(),
        ..ReadFileResponse::default()
    })
}

/// The response to `file_suggestions`: files that git does not ignore and whose path contains the
/// query, in any case.
pub(super) fn suggest_files(session: &Session, query: &str) -> FileSuggestionsResponse {
    let root = session.workspace.root();
    let query = query.to_lowercase();
    let files =
        walk_unignored(root, |_| true).build().flatten().filter(|entry| entry.file_type().is_some_and(|t| t.is_file()));
    let paths = files.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.display().to_string()));
    let fitting = paths.filter(|path| path.to_lowercase().contains(&query)).take(MAX_SUGGESTED_FILES);
    FileSuggestionsResponse {
        suggestions: fitting.map(|path| FileSuggestion { path, ..FileSuggestion::default() }).collect(),
        cwd: root.display().to_string(),
        ..FileSuggestionsResponse::default()
    }
}

/// Marks a file as read in its current state, if it is inside the session's folders.
pub(super) fn mark_file_seen(session: &Session, name: &str) {
    let path = session.workspace.absolute(name);
    if session.workspace.contains(&path)
        && let Ok(bytes) = text_file::read_bytes(&path, None, MAX_FILE_BYTES)
    {
        session.workspace.mark_seen(&path, &bytes);
    }
}

/// The response to `reload_plugins`, which reads commands and subagents again.
pub(super) fn reload_plugins(session: &Arc<Session>) -> ReloadPluginsResponse {
    session.reload_definitions();
    let definitions = session.definitions();
    ReloadPluginsResponse {
        commands: list_commands(&definitions),
        agents: list_agents(&definitions),
        mcp_servers: session.mcp.list_servers(),
        plugins: definitions.plugins.iter().map(Json::from_serialize).collect(),
        ..ReloadPluginsResponse::default()
    }
}

/// The response to `reload_skills`, which reads skills again.
pub(super) fn reload_skills(session: &Arc<Session>) -> ReloadSkillsResponse {
    session.reload_definitions();
    let definitions = session.definitions();
    let names: Vec<&str> = definitions.skills().map(|skill| skill.name.as_str()).collect();
    let skills = list_commands(&definitions).into_iter().filter(|command| names.contains(&command.name.as_str()));
    ReloadSkillsResponse { skills: skills.collect(), ..ReloadSkillsResponse::default() }
}

/// The response to `get_task_output`; `None` if there is no such command.
pub(super) fn task_output(session: &Session, id: &str) -> Option<GetTaskOutputResponse> {
    let task = session.workspace.tasks().find(id).filter(|task| task.kind == TaskKind::Command)?;
    let output = std::fs::read(&task.output_path).unwrap_or_default();
    let end = &output[output.len().saturating_sub(MAX_TASK_OUTPUT_BYTES)..];
    Some(GetTaskOutputResponse {
        output: String::from_utf8_lossy(end).into_owned(),
        ..GetTaskOutputResponse::default()
    })
}

/// Records a title that the model generated.
pub(super) fn record_ai_title(session: &Session, title: &str) -> Result<(), AppendError> {
    let session_id = Maybe::Value(session.identity.id());
    let line = AiTitle { title: title.to_owned(), session_id, ..AiTitle::default() };
    session.log().record_bookkeeping(&[Entry::AiTitle(Box::new(line))])
}
