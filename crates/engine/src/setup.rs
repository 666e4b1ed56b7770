//! Setting up a session from options, settings and an earlier transcript.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use quipu_api::{Client, Credential, Endpoint};
use quipu_message::bookkeeping::WorktreeSession;
use quipu_transcript::{Durability, EnvelopeDefaults};

use crate::checkpoint::Checkpoints;
use crate::conversation_log::ConversationLog;
use crate::credential;
use crate::definitions::{AgentDefinition, Definitions, Plugin, ProjectRules};
use crate::error::EngineError;
use crate::git;
use crate::guarded_paths::config_paths::{self, SafePrograms};
use crate::guarded_paths::script_names::ScriptNames;
use crate::hooks::Hooks;
use crate::host::Host;
use crate::mcp::{self, McpClients, McpFiles};
use crate::model::ModelAliases;
use crate::options::Options;
use crate::output::OutputStream;
use crate::permission::{Behavior, EffectiveMode, Rule, RuleSet, RuleSource, apply_rules};
use crate::queue::PromptQueue;
use crate::request_env::RequestEnv;
use crate::resume::ResumePoint;
use crate::sandbox;
use crate::session::{
    self, Activity, AgentConfig, ENV_FILE_VARIABLE, Identity, MAX_ENV_FILE_BYTES, Memory, ModelChoice, ModelParameters,
    Permissions, Session,
};
use crate::settings::{self, ProjectFolder, Settings, SettingsFolders};
use crate::state_file;
use crate::structured_output::StructuredOutputTool;
use crate::telemetry::Telemetry;
use crate::text_file;
use crate::tool::{self, Workspace};
use crate::trust;
use crate::usage::UsageTracker;
use crate::worktree;

/// The most invalid lines of a transcript that are reported.
const MAX_REPORTED_PROBLEMS: usize = 5;

/// The most subagents that run at the same time.
const MAX_CONCURRENT_SUBAGENTS: usize = 10;

/// What the agent is started with: options, environment, folder.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) options: Options,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
    /// The git worktree that the session works in.
    pub(crate) worktree: Option<WorktreeSession>,
    /// A warning for each folder that was removed from `PATH`.
    pub(crate) removed_programs: Vec<String>,
    /// Links of the session on the way to folders on `PATH`, which were resolved.
    program_links: Vec<PathBuf>,
    /// The value of `PATH` from which the unsafe folders were removed, and the folders of the session by which they
    /// were recognised.
    pub(crate) safe_programs: Option<(OsString, Vec<PathBuf>)>,
}

impl Launch {
    pub(crate) fn new(options: Options, env: BTreeMap<String, String>, cwd: PathBuf) -> Self {
        let (removed_programs, program_links) = (Vec::new(), Vec::new());
        Self { options, env, cwd, worktree: None, removed_programs, program_links, safe_programs: None }
    }

    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The user's folder of settings and sessions.
    pub(crate) fn config_folder(&self) -> PathBuf {
        let home = || PathBuf::from(self.var("HOME").unwrap_or("/")).join(".claude");
        self.var("CLAUDE_CONFIG_DIR").map_or_else(home, PathBuf::from)
    }

    /// The folder that the project's settings, commands and MCP servers are read from.
    fn project_config_folder(&self) -> PathBuf {
        let root = self.options.project_config_root.as_ref().map(|root| self.cwd.join(root));
        root.map_or_else(|| self.cwd.clone(), |root| root.canonicalize().unwrap_or(root))
    }

