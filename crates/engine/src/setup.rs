//! Setting a session up: which one, where, with what.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use quipu_api::{Client, Credential, Endpoint};
use quipu_conversation::{Conversation, Node, clear_microcompacted, since_compaction};
use quipu_message::attachment::Attachment;
use quipu_message::bookkeeping::{CostState, WorktreeSession};
use quipu_message::turn::User;
use quipu_message::{Block, Content, Entry, SessionId, Uuid, synthetic};
use quipu_transcript::{Durability, Entries, Facts, Fork, Outline, find};
use sha2::{Digest, Sha256};

use crate::catalog::{Agent, Catalog, Plugin};
use crate::checkpoint::Checkpoints;
use crate::clock::fresh;
use crate::credential;
use crate::error::EngineError;
use crate::hooks::Hooks;
use crate::host::Host;
use crate::ledger::Ledger;
use crate::log::Log;
use crate::mcp::{self, Mcp, McpFiles};
use crate::model::Models;
use crate::options::{Options, Start};
use crate::output::Output;
use crate::permission::{Behavior, Mode, Rule, Rules, Source, enforce};
use crate::queue::Queue;
use crate::request::RequestEnv;
use crate::sandbox;
use crate::session::{Session, State};
use crate::settings::{self, Settings};
use crate::state_file;
use crate::structured::Structured;
use crate::text_file;
use crate::tool::{self, Place};
use crate::trust;
use crate::waiting::Waiting;
use crate::worktree;

/// How many broken lines of a session file are told of.
const SHOWN: usize = 5;

/// How many subagents work at once.
const MAX_SUBAGENTS: usize = 10;

/// What the agent is started with.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) options: Options,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
    /// The worktree that the session works in.
    pub(crate) worktree: Option<WorktreeSession>,
}

/// Which session it is, and what was said in it.
pub(crate) struct Chosen {
    pub(crate) id: SessionId,
    path: PathBuf,
    context: Vec<Node>,
    at: Option<Uuid>,
    costs: Option<CostState>,
    title: Option<String>,
    /// The model that the last answer was asked for.
    model: Option<String>,
    turns: u64,
    /// What is noted of copies of files.
    copies: Vec<Entry>,
    /// Hashes of the shapes and messages that the file's log of API calls holds.
    logged: HashSet<String>,
    /// Words that waited when the session ended.
    pub(crate) waiting: Vec<Content>,
    /// Lines that could not be read, in words.
    problems: Vec<String>,
    pub(crate) resumed: bool,
}

impl Given {
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The person's folder of settings and sessions.
    pub(crate) fn config(&self) -> PathBuf {
        let home = || PathBuf::from(self.var("HOME").unwrap_or("/")).join(".claude");
        self.var("CLAUDE_CONFIG_DIR").map_or_else(home, PathBuf::from)
    }

    /// The folder that the project's settings, commands and MCP servers are read from.
    fn project(&self) -> PathBuf {
        let root = self.options.project_config_root.as_ref().map(|root| self.cwd.join(root));
        root.map_or_else(|| self.cwd.clone(), |root| root.canonicalize().unwrap_or(root))
    }

