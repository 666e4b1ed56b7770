//! Everything that can be said about an agent before it begins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quipu_message::Json;
use quipu_message::control::RequestBody;
use quipu_message::control::request::CanUseTool;
use quipu_message::control::setup::{AgentDefinition, McpServerConfig};
use quipu_message::values::{Effort, PermissionMode, SettingSource};
use serde::Serialize;

use crate::callbacks::{CallbackContext, PermissionFn, RequestFn};
use crate::choices::{Skills, SystemPrompt, ThinkingMode};
use crate::conversation_state::{BadLine, BadLineFn, StderrFn};
use crate::hooks::Hook;
use crate::mcp::{Server, ServerStarter, server_starter};
use crate::permission::Decision;

/// Everything that can be said about an agent before it begins. What is not said is left
/// to the agent, except that its system prompt is empty unless you say otherwise, as in
/// the SDKs of other languages.
///
/// ```
/// use quipu_sdk::{Options, SystemPrompt};
/// let options = Options::new()
///     .model("claude-haiku-4-5")
///     .system_prompt(SystemPrompt::Own)
///     .allow_tools(["Read", "Grep"])
///     .max_turns(5);
/// # let _ = options;
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) allowed_tools: Vec<String>,
    pub(crate) disallowed_tools: Vec<String>,
    pub(crate) system_prompt: SystemPrompt,
    pub(crate) exclude_dynamic_sections: bool,
    pub(crate) model: Option<String>,
    pub(crate) fallback_model: Option<String>,
    pub(crate) betas: Vec<String>,
    pub(crate) thinking: Option<ThinkingMode>,
    pub(crate) thinking_display: Option<String>,
    pub(crate) effort: Option<Effort>,
    pub(crate) output_schema: Option<Json>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) max_budget_usd: Option<f64>,
    pub(crate) task_budget: Option<u64>,
    pub(crate) permission_mode: Option<PermissionMode>,
    pub(crate) permission_prompt_tool: Option<String>,
    pub(crate) settings: Option<String>,
    pub(crate) setting_sources: Option<Vec<SettingSource>>,
    pub(crate) sandbox: Option<Json>,
    pub(crate) skills: Option<Skills>,
    pub(crate) agents: BTreeMap<String, AgentDefinition>,
    pub(crate) plugins: Vec<PathBuf>,
    pub(crate) mcp_servers: BTreeMap<String, McpServerConfig>,
    pub(crate) mcp_config: Option<OsString>,
    pub(crate) strict_mcp_config: bool,
    pub(crate) in_process_servers: BTreeMap<String, ServerStarter>,
    pub(crate) continue_latest: bool,
    pub(crate) resume: Option<String>,
    pub(crate) resume_at: Option<String>,
    pub(crate) resume_drops_turn: Option<String>,
    pub(crate) fork: bool,
    pub(crate) session_id: Option<String>,
    pub(crate) session_mirror: bool,
    pub(crate) file_checkpointing: bool,
    pub(crate) partial_messages: bool,
    pub(crate) hook_events: bool,
    pub(crate) subagent_text: bool,
    pub(crate) replay_prompts: bool,
    pub(crate) verbatim_prompts: bool,
    pub(crate) cli: Option<PathBuf>,
    pub(crate) skip_version_check: bool,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) add_dirs: Vec<PathBuf>,
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) client_app: Option<String>,
    pub(crate) extra_args: Vec<(String, Option<OsString>)>,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) can_use_tool: Option<PermissionFn>,
    pub(crate) on_request: Option<RequestFn>,
    pub(crate) on_stderr: Option<StderrFn>,
    pub(crate) on_bad_line: Option<BadLineFn>,
    pub(crate) permission_timeout: Option<Duration>,
    pub(crate) response_timeout: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) close_timeout: Duration,
    pub(crate) max_line_bytes: usize,
    pub(crate) max_buffered_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tools: None,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            system_prompt: SystemPrompt::default(),
            exclude_dynamic_sections: false,
            model: None,
            fallback_model: None,
            betas: Vec::new(),
            thinking: None,
            thinking_display: None,
            effort: None,
            output_schema: None,
            max_turns: None,
            max_budget_usd: None,
            task_budget: None,
            permission_mode: None,
            permission_prompt_tool: None,
            settings: None,
            setting_sources: None,
            sandbox: None,
            skills: None,
            agents: BTreeMap::new(),
            plugins: Vec::new(),
            mcp_servers: BTreeMap::new(),
            mcp_config: None,
            strict_mcp_config: false,
            in_process_servers: BTreeMap::new(),
            continue_latest: false,
            resume: None,
            resume_at: None,
            resume_drops_turn: None,
            fork: false,
            session_id: None,
            session_mirror: false,
            file_checkpointing: false,
            partial_messages: false,
            hook_events: false,
            subagent_text: false,
            replay_prompts: false,
            verbatim_prompts: false,
            cli: None,
            skip_version_check: false,
            cwd: None,
            add_dirs: Vec::new(),
            env: BTreeMap::new(),
            client_app: None,
            extra_args: Vec::new(),
            hooks: Vec::new(),
            can_use_tool: None,
            on_request: None,
            on_stderr: None,
            on_bad_line: None,
            permission_timeout: None,
            response_timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(60),
            close_timeout: Duration::from_secs(5),
            max_line_bytes: 64 << 20,
            max_buffered_bytes: 8 << 20,
        }
    }
}

