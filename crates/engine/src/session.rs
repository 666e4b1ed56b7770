//! A session: what all its turns, tools and control requests share.
//!
//! Each part that changes while the session runs has an owner with a lock of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use quipu_api::Client;
use quipu_message::bookkeeping::WorktreeSession;
use quipu_message::stream::TurnResult;
use quipu_message::{Json, Maybe, ToolName};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::checkpoint::Checkpoints;
use crate::conversation_log::ConversationLog;
use crate::credential;
use crate::definitions::{AgentDefinition, Definitions, ProjectRules};
use crate::git;
use crate::hooks::Hooks;
use crate::host::Host;
use crate::input::Prompt;
use crate::instructions::{self, InstructionFile, PathRule};
use crate::mcp::{McpClients, McpEnvironment};
use crate::model::ModelAliases;
use crate::options::{Format, Options};
use crate::output::OutputStream;
use crate::output_style::OutputStyle;
use crate::path::TargetPath;
use crate::permission::{Decision, EffectiveMode, evaluate_target};
use crate::queue::PromptQueue;
use crate::request_env::RequestEnv;
use crate::settings::{ProjectFolder, SettingSource, Settings, SettingsFolders};
use crate::telemetry::Telemetry;
use crate::tool::Workspace;
use crate::trust;
use crate::usage::UsageTracker;

mod activity;
mod emit;
mod hooks;
mod identity;
mod memory;
mod model_choice;
mod permissions;
mod record;

pub(crate) use activity::Activity;
pub(crate) use hooks::{ENV_FILE_VARIABLE, MAX_ENV_FILE_BYTES};
pub(crate) use identity::Identity;
pub(crate) use memory::Memory;
pub(crate) use model_choice::{ModelChoice, ModelParameters};
pub(crate) use permissions::Permissions;

/// What all turns, tools and control requests of a session share.
pub(crate) struct Session {
    /// The options that the agent was started with.
    pub options: Options,
    /// The environment variables of the agent, with those of settings.
    pub env: BTreeMap<String, String>,
    /// The environment variables of hooks.
    pub hook_env: BTreeMap<String, String>,
    /// The script of the user's `CLAUDE_ENV_FILE`; empty if there is none.
    pub(crate) env_script: String,
    /// The user's folder of settings and sessions.
    pub config_folder: PathBuf,
    /// An id for that folder, the same in every session.
    pub(crate) device_id: String,
    /// The folder that the project's settings are read from.
    pub project_folder: PathBuf,
    /// The folders that local settings are read from, lowest precedence first.
    pub local_folders: Vec<ProjectFolder>,
    /// The settings files that are read.
    pub setting_sources: Vec<SettingSource>,
    /// Limits how many subagents run at the same time.
    pub subagent_slots: tokio::sync::Semaphore,
    /// The output of the agent.
    pub output: OutputStream,
    /// The host that drives the agent.
    pub host: Arc<Host>,
    /// The queue of prompts.
    pub queue: PromptQueue,
    /// The full model names of aliases.
    pub(crate) models: ModelAliases,
    /// The API client.
    pub client: Client,
    /// The parameters of requests that environment variables set.
    pub(crate) request_env: RequestEnv,
    /// The folders, files and tasks that tools work with.
    pub workspace: Workspace,
    /// The hooks of settings and of the host.
    pub hooks: Hooks,
    /// Whether hooks and MCP servers start without the variables that hold credentials.
    pub(crate) scrubs_secrets: bool,
    /// The MCP servers.
    pub mcp: McpClients,
    /// Backups of files before they change; `None` if the host did not ask for them.
    pub checkpoints: Option<Arc<Checkpoints>>,
    /// The number of `result` lines so far.
    pub result_count: AtomicU64,
    /// Results held back until background subagents are done.
    pub held_results: Mutex<Vec<TurnResult>>,
    /// The id and title of the session.
    pub(crate) identity: Identity,
    /// The permission mode and rules.
    pub(crate) permissions: Permissions,
    /// The model and its parameters.
    pub(crate) model_choice: ModelChoice,
    /// What the session is doing.
    pub(crate) activity: Activity,
    /// Which instruction files and rules were read.
    pub(crate) memory: Memory,
    /// The settings, in layers.
    pub(crate) settings: Mutex<Settings>,
    /// Commands, skills, subagents and output styles.
    pub(crate) definitions: Mutex<Definitions>,
    /// How the agent is configured.
    pub(crate) agent_config: Mutex<AgentConfig>,
    /// The git worktree that the session works in; `None` if it works in the folder it was started in.
    pub(crate) worktree: Option<WorktreeSession>,
    /// The conversation of the main agent.
    pub log: Mutex<ConversationLog>,
    /// Usage and cost of the session.
    pub usage: Arc<Mutex<UsageTracker>>,
    /// The spans of the session.
    pub(crate) telemetry: Telemetry,
}