    /// The agent that `--agent` names.
    fn agent<'a>(&self, catalog: &'a Catalog) -> Result<Option<&'a Agent>, EngineError> {
        match &self.options.agent {
            Some(name) => match catalog.agent(name) {
                // The host may describe it in `initialize`.
                Err(_) if self.options.stream_input => Ok(None),
                found => found.map(Some).map_err(|reason| EngineError::Flag { flag: "--agent", reason }),
            },
            None => Ok(None),
        }
    }

    /// Moves to the worktree that `--worktree` names. It is trusted as its repository is.
    pub(crate) fn enter_worktree(&mut self) -> Result<(), EngineError> {
        let Some(worktree) = self.options.worktree.take() else { return Ok(()) };
        let trusted =
            trust::is_trusted(&self.options, &self.project(), self.var("HOME").map(Path::new), &self.config());
        let entered = worktree::enter(&worktree, &self.cwd, &self.env, trusted)?;
        self.cwd = PathBuf::from(entered.path.text().unwrap_or_default());
        self.options.trust_folder |= trusted;
        self.worktree = Some(entered);
        Ok(())
    }

    /// Finds the session to go on with, or the place of a new one.
    pub(crate) fn choose(&self) -> Result<Chosen, EngineError> {
        let folder = self.config().join("projects").join(find::project_folder(&self.cwd.to_string_lossy()));
        let given = self.options.session_id.as_deref();
        if let Some(id) = given
            && uuid::Uuid::parse_str(id).is_err()
        {
            return Err(EngineError::BadId { id: id.to_owned() });
        }
        let from = match &self.options.start {
            Start::New => None,
            Start::Continue => latest(&folder, |_| true),
            Start::Resume(spec) => Some(self.find(&folder, spec)?),
        };
        if let (Some(_), Some(_), false) = (given, &from, self.options.fork) {
            let reason = "a session that goes on keeps its id; add --fork-session".to_owned();
            return Err(EngineError::Flag { flag: "--session-id", reason });
        }
        let new_id = || given.map_or_else(|| SessionId::from(fresh().as_str()), SessionId::from);
        let new_path = |id: &SessionId| folder.join(format!("{id}.jsonl"));
        let Some(from) = from else {
            let id = new_id();
            let path = new_path(&id);
            if path.exists() {
                return Err(EngineError::InUse { id: id.to_string() });
            }
            return Ok(Chosen::new(id, path));
        };
        let at = self.options.resume_at.as_deref().map(Uuid::from);
        if !self.options.fork {
            let id = SessionId::from(&*from.file_stem().unwrap_or_default().to_string_lossy());
            return Chosen::read(id, from, at, self.options.drops_turn.as_deref());
        }
        let id = new_id();
        let to = new_path(&id);
        if to.exists() {
            return Err(EngineError::InUse { id: id.to_string() });
        }
        let old = Chosen::read(id.clone(), from.clone(), at.clone(), self.options.drops_turn.as_deref())?;
        let prompt = fresh();
        Fork { from: &from, to: &to, session_id: &id, prompt_id: prompt.as_str(), at: at.as_ref() }.run()?;
        // What waits, waits in the old session.
        Ok(Chosen { path: to, waiting: Vec::new(), logged: HashSet::new(), ..old })
    }

    fn find(&self, folder: &Path, spec: &str) -> Result<PathBuf, EngineError> {
        let here = folder.join(format!("{spec}.jsonl"));
        if here.is_file() {
            return Ok(here);
        }
        let path = Path::new(spec);
        if spec.ends_with(".jsonl") && path.is_file() {
            return Ok(path.to_owned());
        }
        let (sessions, _) = find::sessions(&[self.config()]);
        if let Some(session) = sessions.into_iter().find(|session| session.id.as_str() == spec) {
            return Ok(session.path);
        }
        if uuid::Uuid::parse_str(spec).is_ok() {
            return Err(EngineError::NoSession { id: spec.to_owned() });
        }
        let has_title = |path: &PathBuf| {
            let outline = Outline::read(path).ok();
            outline.is_some_and(|outline| outline.title().is_some_and(|title| title.trim() == spec.trim()))
        };
        latest(folder, has_title).ok_or_else(|| EngineError::NoTitle { title: spec.to_owned() })
    }

    /// Sets the session up.
    pub(crate) fn set_up(mut self, chosen: Chosen, output: Output) -> Result<Arc<Session>, EngineError> {
        let config = self.config();
        let named = settings::sources(self.options.setting_sources.as_deref())?;
        let files = if self.options.restricted { &[][..] } else { &named };
        let project = self.project();
        let mut settings = Settings::load(&config, &project, files, self.options.settings.as_deref())?;
        // What customises the agent beside its settings.
        let sources = if self.options.safe_mode { Vec::new() } else { files.to_vec() };
        settings.problems.extend(chosen.problems.iter().take(SHOWN).cloned());
        let home = self.var("HOME").map(Path::new);
        let trusted = trust::is_trusted(&self.options, &project, home, &config);
        if !trusted {
            let left_out = trust::restrict(&mut settings, &self.options, &project, &state_file::path(&self.env));
            left_out.into_iter().for_each(|text| output.note(text));
        }
        let dirs = self.options.plugin_dirs.iter().filter(|_| !self.options.safe_mode);
        let plugins: Vec<Plugin> = dirs.map(|plugin| Plugin::at(&self.cwd, plugin, &mut settings.problems)).collect();
        for plugin in &plugins {
            if let Some(hooks) = plugin.settings(&mut settings.problems) {
                settings.add(hooks)?;
            }
        }
        if self.options.bare || self.options.safe_mode {
            settings.layers.iter_mut().for_each(|layer| layer.known.hooks.clear());
        }
        settings.add_managed(self.options.managed_folder.as_deref(), self.options.managed_settings.as_deref())?;
        self.take_env(&settings);
        let request_env = RequestEnv::read(|name| self.var(name))?;
        let models = Models::from_env(|name| self.var(name).map(str::to_owned));
        let mode = self.mode(&mut settings)?;
        let rules = self.rules(&settings)?;
        let mut endpoint = Endpoint::from_env(|name| self.var(name).map(str::to_owned))?;
        let entrypoint = self.var("CLAUDE_CODE_ENTRYPOINT").unwrap_or("sdk-cli").to_owned();
        self.env.insert("CLAUDE_CODE_ENTRYPOINT".to_owned(), entrypoint.clone());
        self.env.insert("CLAUDE_CODE_SESSION_ID".to_owned(), chosen.id.to_string());
        endpoint.user_agent = crate::user_agent::of(&entrypoint, |name| self.var(name));
        if endpoint.credential.is_none() {
            endpoint.credential = credential::helper(&settings, &self.env, &self.cwd).map(Credential::Helper);
        }
        if endpoint.credential.is_none() && self.var("CLAUDE_CODE_OAUTH_TOKEN").is_some() {
            let instead = "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN";
            output.note(format!("CLAUDE_CODE_OAUTH_TOKEN is not used, so requests carry no credential; {instead}"));
        }
        let client = Client::new(endpoint)?;
        let mut catalog = Catalog::load(&config, &project, &sources);
        plugins.iter().for_each(|plugin| catalog.add_plugin(plugin));
        settings.problems.append(&mut catalog.problems);
        if let Some(agents) = &self.options.agents {
            let bad = |reason: String| EngineError::Flag { flag: "--agents", reason };
            let json = match agents.trim_start().starts_with('{') {
                true => agents.clone(),
                false => text_file::read(&self.cwd.join(agents), None, text_file::MAX_BYTES)
                    .map_err(|error| bad(format!("{agents}: {error}")))?,
            };
            catalog.add_agents(&json).map_err(|error| bad(error.to_string()))?;
        }
        if let Some(schema) = &self.options.json_schema {
            Structured::read(schema)?;
        }
        if let (None, Some(name)) = (&self.options.agent, settings.last(|known| known.agent.clone())) {
            match catalog.agent(&name) {
                Ok(_) => self.options.agent = Some(name),
                Err(reason) => settings.problems.push(format!("agent: {reason}")),
            }
        }
        let agent = self.agent(&catalog)?.cloned();
        let model = settings.managed(|known| known.model.clone()).or_else(|| self.options.model.clone());
        // A session that goes on keeps its model unless another is asked for by flag.
        let model = model.or_else(|| chosen.model.clone());
        let model = model.or_else(|| agent.as_ref()?.own_model().map(str::to_owned));
        let model = model.or_else(|| self.var("ANTHROPIC_MODEL").map(str::to_owned));
        let model = model.or_else(|| settings.last(|known| known.model.clone()));
        let model = model.unwrap_or_else(|| models.usual().to_owned());
        let servers = mcp::Sources {
            options: &self.options,
            sources: &sources,
            files: &McpFiles::new(&self.env, &project),
            plugins: &plugins,
            trusted,
            env: &self.env,
        };
        let mcp = Mcp::configure(&servers, &mut settings)?;
        let facts = Facts {
            session_id: chosen.id.clone(),
            cwd: self.cwd.display().to_string(),
            version: crate::VERSION.to_owned(),
            git_branch: crate::prompt::git_branch(&self.cwd),
            entrypoint,
            agent_id: None,
        };
        let mut log = Log::new(chosen.path, facts, Durability::default(), !self.options.no_persistence);
        log.resume(chosen.context, chosen.at, chosen.logged);
        if self.options.session_mirror {
            log.mirror(output.clone());
        }
        let mut ledger = Ledger::new(self.options.prices.clone());
        if let Some(costs) = &chosen.costs {
            ledger.carry_over(costs);
        }
        let ledger = Arc::new(Mutex::new(ledger));
        let checkpoints =
            self.var("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING").filter(|set| !matches!(*set, "0" | "false"));
        let folder = config.join("file-history").join(chosen.id.as_str());
        let checkpoints = checkpoints.map(|_| Arc::new(Checkpoints::restore(folder, &self.cwd, &chosen.copies)));
        let summarise = crate::side::summariser(client.clone(), models.small().to_owned(), Arc::clone(&ledger));
        let place = self.place(&settings, summarise, checkpoints.clone());
        settings.problems.extend(place.sandbox().settings().warnings());
        match place.sandbox().missing() {
            Some((reason, true)) => return Err(EngineError::NoSandbox { reason }),
            Some((reason, false)) => {
                let asked = "commands that nothing allows are asked about";
                settings.problems.push(format!("sandbox.enabled: there is no sandbox ({reason}), so {asked}"));
            }
            None => {}
        }
        enforce(&rules, &place);
        let state = State {
            id: chosen.id,
            mode,
            rules,
            model: models.resolve(&model),
            planning_model: models.for_planning(&model),
            effort: self.options.effort.clone(),
            max_thinking: self.options.max_thinking_tokens,
            thinking_display: self.options.thinking_display.clone(),
            system_prompt: self.options.system_prompt.clone(),
            append_prompt: self.options.append_system_prompt.clone(),
            json_schema: self.options.json_schema.clone(),
            subagent_text: self.options.forward_subagent_text,
            catalog,
            title: self.options.name.clone().or(chosen.title),
            tools_used: Vec::new(),
            prompt_id: None,
            last_prompt: None,
            turn: None,
            roots: Vec::new(),
            calls: Vec::new(),
            greeted: false,
            doing: "idle",
            filled: 0,
            turns: chosen.turns,
            pending: Vec::new(),
            instructed: false,
            path_rules: None,
            agent,
            worktree: self.worktree.clone(),
            noted_agent: false,
            told_auto: false,
            answering: None,
            absorbed: Vec::new(),
            records_system: !self.options.no_system_prompt_snapshot,
            planning: false,
            settings: settings.clone(),
        };
        let mut hook_env = self.env.clone();
        if scrubs(&self.env) {
            tool::SECRETS.iter().for_each(|name| drop(hook_env.remove(*name)));
        }
        let session = Arc::new(Session {
            hooks: Hooks::new(&settings, self.options.hook_events),
            mcp,
            host: Host::new(output.clone(), self.options.stream_input),
            queue: Queue::default(),
            results: AtomicU64::new(0),
            held: Mutex::default(),
            log: Mutex::new(log),
            ledger,
            state: Mutex::new(state),
            options: self.options,
            hook_env,
            env: self.env,
            config,
            project,
            sources,
            trusted,
            subagents: tokio::sync::Semaphore::new(MAX_SUBAGENTS),
            output,
            client,
            request_env,
            models,
            place,
            checkpoints,
        });
        crate::background::watch(&session);
        Ok(session)
    }

    /// Reads the user's and the managed settings and takes over the environment they add.
    pub(crate) fn take_trusted_settings(&mut self) -> Result<Settings, EngineError> {
        let mut settings = Settings::load(&self.config(), &self.cwd, &[settings::Source::User], None)?;
        settings.add_managed(self.options.managed_folder.as_deref(), None)?;
        self.take_env(&settings);
        Ok(settings)
    }

    /// The person's own settings may add to the agent's environment; a project's may
    /// not: it could send the key elsewhere.
    fn take_env(&mut self, settings: &Settings) {
        for layer in settings.layers.iter().filter(|layer| layer.source.is_trusted()) {
            for (name, value) in &layer.known.env {
                match layer.source {
                    settings::Source::Managed => drop(self.env.insert(name.clone(), value.clone())),
                    _ => drop(self.env.entry(name.clone()).or_insert_with(|| value.clone())),
                }
            }
        }
    }

    fn mode(&self, settings: &mut Settings) -> Result<Mode, EngineError> {
        let no_mode = |word: &str| {
            format!("no mode '{word}'; there are default, acceptEdits, auto, plan, dontAsk and bypassPermissions")
        };
        let flag = self.options.permission_mode.as_deref();
        let bad = |word| EngineError::Flag { flag: "--permission-mode", reason: no_mode(word) };
        let flag = flag.map(|word| Mode::read(word).ok_or_else(|| bad(word))).transpose()?;
        let managed = settings.managed(|known| Mode::read(known.permissions.default_mode.as_deref()?));
        let mode = match (flag, settings.last(|known| known.permissions.default_mode.clone())) {
            _ if managed.is_some() => managed.unwrap_or_default(),
            _ if self.options.skip_permissions => Mode::BypassPermissions,
            (Some(mode), _) => mode,
            (None, Some(word)) => Mode::read(&word).unwrap_or_else(|| {
                settings.problems.push(format!("permissions.defaultMode: {}", no_mode(&word)));
                Mode::Default
            }),
            (None, None) => Mode::Default,
        };
        let refused = |why: &str| EngineError::Flag { flag: "--permission-mode", reason: format!("{mode} {why}") };
        if self.options.restricted && mode == Mode::BypassPermissions {
            return Err(refused("cannot be used with --restricted"));
        }
        if settings.forbids(mode) {
            settings.problems.push(format!("the permission mode {mode}, which settings disable; the mode is default"));
            return Ok(Mode::Default);
        }
        let sandboxed = self.var("IS_SANDBOX").is_some_and(|set| set == "1");
        if mode == Mode::BypassPermissions && !sandboxed && is_root() {
            return Err(EngineError::Root);
        }
        Ok(mode)
    }

    fn rules(&self, settings: &Settings) -> Result<Rules, EngineError> {
        let mut rules = Rules::default();
        let managed_only = settings.only_managed_rules();
        let counts = |behavior, source| !managed_only || behavior != Behavior::Allow || source == Source::Policy;
        for layer in &settings.layers {
            let source = match layer.source {
                settings::Source::User => Source::User,
                settings::Source::Project => Source::Project,
                settings::Source::Local => Source::Local,
                settings::Source::Flag => Source::FlagSettings,
                settings::Source::Managed => Source::Policy,
            };
            layer.known.permissions.each(|behavior, rule| {
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
                let reason = format!("'{text}' is no rule; write Tool or Tool(pattern)");
                let rule = Rule::parse(text).ok_or(EngineError::Flag { flag, reason })?;
                if counts(behavior, Source::Flags) {
                    rules.add(behavior, Source::Flags, rule);
                }
            }
        }
        Ok(rules)
    }

    /// What the sandbox of commands is made of. Of a project's own settings only what
    /// restricts counts.
    fn sandbox(&self, settings: &Settings) -> sandbox::Options {
        let mut merged = sandbox::Settings::default();
        for layer in &settings.layers {
            merged.add(&layer.known.sandbox, layer.source.is_trusted());
        }
        let launcher = self.options.launcher.clone();
        sandbox::Options { launcher, switch: self.options.sandbox, settings: merged, assumed: None }
    }

    fn place(&self, settings: &Settings, summarise: tool::Summarise, copies: Option<Arc<Checkpoints>>) -> Place {
        let mut env: BTreeMap<_, _> =
            self.env.iter().map(|(name, value)| (name.clone().into(), value.clone().into())).collect();
        let from_settings = settings.layers.iter().flat_map(|layer| &layer.known.env);
        env.extend(from_settings.map(|(name, value)| (name.clone().into(), value.clone().into())));
        let mut folders = self.options.add_dirs.clone();
        let more = settings.layers.iter().flat_map(|layer| &layer.known.permissions.additional_directories);
        folders.extend(more.map(PathBuf::from));
        let options = tool::Options {
            env,
            folders,
            confined: self.options.restricted,
            sandbox: self.sandbox(settings),
            before_change: copies.map(|copies| copies as Arc<dyn tool::BeforeChange>),
            summarise: Some(summarise),
            ..tool::Options::default()
        };
        Place::new(&self.cwd, options)
    }
}