    /// The agent of `--agent`; `None` without that flag, or if the host may still define it.
    fn chosen_agent<'a>(&self, definitions: &'a Definitions) -> Result<Option<&'a AgentDefinition>, EngineError> {
        match &self.options.agent {
            Some(name) => match definitions.find_agent(name) {
                // The host may describe it in `initialize`.
                Err(_) if self.options.stream_input => Ok(None),
                found => found.map(Some).map_err(|reason| EngineError::InvalidFlag { flag: "--agent", reason }),
            },
            None => Ok(None),
        }
    }

    /// Changes to the worktree of `--worktree`. A new one of the current commit is trusted if the root of its
    /// repository is: it has the same files, whichever folder the session was started in.
    pub(crate) fn enter_worktree(&mut self) -> Result<(), EngineError> {
        let Some(worktree) = self.options.worktree.take() else { return Ok(()) };
        let (home, config) = (self.var("HOME").map(Path::new), self.config_folder());
        let mut roots = git::repository_roots(&self.cwd).into_iter();
        let trusted = roots.all(|root| trust::is_trusted(&self.options, &root, home, &config));
        let (entered, is_from_head) = worktree::enter(&worktree, &self.cwd, &self.env, trusted)?;
        self.cwd = PathBuf::from(entered.path.text().unwrap_or_default());
        if trusted && is_from_head {
            self.options.trusted_folders.push(self.cwd.clone());
        }
        self.worktree = Some(entered);
        Ok(())
    }

    /// Sets up the session: settings, permissions, definitions, MCP servers, workspace. Starts nothing.
    ///
    /// The order matters: trust decides which project settings apply, managed settings come last and
    /// win, and the environment they add is read by everything after.
    pub(crate) fn set_up(
        mut self,
        resume_point: ResumePoint,
        output: OutputStream,
    ) -> Result<Arc<Session>, EngineError> {
        // Before any settings: only the process's own environment may name a collector.
        let (telemetry, warning) = Telemetry::from_env(|name| self.var(name));
        warning.into_iter().for_each(|text| output.warn_on_stderr(text));
        let config = self.config_folder();
        let named = settings::parse_sources(self.options.setting_sources.as_deref())?;
        let files = if self.options.restricted { &[][..] } else { &named };
        let project = self.project_config_folder();
        let home = self.var("HOME").map(PathBuf::from);
        let local_folders = trust::local_folders(&self.options, &project, home.as_deref(), &config);
        let folders = SettingsFolders { config: &config, project: &project, local: &local_folders };
        let mut settings = Settings::load(folders, files, self.options.settings.as_deref())?;
        // The sources of definitions and instructions.
        let sources = if self.options.safe_mode { Vec::new() } else { files.to_vec() };
        settings.problems.extend(resume_point.problems.iter().take(MAX_REPORTED_PROBLEMS).cloned());
        let state = state_file::path(&self.env);
        let left_out = trust::restrict_untrusted(&mut settings, &self.options, &local_folders, &state);
        left_out.into_iter().for_each(|text| output.warn_on_stderr(text));
        settings.remove_project_folders();
        let dirs = self.options.plugin_dirs.iter().filter(|_| !self.options.safe_mode);
        let plugins: Vec<Plugin> =
            dirs.map(|plugin| Plugin::from_folder(&self.cwd, plugin, &mut settings.problems)).collect();
        for plugin in &plugins {
            if let Some(hooks) = plugin.hook_settings(&mut settings.problems) {
                settings.add_flag_layer(hooks)?;
            }
        }
        if self.options.bare || self.options.safe_mode {
            settings.layers.iter_mut().for_each(|layer| layer.known.hooks.clear());
        }
        settings.add_managed(self.options.managed_folder.as_deref(), self.options.managed_settings.as_deref())?;
        self.apply_settings_env(&settings);
        let layers = settings.layers.iter();
        let further = layers.flat_map(|layer| layer.known.permissions.additional_directories.clone());
        self.remove_unsafe_programs(&further.collect::<Vec<String>>());
        settings.problems.append(&mut self.removed_programs);
        let request_env = RequestEnv::from_env(|name| self.var(name))?;
        let models = ModelAliases::from_env(|name| self.var(name).map(str::to_owned));
        let mode = self.permission_mode(&mut settings)?;
        let rules = self.permission_rules(&settings)?;
        let mut endpoint = Endpoint::from_env(|name| self.var(name).map(str::to_owned))?;
        let entrypoint = self.var("CLAUDE_CODE_ENTRYPOINT").unwrap_or("sdk-cli").to_owned();
        self.env.insert("CLAUDE_CODE_ENTRYPOINT".to_owned(), entrypoint.clone());
        self.env.insert("CLAUDE_CODE_SESSION_ID".to_owned(), resume_point.id.to_string());
        endpoint.user_agent = crate::user_agent::user_agent_header(&entrypoint, |name| self.var(name));
        if endpoint.credential.is_none() {
            endpoint.credential = credential::helper(&settings, &self.env, &self.cwd).map(Credential::Helper);
        }
        if endpoint.credential.is_none() && self.var("CLAUDE_CODE_OAUTH_TOKEN").is_some() {
            let instead = "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN";
            output.warn_on_stderr(format!(
                "CLAUDE_CODE_OAUTH_TOKEN is not used, so requests carry no credential; {instead}"
            ));
        }
        let client = Client::new(endpoint)?;
        let servers = mcp::McpSources {
            options: &self.options,
            setting_sources: &sources,
            files: &McpFiles::new(&self.env, &project),
            plugins: &plugins,
            is_trusted: &|folder| trust::is_trusted(&self.options, folder, home.as_deref(), &config),
            env: &self.env,
        };
        let mcp = McpClients::configure(&servers, &mut settings)?;
        let facts = EnvelopeDefaults {
            session_id: resume_point.id.clone(),
            cwd: self.cwd.display().to_string(),
            version: crate::VERSION.to_owned(),
            git_branch: crate::git::git_branch(&self.cwd),
            entrypoint,
            agent_id: None,
        };
        let mut log =
            ConversationLog::new(resume_point.path, facts, Durability::default(), !self.options.no_persistence);
        log.resume(resume_point.context, resume_point.resume_uuid, resume_point.logged_hashes);
        if self.options.session_mirror {
            log.set_mirror(output.clone());
        }
        let mut tracker = UsageTracker::new(self.options.prices.clone());
        if let Some(costs) = &resume_point.cost_state {
            tracker.carry_over(costs);
        }
        let tracker = Arc::new(Mutex::new(tracker));
        let checkpoints =
            self.var("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING").filter(|set| !matches!(*set, "0" | "false"));
        let folder = config.join("file-history").join(resume_point.id.as_str());
        let checkpoints =
            checkpoints.map(|_| Arc::new(Checkpoints::restore(folder, &self.cwd, &resume_point.checkpoint_entries)));
        let summarise =
            crate::side_calls::new_summariser(client.clone(), models.small_model().to_owned(), Arc::clone(&tracker));
        let place = self.create_workspace(&settings, &local_folders, summarise, checkpoints.clone());
        place.guard_start_files(self.start_files());
        place.guard_scripts(self.script_names(&settings, &mcp, &project), &[&self.cwd, &project]);
        settings.problems.extend(place.sandbox().settings().warnings());
        match place.sandbox().unavailable_reason() {
            Some((reason, true)) => return Err(EngineError::SandboxUnavailable { reason }),
            Some((reason, false)) => {
                let asked = "commands that nothing allows are asked about";
                settings.problems.push(format!("sandbox.enabled: there is no sandbox ({reason}), so {asked}"));
            }
            None => {}
        }
        apply_rules(&rules, &place);
        let is_trusted = |folder: &Path| trust::is_trusted(&self.options, folder, home.as_deref(), &config);
        let project_rules = ProjectRules { is_trusted: &is_trusted, hidden_files: place.hidden_files() };
        let mut definitions = Definitions::load(&config, &project, &sources, &project_rules);
        plugins.iter().for_each(|plugin| definitions.add_plugin(plugin, &project_rules));
        settings.problems.append(&mut definitions.problems);
        if let Some(agents) = &self.options.agents {
            let bad = |reason: String| EngineError::InvalidFlag { flag: "--agents", reason };
            let json = match agents.trim_start().starts_with('{') {
                true => agents.clone(),
                false => text_file::read(&self.cwd.join(agents), None, text_file::MAX_BYTES)
                    .map_err(|error| bad(format!("{agents}: {error}")))?,
            };
            definitions.add_agents_json(&json).map_err(|error| bad(error.to_string()))?;
        }
        if let Some(schema) = &self.options.json_schema {
            StructuredOutputTool::from_flag(schema)?;
        }
        if let (None, Some(name)) = (&self.options.agent, settings.strongest_value(|known| known.agent.clone())) {
            match definitions.find_agent(&name) {
                Ok(_) => self.options.agent = Some(name),
                Err(reason) => settings.problems.push(format!("agent: {reason}")),
            }
        }
        let agent = self.chosen_agent(&definitions)?.cloned();
        let model = settings.managed_value(|known| known.model.clone()).or_else(|| self.options.model.clone());
        // A resumed session keeps its model unless a flag chooses another.
        let model = model.or_else(|| resume_point.model.clone());
        let model = model.or_else(|| agent.as_ref()?.own_model().map(str::to_owned));
        let model = model.or_else(|| self.var("ANTHROPIC_MODEL").map(str::to_owned));
        let model = model.or_else(|| settings.strongest_value(|known| known.model.clone()));
        let model = model.unwrap_or_else(|| models.default_model().to_owned());
        place.set_transcript((!self.options.no_persistence).then(|| log.path().to_owned()));
        let env_script = self.read_env_file(&mut settings.problems);
        place.set_env_script(env_script.clone());
        let model_choice = ModelChoice::new(ModelParameters {
            model: models.resolve(&model),
            planning_model: models.planning_model(&model),
            effort: self.options.effort.clone(),
            max_thinking_tokens: self.options.max_thinking_tokens,
            thinking_display: self.options.thinking_display.clone(),
        });
        let agent_config = AgentConfig {
            system_prompt: self.options.system_prompt.clone(),
            append_system_prompt: self.options.append_system_prompt.clone(),
            agent,
            json_schema: self.options.json_schema.clone(),
            forward_subagent_text: self.options.forward_subagent_text,
            records_system_prompt: !self.options.no_system_prompt_snapshot,
        };
        let mut hook_env = self.env.clone();
        let scrubs_secrets = scrubs_secrets(&self.env);
        if scrubs_secrets {
            tool::SECRET_VARIABLES.iter().for_each(|name| drop(hook_env.remove(*name)));
        }
        let hooks = Hooks::new(&settings, self.options.hook_events);
        settings.problems.extend(hooks.problems());
        let session = Arc::new(Session {
            hooks,
            scrubs_secrets,
            mcp,
            host: Arc::new(Host::new(output.clone(), self.options.stream_input)),
            queue: PromptQueue::default(),
            result_count: AtomicU64::new(0),
            held_results: Mutex::default(),
            log: Mutex::new(log),
            usage: tracker,
            telemetry,
            identity: Identity::new(resume_point.id, self.options.name.clone().or(resume_point.title)),
            permissions: Permissions::new(mode, rules),
            model_choice,
            activity: Activity::new(resume_point.turn_count),
            memory: Memory::default(),
            settings: Mutex::new(settings),
            definitions: Mutex::new(definitions),
            agent_config: Mutex::new(agent_config),
            worktree: self.worktree,
            options: self.options,
            hook_env,
            env_script,
            env: self.env,
            device_id: session::device_id(&config),
            config_folder: config,
            project_folder: project,
            local_folders,
            setting_sources: sources,
            subagent_slots: tokio::sync::Semaphore::new(MAX_CONCURRENT_SUBAGENTS),
            output,
            client,
            request_env,
            models,
            workspace: place,
            checkpoints,
        });
        crate::background::report_tasks(&session);
        Ok(session)
    }

    /// Removes the folders from `PATH` in which any file of the session would be a program: relative ones, and those
    /// of the session. A folder of programs inside the session's is guarded instead.
    pub(crate) fn remove_unsafe_programs(&mut self, further: &[String]) {
        let Some(path) = self.env.get("PATH").map(OsString::from) else { return };
        let further = further.iter().map(PathBuf::from).chain(self.options.add_dirs.iter().cloned());
        let session: Vec<PathBuf> = further.map(|folder| self.cwd.join(folder)).chain([self.cwd.clone()]).collect();
        if self.has_safe_programs(&path, &session) {
            return;
        }
        let SafePrograms { path: kept, removed, links } = SafePrograms::new(&path, &session);
        if let Some(kept) = kept.as_ref().and_then(|kept| kept.to_str()) {
            self.env.insert("PATH".to_owned(), kept.to_owned());
        }
        self.program_links.extend(links);
        self.safe_programs = Some((kept.unwrap_or(path), session));
        let warning = |folder: PathBuf| format!("PATH: '{}', which is a folder of the session", folder.display());
        self.removed_programs.extend(removed.into_iter().map(warning));
    }

    /// Whether the unsafe folders of this `PATH` were removed before, for the same folders of the session.
    fn has_safe_programs(&self, path: &OsStr, session: &[PathBuf]) -> bool {
        self.safe_programs.as_ref().is_some_and(|(safe, folders)| safe == path && folders == session)
    }

    /// Returns the files and folders that flags name, and links to definitions in folders that flags and variables name.
    fn start_files(&self) -> Vec<PathBuf> {
        let is_path = |text: &&String| !text.trim_start().starts_with('{');
        let flags = self.options.settings.iter().chain(&self.options.mcp_config).filter(is_path).map(PathBuf::from);
        let plugins = self.options.plugin_dirs.iter().map(|plugin| plugin.path.clone());
        let links = plugins.clone().flat_map(|plugin| config_paths::links_in_folder(&self.cwd.join(plugin)));
        let config = self.var("CLAUDE_CONFIG_DIR").map(|folder| self.cwd.join(folder));
        let config_links = config.iter().flat_map(|folder| config_paths::links_in_config(folder));
        let further = self.var("XDG_CONFIG_HOME").map(|folder| self.cwd.join(folder));
        let further = further.iter().flat_map(|folder| config_paths::links_in_xdg_config(folder));
        let config_links = config_links.chain(further);
        let files: Vec<PathBuf> = flags.chain(plugins.clone()).map(|path| self.cwd.join(path)).collect();
        let project_links = config_paths::links_of_project(&self.cwd);
        files.into_iter().chain(links).chain(config_links).chain(project_links).collect()
    }

    /// Returns the names in the commands of hooks, the key helper and MCP servers.
    fn script_names(&self, settings: &Settings, mcp: &McpClients, project: &Path) -> ScriptNames {
        let hooks = settings.layers.iter().flat_map(|layer| layer.known.hooks.values().flatten());
        let hooks = hooks.flat_map(|group| &group.hooks).map(|hook| &hook.command);
        let helpers = settings.layers.iter().filter_map(|layer| layer.known.api_key_helper.as_ref());
        let home = PathBuf::from(self.var("HOME").unwrap_or("/"));
        let variable = |name: &str| match name {
            "CLAUDE_PROJECT_DIR" => Some(project.to_string_lossy().into_owned()),
            "PWD" => Some(self.cwd.to_string_lossy().into_owned()),
            name => self.var(name).map(str::to_owned),
        };
        let mut names = ScriptNames::default();
        hooks.chain(helpers).chain(&mcp.command_lines()).for_each(|command| names.add(command, &variable));
        let start_up = text_file::read(&home.join(".bashrc"), None, text_file::MAX_BYTES).unwrap_or_default();
        names.add_loaded(&start_up, &variable);
        names
    }

    /// Reads user and managed settings, and adds their environment variables.
    pub(crate) fn take_trusted_settings(&mut self) -> Result<Settings, EngineError> {
        let folders = SettingsFolders { config: &self.config_folder(), project: &self.cwd, local: &[] };
        let mut settings = Settings::load(folders, &[settings::SettingSource::User], None)?;
        settings.add_managed(self.options.managed_folder.as_deref(), None)?;
        self.apply_settings_env(&settings);
        Ok(settings)
    }

    /// The script of `CLAUDE_ENV_FILE`, as it is at the start of the session: a command may change the
    /// file, but not what later commands run.
    fn read_env_file(&self, problems: &mut Vec<String>) -> String {
        let Some(path) = self.var(ENV_FILE_VARIABLE) else { return String::new() };
        text_file::read(&self.cwd.join(path), None, MAX_ENV_FILE_BYTES).unwrap_or_else(|error| {
            problems.push(format!("{ENV_FILE_VARIABLE}: {path}: {error}"));
            String::new()
        })
    }

    /// Adds the environment variables of trusted settings. Those of a project could send the API key to
    /// another server, so they are left out.
    fn apply_settings_env(&mut self, settings: &Settings) {
        for layer in settings.layers.iter().filter(|layer| layer.source.is_trusted()) {
            for (name, value) in &layer.known.env {
                match layer.source {
                    settings::SettingSource::Managed => drop(self.env.insert(name.clone(), value.clone())),
                    _ => drop(self.env.entry(name.clone()).or_insert_with(|| value.clone())),
                }
            }
        }
    }

    fn permission_mode(&self, settings: &mut Settings) -> Result<EffectiveMode, EngineError> {
        let no_mode = |word: &str| {
            format!("no mode '{word}'; there are default, acceptEdits, auto, plan, dontAsk and bypassPermissions")
        };
        let flag = self.options.permission_mode.as_deref();
        let bad = |word| EngineError::InvalidFlag { flag: "--permission-mode", reason: no_mode(word) };
        let flag = flag.map(|word| EffectiveMode::parse(word).ok_or_else(|| bad(word))).transpose()?;
        let managed = settings.managed_value(|known| EffectiveMode::parse(known.permissions.default_mode.as_deref()?));
        let mode = match (flag, settings.strongest_value(|known| known.permissions.default_mode.clone())) {
            _ if managed.is_some() => managed.unwrap_or_default(),
            _ if self.options.skip_permissions => EffectiveMode::BypassPermissions,
            (Some(mode), _) => mode,
            (None, Some(word)) => EffectiveMode::parse(&word).unwrap_or_else(|| {
                settings.problems.push(format!("permissions.defaultMode: {}", no_mode(&word)));
                EffectiveMode::Default
            }),
            (None, None) => EffectiveMode::Default,
        };
        let limit = settings.managed_value(|known| known.permissions.mode_limit);
        let mode = limit.filter(|limit| limit.is_at_most(mode)).unwrap_or(mode);
        let refused =
            |why: &str| EngineError::InvalidFlag { flag: "--permission-mode", reason: format!("{mode} {why}") };
        if self.options.restricted && mode == EffectiveMode::BypassPermissions {
            return Err(refused("cannot be used with --restricted"));
        }
        if settings.disables_mode(mode) {
            settings.problems.push(format!("the permission mode {mode}, which settings disable; the mode is default"));
            return Ok(EffectiveMode::Default);
        }
        let sandboxed = self.var("IS_SANDBOX").is_some_and(|set| set == "1");
        if mode == EffectiveMode::BypassPermissions && !sandboxed && rustix::process::geteuid().is_root() {
            return Err(EngineError::BypassAsRoot);
        }
        Ok(mode)
    }

    fn permission_rules(&self, settings: &Settings) -> Result<RuleSet, EngineError> {
        let mut rules = RuleSet::default();
        let managed_only = settings.has_only_managed_rules();
        let counts = |behavior, source| !managed_only || behavior != Behavior::Allow || source == RuleSource::Policy;
        for layer in &settings.layers {
            let source = match layer.source {
                settings::SettingSource::User => RuleSource::User,
                settings::SettingSource::Project => RuleSource::Project,
                settings::SettingSource::Local => RuleSource::Local,
                settings::SettingSource::Flag => RuleSource::FlagSettings,
                settings::SettingSource::Managed => RuleSource::Policy,
            };
            layer.known.permissions.for_each_rule(|behavior, rule| {
                if counts(behavior, source) {
                    rules.add(behavior, source, rule);
                }
            });
        }
        let flags = [
            ("--allowedTools", Behavior::Allow, &self.options.allowed_tools),
            ("--disallowedTools", Behavior::Deny, &self.options.disallowed_tools),
        ];
        for (flag, behavior, texts) in flags {
            for text in texts {
                let reason = format!("'{text}' is no rule; write Tool or Tool(pattern), with closed brackets");
                let rule = Rule::parse_flag(text).ok_or(EngineError::InvalidFlag { flag, reason })?;
                if counts(behavior, RuleSource::Flags) {
                    rules.add(behavior, RuleSource::Flags, rule);
                }
            }
        }
        Ok(rules)
    }

    /// The options of the command sandbox. Settings of a project can only restrict it.
    fn sandbox_options(&self, settings: &Settings) -> sandbox::SandboxOptions {
        let mut merged = sandbox::SandboxSettings::default();
        for layer in &settings.layers {
            merged.merge(&layer.known.sandbox, layer.source.is_trusted());
        }
        let launcher = self.options.sandbox_launcher.clone();
        sandbox::SandboxOptions { launcher, mode: self.options.sandbox, settings: merged, assumed_level: None }
    }

    fn create_workspace(
        &self,
        settings: &Settings,
        local_folders: &[ProjectFolder],
        summarise: tool::Summariser,
        checkpoints: Option<Arc<Checkpoints>>,
    ) -> Workspace {
        let mut env: BTreeMap<OsString, OsString> =
            self.env.iter().map(|(name, value)| (name.clone().into(), value.clone().into())).collect();
        let from_settings = settings.layers.iter().flat_map(|layer| &layer.known.env);
        env.extend(from_settings.map(|(name, value)| (name.clone().into(), value.clone().into())));
        let mut folders = self.options.add_dirs.clone();
        let more = settings.layers.iter().flat_map(|layer| &layer.known.permissions.additional_directories);
        folders.extend(more.map(PathBuf::from));
        // Settings may have changed PATH and added folders.
        let session: Vec<PathBuf> =
            folders.iter().map(|folder| self.cwd.join(folder)).chain([self.cwd.clone()]).collect();
        let path = env.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let mut program_links = self.program_links.clone();
        if !self.has_safe_programs(&path, &session) {
            let safe = SafePrograms::new(&path, &session);
            program_links.extend(safe.links);
            env.extend(safe.path.map(|path| ("PATH".into(), path)));
        }
        let options = tool::WorkspaceOptions {
            env,
            folders,
            program_links,
            settings_folders: local_folders.iter().map(|folder| folder.path.clone()).collect(),
            is_confined: self.options.restricted,
            sandbox: self.sandbox_options(settings),
            change_observer: checkpoints.map(|checkpoints| checkpoints as Arc<dyn tool::FileChangeObserver>),
            summariser: Some(summarise),
            ..tool::WorkspaceOptions::default()
        };
        Workspace::new(&self.cwd, options)
    }
}

/// Whether hooks and MCP servers start without the variables that hold credentials.
fn scrubs_secrets(env: &BTreeMap<String, String>) -> bool {
    env.get("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB").is_some_and(|set| !matches!(set.as_str(), "" | "0" | "false"))
}
