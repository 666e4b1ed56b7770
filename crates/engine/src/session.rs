//! What everything in a session shares.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use quipu_api::Client;
use quipu_message::bookkeeping::{AgentSetting, WorktreeSession, WorktreeState};
use quipu_message::stream::TurnResult;
use quipu_message::{Entry, Json, Maybe, SessionId, ToolUseId, Uuid};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::checkpoint::Checkpoints;
use crate::conversation_log::ConversationLog;
use crate::credential;
use crate::definitions::{AgentDefinition, Definitions};
use crate::hooks::Hooks;
use crate::host::Host;
use crate::input::Prompt;
use crate::instructions::{self, InstructionFile, PathRule};
use crate::mcp::{McpClients, McpEnvironment};
use crate::model::ModelAliases;
use crate::options::{Format, Options};
use crate::output::OutputStream;
use crate::output_style::OutputStyle;
use crate::permission::{PermissionMode, RuleSet};
use crate::queue::PromptQueue;
use crate::request_env::RequestEnv;
use crate::settings::{SettingSource, Settings};
use crate::tool::Workspace;
use crate::usage::UsageTracker;

mod emit;
mod hooks;
mod record;

/// What everything in a session shares.
pub(crate) struct Session {
    /// What the flags say.
    pub options: Options,
    /// The environment the agent was started in.
    pub env: BTreeMap<String, String>,
    /// The environment of hooks.
    pub hook_env: BTreeMap<String, String>,
    /// The person's folder of settings and sessions.
    pub config_folder: PathBuf,
    /// The folder that the project's settings are read from.
    pub project_folder: PathBuf,
    /// Which settings files count.
    pub setting_sources: Vec<SettingSource>,
    /// Whether the user trusts the folder.
    pub is_trusted: bool,
    /// How many more subagents may work at once.
    pub subagent_slots: tokio::sync::Semaphore,
    /// The way out.
    pub output: OutputStream,
    /// The host at the other end.
    pub host: Arc<Host>,
    /// Prompts that wait.
    pub queue: PromptQueue,
    /// The models behind short names.
    pub(crate) models: ModelAliases,
    /// Who asks the model.
    pub client: Client,
    /// What environment variables say of every request.
    pub(crate) request_env: RequestEnv,
    /// Where tools run.
    pub workspace: Workspace,
    /// The hooks.
    pub hooks: Hooks,
    /// Whether hooks and MCP servers start without the variables that hold credentials.
    pub(crate) scrubs_secrets: bool,
    /// The MCP servers.
    pub mcp: McpClients,
    /// Copies of files before they change.
    pub checkpoints: Option<Arc<Checkpoints>>,
    /// How many results were given.
    pub result_count: AtomicU64,
    /// Results that are said when subagents in the background are done.
    pub held_results: Mutex<Vec<TurnResult>>,
    /// What changes while the session runs.
    pub state: Mutex<SessionState>,
    /// The session's own conversation.
    pub log: Mutex<ConversationLog>,
    /// What was used.
    pub usage: Arc<Mutex<UsageTracker>>,
}

/// What changes while the session runs.
#[derive(Debug)]
pub(crate) struct SessionState {
    /// The session.
    pub id: SessionId,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The permission rules.
    pub rules: RuleSet,
    /// The settings.
    pub settings: Settings,
    /// The model.
    pub model: String,
    /// The model in the mode `plan`, when it is another.
    pub(crate) planning_model: Option<String>,
    /// How hard to think.
    pub effort: Option<String>,
    /// How many tokens thinking may take.
    pub max_thinking_tokens: Option<u64>,
    /// How thinking is shown.
    pub thinking_display: Option<String>,
    /// The system prompt that replaces ours.
    pub system_prompt: Option<String>,
    /// What follows the system prompt.
    pub append_system_prompt: Option<String>,
    /// The agent that the session runs as.
    pub agent: Option<AgentDefinition>,
    /// The worktree that the session works in.
    pub(crate) worktree: Option<WorktreeSession>,
    /// Whether the file names that agent and that worktree already.
    pub agent_recorded: bool,
    /// Whether the user was told what mode `auto` does.
    pub auto_mode_announced: bool,
    /// The form of the answer.
    pub json_schema: Option<String>,
    /// Whether what subagents say and think is told too.
    pub forward_subagent_text: bool,
    /// Commands, skills, subagents.
    pub definitions: Definitions,
    /// Folders that the host opened as parts of the project.
    pub extra_roots: Vec<PathBuf>,
    /// The title.
    pub title: Option<String>,
    /// Tools used so far.
    pub tools_used: Vec<String>,
    /// The prompt under way.
    pub prompt_id: Option<String>,
    /// The person's last words.
    pub last_prompt: Option<String>,
    /// Breaks the running turn off.
    pub turn_cancel: Option<CancellationToken>,
    /// The prompt being answered, by the id the host gave it, until its result is said.
    pub answering_uuid: Option<Uuid>,
    /// Prompts that the running turn has taken in, by the ids the host gave them.
    pub absorbed_uuids: Vec<Uuid>,
    /// The calls under way, and what moves each to the background.
    pub running_calls: Vec<(ToolUseId, CancellationToken)>,
    /// Whether the host has said hello.
    pub initialized: bool,
    /// `idle`, `running` or `requires_action`.
    pub activity: &'static str,
    /// How much of the context the last call filled.
    pub context_tokens: u64,
    /// How many prompts the session has answered.
    pub turn_count: u64,
    /// Notes to put before the next prompt, such as a model chosen by the host.
    pub pending_entries: Vec<Entry>,
    /// Whether the model was told last that plan mode is on.
    pub(crate) plan_mode_announced: bool,
    /// Whether the instruction files were told already.
    pub instructions_sent: bool,
    /// The rules that are told only with the files they are for; `None` until they are
    /// read, and again when what they are read from may have changed.
    pub(crate) path_rules: Option<Arc<[PathRule]>>,
    /// Whether the system prompt is recorded once and sent verbatim from then on.
    pub(crate) records_system_prompt: bool,
}