/// Declares setters: of a value, of a flag, or of one more in a list.
macro_rules! setters {
    ($( $(#[$doc:meta])* $kind:ident $name:ident $(($arg:ident: $ty:ty))? => $field:ident; )+) => {
        $( setters! { @ $kind [$(#[$doc])*] $name ($($arg: $ty)?) $field } )+
    };
    (@ set [$($doc:tt)*] $name:ident ($arg:ident: $ty:ty) $field:ident) => {
        $($doc)*
        #[must_use]
        pub fn $name(mut self, $arg: $ty) -> Self {
            self.$field = $arg.into();
            self
        }
    };
    (@ some [$($doc:tt)*] $name:ident ($arg:ident: $ty:ty) $field:ident) => {
        $($doc)*
        #[must_use]
        pub fn $name(mut self, $arg: $ty) -> Self {
            self.$field = Some($arg.into());
            self
        }
    };
    (@ flag [$($doc:tt)*] $name:ident () $field:ident) => {
        $($doc)*
        #[must_use]
        pub fn $name(mut self) -> Self {
            self.$field = true;
            self
        }
    };
    (@ push [$($doc:tt)*] $name:ident ($arg:ident: $ty:ty) $field:ident) => {
        $($doc)*
        #[must_use]
        pub fn $name(mut self, $arg: $ty) -> Self {
            self.$field.push($arg.into());
            self
        }
    };
    (@ extend [$($doc:tt)*] $name:ident ($arg:ident: $ty:ty) $field:ident) => {
        $($doc)*
        #[must_use]
        pub fn $name(mut self, $arg: $ty) -> Self {
            self.$field.extend($arg.into_iter().map(Into::into));
            self
        }
    };
}

/// What the model is, knows and may do.
impl Options {
    /// Nothing said yet.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// The model.
        some model(model: impl Into<String>) => model;
        /// The model to turn to when that one is overloaded.
        some fallback_model(model: impl Into<String>) => fallback_model;
        /// A beta of the API.
        push beta(name: impl Into<String>) => betas;
        /// What the model is told first. Empty unless you say otherwise.
        set system_prompt(prompt: impl Into<SystemPrompt>) => system_prompt;
        /// Leaves what changes from run to run out of the agent's own system prompt, so
        /// that the prompt cache serves many.
        flag exclude_dynamic_sections => exclude_dynamic_sections;
        /// Whether and how far the model thinks.
        some thinking(thinking: ThinkingMode) => thinking;
        /// How thinking is told: `summarized` or `omitted`.
        some thinking_display(display: impl Into<String>) => thinking_display;
        /// How hard the model works.
        some effort(effort: impl Into<Effort>) => effort;
        /// Ends after so many turns of the model.
        some max_turns(turns: u32) => max_turns;
        /// Ends when this much was spent.
        some max_budget_usd(dollars: f64) => max_budget_usd;
        /// Tells the model how many tokens it has for the task.
        some task_budget(tokens: u64) => task_budget;
        /// A tool that may run without asking: a name, or a rule such as `Bash(git log:*)`.
        push allow_tool(rule: impl Into<String>) => allowed_tools;
        /// Tools that may run without asking.
        extend allow_tools(rules: impl IntoIterator<Item = impl Into<String>>) => allowed_tools;
        /// A tool that must not run: a name takes it from the model, a rule refuses calls.
        push disallow_tool(rule: impl Into<String>) => disallowed_tools;
        /// Tools that must not run.
        extend disallow_tools(rules: impl IntoIterator<Item = impl Into<String>>) => disallowed_tools;
        /// The skills the model is offered.
        some skills(skills: impl Into<Skills>) => skills;
        /// The folder of a plugin: commands, skills, subagents and hooks.
        push plugin(folder: impl Into<PathBuf>) => plugins;
    }

    /// The agent's own tools that the model has; none of them when the list is empty.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// A subagent.
    #[must_use]
    pub fn agent(mut self, name: impl Into<String>, agent: AgentDefinition) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// The form that the final answer must have: a JSON Schema. The answer is in the
    /// `structured_output` of the result.
    #[must_use]
    pub fn output_schema(mut self, schema: &impl Serialize) -> Self {
        self.output_schema = Some(Json::from_serialize(schema));
        self
    }

    /// The form that the final answer must have: that of a type of yours.
    #[must_use]
    pub fn output_type<T: schemars::JsonSchema>(self) -> Self {
        self.output_schema(&schemars::schema_for!(T))
    }

    /// A server of tools that are closures of this program.
    #[must_use]
    pub fn mcp_server(self, server: Server) -> Self {
        self.mcp_handler(server.name().to_owned(), server)
    }

    /// Any MCP server that rmcp serves, inside this program. Each conversation has its
    /// own copy.
    #[must_use]
    pub fn mcp_handler(mut self, name: impl Into<String>, handler: impl rmcp::ServerHandler + Clone) -> Self {
        self.in_process_servers.insert(name.into(), server_starter(handler));
        self
    }

    /// An MCP server elsewhere.
    #[must_use]
    pub fn mcp_server_config(mut self, name: impl Into<String>, server: McpServerConfig) -> Self {
        self.mcp_servers.insert(name.into(), server);
        self
    }

    setters! {
        /// MCP servers as a file or as JSON text says.
        some mcp_config(file_or_json: impl Into<OsString>) => mcp_config;
        /// No other MCP servers than those said here.
        flag strict_mcp_config => strict_mcp_config;
    }
}

/// Who is asked, and who is told.
impl Options {
    setters! {
        /// What may be done without asking.
        some permission_mode(mode: impl Into<PermissionMode>) => permission_mode;
        /// An MCP tool that is asked instead of this program.
        some permission_prompt_tool(name: impl Into<String>) => permission_prompt_tool;
        /// After this time without an answer of [`Options::can_use_tool`] the tool may not
        /// run. A person may take as long as they like unless you say so.
        some permission_timeout(timeout: Duration) => permission_timeout;
        /// A hook.
        push hook(hook: Hook) => hooks;
        /// Pieces of answers come as they are written, as `stream_event` messages.
        flag include_partial_messages => partial_messages;
        /// Hooks that begin and end are told of, as `system` messages.
        flag include_hook_events => hook_events;
        /// What subagents say and think is told, not only their calls.
        flag forward_subagent_text => subagent_text;
        /// Prompts are told back when the agent takes them up.
        flag replay_prompts => replay_prompts;
        /// Everything written to the session's file is told too, as `transcript_mirror`
        /// messages.
        flag session_mirror => session_mirror;
        /// Prompts are taken as they are: `@file` and `/command` have no meaning in them.
        flag verbatim_prompts => verbatim_prompts;
    }

    /// Asks whether a tool may run, when no rule says so. Several questions may be open
    /// at once; one that the agent withdraws is dropped.
    ///
    /// ```
    /// use quipu_sdk::{Decision, Options};
    /// let options = Options::new().can_use_tool(|call, _| async move {
    ///     match call.tool_name.as_str() {
    ///         "Write" => Decision::deny("This folder is only read."),
    ///         _ => Decision::allow(),
    ///     }
    /// });
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn can_use_tool<F, R>(mut self, decide: F) -> Self
    where
        F: Fn(CanUseTool, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = Decision> + Send + 'static,
    {
        self.can_use_tool = Some(Arc::new(move |asked, context| Box::pin(decide(asked, context))));
        self
    }

    /// Answers whatever else an agent may ask: questions of MCP servers to the person,
    /// and what this crate has no types for. Without it these are answered with an error.
    #[must_use]
    pub fn on_request<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(RequestBody, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        self.on_request = Some(Arc::new(move |asked, context| Box::pin(answer(asked, context))));
        self
    }

    /// Hears what the agent writes to stderr, line by line. The last lines are in
    /// [`Error::Ended`](crate::Error::Ended) in any case.
    #[must_use]
    pub fn on_stderr(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(hear));
        self
    }

    /// Hears of lines that are no messages. They are passed over; the conversation goes on.
    #[must_use]
    pub fn on_bad_line(mut self, hear: impl Fn(BadLine) + Send + Sync + 'static) -> Self {
        self.on_bad_line = Some(Arc::new(hear));
        self
    }
}

/// Which session, and what of it is kept.
impl Options {
    setters! {
        /// Goes on with the latest session of the folder.
        flag continue_latest => continue_latest;
        /// Goes on with a session.
        some resume(session: impl Into<String>) => resume;
        /// Goes on from an earlier message of it.
        some resume_at(message: impl Into<String>) => resume_at;
        /// Refuses to go on from there unless all that is dropped belongs to this prompt.
        some resume_drops_turn(prompt: impl Into<String>) => resume_drops_turn;
        /// Goes on in a copy, under a new id.
        flag fork_session => fork;
        /// The id of the new session.
        some session_id(id: impl Into<String>) => session_id;
        /// Keeps files as they were before each prompt, for
        /// [`rewind_files`](crate::Handle::rewind_files).
        flag file_checkpointing => file_checkpointing;
        /// Settings: a file, or JSON text.
        some settings(file_or_json: impl Into<String>) => settings;
    }

    /// Whose settings are read; an empty list reads none. All of them unless you say so.
    #[must_use]
    pub fn setting_sources(mut self, sources: impl IntoIterator<Item = SettingSource>) -> Self {
        self.setting_sources = Some(sources.into_iter().collect());
        self
    }

    /// How commands are fenced in: the `sandbox` settings.
    #[must_use]
    pub fn sandbox(mut self, sandbox: &impl Serialize) -> Self {
        self.sandbox = Some(Json::from_serialize(sandbox));
        self
    }
}

/// The program, and how it is treated.
impl Options {
    setters! {
        /// The program. Otherwise: what `QUIPU_CLI` names, `claude` or `quipu-agent` on
        /// the PATH, `quipu-agent` beside this program.
        some cli(program: impl Into<PathBuf>) => cli;
        /// Takes a program of any version.
        flag skip_version_check => skip_version_check;
        /// The folder it works in.
        some cwd(folder: impl Into<PathBuf>) => cwd;
        /// Another folder it may work in.
        push add_dir(folder: impl Into<PathBuf>) => add_dirs;
        /// What your program calls itself to the API, such as `my-app/1.0.0`.
        some client_app(name: impl Into<String>) => client_app;
        /// How long to wait for an answer to a control request.
        set response_timeout(timeout: Duration) => response_timeout;
        /// How long the agent may take to begin, with its MCP servers.
        set start_timeout(timeout: Duration) => start_timeout;
        /// How long the agent may take to end by itself.
        set close_timeout(timeout: Duration) => close_timeout;
        /// The longest line that is read, in bytes; a longer one is passed over. 64 MiB
        /// unless you say otherwise.
        set max_line_bytes(bytes: usize) => max_line_bytes;
        /// How many bytes of messages may wait for you; then the agent waits. 8 MiB unless
        /// you say otherwise, and eight times as much while an answer is awaited. Each
        /// message counts for a kibibyte more than its text.
        set max_buffered_bytes(bytes: usize) => max_buffered_bytes;
    }

    /// Puts something into the program's environment, beside what is in ours.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// A flag of the program that this crate has no name for, without its dashes.
    #[must_use]
    pub fn extra_flag(mut self, name: impl Into<String>) -> Self {
        self.extra_args.push((name.into(), None));
        self
    }

    /// A flag with a value.
    #[must_use]
    pub fn extra_arg(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.extra_args.push((name.into(), Some(value.into())));
        self
    }
}
