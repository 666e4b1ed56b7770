//! Options of a conversation.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quipu_message::Json;
use quipu_message::control::RequestBody;
use quipu_message::control::request::CanUseTool;
use quipu_message::control::setup::{AgentDefinition, McpServerConfig};
use quipu_message::values::{Effort, PermissionMode, SettingSource, ThinkingDisplay};
use serde::Serialize;

use crate::callbacks::{CallbackContext, PermissionFn, RequestFn};
use crate::choices::{Skills, SystemPrompt, ThinkingMode};
use crate::conversation_state::{BadLine, BadLineFn, StderrFn};
use crate::hooks::Hook;
use crate::mcp::{Server, ServerStarter, server_starter};
use crate::permission::Decision;

/// Options of a conversation: model, tools, permissions, session, program, callbacks.
///
/// Options that are not set are left to the agent, except that the system prompt is empty,
/// as in the SDKs of other languages.
///
/// ```
/// use quipu_sdk::{Options, SystemPrompt};
/// let options = Options::new()
///     .model("claude-haiku-4-5")
///     .system_prompt(SystemPrompt::AgentDefault)
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
    pub(crate) thinking_display: Option<ThinkingDisplay>,
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

/// Declares setters: of a value (`set`, `some`), of a flag, or for adding to a list.
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

/// Model, prompt and tools.
impl Options {
    /// Options with nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// ID or alias of the model.
        some model(model: impl Into<String>) => model;
        /// Model to use while that one is overloaded.
        some fallback_model(model: impl Into<String>) => fallback_model;
        /// A beta of the API.
        push beta(name: impl Into<String>) => betas;
        /// The system prompt. Empty by default.
        set system_prompt(prompt: impl Into<SystemPrompt>) => system_prompt;
        /// Leaves sections that change from run to run out of the agent's own system prompt, so that runs share
        /// the prompt cache.
        flag exclude_dynamic_sections => exclude_dynamic_sections;
        /// Whether the model thinks before it responds, and how much.
        some thinking(thinking: ThinkingMode) => thinking;
        /// How thinking is returned: `summarized` or `omitted`.
        some thinking_display(display: impl Into<ThinkingDisplay>) => thinking_display;
        /// Effort level of the model.
        some effort(effort: impl Into<Effort>) => effort;
        /// Ends the run after this many API calls of one prompt.
        some max_turns(turns: u32) => max_turns;
        /// Ends the run when it has cost this much.
        some max_budget_usd(dollars: f64) => max_budget_usd;
        /// Number of tokens for the whole task, which the model can see.
        some task_budget(tokens: u64) => task_budget;
        /// A tool that may run without asking: a name, or a rule such as `Bash(git log:*)`.
        push allow_tool(rule: impl Into<String>) => allowed_tools;
        /// Tools that may run without asking.
        extend allow_tools(rules: impl IntoIterator<Item = impl Into<String>>) => allowed_tools;
        /// A tool that must not run: a name removes the tool, a rule denies calls.
        push disallow_tool(rule: impl Into<String>) => disallowed_tools;
        /// Tools that must not run.
        extend disallow_tools(rules: impl IntoIterator<Item = impl Into<String>>) => disallowed_tools;
        /// Skills that the model may use.
        some skills(skills: impl Into<Skills>) => skills;
        /// The folder of a plugin: commands, skills, subagents and hooks.
        push plugin(folder: impl Into<PathBuf>) => plugins;
    }

    /// Limits the agent's own tools to these; an empty list removes all.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Defines a subagent.
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
        /// MCP servers: a file, or JSON text.
        some mcp_config(file_or_json: impl Into<OsString>) => mcp_config;
        /// Uses only the MCP servers of these options.
        flag strict_mcp_config => strict_mcp_config;
    }
}

/// Permissions, hooks, and what the host is informed of.
impl Options {
    setters! {
        /// Permission mode at the start.
        some permission_mode(mode: impl Into<PermissionMode>) => permission_mode;
        /// MCP tool that decides permission requests instead of this program.
        some permission_prompt_tool(name: impl Into<String>) => permission_prompt_tool;
        /// After this time without an answer of [`Options::can_use_tool`] the tool may not
        /// run. By default there is no limit.
        some permission_timeout(timeout: Duration) => permission_timeout;
        /// Adds a hook.
        push hook(hook: Hook) => hooks;
        /// Also returns partial responses, as `stream_event` messages.
        flag include_partial_messages => partial_messages;
        /// Also returns `system` messages when hooks start and end.
        flag include_hook_events => hook_events;
        /// Also returns text and thinking of subagents, not only their tool calls.
        flag forward_subagent_text => subagent_text;
        /// Also returns each prompt when the agent starts with it.
        flag replay_prompts => replay_prompts;
        /// Also returns every entry of the transcript, as `transcript_mirror` messages.
        flag session_mirror => session_mirror;
        /// Sends prompts verbatim: `@file` and `/command` have no meaning in them.
        flag verbatim_prompts => verbatim_prompts;
    }