/// How flags and `initialize` configure the agent of the session.
#[derive(Debug, Default)]
pub(crate) struct AgentConfig {
    /// The system prompt of the host; `None` for the engine's own.
    pub(crate) system_prompt: Option<String>,
    /// Text to add at the end of the system prompt.
    pub(crate) append_system_prompt: Option<String>,
    /// The agent that the session runs as; `None` for the engine's own.
    pub(crate) agent: Option<AgentDefinition>,
    /// JSON schema of the final answer, as JSON text.
    pub(crate) json_schema: Option<String>,
    /// Whether the text and the thinking of subagents are emitted too.
    pub(crate) forward_subagent_text: bool,
    /// Whether the system prompt is recorded once and sent unchanged from then on.
    pub(crate) records_system_prompt: bool,
}

impl Session {
    /// The current output style; `None` if settings choose none, or one that does not exist. A style of
    /// an untrusted project never removes the built-in instructions.
    pub(crate) fn output_style(&self) -> Option<OutputStyle> {
        let name = self.settings().output_style();
        let style = self.definitions().output_styles.get(&name)?.clone();
        Some(OutputStyle { keeps_coding_instructions: style.keeps_coding_instructions, ..style })
    }

    /// The instruction files of the user, the project and the folders added later. Reads them from disk.
    pub(crate) fn instructions(&self) -> Vec<InstructionFile> {
        self.find_instructions().0
    }

    /// The rules that apply to some files only. Reads them from disk unless they are cached.
    pub(crate) fn path_rules(&self) -> Arc<[PathRule]> {
        self.memory.path_rules().unwrap_or_else(|| {
            let roots = self.memory.extra_roots();
            let rules: Arc<[PathRule]> = match self.options.bare {
                true => Arc::default(),
                false => {
                    instructions::find_path_rules(&self.config_folder, &self.workspace, &roots, &self.setting_sources)
                        .into()
                }
            };
            self.memory.set_path_rules(Arc::clone(&rules));
            rules
        })
    }

    /// As [`instructions`](Self::instructions), with a sentence for each file that was left out.
    pub(crate) fn find_instructions(&self) -> (Vec<InstructionFile>, Vec<String>) {
        if self.options.bare {
            return (Vec::new(), Vec::new());
        }
        let roots = self.memory.extra_roots();
        instructions::find_instructions(&self.config_folder, &self.workspace, &roots, &self.setting_sources)
    }

