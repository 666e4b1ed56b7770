//! Open enums for fields whose value is one of a few strings.
//!
//! Each keeps a string it does not know as `Other`, so such a value is written back as it
//! was read. Values that only hooks have are in [`hook`](crate::hook), those of tool inputs
//! and outputs in [`tool`](crate::tool).

use crate::macros::open_str_enum;

open_str_enum! {
    /// Which tool calls run without asking the user.
    pub enum PermissionMode {
        /// Calls that only read run; rules or the user decide about the others.
        "default" => Default,
        /// File changes in the session's folders run too.
        "acceptEdits" => AcceptEdits,
        /// Nothing is changed until the user accepts a plan.
        "plan" => Plan,
        /// Calls that would need to be asked about are denied.
        "dontAsk" => DontAsk,
        /// The agent decides: another model or a sandbox replaces the question.
        "auto" => Auto,
        /// Every call runs that no rule denies.
        "bypassPermissions" => BypassPermissions,
        /// Another name for `default`.
        "manual" => Manual,
    }
}

open_str_enum! {
    /// How much work the model puts into a response.
    pub enum Effort {
        /// The least.
        "low" => Low,
        /// Between `low` and `high`.
        "medium" => Medium,
        /// The API's default.
        "high" => High,
        /// Between `high` and `max`.
        "xhigh" => XHigh,
        /// No limit on effort.
        "max" => Max,
    }
}

open_str_enum! {
    /// Which settings files are read.
    pub enum SettingSource {
        /// The user's own settings, for all projects.
        "user" => User,
        /// The settings committed to the project, and its `CLAUDE.md`.
        "project" => Project,
        /// The user's settings for the project, not committed.
        "local" => Local,
    }
}

open_str_enum! {
    /// Why the model stopped writing a message.
    pub enum StopReason {
        /// The message is complete.
        "end_turn" => EndTurn,
        /// The output limit (`max_tokens`) was reached.
        "max_tokens" => MaxTokens,
        /// The model wrote one of the request's stop sequences.
        "stop_sequence" => StopSequence,
        /// The model waits for the results of its tool calls.
        "tool_use" => ToolUse,
        /// The server paused a long turn; sending the message back continues it.
        "pause_turn" => PauseTurn,
        /// The model refused to answer.
        "refusal" => Refusal,
        /// The context window is full.
        "model_context_window_exceeded" => ContextWindowExceeded,
    }
}

open_str_enum! {
    /// Severity of a `system` entry that is shown to the user.
    pub enum MessageLevel {
        /// Information.
        "info" => Info,
        /// Information that is shown more prominently.
        "notice" => Notice,
        /// A hint about what the user could do.
        "suggestion" => Suggestion,
        /// Something that may need attention.
        "warning" => Warning,
        /// A failure.
        "error" => Error,
    }
}

open_str_enum! {
    /// What started a compaction.
    pub enum CompactTrigger {
        /// The user, with `/compact`.
        "manual" => Manual,
        /// The agent, because the context was nearly full.
        "auto" => Auto,
    }
}

open_str_enum! {
    /// State of a subagent or background command.
    pub enum TaskState {
        /// Not started yet.
        "pending" => Pending,
        /// Still running.
        "running" => Running,
        /// Ended without being stopped.
        "completed" => Completed,
        /// Ended with an error.
        "failed" => Failed,
        /// Ended by a signal of the agent.
        "killed" => Killed,
        /// Ended at the request of the user or the model.
        "stopped" => Stopped,
        /// Started in the background; the tool result is only an acknowledgement.
        "async_launched" => AsyncLaunched,
    }
}

open_str_enum! {
    /// What runs as a background task.
    pub enum TaskType {
        /// A shell command.
        "local_bash" => LocalBash,
        /// A subagent.
        "local_agent" => LocalAgent,
    }
}

open_str_enum! {
    /// What a session is doing.
    pub enum SessionActivity {
        /// No turn is running.
        "idle" => Idle,
        /// A turn is running.
        "running" => Running,
        /// A turn waits for the host, usually for a permission decision.
        "requires_action" => RequiresAction,
    }
}

open_str_enum! {
    /// Which step the program is in, as a `system/status` entry reports it.
    pub enum ActivityStatus {
        /// An API call was sent.
        "requesting" => Requesting,
        /// The conversation is being compacted.
        "compacting" => Compacting,
    }
}

open_str_enum! {
    /// How a compaction ended.
    pub enum CompactResult {
        /// With a summary.
        "success" => Success,
        /// Without one; the conversation is unchanged.
        "failed" => Failed,
    }
}

open_str_enum! {
    /// What happened to the queue of prompts that wait for the running turn.
    pub enum QueueAction {
        /// A prompt was added.
        "enqueue" => Enqueue,
        /// The next prompt was taken to start a turn.
        "dequeue" => Dequeue,
        /// A prompt was taken out of order.
        "remove" => Remove,
        /// The queue was emptied.
        "popAll" => PopAll,
    }
}

