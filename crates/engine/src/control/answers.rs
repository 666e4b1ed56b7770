//! What hosts are told when they ask how things are.

use std::sync::Arc;

use ignore::WalkBuilder;
use quipu_message::bookkeeping::AiTitle;
use quipu_message::control::answer::{
    Account, Agent, Applied, FileRead, FileSuggestion, FileSuggestions, HookEvent, HooksListing, Initialized,
    PermissionRule, PermissionRules, PermissionState, Reloaded, Settings, Skills, TaskOutput, UsageReport,
};
use quipu_message::{Entry, Json, Maybe};
use quipu_transcript::AppendError;

use crate::catalog;
use crate::commands;
use crate::output_style;
use crate::permission::Behavior;
use crate::session::Session;
use crate::tools::tasks::Kind;

/// How many files are suggested.
const SUGGESTED: usize = 20;

/// How much of the end of a task's output is shown, in bytes.
const SHOWN_OUTPUT: usize = 8 << 10;

/// The events hooks may be for, and whether they choose among tools or sources.
const EVENTS: [(&str, &str, bool); 14] = [
    ("PreToolUse", "Before a tool runs", true),
    ("PostToolUse", "After a tool ran", true),
    ("PostToolUseFailure", "After a tool failed", true),
    ("PostToolBatch", "After the tools of one answer", false),
    ("PermissionRequest", "Before somebody is asked for leave", true),
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

/// The answer to `initialize`.
pub(super) fn initialized(session: &Session, hooks: bool) -> Initialized {
    let state = session.state();
    Initialized {
        commands: commands::list(&state.catalog),
        agents: agents(&state.catalog).into(),
        output_style: state.settings.output_style().into(),
        available_output_styles: output_style::names(&state.catalog.styles).into(),
        models: session.models.list().into(),
        account: Maybe::Value(Account {
            token_source: Maybe::Value("none".to_owned()),
            api_key_source: Maybe::Value(session.key_source().to_owned()),
            api_provider: Maybe::Value("firstParty".to_owned()),
            ..Account::default()
        }),
        pid: std::process::id().into(),
        claude_code_version: crate::VERSION.to_owned().into(),
        current_permission_mode: state.mode.as_str().to_owned().into(),
        hooks_applied: hooks.then_some(true).into(),
        hook_on_failure_supported: hooks.then_some(true).into(),
        session_state: state.doing.to_owned().into(),
        capabilities: Maybe::Value(crate::CAPABILITIES.iter().map(|word| (*word).to_owned()).collect()),
        ..Initialized::default()
    }
}

fn agents(catalog: &catalog::Catalog) -> Vec<Agent> {
    let row = |agent: &catalog::Agent| Agent {
        name: agent.name.clone(),
        description: agent.description.clone(),
        model: agent.model.clone().into(),
        ..Agent::default()
    };
    catalog.agents.values().map(row).collect()
}

/// The answer to `get_usage`.
pub(super) fn usage(session: &Session) -> UsageReport {
    UsageReport {
        session: session.ledger().report(),
        subscription_type: Maybe::Null,
        rate_limits: Maybe::Null,
        behaviors: Maybe::Null,
        ..UsageReport::default()
    }
}

/// The answer to `get_settings`.
pub(super) fn settings(session: &Session) -> Settings {
    let state = session.state();
    Settings {
        effective: Json::from(state.settings.effective()),
        sources: state.settings.layers.iter().map(|layer| Json::of(layer.source.as_str())).collect(),
        applied: Applied {
            model: state.model.clone(),
            effort: state.effort(&state.model).into(),
            ..Applied::default()
        },
        ..Settings::default()
    }
}

/// The answer to `get_hooks_listing`.
pub(super) fn hooks(session: &Session) -> HooksListing {
    let hooks = session.hooks.list();
    let mut events: Vec<String> = hooks.iter().map(|hook| hook.event.clone()).collect();
    events.sort();
    events.dedup();
    let row = |(name, summary, matcher): &(&str, &str, bool)| HookEvent {
        name: (*name).to_owned(),
        summary: (*summary).to_owned(),
        supports_matcher: *matcher,
        ..HookEvent::default()
    };
    HooksListing { events, hooks, event_catalog: EVENTS.iter().map(row).collect(), ..HooksListing::default() }
}

/// The answer to `list_permission_rules`.
pub(super) fn rules(session: &Session) -> PermissionRules {
    let root = session.place.root();
    let folders = session.place.folders();
    let more = folders.iter().filter(|folder| *folder != root).map(|folder| folder.display().to_string());
    let row = |rule: &crate::permission::Sourced| PermissionRule {
        behavior: match rule.behavior {
            Behavior::Allow => "allow",
            Behavior::Deny => "deny",
            Behavior::Ask => "ask",
        }
        .to_owned(),
        rule: rule.rule.to_string(),
        source: rule.source.as_str().to_owned(),
        ..PermissionRule::default()
    };
    let state = PermissionState {
        rules: session.state().rules.iter().map(row).collect(),
        workspace_directories: more.collect(),
        original_cwd: root.display().to_string(),
        ..PermissionState::default()
    };
    PermissionRules { state, ..PermissionRules::default() }
}

/// The answer to `read_file`; none for what is outside the folders or not there.
pub(super) fn read_file(session: &Session, name: &str) -> Option<FileRead> {
    let path = session.place.absolute(name);
    let bytes = session.place.holds(&path).then(|| std::fs::read(&path).ok()).flatten()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(FileRead {
        lossy: matches!(text, std::borrow::Cow::Owned(_)),
        contents: text.into_owned(),
        abs_path: path.display().to_string(),
        requested_path: name.to_owned(),
        ..FileRead::default()
    })
}

/// The answer to `file_suggestions`: files whose path holds the query, as git sees them.
pub(super) fn suggest(session: &Session, query: &str) -> FileSuggestions {
    let root = session.place.root();
    let query = query.to_lowercase();
    let files = WalkBuilder::new(root).build().flatten().filter(|entry| entry.file_type().is_some_and(|t| t.is_file()));
    let paths = files.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.display().to_string()));
    let fitting = paths.filter(|path| path.to_lowercase().contains(&query)).take(SUGGESTED);
    FileSuggestions {
        suggestions: fitting.map(|path| FileSuggestion { path, ..FileSuggestion::default() }).collect(),
        cwd: root.display().to_string(),
        ..FileSuggestions::default()
    }
}