    /// The settings, locked; nothing else may be locked meanwhile.
    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock()
    }

    /// Commands, skills, subagents and output styles, locked; nothing else may be locked meanwhile.
    pub(crate) fn definitions(&self) -> MutexGuard<'_, Definitions> {
        self.definitions.lock()
    }

    /// How the agent is configured, locked; nothing else may be locked meanwhile.
    pub(crate) fn agent_config(&self) -> MutexGuard<'_, AgentConfig> {
        self.agent_config.lock()
    }

    /// The model that answers in the current permission mode.
    pub(crate) fn active_model(&self) -> String {
        let is_planning = self.permissions.mode() == EffectiveMode::Plan;
        let ModelParameters { model, planning_model, .. } = self.model_choice.parameters();
        planning_model.filter(|_| is_planning).unwrap_or(model)
    }

    /// The effort level for a model; `None` if neither the session nor settings choose one.
    pub(crate) fn effort_for(&self, model: &str) -> Option<String> {
        self.model_choice.parameters().effort.or_else(|| self.settings().effort_for(model))
    }

    /// The conversation of the main agent, locked.
    pub(crate) fn log(&self) -> MutexGuard<'_, ConversationLog> {
        self.log.lock()
    }

    /// Results held back until background subagents are done, locked.
    pub(crate) fn held_results(&self) -> MutexGuard<'_, Vec<TurnResult>> {
        self.held_results.lock()
    }

    /// Usage and cost of the session, locked.
    pub(crate) fn usage(&self) -> MutexGuard<'_, UsageTracker> {
        self.usage.lock()
    }

    /// The folders that settings are read from.
    pub(crate) fn settings_folders(&self) -> SettingsFolders<'_> {
        SettingsFolders { config: &self.config_folder, project: &self.project_folder, local: &self.local_folders }
    }

    /// Reads the files of commands, skills, subagents and output styles again. Emits a warning for each
    /// that is invalid.
    pub(crate) fn reload_definitions(&self) {
        let is_trusted = |folder: &Path| self.trusts_folder(folder);
        let rules = ProjectRules { is_trusted: &is_trusted, hidden_files: self.workspace.hidden_files() };
        let mut reloaded = Definitions::load(&self.config_folder, &self.project_folder, &self.setting_sources, &rules);
        if self.setting_sources.contains(&SettingSource::Project) {
            self.memory.extra_roots().iter().for_each(|root| reloaded.add_root(root, &rules));
        }
        let problems = {
            let mut definitions = self.definitions();
            definitions.plugins.iter().for_each(|plugin| reloaded.add_plugin(plugin, &rules));
            let problems = std::mem::take(&mut reloaded.problems);
            definitions.replace_file_definitions(reloaded);
            problems
        };
        problems.into_iter().for_each(|problem| self.warn(format!("left out: {problem}")));
    }

    /// Reads a subagent from its file again; `None` if there is none, or not any more.
    pub(crate) fn reload_agent(&self, name: &str) -> Option<AgentDefinition> {
        let is_trusted = |folder: &Path| self.trusts_folder(folder);
        let rules = ProjectRules { is_trusted: &is_trusted, hidden_files: self.workspace.hidden_files() };
        self.definitions().reload_agent(name, &rules)
    }

    /// Whether the user trusts the root of the repository that the session works in, so that git may run what
    /// it configures.
    pub(crate) fn trusts_repository(&self) -> bool {
        let roots = git::repository_roots(self.workspace.root());
        !roots.is_empty() && roots.iter().all(|root| self.trusts_folder(root))
    }

    /// Whether the user trusts a folder.
    fn trusts_folder(&self, folder: &Path) -> bool {
        trust::is_trusted(&self.options, folder, self.var("HOME").map(Path::new), &self.config_folder)
    }

    /// Guards the files that the MCP servers run, after a host has set other servers.
    pub(crate) fn guard_mcp_programs(&self) {
        let root = self.workspace.root();
        let mut names = (*self.workspace.script_names()).clone();
        self.mcp.command_lines().iter().for_each(|command| names.add(command, &|name| self.env.get(name).cloned()));
        self.workspace.guard_scripts(names, &[root]);
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

    /// Whether a prompt is new to the model. The end of a background task is not, if the model has read
    /// its output.
    pub(crate) fn is_unseen(&self, prompt: &Prompt) -> bool {
        let Some(notice) = &prompt.task_notice else { return true };
        self.workspace.tasks().find(&notice.task_id).is_none_or(|task| !task.is_seen())
    }

    /// The source of the API key: a variable, `apiKeyHelper`, or `none`.
    pub(crate) fn api_key_source(&self) -> &'static str {
        credential::source(self.client.endpoint().credential.as_ref()).unwrap_or("none")
    }

    /// An environment variable; `None` if it is unset or empty.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Changes the model, by name or alias. Returns the full names of the new and the previous model.
    pub(crate) fn set_model(&self, name: &str) -> (String, String) {
        let model = self.models.resolve(name);
        let previous = self.model_choice.change(|choice| {
            choice.planning_model = self.models.planning_model(name);
            std::mem::replace(&mut choice.model, model.clone())
        });
        (model, previous)
    }

    /// Whether flags and settings allow a change to this permission mode.
    pub(crate) fn can_use_mode(&self, mode: EffectiveMode) -> bool {
        let bypasses = self.options.may_skip_permissions && !self.options.restricted;
        (mode != EffectiveMode::BypassPermissions || bypasses) && !self.settings().disables_mode(mode)
    }

    /// Whether mode and rules let the session change a file, if need be after asking.
    pub(crate) fn may_edit(&self, path: &Path) -> bool {
        let (tool, target) = (ToolName::Edit, TargetPath::new(path));
        let decision = self
            .permissions
            .read(|mode, rules| evaluate_target(mode, rules, &tool, &Value::Null, &self.workspace, Some(&target)));
        !matches!(decision, Decision::Deny { .. })
    }

    /// Interrupts the running turn, after cancelling its control requests.
    pub(crate) fn interrupt(&self) {
        if let Some(turn) = self.activity.turn_cancel() {
            self.host.cancel_all();
            turn.cancel();
        }
    }

    /// The index of the next `result` line, counted from 0.
    pub(crate) fn next_result_index(&self) -> u64 {
        self.result_count.fetch_add(1, Ordering::Relaxed)
    }

    /// The folder for temporary files of this session: a folder that exists, and its path in it.
    pub(crate) fn scratch_folder(&self) -> (PathBuf, PathBuf) {
        // That folder has a random name.
        let private = || self.workspace.output_folder().to_owned();
        let base = self.var("CLAUDE_CODE_TMPDIR").map_or_else(private, PathBuf::from);
        (base, Path::new("quipu-agent").join(self.identity.id().as_str()))
    }

    /// Id of the current prompt, for its entries.
    pub(crate) fn prompt_id(&self) -> Maybe<String> {
        self.activity.prompt_id().into()
    }

    /// The JSON schema of the final answer; `None` if there is none.
    pub(crate) fn output_schema(&self) -> Option<Json> {
        let text = self.agent_config().json_schema.clone()?;
        Json::parse(&text).ok()
    }
}

/// The id for the user's folder of settings and sessions.
pub(crate) fn device_id(config_folder: &Path) -> String {
    let digest = Sha256::digest(config_folder.as_os_str().as_encoded_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.identity.id()).finish_non_exhaustive()
    }
}