open_str_enum! {
    /// Why a prompt left the queue.
    pub enum QueueReason {
        /// The running turn took it in.
        "absorbed_mid_turn" => AbsorbedMidTurn,
        /// The host cancelled it.
        "cancelled" => Cancelled,
        /// The session was resumed, which sent it again.
        "resumed" => Resumed,
    }
}

open_str_enum! {
    /// State of a prompt that the host sent.
    pub enum CommandState {
        /// It waits for the running turn.
        "queued" => Queued,
        /// Its turn has started.
        "started" => Started,
        /// Its turn has ended.
        "completed" => Completed,
    }
}

open_str_enum! {
    /// What kind of text a queued prompt is.
    pub enum CommandMode {
        /// A prompt of the user or the host.
        "prompt" => Prompt,
        /// The report that a background task has ended.
        "task-notification" => TaskNotification,
    }
}

open_str_enum! {
    /// Who wrote a `user` entry.
    pub enum OriginKind {
        /// The user.
        "human" => Human,
        /// The agent, to report that a background task has ended.
        "task-notification" => TaskNotification,
        /// Another program, through a channel.
        "channel" => Channel,
    }
}

open_str_enum! {
    /// How a prompt reached the agent.
    pub enum PromptSource {
        /// The host sent it.
        "sdk" => Sdk,
        /// The agent wrote it.
        "system" => System,
    }
}

open_str_enum! {
    /// What a permission rule does with the calls it matches.
    pub enum RuleBehavior {
        /// They run.
        "allow" => Allow,
        /// They do not run.
        "deny" => Deny,
        /// The user or the host is asked.
        "ask" => Ask,
    }
}

open_str_enum! {
    /// Where a permission rule or setting is stored.
    pub enum SettingsLocation {
        /// The user's settings.
        "userSettings" => UserSettings,
        /// The project's committed settings.
        "projectSettings" => ProjectSettings,
        /// The user's settings for the project.
        "localSettings" => LocalSettings,
        /// Settings given by `--settings`.
        "flagSettings" => FlagSettings,
        /// Settings of an administrator.
        "policySettings" => PolicySettings,
        /// Flags of the command line, such as `--allowedTools`.
        "cliArg" => CliArg,
        /// A slash command, while its prompt is answered.
        "command" => Command,
        /// The running session; nothing is stored.
        "session" => Session,
    }
}

open_str_enum! {
    /// Whether a tool call was permitted.
    pub enum DecisionOutcome {
        /// It ran.
        "accept" => Accept,
        /// It did not run.
        "reject" => Reject,
    }
}

open_str_enum! {
    /// Who decided whether a tool call may run.
    pub enum DecisionSource {
        /// A rule or the permission mode.
        "config" => Config,
        /// A hook.
        "hook" => Hook,
        /// The user or the host, and a rule was stored.
        "user_permanent" => UserPermanent,
        /// The user or the host, for this call.
        "user_temporary" => UserTemporary,
        /// The user or the host refused.
        "user_reject" => UserReject,
    }
}

open_str_enum! {
    /// What kind of reason a permission decision has.
    pub enum DecisionReasonType {
        /// A rule matched.
        "rule" => Rule,
        /// The permission mode decides about such calls.
        "mode" => Mode,
        /// A hook decided.
        "hook" => Hook,
        /// The parts of a shell command had different decisions.
        "subcommandResults" => SubcommandResults,
        /// A background agent has no user to ask.
        "asyncAgent" => AsyncAgent,
        /// Any other reason.
        "other" => OtherReason,
    }
}

open_str_enum! {
    /// Why a tool call did not run.
    pub enum NonExecutionKind {
        /// A rule, the mode or a hook denied it.
        "permission-rule" => PermissionRule,
        /// The user or the host denied it.
        "user-rejected" => UserRejected,
    }
}

open_str_enum! {
    /// Why a turn ended, in more detail than [`TurnOutcome`](crate::stream::TurnOutcome).
    pub enum TerminalReason {
        /// The model gave its final answer.
        "completed" => Completed,
        /// The limit of API calls in a turn was reached.
        "max_turns" => MaxTurns,
        /// The limit of money was reached.
        "budget_exhausted" => BudgetExhausted,
        /// The user interrupted while the model wrote.
        "aborted_streaming" => AbortedStreaming,
        /// The user interrupted while tools ran.
        "aborted_tools" => AbortedTools,
        /// An API call failed for good.
        "api_error" => ApiError,
        /// The conversation does not fit the context window.
        "prompt_too_long" => PromptTooLong,
        /// No structured output matched the schema.
        "structured_output_retries" => StructuredOutputRetries,
        /// The session file could not be written.
        "session_file" => SessionFile,
    }
}

open_str_enum! {
    /// State of the connection to an MCP server.
    pub enum McpServerState {
        /// Its tools can be called.
        "connected" => Connected,
        /// Connecting failed or the connection was lost.
        "failed" => Failed,
        /// The user must log in first.
        "needs-auth" => NeedsAuth,
        /// Connecting.
        "pending" => Pending,
        /// Turned off by the user or the host.
        "disabled" => Disabled,
    }
}