impl Chosen {
    fn new(id: SessionId, path: PathBuf) -> Self {
        Self {
            id,
            path,
            context: Vec::new(),
            logged: HashSet::new(),
            at: None,
            costs: None,
            title: None,
            model: None,
            turns: 0,
            copies: Vec::new(),
            waiting: Vec::new(),
            problems: Vec::new(),
            resumed: false,
        }
    }

    /// Reads what was said in a session, up to a line when one is given; then no other
    /// turn than that of `dropping` may follow it.
    fn read(id: SessionId, path: PathBuf, at: Option<Uuid>, dropping: Option<&str>) -> Result<Self, EngineError> {
        let mut talk = Conversation::default();
        let (mut costs, mut copies, mut problems) = (None, Vec::new(), Vec::new());
        let mut waiting = Waiting::default();
        let mut logged = HashSet::new();
        for read in Entries::open(&path)? {
            let located = match read {
                Ok(located) => located,
                Err(problem) => {
                    if problem.code.starts_with("line.") && problem.code != "line.blank" {
                        problems.push(format!("line {} of the session file: {}", problem.line, problem.message));
                    }
                    continue;
                }
            };
            waiting.see(&located.entry);
            match located.entry {
                Entry::CostState(state) => costs = Some(*state),
                Entry::ApiRequestShape(line) => _ = logged.insert(line.shape_hash),
                Entry::ApiRequestBlob(line) => _ = logged.insert(line.hash),
                entry @ (Entry::FileHistorySnapshot(_) | Entry::FileHistoryDelta(_)) => copies.push(entry),
                entry => talk.push(located.line, entry),
            }
        }
        let nodes = match &at {
            None => talk.path(),
            Some(line) => {
                talk.path_to(line).ok_or_else(|| EngineError::NoLine { id: id.to_string(), uuid: line.to_string() })?
            }
        };
        if let (Some(line), Some(prompt)) = (&at, dropping) {
            drops_only(&talk.path(), line, prompt)?;
        }
        let mut context = since_compaction(&nodes).into_iter().cloned().collect();
        clear_microcompacted(&mut context);
        let turns = talk.turns().len() as u64;
        let title = talk.title().map(str::to_owned);
        let model = last_model(&nodes);
        // Who goes back to an earlier line leaves the rest behind.
        let waiting = if at.is_some() { Vec::new() } else { waiting.left() };
        Ok(Self { id, path, context, at, costs, title, model, turns, copies, logged, waiting, problems, resumed: true })
    }
}