impl SessionState {
    /// The entry that names the agent the session runs as.
    fn agent_setting_entry(&self) -> Option<Entry> {
        let agent = self.agent.as_ref()?;
        let line = AgentSetting {
            agent: agent.name.clone(),
            session_id: Maybe::Value(self.id.clone()),
            ..AgentSetting::default()
        };
        Some(Entry::AgentSetting(Box::new(line)))
    }

    /// The entry that says in which worktree the session works.
    fn worktree_state_entry(&self) -> Option<Entry> {
        let session_id = Maybe::Value(self.id.clone());
        let worktree = WorktreeSession { session_id: session_id.clone(), ..self.worktree.clone()? };
        let line = WorktreeState { worktree: Some(worktree), session_id, ..WorktreeState::default() };
        Some(Entry::WorktreeState(Box::new(line)))
    }

    /// The model that answers in the permission mode of now.
    pub(crate) fn active_model(&self) -> &str {
        let planning = self.planning_model.as_deref().filter(|_| self.mode == PermissionMode::Plan);
        planning.unwrap_or(&self.model)
    }

    /// How hard a model is to think.
    pub(crate) fn effort_for(&self, model: &str) -> Option<String> {
        self.effort.clone().or_else(|| self.settings.effort_for(model))
    }
}

impl Session {
    /// The output style in force; `None` if there is none, or none of the name that settings give.
    /// One of a project that is not trusted never takes the program's own instructions away.
    pub(crate) fn output_style(&self) -> Option<OutputStyle> {
        let state = self.state();
        let style = state.definitions.output_styles.get(&state.settings.output_style())?.clone();
        Some(OutputStyle {
            keeps_coding_instructions: style.keeps_coding_instructions || style.is_from_project && !self.is_trusted,
            ..style
        })
    }

    /// The instruction files of the person, the project and the folders opened later.
    pub(crate) fn instructions(&self) -> Vec<InstructionFile> {
        self.find_instructions().0
    }

    /// The rules that are told only with the files they are for.
    pub(crate) fn path_rules(&self) -> Arc<[PathRule]> {
        let (known, roots) = {
            let state = self.state();
            (state.path_rules.clone(), state.extra_roots.clone())
        };
        known.unwrap_or_else(|| {
            let rules: Arc<[PathRule]> = match self.options.bare {
                true => Arc::default(),
                false => {
                    instructions::find_path_rules(&self.config_folder, &self.workspace, &roots, &self.setting_sources)
                        .into()
                }
            };
            self.state().path_rules = Some(Arc::clone(&rules));
            rules
        })
    }

    /// The same, and what was left out of them.
    pub(crate) fn find_instructions(&self) -> (Vec<InstructionFile>, Vec<String>) {
        if self.options.bare {
            return (Vec::new(), Vec::new());
        }
        let roots = self.state().extra_roots.clone();
        instructions::find_instructions(&self.config_folder, &self.workspace, &roots, &self.setting_sources)
    }