open_str_enum! {
    /// How messages reach an MCP server.
    pub enum McpTransport {
        /// Standard input and output of a program.
        "stdio" => Stdio,
        /// Streamable HTTP.
        "http" => Http,
        /// HTTP with server-sent events, the older form.
        "sse" => Sse,
        /// Control requests to the host, which runs the server.
        "sdk" => Sdk,
    }
}

open_str_enum! {
    /// Whether the model thinks before it answers.
    pub enum ThinkingKind {
        /// The model decides.
        "adaptive" => Adaptive,
        /// Always, within a budget of tokens.
        "enabled" => Enabled,
        /// Never.
        "disabled" => Disabled,
    }
}

open_str_enum! {
    /// How long the API keeps a cached prefix.
    pub enum CacheLifetime {
        /// Five minutes, the default.
        "5m" => FiveMinutes,
        /// One hour, at a higher price.
        "1h" => OneHour,
    }
}

open_str_enum! {
    /// How the API returns thinking.
    pub enum ThinkingDisplay {
        /// As a summary.
        "summarized" => Summarized,
        /// Not at all; only its signature.
        "omitted" => Omitted,
        /// As short reports while the model thinks.
        "updates" => Updates,
        /// As its most important parts.
        "highlights" => Highlights,
    }
}

open_str_enum! {
    /// Whether the model must call a tool.
    pub enum ToolChoiceKind {
        /// The model decides.
        "auto" => Auto,
        /// It must call a tool, whichever.
        "any" => Any,
        /// It must call the named tool.
        "tool" => Tool,
        /// It must not call a tool.
        "none" => NoTool,
    }
}

open_str_enum! {
    /// Type of an error of the API.
    pub enum ApiErrorType {
        /// Invalid request (400).
        "invalid_request_error" => InvalidRequest,
        /// The key was rejected (401).
        "authentication_error" => Authentication,
        /// The account has no credit or a payment failed (402).
        "billing_error" => Billing,
        /// The key may not use the resource (403).
        "permission_error" => Permission,
        /// The resource does not exist, for example the model (404).
        "not_found_error" => NotFound,
        /// The request has too many bytes (413).
        "request_too_large" => RequestTooLarge,
        /// Too many requests (429).
        "rate_limit_error" => RateLimit,
        /// The server failed (500).
        "api_error" => Api,
        /// The server did not finish in time (504).
        "timeout_error" => Timeout,
        /// The server has too much to do (529).
        "overloaded_error" => Overloaded,
    }
}

open_str_enum! {
    /// Service tier that served an API call.
    pub enum ServiceTier {
        /// Shared capacity.
        "standard" => Standard,
        /// Reserved capacity.
        "priority" => Priority,
        /// The Batch API.
        "batch" => Batch,
    }
}

open_str_enum! {
    /// Speed at which the model wrote.
    pub enum Speed {
        /// The usual speed.
        "standard" => Standard,
        /// Faster, at a higher price.
        "fast" => Fast,
    }
}

open_str_enum! {
    /// Where the bytes of an image or document are.
    pub enum MediaSourceKind {
        /// In the message, in base64.
        "base64" => Base64,
        /// At an address.
        "url" => Url,
        /// In the message, as text.
        "text" => Text,
        /// In a file that was uploaded to the API.
        "file" => File,
    }
}

open_str_enum! {
    /// What fills a part of the context window.
    pub enum ContextCategoryKind {
        /// Text that is sent.
        "used" => Used,
        /// Nothing.
        "free" => Free,
        /// Space that is kept for compaction.
        "buffer" => Buffer,
    }
}

open_str_enum! {
    /// What the agent does if a hook fails.
    pub enum HookFailurePolicy {
        /// Blocks, as if the hook had refused.
        "block" => Block,
        /// Continues, the default.
        "continue" => Continue,
    }
}

open_str_enum! {
    /// Where a subagent stores its memory.
    pub enum MemoryScope {
        /// With the user's settings, for all projects.
        "user" => User,
        /// In the project, committed.
        "project" => Project,
        /// In the project, not committed.
        "local" => Local,
    }
}

open_str_enum! {
    /// Whether a subagent's turn is waited for.
    pub enum RequestShape {
        /// Its tool call waits for it.
        "foreground" => Foreground,
        /// The turn that started it continues.
        "background" => Background,
    }
}

open_str_enum! {
    /// What is retried after an API error.
    pub enum RetrySource {
        /// The connection.
        "connection_retry" => Connection,
        /// The request.
        "request_retry" => Request,
    }
}

open_str_enum! {
    /// Response of the user to an elicitation request.
    pub enum ElicitationAction {
        /// The user filled in the form.
        "accept" => Accept,
        /// The user declined.
        "decline" => Decline,
        /// The user did not respond.
        "cancel" => Cancel,
    }
}