impl Session {
    /// Names the installation: the same for one person's folder, and nothing else.
    pub(crate) fn device_id(&self) -> String {
        let digest = Sha256::digest(self.config.as_os_str().as_encoded_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Where the key is from.
    pub(crate) fn key_source(&self) -> &'static str {
        credential::source(self.client.endpoint().credential.as_ref()).unwrap_or("none")
    }
}

/// Whether hooks and MCP servers are kept from what the agent signs in with.
pub(crate) fn scrubs(env: &BTreeMap<String, String>) -> bool {
    env.get("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB").is_some_and(|set| !matches!(set.as_str(), "" | "0" | "false"))
}

/// Whether nothing is said after a line but the turn of one prompt.
fn drops_only(path: &[&Node], line: &Uuid, prompt: &str) -> Result<(), EngineError> {
    let after = path.iter().skip_while(|node| node.uuid() != Some(line)).skip(1);
    for node in after {
        let uuid = node.uuid().map(Uuid::as_str).unwrap_or_default();
        let reason = match &node.entry {
            Entry::User(user) if uuid != prompt && is_prompt(user) => format!("{uuid} is another prompt"),
            Entry::Attachment(line) if matches!(line.attachment, Attachment::QueuedCommand(_)) => {
                format!("{uuid} was said while that turn ran")
            }
            _ => continue,
        };
        return Err(EngineError::DropsMore { reason });
    }
    Ok(())
}

/// Whether somebody speaks, who is not a tool.
fn is_prompt(user: &User) -> bool {
    let answers = |block: &Block| matches!(block, Block::ToolResult(_));
    !user.is_meta.is_true() && !user.message.content.blocks().iter().any(answers)
}

/// The model that the last answer was asked for, whichever model gave it; `None` if there
/// is no answer.
fn last_model(path: &[&Node]) -> Option<String> {
    path.iter()
        .rev()
        .find_map(|node| match &node.entry {
            Entry::Assistant(line) => {
                let answered = line.message.model.text().filter(|model| *model != synthetic::MODEL)?;
                Some(line.requested_model.text().unwrap_or(answered))
            }
            _ => None,
        })
        .map(str::to_owned)
}

/// The last session of a folder among those that `is_wanted`.
fn latest(folder: &Path, is_wanted: impl Fn(&PathBuf) -> bool) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sessions = files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
    sessions.filter(is_wanted).max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok())
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