/// A file counts as read, as it is now.
pub(super) fn seed(session: &Session, name: &str) {
    let path = session.place.absolute(name);
    if session.place.holds(&path)
        && let Ok(bytes) = std::fs::read(&path)
    {
        session.place.remember(&path, &bytes);
    }
}

/// The answer to `reload_plugins`: commands and subagents are read again.
pub(super) fn reloaded(session: &Arc<Session>) -> Reloaded {
    catalog::reload(session);
    let state = session.state();
    Reloaded {
        commands: commands::list(&state.catalog),
        agents: agents(&state.catalog),
        mcp_servers: session.mcp.list(),
        plugins: state.catalog.plugins.iter().map(Json::of).collect(),
        ..Reloaded::default()
    }
}

/// The answer to `reload_skills`.
pub(super) fn skills(session: &Arc<Session>) -> Skills {
    catalog::reload(session);
    let state = session.state();
    let names: Vec<&str> = state.catalog.skills().map(|skill| skill.name.as_str()).collect();
    let skills = commands::list(&state.catalog).into_iter().filter(|command| names.contains(&command.name.as_str()));
    Skills { skills: skills.collect(), ..Skills::default() }
}

/// The answer to `get_task_output`; none when there is no such task.
pub(super) fn task_output(session: &Session, id: &str) -> Option<TaskOutput> {
    let task = session.place.tasks().find(id).filter(|task| task.kind == Kind::Command)?;
    let output = std::fs::read(&task.file).unwrap_or_default();
    let end = &output[output.len().saturating_sub(SHOWN_OUTPUT)..];
    Some(TaskOutput { output: String::from_utf8_lossy(end).into_owned(), ..TaskOutput::default() })
}

/// Keeps a title that the model made up.
pub(super) fn keep_title(session: &Session, title: &str) -> Result<(), AppendError> {
    let session_id = Maybe::Value(session.state().id.clone());
    let line = AiTitle { title: title.to_owned(), session_id, ..AiTitle::default() };
    session.log().note(&[Entry::AiTitle(Box::new(line))])
}