    /// Called for a tool call that no permission rule decides. Several calls may run at once;
    /// if the agent withdraws one, its future is dropped.
    ///
    /// ```
    /// use quipu_sdk::{Decision, Options, ToolName};
    /// let options = Options::new().can_use_tool(|call, _| async move {
    ///     match call.tool_name {
    ///         ToolName::Write => Decision::deny("This folder is only read."),
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

    /// Called for all other control requests: questions of MCP servers to the user, and
    /// requests without a type in this crate. Without it they get an error response.
    #[must_use]
    pub fn on_request<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(RequestBody, CallbackContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, String>> + Send + 'static,
    {
        self.on_request = Some(Arc::new(move |asked, context| Box::pin(answer(asked, context))));
        self
    }

    /// Called for each line that the agent writes to stderr. The last lines are also in
    /// [`Error::Ended`](crate::Error::Ended).
    #[must_use]
    pub fn on_stderr(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(hear));
        self
    }

    /// Called for each line that is not a message; such lines are skipped.
    #[must_use]
    pub fn on_bad_line(mut self, hear: impl Fn(BadLine) + Send + Sync + 'static) -> Self {
        self.on_bad_line = Some(Arc::new(hear));
        self
    }
}

/// Sessions and settings.
impl Options {
    setters! {
        /// Continues the latest session of the folder.
        flag continue_latest => continue_latest;
        /// Continues a session by its ID.
        some resume(session: impl Into<String>) => resume;
        /// Continues the resumed session after this message, given by UUID.
        some resume_at(message: impl Into<String>) => resume_at;
        /// Fails unless everything after that message belongs to this prompt.
        some resume_drops_turn(prompt: impl Into<String>) => resume_drops_turn;
        /// Continues in a copy with a new session ID.
        flag fork_session => fork;
        /// ID of the new session.
        some session_id(id: impl Into<String>) => session_id;
        /// Keeps files as they were before each prompt, for
        /// [`rewind_files`](crate::Handle::rewind_files).
        flag file_checkpointing => file_checkpointing;
        /// Settings: a file, or JSON text.
        some settings(file_or_json: impl Into<String>) => settings;
    }

    /// Limits the settings files that are read; an empty list reads none. All by default.
    #[must_use]
    pub fn setting_sources(mut self, sources: impl IntoIterator<Item = SettingSource>) -> Self {
        self.setting_sources = Some(sources.into_iter().collect());
        self
    }

    /// Sandbox of commands, as in the setting `sandbox`.
    #[must_use]
    pub fn sandbox(mut self, sandbox: &impl Serialize) -> Self {
        self.sandbox = Some(Json::from_serialize(sandbox));
        self
    }
}

/// Program, timeouts and limits.
impl Options {
    setters! {
        /// Path of the agent program, or its name on the PATH or in the folder of this program. By
        /// default: what `QUIPU_CLI` names, `claude` or `quipu-agent`.
        some cli(program: impl Into<PathBuf>) => cli;
        /// Accepts an agent of any version.
        flag skip_version_check => skip_version_check;
        /// Working directory of the agent.
        some cwd(folder: impl Into<PathBuf>) => cwd;
        /// Additional folder that the agent may work in.
        push add_dir(folder: impl Into<PathBuf>) => add_dirs;
        /// Name of your program for the API, such as `my-app/1.0.0`.
        some client_app(name: impl Into<String>) => client_app;
        /// Time limit for the response to a control request. Default: 60 seconds.
        set response_timeout(timeout: Duration) => response_timeout;
        /// Time limit for the start of the agent, with its MCP servers. Default: 60 seconds.
        set start_timeout(timeout: Duration) => start_timeout;
        /// How long the agent may take to exit after its input is closed. Default: 5 seconds.
        set close_timeout(timeout: Duration) => close_timeout;
        /// Longest line that is read; longer ones are skipped. Default: 64 MiB.
        set max_line_bytes(bytes: usize) => max_line_bytes;
        /// Size of the buffer of unread messages; when it is full, the agent's writes block.
        /// Default: 8 MiB, and eight times as much while a control response is pending. Each
        /// message counts for 1 KiB more than its text.
        set max_buffered_bytes(bytes: usize) => max_buffered_bytes;
    }

    /// Adds an environment variable to those the agent inherits.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Adds a flag that this crate has no method for; `name` is without dashes.
    #[must_use]
    pub fn extra_flag(mut self, name: impl Into<String>) -> Self {
        self.extra_args.push((name.into(), None));
        self
    }

    /// Adds a flag with a value; `name` is without dashes.
    #[must_use]
    pub fn extra_arg(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.extra_args.push((name.into(), Some(value.into())));
        self
    }
}