    /// What changes while the session runs.
    pub(crate) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock()
    }

    /// The session's own conversation.
    pub(crate) fn log(&self) -> MutexGuard<'_, ConversationLog> {
        self.log.lock()
    }

    /// Results that are said when subagents in the background are done.
    pub(crate) fn held_results(&self) -> MutexGuard<'_, Vec<TurnResult>> {
        self.held_results.lock()
    }

    /// What was used.
    pub(crate) fn usage(&self) -> MutexGuard<'_, UsageTracker> {
        self.usage.lock()
    }

    /// Reads the files of commands, skills, subagents and output styles again.
    pub(crate) fn reload_definitions(&self) {
        let mut fresh = Definitions::load(&self.config_folder, &self.project_folder, &self.setting_sources);
        let mut state = self.state();
        if self.setting_sources.contains(&SettingSource::Project) {
            state.extra_roots.iter().for_each(|root| fresh.add_root(root));
        }
        state.definitions.plugins.iter().for_each(|plugin| fresh.add_plugin(plugin));
        let problems = std::mem::take(&mut fresh.problems);
        state.definitions.replace_file_definitions(fresh);
        drop(state);
        problems.into_iter().for_each(|problem| self.warn(format!("left out: {problem}")));
    }

    /// Connects every MCP server that is not connected yet. Without a stream of JSON the servers
    /// that fail are reported as warnings; with one the host reads their state itself.
    pub(crate) async fn connect_mcp(&self) {
        let environment = McpEnvironment {
            host: &self.host,
            env: &self.env,
            root: self.workspace.root(),
            scrubs_secrets: self.scrubs_secrets,
        };
        let failures = self.mcp.connect_all(&environment).await;
        if self.options.format != Format::StreamJson {
            failures.into_iter().for_each(|failure| self.warn(failure));
        }
    }

    /// Whether the model does not know yet what a prompt tells.
    pub(crate) fn is_unseen(&self, prompt: &Prompt) -> bool {
        let Some(notice) = &prompt.task_notice else { return true };
        self.workspace.tasks().find(&notice.task_id).is_none_or(|task| !task.is_seen())
    }

    /// Names the installation: the same for one person's folder, and nothing else.
    pub(crate) fn device_id(&self) -> String {
        let digest = Sha256::digest(self.config_folder.as_os_str().as_encoded_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Where the key is from.
    pub(crate) fn api_key_source(&self) -> &'static str {
        credential::source(self.client.endpoint().credential.as_ref()).unwrap_or("none")
    }

    /// A variable of the environment; an empty one counts as unset.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Chooses the model that answers from now on, by name or alias. Returns the model
    /// chosen and the one before.
    pub(crate) fn set_model(&self, name: &str) -> (String, String) {
        let model = self.models.resolve(name);
        let mut state = self.state();
        state.planning_model = self.models.planning_model(name);
        let before = std::mem::replace(&mut state.model, model.clone());
        (model, before)
    }

    /// Whether a permission mode may be chosen while the session runs.
    pub(crate) fn can_use_mode(&self, mode: PermissionMode) -> bool {
        let bypasses = self.options.may_skip_permissions && !self.options.restricted;
        (mode != PermissionMode::BypassPermissions || bypasses) && !self.state().settings.disables_mode(mode)
    }

    /// Changes the permission mode; true when it was another.
    pub(crate) fn replace_mode(&self, mode: PermissionMode) -> bool {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.mode, mode);
        // The model is told that it is over, whoever ended it.
        state.plan_mode_announced |= before == PermissionMode::Plan;
        before != mode
    }

    /// Breaks the running turn off; questions to the host are withdrawn first.
    pub(crate) fn interrupt(&self) {
        let turn = self.state().turn_cancel.clone();
        if let Some(turn) = turn {
            self.host.cancel_all();
            turn.cancel();
        }
    }

    /// The number of the next result.
    pub(crate) fn next_result_index(&self) -> u64 {
        self.result_count.fetch_add(1, Ordering::Relaxed)
    }

    /// The folder for files of this session that are not its conversation.
    pub(crate) fn scratch_folder(&self) -> PathBuf {
        // Below a folder with a random name.
        let private = || self.workspace.output_folder().to_owned();
        let base = self.var("CLAUDE_CODE_TMPDIR").map_or_else(private, PathBuf::from);
        base.join("quipu-agent").join(self.state().id.as_str())
    }

    /// The prompt under way, for lines that belong to it.
    pub(crate) fn prompt_id(&self) -> Maybe<String> {
        self.state().prompt_id.clone().into()
    }

    /// JSON of the answer's form, when one was asked for.
    pub(crate) fn output_schema(&self) -> Option<Json> {
        let text = self.state().json_schema.clone()?;
        Json::parse(&text).ok()
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.state().id).finish_non_exhaustive()
    }
}
